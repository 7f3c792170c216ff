"""Fast ways through the medium encoder, a cell of whose maps sees a window of 13 x 13 pixels.

- `patch_maps`: grid worlds show few different windows: 512 frames of blocks have 51,200, of which
  1,500 to 5,000 differ; of chemistry, 250. Computed once each and counted, they give the same maps,
  the same statistics of batch norm and the same gradients as whole frames, for a tenth to a
  hundredth of the work.
- `cell_maps`: the convolutions as two matrix products over cells. A 9 x 9 convolution of three
  channels suits no matrix unit of a GPU, and batch norm in the middle is passes over memory. The
  5 x 5 pixels of a cell of the last layer see one window, so one product with the kernel written
  out at its 25 places gives them all, laid out as the last layer wants them. The first layer is
  linear, so its mean and variance follow from those of its inputs and its kernel: the norm is a
  scale and a shift of the kernel, known before the product.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.rng import generator
from interverse.models.layers import CellConv2d, full_precision, norm_statistics, track
from interverse.models.source import TransitionSource, num_frames

_CHUNK = 1000  # frames whose windows are compared together
_ALIGNED = 8  # values whose rows the matrix units load without a detour
_TRIED = 64  # batches looked at to see how many windows one has
_MARGIN = 1.25
_WORTH = 0.25  # share of distinct windows up to which whole frames cost more


class Patches(NamedTuple):
    """A batch of frames by their distinct windows."""

    windows: Tensor  # (n, inputs) in [0, 1]
    counts: Tensor  # (n,) how many cells see each; 0 for rows that only fill up
    shown: Tensor  # (B, cells): which window a cell sees


Seen = Tensor | Patches
"""Frames as an encoder takes them: whole, or by their windows."""


def patch_maps(seen: Patches, maps: nn.Sequential) -> Tensor:
    """Returns (B, objects, cells), what `maps` returns for the whole frames.

    Args:
        seen: the frames.
        maps: convolution, batch norm, leaky ReLU, cell convolution, sigmoid.
    """
    if suits(seen.windows, maps, "medium"):
        values = window_values(seen, maps)
    else:
        values = _plain_values(seen, maps)
    chosen = seen.shown.flatten()[:, None].expand(-1, values.shape[1])
    return values.gather(0, chosen).unflatten(0, seen.shown.shape).transpose(1, 2)


def window_values(
    seen: Patches, maps: nn.Sequential, *, dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """Returns (n, objects) by the products of `cell_maps`: a third of the passes over memory."""
    first, last = cast("nn.Conv2d", maps[0]), cast("CellConv2d", maps[3])
    inputs = (last.edge + first.kernel_size[0] - 1) ** 2 * first.in_channels
    with full_precision(seen.windows):
        windows = seen.windows.to(dtype, copy=True)
        windows[:, inputs : inputs + 2] = 1.0  # the shift's two rows, see `_normed_kernel`
        return _cell_values(windows, maps, seen.counts)


def _plain_values(seen: Patches, maps: nn.Sequential) -> Tensor:
    """Returns (n, objects) of windows."""
    first, norm, activation, last, squash = maps
    assert isinstance(first, nn.Conv2d)
    assert isinstance(last, CellConv2d)
    kernel = written_out(first.weight, last.edge)
    kernel = functional.pad(kernel, (0, 0, 0, seen.windows.shape[1] - len(kernel)))
    places = seen.windows @ kernel
    with full_precision(places):
        wide = places.to(first.weight.dtype).unflatten(1, (last.edge**2, -1))
        hidden = activation(_normed(wide, seen.counts, first, cast("nn.BatchNorm2d", norm)))
        weight = last.weight.permute(0, 2, 3, 1).flatten(1)
        return squash(functional.linear(hidden.flatten(1), weight, last.bias))


def _normed(wide: Tensor, counts: Tensor, first: nn.Conv2d, norm: nn.BatchNorm2d) -> Tensor:
    """Returns responses (n, places, channels) after batch norm over all cells of the frames."""
    assert first.bias is not None
    if not norm.training:
        own = norm_statistics(norm)
        scale = norm.weight * torch.rsqrt(own.variance + norm.eps)
        return wide * scale + (norm.bias + scale * (first.bias - own.mean))
    share = (counts / (counts.sum() * wide.shape[1]))[:, None, None]
    mean = (wide * share).sum((0, 1))
    variance = ((wide - mean).square() * share).sum((0, 1))
    seen = counts.sum() * wide.shape[1]
    track(norm, mean + first.bias, variance * (seen / (seen - 1)))
    # The norm takes the convolution's bias out again.
    return (wide - mean) * (norm.weight * torch.rsqrt(variance + norm.eps)) + norm.bias


@final
class PatchTable:
    """The distinct windows of a source's frames.

    Args:
        source: its frames are looked at once.
        maps: an encoder's layers, whose kernels say what a cell sees.
        batch: frames per batch; on a GPU all batches have room for the same number of windows.
    """

    def __init__(self, source: TransitionSource, maps: nn.Sequential, batch: int) -> None:
        first, last = cast("nn.Conv2d", maps[0]), cast("CellConv2d", maps[3])
        self._source, self._border, self._edge = source, int(first.padding[0]), last.edge
        self._span = last.edge + first.kernel_size[0] - 1
        self.index, self.windows = self._distinct()
        self._room = self._largest(batch) if source.device.type == "cuda" else 0
        self._most = torch.zeros((), dtype=torch.int64, device=source.device)

    @property
    def pays(self) -> bool:
        """Whether distinct windows are few."""
        return len(self.windows) <= _WORTH * self.index.numel()

    def seen(self, numbers: Tensor) -> Patches:
        """Returns frames by number, (B,) or (members, B)."""
        flat = self.index[numbers].flatten(-2).long()
        counts = self._counts(flat)
        position = (counts > 0).cumsum(-1) - 1
        room = self._room or int(position.max()) + 1
        torch.maximum(self._most, position.max() + 1, out=self._most)
        place = torch.where(counts > 0, position, room).clamp(max=room)
        every = torch.arange(counts.shape[-1], device=counts.device).expand_as(place)
        chosen = torch.zeros_like(place[..., :1]).expand(*place.shape[:-1], room + 1)
        chosen = chosen.scatter(-1, place, every)[..., :room]
        kept = counts.new_zeros(*place.shape[:-1], room + 1).scatter(-1, place, counts)
        local = position.gather(-1, flat).clamp(max=room - 1)  # `check` tells if it matters
        local = local.unflatten(-1, (numbers.shape[-1], -1))
        return Patches(self.windows[chosen].float() / 255.0, kept[..., :room], local)

    def check(self) -> None:
        """Raises if a batch had more windows than there was room for."""
        if self._room and int(self._most) > self._room:
            raise InvalidValueError(
                f"a batch shows {int(self._most)} distinct windows, room is for {self._room}",
                fix="Pass cuda_graphs=False or a CPU device, whose batches have any size",
            )

    def _counts(self, flat: Tensor) -> Tensor:
        empty = torch.zeros(*flat.shape[:-1], len(self.windows), device=flat.device)
        return empty.scatter_add(-1, flat, torch.ones_like(flat, dtype=torch.float32))

    def _largest(self, batch: int) -> int:
        """Returns room for the windows of any batch, as far as a sample of batches tells."""
        rng = generator(seed=0, name="patches/room")
        drawn = rng.integers(num_frames(self._source), size=(_TRIED, batch))
        numbers = torch.as_tensor(drawn, device=self.index.device)
        most = max(int((self._counts(self.index[n].flatten().long()) > 0).sum()) for n in numbers)
        return min(len(self.windows), math.ceil(_MARGIN * most / 64) * 64)

    def _distinct(self) -> tuple[Tensor, Tensor]:
        """Returns (frames, cells) which window a cell sees, and the windows (n, inputs) uint8."""
        numbers = torch.arange(num_frames(self._source), device=self._source.device)
        parts = numbers.split(_CHUNK)
        hashes = torch.cat([self._hashes(self._cut(part)) for part in parts])
        found, index = hashes.unique(return_inverse=True)
        flat = index.flatten()
        where = torch.arange(len(flat), device=flat.device)
        example = torch.empty_like(found).scatter_(0, flat, where)  # any of the cells that show it
        cells = index.shape[1]
        windows = torch.cat(
            [
                self._cut(part // cells)[torch.arange(len(part), device=part.device), part % cells]
                for part in example.split(_CHUNK)
            ]
        )
        wide = _with_ones(windows.shape[1])
        return index.to(torch.int32), functional.pad(windows, (0, wide - windows.shape[1]))

    def _cut(self, numbers: Tensor) -> Tensor:
        """Returns the windows (B, cells, inputs) uint8 of frames, values as `written_out` wants."""
        levels = self._source.frames(numbers).mul(255).round().to(torch.uint8).movedim(1, 3)
        return _windows(levels, self._border, self._span, self._edge).flatten(3).flatten(1, 2)

    def _hashes(self, windows: Tensor) -> Tensor:
        rng = generator(seed=0, name="patches/hash")
        weights = torch.as_tensor(rng.integers(2**62, size=windows.shape[-1]))
        return (windows.long() * weights.to(windows.device)).sum(-1)  # wraps, the same every time


def frames_of(source: TransitionSource, numbers: Tensor) -> Tensor:
    """Returns frames (..., 3, H, W) of any shape of numbers."""
    return source.frames(numbers.flatten()).unflatten(0, numbers.shape)


def viewer(
    source: TransitionSource, maps: nn.Sequential, *, suits: bool, batch: int
) -> tuple[Callable[[Tensor], Seen], Callable[[], None]]:
    """Returns how an encoder looks at a source's frames, and a check to make after each pass.

    Args:
        source: the frames.
        maps: the encoder's layers.
        suits: whether they have the form that `patch_maps` takes.
        batch: frames per batch.
    """
    table = PatchTable(source, maps, batch) if suits else None
    if table is None or not table.pays:
        return lambda numbers: frames_of(source, numbers), lambda: None
    return table.seen, table.check


# ------------------------------------------------------------------------ products over cells


def cell_maps(
    images: Tensor, maps: nn.Sequential, *, dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """Returns what `maps` returns, (B, objects, h, w), with products in `dtype`.

    Args:
        images: (B, channels, H, W) float32, not trained.
        maps: convolution, batch norm, leaky ReLU, cell convolution, sigmoid.
        dtype: of the products' inputs; sums are float32.
    """
    first, last = cast("nn.Conv2d", maps[0]), cast("CellConv2d", maps[3])
    with full_precision(images):
        patches, grid = _patches(images, first, last.edge, dtype)
        return _cell_values(patches, maps).reshape(*grid, -1).movedim(3, 1)


def _cell_values(cells: Tensor, maps: nn.Sequential, counts: Tensor | None = None) -> Tensor:
    """Returns (cells, objects): the layers as two products, of cells seen `counts` times each."""
    first, norm, activation, last, squash = maps
    assert isinstance(first, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    assert isinstance(last, CellConv2d)
    slope = cast("nn.LeakyReLU", activation).negative_slope
    hidden: Tensor = _LeakyProduct.apply(  # type: ignore[no-untyped-call]
        cells, _normed_kernel(cells, first, norm, last.edge, counts), slope
    )
    kernel = last.weight.permute(0, 2, 3, 1).flatten(1)
    rows = functional.pad(kernel, (0, 0, 0, -len(kernel) % _ALIGNED)).to(cells.dtype)
    return squash(functional.linear(hidden, rows)[:, : len(kernel)].to(last.bias.dtype) + last.bias)


def _with_ones(inputs: int) -> int:
    """Returns the width of a cell's row: its inputs, two ones, and what fills it up."""
    return inputs + 2 + -(inputs + 2) % _ALIGNED


