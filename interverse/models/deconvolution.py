"""The decoder's image head: two transposed convolutions with a batch norm between them.

The first convolution does not overlap (kernel = stride), so each pixel's features are a linear map
of one cell's few numbers. Their batch mean and variance therefore follow exactly from the mean
and covariance of those numbers, and the normalisation folds into the kernel: no pass over the
feature maps (256 x 50 x 50 per image), which otherwise dominate the cost of a likelihood update.

The second has three output channels, a shape that matrix units are bad at. On the CPU it runs
image by image in cache as a product and a fold, and features are recomputed in the backward pass
rather than kept (10 GB for a batch of 512). On a GPU both layers run on cells of 5 x 5 pixels: a
linear map from objects to 25 x width features, then a 3 x 3 convolution to 25 x 3 values.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.models.norm_statistics import norm_statistics, track

_CPU_CHUNK = 4  # images whose features fit in cache together


def full_precision(like: Tensor) -> torch.autocast:
    """Returns a context in which autocast is off.

    Mixed precision is for the convolutions, which are the cost; states and statistics rounded to
    eight bits would blur the distances that ranking compares.
    """
    return torch.autocast(like.device.type, enabled=False)


@final
class PatchDecoder(nn.Module):
    """Object maps to image logits: cells of 5 x 5 pixels, then a 9 x 9 blur."""

    def __init__(self, objects: int, width: int, *, norm_first: bool = True) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.in_cache = True  # allows the CPU path, which cannot be mapped over stacked weights
        self.cells = nn.ConvTranspose2d(objects, width, 5, stride=5)
        self.norm = nn.BatchNorm2d(width)
        self.image = nn.ConvTranspose2d(width, 3, 9, padding=4)
        # [tap, p, r]: whether it carries pixel p of a cell to pixel r of the 13 it reaches.
        reach = torch.zeros(9, 5, 13)
        for p in range(5):
            reach[range(9), p, range(p, p + 9)] = 1.0
        self.register_buffer("reach", reach, persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        """Returns logits (B, 3, 5 h, 5 w) of maps (B, objects, h, w)."""
        if not self.norm_first:
            return self.image(self.norm(functional.relu(self.cells(maps))))
        kernel, shift = self._folded(maps)
        if self.in_cache and maps.device.type == "cpu":
            with full_precision(maps):
                head: Tensor = _Head.apply(  # type: ignore[no-untyped-call]
                    maps, kernel, shift, self.image.weight, self.image.bias
                )
                return head
        return self._on_cells(maps, kernel, shift)

    def _on_cells(self, maps: Tensor, kernel: Tensor, shift: Tensor) -> Tensor:
        """Returns the logits by way of features (B h w, 25 width): a cell's pixels together."""
        batch, objects, h, w = maps.shape
        rows = maps.movedim(1, 3).reshape(-1, objects)
        features = functional.relu(functional.linear(rows, _by_cell(kernel).T, shift.repeat(25)))
        with full_precision(maps):
            reached = self._reached()
        windows = (features @ reached)[:, : 13 * 13 * 3].to(maps.dtype)
        # What falls on the cell's own pixels and on those around: 3 x 3 cells of 5 x 5 pixels.
        parts = functional.pad(windows.reshape(-1, 13, 13, 3), (0, 0, 1, 1, 1, 1))
        pixels = _gathered(parts.reshape(batch, h, w, 3, 5, 3, 5, 3))
        bias = self.image.bias
        assert bias is not None
        image = pixels.permute(0, 5, 1, 3, 2, 4).reshape(batch, 3, 5 * h, 5 * w)
        return image + bias[:, None, None]

    def _reached(self) -> Tensor:
        """Returns (25 width, 512): the 9 x 9 kernel from a cell's features to the pixels around.

        These are 13 x 13 x 3 values; five zeros more let the matrix units load whole rows.
        """
        both = torch.einsum("ckyx,ypr,xqs->pqcrsk", self.image.weight, self.reach, self.reach)
        return functional.pad(both.flatten(3).flatten(0, 2), (0, 5))

    def _folded(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the kernel and shift of convolution and normalisation together."""
        weight, bias = self.cells.weight, self.cells.bias
        assert bias is not None
        if self.training:
            with full_precision(maps):
                moments = _feature_moments(maps.to(weight.dtype), weight)
            count = 25 * maps.numel() // maps.shape[1]
            track(self.norm, moments.mean + bias, moments.variance * (count / (count - 1)))
            mean, variance = moments.mean, moments.variance
        else:
            own = norm_statistics(self.norm)
            mean, variance = own.mean - bias, own.variance
        scale = self.norm.weight * torch.rsqrt(variance + self.norm.eps)
        return weight * scale[None, :, None, None], self.norm.bias - mean * scale


class Moments(NamedTuple):
    """Mean and variance of each feature over batch and pixels, each (width,)."""

    mean: Tensor
    variance: Tensor


def _feature_moments(maps: Tensor, weight: Tensor) -> Moments:
    """Returns the moments of `conv_transpose2d(maps, weight, stride=kernel)`, bias left out."""
    cells = maps.transpose(0, 1).flatten(1)  # (objects, B h w)
    centre = cells.mean(1, keepdim=True)
    spread = cells - centre
    covariance = spread @ spread.T / cells.shape[1]
    taps = weight.flatten(2)  # (objects, width, 25)
    tap_means = (taps * centre[:, :, None]).sum(0)
    within = (taps * torch.einsum("mn,ncp->mcp", covariance, taps)).sum(0)
    mean = tap_means.mean(1)
    variance = within.mean(1) + (tap_means - mean[:, None]).square().mean(1)
    return Moments(mean, variance)


class _Head(torch.autograd.Function):
    """Features, ReLU and the 9 x 9 transposed convolution, a few images at a time."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, kernel: Tensor, shift: Tensor, blur: Tensor, bias: Tensor
    ) -> Tensor:
        ctx.save_for_backward(maps, kernel, shift, blur)
        flat = blur.flatten(1)
        rows = []
        for part in maps.split(_CPU_CHUNK):
            size = (5 * part.shape[2], 5 * part.shape[3])
            columns = (_features(part, kernel, shift) @ flat).transpose(1, 2)
            rows.append(functional.fold(columns, size, 9, padding=4))
        return torch.cat(rows) + bias[:, None, None]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        maps, kernel, shift, blur = ctx.saved_tensors
        objects, width = kernel.shape[:2]
        flat, cells = blur.flatten(1), _by_cell(kernel)
        d_maps, d_cells = torch.empty_like(maps), torch.zeros_like(cells)
        d_shift, d_flat = torch.zeros_like(shift), torch.zeros_like(flat)
        for start in range(0, len(maps), _CPU_CHUNK):
            part = maps[start : start + _CPU_CHUNK]
            h, w = part.shape[2:]
            features = _features(part, kernel, shift).flatten(0, 1)
            columns = functional.unfold(grad[start : start + _CPU_CHUNK], 9, padding=4)
            columns = columns.transpose(1, 2).reshape(features.shape[0], -1)
            d_flat.addmm_(features.T, columns)
            d_features = (columns @ flat.T).mul_(features > 0)
            d_shift += d_features.sum(0)
            d_features = d_features.reshape(-1, h, 5, w, 5, width).transpose(2, 3)
            d_features = d_features.reshape(-1, 25 * width)
            d_cells.addmm_(part.movedim(1, 3).reshape(-1, objects).T, d_features)
            d_part = (d_features @ cells.T).reshape(-1, h, w, objects)
            d_maps[start : start + _CPU_CHUNK] = d_part.movedim(3, 1)
        d_kernel = d_cells.reshape(objects, 5, 5, width).movedim(3, 1)
        return d_maps, d_kernel, d_shift, d_flat.reshape(blur.shape), grad.sum((0, 2, 3))


