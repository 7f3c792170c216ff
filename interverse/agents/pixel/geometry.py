"""Augmentations that move, cover or cut: every pixel comes from one place, or gets one colour."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from interverse.agents.pixel.augment import FULL_SIZE, Augmentation, Drawn, fused, integers, uniform


@final
@dataclass(frozen=True, kw_only=True)
class Identity(Augmentation):
    """Changes nothing."""

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns nothing."""
        return ()

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns a copy."""
        return pictures.clone()


@final
@dataclass(frozen=True, kw_only=True)
class PadCrop(Augmentation):
    """Pads by repeating the border, crops at random; "DrQ" with a little noise on top.

    The code pads by reflection and never draws the last offset.
    """

    pad: int = 4
    noise: bool = True

    @property
    def noisy(self) -> bool:
        """Whether standard normal noise is added."""
        return self.noise

    def draws(self, shape: torch.Size) -> int:
        """Returns 2."""
        return 2

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the offsets of rows and columns, 0 to twice the pad."""
        most = 2 * self.pad - (self.rule == "code")
        return integers(0, most, numbers).unbind()

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the crops, 0..255."""
        size = pictures.shape[-1]
        fold = _reflect if self.rule == "code" else _repeat
        rows, columns = (fold(_run(size, start) - self.pad, size) for start in drawn)
        crops = take(pictures, rows, columns)
        # A CPU adds floats and bytes several times slower than floats.
        return crops if noise is None else crops.float().add_(noise).clamp_(0.0, 255.0)


@final
@dataclass(frozen=True, kw_only=True)
class ResizeCrop(Augmentation):
    """Enlarges 84 to 100 pixels (bilinear) and crops back: "RAD". The code draws 0 to 15."""

    def draws(self, shape: torch.Size) -> int:
        """Returns 2."""
        return 2

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the offsets of rows and columns."""
        most = _larger(shape[-1]) - shape[-1] - (self.rule == "code")
        return integers(0, most, numbers).unbind()

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the crops, float32."""
        size = pictures.shape[-1]
        large = functional.interpolate(pictures.float(), size=[_larger(size)] * 2, mode="bilinear")
        rows, columns = (_run(size, start) for start in drawn)
        return take(large, rows, columns)


@final
@dataclass(frozen=True, kw_only=True)
class Translate(Augmentation):
    """Shifts the picture over a random colour. The code never shifts by the whole reach."""

    reach: int = 4
    reach_in_code: int = 4

    def draws(self, shape: torch.Size) -> int:
        """Returns 5."""
        return 5

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns shifts of rows and columns, and a colour."""
        code = self.rule == "code"
        reach = self.reach_in_code if code else self.reach
        shifts = integers(-reach, reach - code, numbers[:2]).unbind()
        return (*shifts, _colors(numbers[2:], code=code))

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns shifted pictures; what they uncover has the colour."""
        size = pictures.shape[-1]
        down, right, color = drawn
        rows, columns = (_run(size, -shift) for shift in (down, right))
        moved = take(pictures, _repeat(rows, size), _repeat(columns, size))
        inside = _within(rows, size)[:, None, :, None] & _within(columns, size)[:, None, None, :]
        return torch.where(inside, moved, _paint(color, pictures))


@final
@dataclass(frozen=True, kw_only=True)
class Cutout(Augmentation):
    """Covers a rectangle with black or a random colour.

    Its sides are 7 to 21 pixels of 84. It lies anywhere; the code puts it at (12 + h, 24 + w).
    """

    color: bool = True

    def draws(self, shape: torch.Size) -> int:
        """Returns 7."""
        return 7

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns top, left, height, width and colour."""
        size, code = shape[-1], self.rule == "code"
        sides = integers(_scaled(7, size), _scaled(21, size), numbers[:2])
        height, width = sides
        if code:
            top, left = _scaled(12, size) + height, _scaled(24, size) + width
        else:
            top, left = (numbers[2:4] * (size + 1 - sides)).long()
        color = _colors(numbers[4:], code=code)
        return top, left, height, width, color if self.color else torch.zeros_like(color)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the pictures with their rectangle covered."""
        top, left, height, width, color = drawn
        covered = _rectangle(pictures, (top, left), (height, width))
        return torch.where(covered, _paint(color, pictures), pictures)


@final
@dataclass(frozen=True, kw_only=True)
class Window(Augmentation):
    """Keeps a square of 64 pixels of 84 and blackens the rest. The code draws offsets 0 to 10."""

    def draws(self, shape: torch.Size) -> int:
        """Returns 2."""
        return 2

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns top and left."""
        size = shape[-1]
        most = _scaled(10, size) if self.rule == "code" else size - _scaled(64, size)
        return integers(0, most, numbers).unbind()

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the pictures, black outside the window."""
        side = torch.full_like(drawn[0], _scaled(64, pictures.shape[-1]))
        top, left = drawn
        return pictures * _rectangle(pictures, (top, left), (side, side))


@final
@dataclass(frozen=True, kw_only=True)
class Turn(Augmentation):
    """Turns by quarters ("Rotate"), or by a half with even odds ("Vertical Flip").

    The code's "Rotate" has an indexing fault: only samples 1 and 2 of a batch are ever turned (by
    180 and 270 degrees, one time in four). Its "Vertical Flip" mirrors top and bottom.
    """

    half_only: bool = False

    def draws(self, shape: torch.Size) -> int:
        """Returns 1."""
        return 1

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns which of the four pictures each sample becomes."""
        draws = integers(0, 1 if self.half_only else 3, numbers[0])
        if self.half_only:
            return (2 * draws,)
        if self.rule == "code":
            fault = torch.arange(shape[0], device=draws.device)
            turned = (fault == 1) | (fault == 2)
            return (torch.where((draws == 0) & turned, fault + 1, 0),)
        return (draws,)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the turned (or mirrored) pictures."""
        size = pictures.shape[-1]
        places = torch.arange(size * size, device=pictures.device).view(size, size)
        turns = [torch.rot90(places, k) for k in range(4)]
        if self.half_only and self.rule == "code":
            turns[2] = places.flip(0)
        return _take_flat(pictures, torch.stack(turns).view(4, -1)[drawn[0]])


@final
@dataclass(frozen=True, kw_only=True)
class MirrorSides(Augmentation):
    """Mirrors left and right with even odds: "Horizontal Flip"."""

    def draws(self, shape: torch.Size) -> int:
        """Returns 1."""
        return 1

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns which pictures are mirrored."""
        return (integers(0, 1, numbers[0]),)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the mirrored pictures."""
        size = pictures.shape[-1]
        there = torch.arange(size, device=pictures.device)
        columns = torch.where(drawn[0][:, None] == 1, size - 1 - there, there)
        return take(pictures, there.expand(len(pictures), -1), columns)


def take(pictures: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Returns pixels (N, C, h, w) at rows (N, h) and columns (N, w)."""
    places = rows[:, :, None] * pictures.shape[-1] + columns[:, None, :]
    return _take_flat(pictures, places.flatten(1), places.shape[1])


