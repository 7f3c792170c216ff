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

from interverse.models.layers import full_precision, norm_statistics, track

_CPU_CHUNK = 4  # images whose features fit in cache together


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
        # [tap, p, r]: whether it joins pixel r of the three cells around to pixel p of the middle.
        reach = torch.zeros(9, 5, 15)
        for p in range(5):
            for r in range(p + 1, p + 10):
                reach[p + 9 - r, p, r] = 1.0
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
        # The logits by way of features (B, 25 width, h, w): a cell's pixels together.
        batch, objects, h, w = maps.shape
        width = kernel.shape[1]
        rows = maps.movedim(1, 3).reshape(-1, objects)
        features = functional.relu(functional.linear(rows, _by_cell(kernel).T, shift.repeat(25)))
        cells = features.reshape(batch, h, w, 25 * width).movedim(3, 1)
        with full_precision(maps):
            cell_kernel = self._cell_kernel()
        blocks = functional.conv2d(cells, cell_kernel, padding=1)  # (B, 25 x 3, h, w)
        pixels = blocks.movedim(1, 3).reshape(batch, h, w, 5, 5, 3).permute(0, 5, 1, 3, 2, 4)
        bias = self.image.bias
        assert bias is not None
        return pixels.reshape(batch, 3, 5 * h, 5 * w) + bias[:, None, None]

    def _cell_kernel(self) -> Tensor:
        """Returns the 9 x 9 kernel as (25 x 3, 25 width, 3, 3): from cells to cells."""
        width = self.image.weight.shape[0]
        taps = self.image.weight.movedim(0, 1).flatten(0, 1)  # (3 width, 9, 9)
        rows = torch.einsum("kyx,ypr->kxpr", taps, self.reach)
        both = torch.einsum("kxpr,xqs->pqkrs", rows, self.reach)
        split = both.reshape(5, 5, 3, width, 3, 5, 3, 5).permute(0, 1, 2, 5, 7, 3, 4, 6)
        return split.reshape(75, 25 * width, 3, 3)

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
