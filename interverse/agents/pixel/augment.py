"""Augmentations of batches of stacked frames, by name.

A batch is (N, 3k, H, W): k frames of three colours each, pixels on 0..255, uint8 or floating. The
random parameters of sample n are drawn once per update, from a generator, and shared by all its
frames and by every batch of one call (an observation and its successor). `rule="paper"` follows
the text of the DMCR paper; `rule="code"` does what its released code does where the two differ.
"""

from __future__ import annotations

import functools
import logging
import math
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, final, get_args

from interverse.agents.pixel import AUGMENTATIONS
from interverse.core.errors import InvalidValueError, check_name, missing_extra

try:
    import torch
    from torch import Tensor
    from torch.nn import functional
except ImportError as error:
    raise missing_extra("torch", "torch") from error

Rule = Literal["paper", "code"]
Drawn: TypeAlias = tuple[Tensor, ...]
_FULL_SIZE = 84  # the picture that lengths in the paper refer to; others are scaled
_CHUNK = 8  # samples or frames worked on at once on a CPU: they stay in its cache
_GREY = (0.2989, 0.587, 0.114)
_HUE = 255 / 360  # the released code scales the hue shift by it, and the paper's figures used it
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Augmentation(ABC):
    """Changes pictures at random; subclasses say what is drawn and what is done.

    What only moves or covers pixels keeps their dtype. Noise, resizing, colours give float32.
    """

    rule: Rule = "paper"
    noisy: bool = False
    """Whether every pixel gets standard normal noise of its own, which no two batches share."""
    draws: ClassVar[int] = 0
    """How many numbers in [0, 1) the parameters of a sample are made of."""

    def __post_init__(self) -> None:
        check_name("rule", self.rule, get_args(Rule))

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns the chance behind the parameters: `draws` numbers for each sample."""
        return _uniform((self.draws, shape[0]), generator)

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the parameters of N samples: a pure function, so it can be fused."""
        return (numbers,)

    @abstractmethod
    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        """Returns the pictures changed by the parameters: a pure function, so it can be fused."""

    def __call__(self, *batches: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Returns the batches, all changed by the same parameters."""
        shape = _check_pictures(*batches)
        # One call for all that is drawn: on a GPU every small operation costs a launch.
        numbers = self.numbers(shape, generator).to(batches[0].device)
        made = []
        for pictures in batches:
            noise = _normal(pictures.shape, generator).to(pictures.device) if self.noisy else None
            whole = _fused(self) if pictures.is_cuda else self.whole
            made.append(whole(pictures, numbers, noise))
        return tuple(made)

    def whole(self, pictures: Tensor, numbers: Tensor, noise: Tensor | None) -> Tensor:
        """Returns pictures changed by the parameters that the numbers stand for."""
        made = self._alter(pictures, self._parameters(numbers, pictures.shape))
        # A CPU adds floats and bytes several times slower than floats.
        return made if noise is None else made.float().add_(noise).clamp_(0.0, 255.0)


@final
class Chain:
    """Augmentations one after another, such as colour jitter and then the crop."""

    def __init__(self, parts: tuple[Augmentation, ...]) -> None:
        self.parts = parts

    def __call__(self, *batches: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Returns the batches, all changed by the same parameters."""
        for part in self.parts:
            batches = part(*batches, generator=generator)
        return batches


def augmentation(name: str, rule: Rule = "paper") -> Chain:
    """Returns the augmentation of a name; `a+b` does a, then b.

    >>> import torch
    >>> pictures = torch.zeros(2, 9, 84, 84, dtype=torch.uint8)
    >>> now, then = augmentation("color_jitter+drq")(
    ...     pictures, pictures, generator=torch.Generator().manual_seed(0))
    >>> now.shape
    torch.Size([2, 9, 84, 84])
    """
    rows = [AUGMENTATIONS[word] for word in name.split("+")]
    return Chain(tuple(row.load()(rule=rule, **row.options) for row in rows))


def check_augmentation(given: str, name: str = "augmentation") -> None:
    """Raises for a name of augmentations that no table holds."""
    augmentation(given)


# ------------------------------------------------- every pixel comes from one place, or is covered


@final
@dataclass(frozen=True, kw_only=True)
class Identity(Augmentation):
    """Changes nothing."""

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        return pictures.clone()


@final
@dataclass(frozen=True, kw_only=True)
class PadCrop(Augmentation):
    """Pads by repeating the border, crops at random; "DrQ" with a little noise on top.

    The code pads by reflection and never draws the last offset.
    """

    draws = 2
    pad: int = 4

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the offsets of rows and columns, 0 to twice the pad."""
        return _integers(0, 2 * self.pad - (self.rule == "code"), numbers).unbind()

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        last, places = pictures.shape[-1] - 1, [_run(pictures, start) - self.pad for start in drawn]
        if self.rule == "code":
            places = [last - (last - place.abs()).abs() for place in places]
        return _take(pictures, *(place.clamp(0, last) for place in places))


@final
@dataclass(frozen=True, kw_only=True)
class ResizeCrop(Augmentation):
    """Enlarges 84 to 100 pixels (bilinear) and crops back: "RAD". The code draws 0 to 15."""

    draws = 2

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        most = _scaled(100, shape[-1]) - shape[-1] - (self.rule == "code")
        return _integers(0, most, numbers).unbind()

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        larger = [_scaled(100, pictures.shape[-1])] * 2
        large = functional.interpolate(pictures.float(), size=larger, mode="bilinear")
        return _take(large, *(_run(pictures, start) for start in drawn))


@final
@dataclass(frozen=True, kw_only=True)
class Translate(Augmentation):
    """Shifts the picture over a random colour. The code never shifts by the whole reach."""

    draws = 5
    reach: int = 4
    reach_in_code: int = 4

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns shifts of rows and columns, and a colour."""
        code = self.rule == "code"
        reach = self.reach_in_code if code else self.reach
        shifts = _integers(-reach, reach - code, numbers[:2]).unbind()
        return (*shifts, _colors(numbers[2:], code=code))

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        last = pictures.shape[-1] - 1
        rows, columns = (_run(pictures, -shift) for shift in drawn[:2])
        moved = _take(pictures, rows.clamp(0, last), columns.clamp(0, last))
        seen, across = ((places >= 0) & (places <= last) for places in (rows, columns))
        inside = seen[:, None, :, None] & across[:, None, None, :]
        return torch.where(inside, moved, _paint(drawn[2], pictures))


@final
@dataclass(frozen=True, kw_only=True)
class Cutout(Augmentation):
    """Covers a rectangle with black or a random colour.

    Its sides are 7 to 21 pixels of 84. It lies anywhere; the code puts it at (12 + h, 24 + w).
    """

    draws = 7
    color: bool = True

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns top, left, height, width and colour."""
        size, code = shape[-1], self.rule == "code"
        sides = _integers(_scaled(7, size), _scaled(21, size), numbers[:2])
        height, width = sides
        if code:
            top, left = _scaled(12, size) + height, _scaled(24, size) + width
        else:
            top, left = (numbers[2:4] * (size + 1 - sides)).long()
        color = _colors(numbers[4:], code=code)
        return top, left, height, width, color if self.color else torch.zeros_like(color)

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        top, left, height, width, color = drawn
        covered = _rectangle(pictures, (top, left), (height, width))
        return torch.where(covered, _paint(color, pictures), pictures)


@final
@dataclass(frozen=True, kw_only=True)
class Window(Augmentation):
    """Keeps a square of 64 pixels of 84 and blackens the rest. The code draws offsets 0 to 10."""

    draws = 2

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        size = shape[-1]
        most = _scaled(10, size) if self.rule == "code" else size - _scaled(64, size)
        return _integers(0, most, numbers).unbind()

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        side = torch.full_like(drawn[0], _scaled(64, pictures.shape[-1]))
        top, left = drawn
        return pictures * _rectangle(pictures, (top, left), (side, side))


@final
@dataclass(frozen=True, kw_only=True)
class Turn(Augmentation):
    """Turns by quarters ("Rotate"), or with even odds by a half or over ("... Flip").

    The code's "Rotate" has an indexing fault: only samples 1 and 2 of a batch are ever turned (by
    180 and 270 degrees, one time in four). Its "Vertical Flip" mirrors top and bottom.
    """

    draws = 1
    by: Literal["quarters", "half", "sides"] = "quarters"

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns which of the turned pictures each sample becomes."""
        draws = _integers(0, 3 if self.by == "quarters" else 1, numbers[0])
        if self.by == "quarters" and self.rule == "code":
            fault = torch.arange(shape[0], device=draws.device)
            turned = (fault == 1) | (fault == 2)
            return (torch.where((draws == 0) & turned, fault + 1, 0),)
        return (draws,)

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        size = pictures.shape[-1]
        places = torch.arange(size * size, device=pictures.device).view(size, size)
        if self.by == "quarters":
            turns = [torch.rot90(places, k) for k in range(4)]
        elif self.by == "sides":
            turns = [places, places.flip(1)]
        else:
            turns = [places, places.flip(0) if self.rule == "code" else torch.rot90(places, 2)]
        return _take_flat(pictures, torch.stack(turns).flatten(1)[drawn[0]])