def random_crop(pictures: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Returns crops of `size`, drawn per sample, as CURL and RAD cut them: 0 to 15 of 100 - 84."""
    numbers = uniform((2, len(pictures)), generator).to(pictures.device)
    return (_fused_cut() if pictures.is_cuda else _cut)(pictures, size, numbers)


def _cut(pictures: Tensor, size: int, numbers: Tensor) -> Tensor:
    most = max(pictures.shape[-1] - size - 1, 0)
    starts = integers(0, most, numbers)
    return take(pictures, *(_run(size, start) for start in starts))


@functools.cache
def _fused_cut() -> Callable[..., Tensor]:
    return fused(_cut)


def centre_crop(pictures: Tensor, size: int) -> Tensor:
    """Returns the middle of the pictures."""
    start = (pictures.shape[-1] - size) // 2
    return pictures[..., start : start + size, start : start + size]


def _take_flat(pictures: Tensor, places: Tensor, height: int | None = None) -> Tensor:
    count, channels, rows = pictures.shape[:3]
    flat = pictures.reshape(count, channels, -1)
    out = flat.gather(2, places[:, None, :].expand(-1, channels, -1))
    return out.view(count, channels, rows if height is None else height, -1)


def _run(size: int, start: Tensor) -> Tensor:
    """Returns `size` consecutive numbers from each start, (N, size)."""
    return start[:, None] + torch.arange(size, device=start.device)


def _repeat(places: Tensor, size: int) -> Tensor:
    return places.clamp(0, size - 1)


def _reflect(places: Tensor, size: int) -> Tensor:
    return (size - 1) - ((size - 1) - places.abs()).abs()


def _within(places: Tensor, size: int) -> Tensor:
    return (places >= 0) & (places < size)


def _rectangle(
    pictures: Tensor, corner: tuple[Tensor, Tensor], sides: tuple[Tensor, Tensor]
) -> Tensor:
    """Returns a mask (N, 1, H, W) of a rectangle per sample."""
    there = torch.arange(pictures.shape[-1], device=pictures.device)
    rows, columns = (
        (there >= start[:, None]) & (there < (start + side)[:, None])
        for start, side in zip(corner, sides, strict=True)
    )
    return rows[:, None, :, None] & columns[:, None, None, :]


def _colors(numbers: Tensor, *, code: bool) -> Tensor:
    """Returns a colour per sample, (N, 3), for (3, N) numbers; the code never draws 255."""
    return integers(0, 254 if code else 255, numbers).T


def _paint(color: Tensor, pictures: Tensor) -> Tensor:
    """Returns the colours as (N, 3k, 1, 1): the same for every frame."""
    frames = pictures.shape[1] // 3
    return color.repeat(1, frames)[:, :, None, None].to(pictures.dtype)


def _larger(size: int) -> int:
    return round(size * 100 / FULL_SIZE)


def _scaled(length: int, size: int) -> int:
    return round(length * size / FULL_SIZE)
