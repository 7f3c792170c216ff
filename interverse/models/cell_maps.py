"""The medium encoder's convolutions as two matrix products over cells, for a GPU's matrix units.

A 9 x 9 convolution of three channels suits no matrix unit, and batch norm in the middle is
passes over memory. Both go away:

- The 5 x 5 pixels of a cell of the last layer see 13 x 13 input pixels. One product with the
  kernel written out at its 25 places gives them all, laid out as the last layer wants them.
- The first layer is linear, so its mean and variance follow from those of its inputs and its
  kernel. The norm is then a scale and a shift of the kernel, known before the product.
"""

from __future__ import annotations

import functools
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.models.cells import CellConv2d
from interverse.models.norm_statistics import norm_statistics, track

_ALIGNED = 8  # bf16 values whose rows the matrix units load without a detour


def cell_maps(
    images: Tensor, maps: nn.Sequential, *, dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """Returns what `maps` returns, (B, objects, h, w), with products in `dtype`.

    Args:
        images: (B, channels, H, W) float32, not trained.
        maps: convolution, batch norm, leaky ReLU, cell convolution, sigmoid.
        dtype: of the products' inputs; sums are float32.
    """
    first, norm, activation, last, squash = maps
    assert isinstance(first, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    assert isinstance(last, CellConv2d)
    slope = cast("nn.LeakyReLU", activation).negative_slope
    with torch.autocast(images.device.type, enabled=False):
        patches, grid = _patches(images, first, last.edge, dtype)
        hidden: Tensor = _LeakyProduct.apply(  # type: ignore[no-untyped-call]
            patches, _normed_kernel(patches, first, norm, last.edge), slope
        )
        kernel = last.weight.permute(0, 2, 3, 1).flatten(1)
        rows = functional.pad(kernel, (0, 0, 0, -len(kernel) % _ALIGNED)).to(dtype)
        out = functional.linear(hidden, rows)[:, : len(kernel)].float() + last.bias
        return squash(out.reshape(*grid, -1).movedim(3, 1))


def _patches(
    images: Tensor, first: nn.Conv2d, edge: int, dtype: torch.dtype
) -> tuple[Tensor, tuple[int, int, int]]:
    """Returns (cells, inputs + 2 ones + padding): all that each cell's pixels see; and the grid."""
    border, span = int(first.padding[0]), edge + first.kernel_size[0] - 1
    pixels = functional.pad(images.movedim(1, 3).to(dtype), (0, 0, *(border,) * 4))
    windows = pixels.unfold(1, span, edge).unfold(2, span, edge).permute(0, 1, 2, 4, 5, 3)
    grid, inputs = windows.shape[:3], span * span * images.shape[1]
    patches = images.new_zeros((*grid, inputs + 2 + -(inputs + 2) % _ALIGNED), dtype=dtype)
    patches[..., :inputs].unflatten(-1, windows.shape[3:]).copy_(windows)
    patches[..., inputs : inputs + 2] = 1.0  # the shift's two rows, see `_normed_kernel`
    return patches.flatten(0, 2), (grid[0], grid[1], grid[2])


def _normed_kernel(patches: Tensor, first: nn.Conv2d, norm: nn.BatchNorm2d, edge: int) -> Tensor:
    """Returns (inputs + 2 + padding, edge^2 * channels): kernel and norm as one matrix."""
    kernel, bias = written_out(first.weight, edge), first.bias
    assert bias is not None
    if norm.training:
        mean, variance = _moments(patches, kernel, edge)
        count = len(patches) * edge**2
        track(norm, mean + bias, variance * (count / (count - 1)))
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        shift = norm.bias - scale * mean  # the norm takes the convolution's bias out again
    else:
        own = norm_statistics(norm)
        scale = norm.weight * torch.rsqrt(own.variance + norm.eps)
        shift = norm.bias + scale * (bias - own.mean)
    shift = shift.repeat(edge**2)
    coarse = shift.to(patches.dtype).float()  # what it leaves over goes into a second row
    rows = torch.cat([kernel * scale.repeat(edge**2), coarse[None], (shift - coarse)[None]])
    return functional.pad(rows, (0, 0, 0, patches.shape[1] - len(rows)))


def _moments(patches: Tensor, kernel: Tensor, edge: int) -> tuple[Tensor, Tensor]:
    """Returns mean and variance of every channel's responses, before the bias."""
    inputs = len(kernel)
    with torch.no_grad():
        parts = patches.unflatten(0, (edge, -1))  # short sums lose less
        sums = _product(parts.transpose(1, 2), parts).mean(0) / parts.shape[1]
        center = sums[inputs, :inputs]
        covariance = sums[:inputs, :inputs] - center[:, None] * center
    means = (center @ kernel).unflatten(0, (edge**2, -1))
    variances = (kernel * (covariance @ kernel)).sum(0).unflatten(0, (edge**2, -1))
    return means.mean(0), variances.mean(0) + means.var(0, unbiased=False)


def written_out(weight: Tensor, edge: int) -> Tensor:
    """Returns (span * span * inputs, edge * edge * outputs): the kernel at every place of a cell.

    Args:
        weight: (outputs, inputs, k, k).
        edge: of a cell; span is edge + k - 1.
    """
    outputs, inputs, size, _ = weight.shape
    rows = functional.pad(weight.permute(2, 3, 1, 0).reshape(-1, outputs), (0, 0, 0, 1))
    index = _places(size, inputs, edge, weight.device)
    return rows.index_select(0, index.flatten()).reshape(len(index), -1)


@functools.cache
def _places(size: int, inputs: int, edge: int, device: torch.device) -> Tensor:
    """Returns (span * span * inputs, edge * edge): which kernel row acts; the last one is zero."""
    seen, pixel = torch.arange(edge + size - 1), torch.arange(edge)
    offset = seen[:, None] - pixel  # (span, edge)
    inside = (offset >= 0) & (offset < size)
    row = offset[:, None, None, :, None] * size + offset[None, :, None, None, :]
    row = row * inputs + torch.arange(inputs)[:, None, None]
    both = inside[:, None, None, :, None] & inside[None, :, None, None, :]
    return torch.where(both, row, size * size * inputs).flatten(0, 2).flatten(1).to(device)


class _LeakyProduct(torch.autograd.Function):
    """leaky_relu(cells @ weight), whose weight gradient is a float32 sum."""

    @staticmethod
    def forward(ctx: Any, cells: Tensor, weight: Tensor, slope: float) -> Tensor:
        out = functional.leaky_relu_(cells @ weight.to(cells.dtype), slope)
        ctx.save_for_backward(cells, out)
        ctx.slope = slope
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None]:
        cells, out = ctx.saved_tensors
        before = torch.ops.aten.leaky_relu_backward(gradient, out, ctx.slope, True)
        return None, _product(cells.t(), before), None


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Returns the matrix product of low-precision operands in float32."""
    if a.dtype == torch.float32:
        return a @ b
    return (
        torch.bmm(a, b, out_dtype=torch.float32)
        if a.ndim == 3
        else torch.mm(a, b, out_dtype=torch.float32)
    )


def suits(images: Tensor, maps: nn.Sequential, size: str) -> bool:
    """Whether a GPU in bf16 should use `cell_maps` instead of `maps`."""
    if images.device.type != "cuda" or size != "medium" or images.requires_grad:
        return False
    if not torch.is_autocast_enabled("cuda") or not isinstance(maps[3], CellConv2d):
        return False
    return type(maps[1]) is nn.BatchNorm2d  # not that of stacked members