def random_crop(pictures: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Returns crops of `size`, drawn per sample, as CURL and RAD cut them: 0 to 15 of 100 - 84."""
    numbers = _uniform((2, len(pictures)), generator).to(pictures.device)
    return (fused(_cut) if pictures.is_cuda else _cut)(pictures, size, numbers)


def _cut(pictures: Tensor, size: int, numbers: Tensor) -> Tensor:
    starts = _integers(0, max(pictures.shape[-1] - size - 1, 0), numbers)
    there = torch.arange(size, device=starts.device)
    return _take(pictures, *(start[:, None] + there for start in starts))


def centre_crop(pictures: Tensor, size: int) -> Tensor:
    """Returns the middle of the pictures."""
    start = (pictures.shape[-1] - size) // 2
    return pictures[..., start : start + size, start : start + size]


# --------------------------------------------------------------------- colours: all give float32


@final
@dataclass(frozen=True, kw_only=True)
class ColorJitter(Augmentation):
    """Brightness, hue and saturation in HSV, and contrast, in a random order.

    The code draws the order anew for every frame of a stack.
    """

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns four numbers and one for each order."""
        orders = shape[1] // 3 if self.rule == "code" else 1
        return _uniform((4 + orders, shape[0]), generator)

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns factors of brightness, saturation, contrast; a hue shift; who comes first."""
        factors, hue = 0.6 + 0.8 * numbers[:3], (numbers[3] - 0.5) * _HUE
        return (*factors.unbind(), hue, _integers(0, 1, numbers[4:]).T)

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        return _by_chunks(_jitter, pictures, *drawn)


@final
@dataclass(frozen=True, kw_only=True)
class NetworkRandomization(Augmentation):
    """One random 3x3 convolution of the colours, the same for all samples; not clamped."""

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns standard normal numbers, one for each weight."""
        return _normal((3, 3, 3, 3), generator)

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the filter, Xavier-normal."""
        fan = 3 * 3 * 3
        return (numbers * math.sqrt(2.0 / (fan + fan)),)

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        """Returns the filtered pictures: without a bias the scale 1/255 cancels."""

        def filtered(some: Tensor) -> Tensor:
            if some.is_cuda:
                return shifted_sum(functional.pad(some.float(), [1] * 4), drawn[0][None])
            return functional.conv2d(some.float(), drawn[0], padding=1)

        frames = pictures.reshape(-1, 3, *pictures.shape[2:])
        return _by_chunks(filtered, frames).view(pictures.shape)


@final
@dataclass(frozen=True, kw_only=True)
class RandomConvolution(Augmentation):
    """A random 3x3 convolution of the colours for each sample, squashed to 0..255: SVEA's."""

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns standard normal numbers, one for each weight of each sample's filter."""
        return _normal((shape[0], 3, 3, 3, 3), generator)

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        """Returns every frame of a stack filtered alike, the border repeated."""
        return _by_chunks(_each_filtered, pictures, *drawn)


@final
@dataclass(frozen=True, kw_only=True)
class Grayscale(Augmentation):
    """Takes the colour away, with even odds."""

    draws = 1

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        return (_integers(0, 1, numbers[0]),)

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        frames = _frames(pictures)
        red, green, blue = (weight * frames[:, :, i] for i, weight in enumerate(_GREY))
        grey = red + green + blue
        chosen = (drawn[0] == 1).view(-1, 1, 1, 1, 1)
        return torch.where(chosen, grey[:, :, None], frames).view(pictures.shape)


@final
@dataclass(frozen=True, kw_only=True)
class Gamma(Augmentation):
    """Raises pixels, as fractions of 255, to a power from N(1, 0.45)."""

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns a standard normal number for each sample."""
        return _normal((shape[0],), generator)

    def _parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        return (1.0 + 0.45 * numbers,)

    def _alter(self, pictures: Tensor, drawn: Drawn) -> Tensor:
        def raised(some: Tensor, power: Tensor) -> Tensor:
            return ((some / 255.0) ** power * 255.0).clamp(0.0, 255.0)

        return _by_chunks(raised, pictures, drawn[0].view(-1, 1, 1, 1))


def shifted_sum(padded: Tensor, filters: Tensor) -> Tensor:
    """Returns 3x3 convolutions as 27 shifted products: fused, they beat a library's on a GPU.

    Args:
        padded: frames with a border of one pixel.
        filters: (N, 3, 3, 3, 3), one for each frame, or one for all.
    """
    height, width = padded.shape[2] - 2, padded.shape[3] - 2
    out = torch.zeros((), device=padded.device)
    for color in range(3):
        for i in range(3):
            for j in range(3):
                part = padded[:, color : color + 1, i : i + height, j : j + width]
                out = out + filters[:, :, color, i, j, None, None] * part
    return out


def _each_filtered(pictures: Tensor, filters: Tensor) -> Tensor:
    """Returns pictures, each by its own filter: on a CPU the samples are groups of one product."""
    count = len(pictures)
    frames = pictures.reshape(-1, 3, *pictures.shape[2:]).float() / 255.0
    padded = functional.pad(frames, [1] * 4, mode="replicate")
    if pictures.is_cuda:
        filters = filters.repeat_interleave(pictures.shape[1] // 3, dim=0)
        return (torch.sigmoid(shifted_sum(padded, filters)) * 255.0).view(pictures.shape)
    grouped = padded.view(count, -1, *padded.shape[1:]).transpose(0, 1).flatten(1, 2)
    made = functional.conv2d(grouped, filters.flatten(0, 1), groups=count)
    made = made.view(-1, count, 3, *made.shape[2:]).transpose(0, 1)
    return torch.sigmoid(made).reshape(pictures.shape) * 255.0


def _jitter(pictures: Tensor, *drawn: Tensor) -> Tensor:
    brightness, saturation, contrast, hue, first = drawn
    wide = (-1, 1, 1, 1)
    frames = _frames(pictures) / 255.0
    factor = contrast[:, None]
    frames = _contrast(frames, torch.where(first == 1, factor, 1.0))
    red, green, blue = frames.unbind(2)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    # The hue in sixths of the circle, 0 for greys.
    scale = 1.0 / chroma.clamp_min(1e-12)
    by_red = (green - blue) * scale
    by_green = (blue - red) * scale + 2.0
    by_blue = (red - green) * scale + 4.0
    sixths = torch.where(value == red, by_red, torch.where(value == green, by_green, by_blue))
    shifted = torch.where(chroma > 0.0, sixths, 0.0) + 6.0 * hue.view(wide)
    grown = (chroma / value.clamp_min(1e-12) * saturation.view(wide)).clamp(0.0, 1.0)
    value = (value * brightness.view(wide)).clamp(0.0, 1.0)
    depth = value * grown
    places = 5.0 - 2.0 * torch.arange(3, device=pictures.device).view(3, 1, 1)  # 5, 3, 1
    # How far a colour lies below the value, as a share of the chroma.
    angle = shifted[:, :, None] + places
    turned = angle - 6.0 * torch.floor(angle / 6.0)  # cheaper than a remainder
    below = torch.minimum(turned, 4.0 - turned).clamp(0.0, 1.0)
    out = value[:, :, None] - depth[:, :, None] * below
    out = _contrast(out, torch.where(first == 1, 1.0, factor))
    return (out * 255.0).view(pictures.shape)


def _contrast(frames: Tensor, factor: Tensor) -> Tensor:
    """Returns frames stretched about the mean of each colour, 0..1; factors are (N, k or 1)."""
    mean = frames.mean(dim=(3, 4), keepdim=True)
    return torch.lerp(mean, frames, factor[:, :, None, None, None]).clamp(0.0, 1.0)


# ------------------------------------------------------------------------------- what they share


def _check_pictures(*batches: Tensor) -> torch.Size:
    """Returns the shape that all batches have, or raises naming what is wrong."""
    shape = batches[0].shape if batches else torch.Size()
    if len(shape) != 4 or shape[1] % 3 or shape[2] != shape[3]:
        raise InvalidValueError(
            f"pictures of shape {tuple(shape)}", allowed="(N, 3k, S, S): stacked RGB frames"
        )
    for batch in batches:
        if batch.shape != shape:
            raise InvalidValueError(
                f"batches of shapes {tuple(shape)} and {tuple(batch.shape)}",
                fix="Batches of one call share their parameters: give them one shape",
            )
        if batch.dtype != torch.uint8 and not batch.is_floating_point():
            raise InvalidValueError(
                f"pictures are {batch.dtype}", allowed="torch.uint8 or floating, 0..255"
            )
    return shape


def _integers(low: int, high: int, numbers: Tensor) -> Tensor:
    """Returns whole numbers from low to high, both ends included, for numbers in [0, 1)."""
    return (low + numbers * (high + 1 - low)).floor().long()


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)


def _normal(shape: torch.Size | tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def _by_chunks(change: Callable[..., Tensor], pictures: Tensor, *drawn: Tensor) -> Tensor:
    """Returns pictures (N, ...) changed by their parameters (N, ...), a few at a time on a CPU."""
    if pictures.is_cuda:
        return change(pictures, *drawn)
    out = torch.empty(pictures.shape)
    for start in range(0, len(pictures), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = change(pictures[part], *(parameter[part] for parameter in drawn))
    return out


def _frames(pictures: Tensor) -> Tensor:
    """Returns (N, k, 3, H, W) float32."""
    count, channels, height, width = pictures.shape
    return pictures.float().view(count, channels // 3, 3, height, width)


def _run(pictures: Tensor, start: Tensor) -> Tensor:
    """Returns as many consecutive numbers from each start as pictures have rows, (N, H)."""
    return start[:, None] + torch.arange(pictures.shape[-1], device=start.device)


def _take(pictures: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Returns pixels (N, C, h, w) at rows (N, h) and columns (N, w)."""
    places = rows[:, :, None] * pictures.shape[-1] + columns[:, None, :]
    return _take_flat(pictures, places.flatten(1), places.shape[1])


def _take_flat(pictures: Tensor, places: Tensor, height: int | None = None) -> Tensor:
    count, channels, rows = pictures.shape[:3]
    flat = pictures.reshape(count, channels, -1)
    out = flat.gather(2, places[:, None, :].expand(-1, channels, -1))
    return out.view(count, channels, rows if height is None else height, -1)


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
    return _integers(0, 254 if code else 255, numbers).T


def _paint(color: Tensor, pictures: Tensor) -> Tensor:
    """Returns the colours as (N, 3k, 1, 1): the same for every frame."""
    frames = pictures.shape[1] // 3
    return color.repeat(1, frames)[:, :, None, None].to(pictures.dtype)


def _scaled(length: int, size: int) -> int:
    return round(length * size / _FULL_SIZE)


@functools.cache
def _fused(augmentation: Augmentation) -> Callable[..., Tensor]:
    return fused(own_code(augmentation.whole))


@functools.cache
def fused(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns a function as one kernel for a GPU; the plain one where nothing can compile it."""
    compiled = torch.compile(plain, dynamic=False)
    works = True

    def whole(*given: Any) -> Tensor:
        nonlocal works
        if works:
            try:
                return compiled(*given)
            except RuntimeError as error:  # no compiler here, or no support for this GPU
                works = False
                _log.warning("pictures are prepared unfused, several times slower: %s", error)
        return plain(*given)

    return whole


def own_code(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns a method with a code object of its own.

    Torch counts compilations by code object and gives up after eight; all augmentations share one.
    """
    held = method.__func__  # type: ignore[attr-defined]
    copied = types.FunctionType(held.__code__.replace(), held.__globals__, held.__name__)
    return types.MethodType(copied, method.__self__)  # type: ignore[attr-defined]
