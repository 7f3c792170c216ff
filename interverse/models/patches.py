"""Distinct windows of a data set's frames, so that an encoder computes each of them once.

A cell of the medium encoder's maps sees 13 x 13 pixels. Grid worlds show few different windows:
512 frames of blocks have 51,200, of which 1,500 to 5,000 differ; of chemistry, 250. Computed once
each and counted, they give the same maps, the same statistics of batch norm and the same gradients
as whole frames, for a tenth to a hundredth of the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, cast, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import generator
from interverse.models.cell_maps import written_out
from interverse.models.cells import CellConv2d
from interverse.models.deconvolution import full_precision
from interverse.models.norm_statistics import norm_statistics, track
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
        values = squash(functional.linear(hidden.flatten(1), weight, last.bias))
        chosen = seen.shown.flatten()[:, None].expand(-1, values.shape[1])
        return values.gather(0, chosen).unflatten(0, seen.shown.shape).transpose(1, 2)


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
                explain(
                    f"a batch shows {int(self._most)} distinct windows, room is for {self._room}",
                    fix="Pass cuda_graphs=False or a CPU device, whose batches have any size",
                )
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
        return index.to(torch.int32), functional.pad(windows, (0, -windows.shape[1] % _ALIGNED))

    def _cut(self, numbers: Tensor) -> Tensor:
        """Returns the windows (B, cells, inputs) uint8 of frames, values as `written_out` wants."""
        levels = self._source.frames(numbers).mul(255).round().to(torch.uint8).movedim(1, 3)
        pixels = functional.pad(levels, (0, 0, *(self._border,) * 4))
        windows = pixels.unfold(1, self._span, self._edge).unfold(2, self._span, self._edge)
        return windows.permute(0, 1, 2, 4, 5, 3).flatten(3).flatten(1, 2)

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