def _patches(
    images: Tensor, first: nn.Conv2d, edge: int, dtype: torch.dtype
) -> tuple[Tensor, tuple[int, int, int]]:
    """Returns (cells, inputs + 2 ones + padding): all that each cell's pixels see; and the grid."""
    border, span = int(first.padding[0]), edge + first.kernel_size[0] - 1
    windows = _windows(images.movedim(1, 3).to(dtype), border, span, edge)
    grid, inputs = windows.shape[:3], span * span * images.shape[1]
    patches = images.new_zeros((*grid, _with_ones(inputs)), dtype=dtype)
    patches[..., :inputs].unflatten(-1, windows.shape[3:]).copy_(windows)
    patches[..., inputs : inputs + 2] = 1.0  # the shift's two rows, see `_normed_kernel`
    return patches.flatten(0, 2), (grid[0], grid[1], grid[2])


def _normed_kernel(
    patches: Tensor, first: nn.Conv2d, norm: nn.BatchNorm2d, edge: int, counts: Tensor | None
) -> Tensor:
    """Returns (inputs + 2 + padding, edge^2 * channels): kernel and norm as one matrix."""
    kernel, bias = written_out(first.weight, edge), first.bias
    assert bias is not None
    if norm.training:
        mean, variance = _moments(patches, kernel, edge, counts)
        count = (len(patches) if counts is None else counts.sum()) * edge**2
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