def _gathered(parts: Tensor) -> Tensor:
    """Returns pixels (B, h, w, 5, 5, 3): the sum of what the cells around send, and the own.

    Args:
        parts: (B, h, w, 3, 5, 3, 5, 3), a cell's share for the cells above, at, below it, and so
            on for columns.
    """
    rows = [_moved(part, 5, a - 1) for a, part in enumerate(parts.unbind(3))]
    columns = (rows[0] + rows[1] + rows[2]).unbind(4)
    left, middle, right = (_moved(part, 3, b - 1) for b, part in enumerate(columns))
    return left + middle + right


def _moved(values: Tensor, behind: int, steps: int) -> Tensor:
    """Returns values moved along the axis that has `behind` axes after it; zeros come in."""
    return functional.pad(values, (0, 0) * behind + (steps, -steps))


def _by_cell(kernel: Tensor) -> Tensor:
    """Returns the kernel as (objects, 25 width), pixels first."""
    return kernel.movedim(1, 3).reshape(kernel.shape[0], -1)


def _features(maps: Tensor, kernel: Tensor, shift: Tensor) -> Tensor:
    """Returns (B, pixels, width) features after the ReLU."""
    batch, objects, h, w = maps.shape
    width = kernel.shape[1]
    values = maps.movedim(1, 3).reshape(-1, objects) @ _by_cell(kernel)
    pixels = values.reshape(batch, h, w, 5, 5, width).transpose(2, 3)
    return pixels.reshape(batch, -1, width).add_(shift).relu_()