def _moments(
    patches: Tensor, kernel: Tensor, edge: int, counts: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance of every channel's responses, before the bias."""
    inputs = len(kernel)
    with torch.no_grad():
        if counts is None:
            parts = patches.unflatten(0, (edge, -1))  # short sums lose less
            sums = _product(parts.transpose(1, 2), parts).mean(0) / parts.shape[1]
        else:
            values = patches.to(counts.dtype)
            sums = values.T @ (values * (counts / counts.sum())[:, None])
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
    if a.dtype in (torch.float32, torch.float64):
        return a @ b
    return (
        torch.bmm(a, b, out_dtype=torch.float32)
        if a.ndim == 3
        else torch.mm(a, b, out_dtype=torch.float32)
    )


def _windows(pixels: Tensor, border: int, span: int, edge: int) -> Tensor:
    """Returns what each cell sees, (B, h, w, span, span, C), of pixels (B, H, W, C)."""
    padded = functional.pad(pixels, (0, 0, *(border,) * 4))
    return padded.unfold(1, span, edge).unfold(2, span, edge).permute(0, 1, 2, 4, 5, 3)


def suits(images: Tensor, maps: nn.Sequential, size: str) -> bool:
    """Whether a GPU in bf16 should use `cell_maps` instead of `maps`."""
    if images.device.type != "cuda" or size != "medium" or images.requires_grad:
        return False
    if not torch.is_autocast_enabled("cuda") or not isinstance(maps[3], CellConv2d):
        return False
    return type(maps[1]) is nn.BatchNorm2d  # not that of stacked members
