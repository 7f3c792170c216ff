"""Augmentations of colour: jitter, random convolutions, grey, gamma. All give float32."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from interverse.agents.pixel.augment import Augmentation, Drawn, integers, normal

_GREY = (0.2989, 0.587, 0.114)
_HUE = 255 / 360  # the released code scales the hue shift by it, and the paper's figures used it
_CHUNK = 8  # samples or frames worked on at once on a CPU: they stay in its cache


@final
@dataclass(frozen=True, kw_only=True)
class ColorJitter(Augmentation):
    """Brightness, hue and saturation in HSV, and contrast, in a random order.

    The code draws the order anew for every frame of a stack.
    """

    def draws(self, shape: torch.Size) -> int:
        """Returns 4 and one for each order."""
        return 4 + (shape[1] // 3 if self.rule == "code" else 1)

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns factors of brightness, saturation, contrast; a hue shift; who comes first."""
        factors, hue = 0.6 + 0.8 * numbers[:3], (numbers[3] - 0.5) * _HUE
        return (*factors.unbind(), hue, integers(0, 1, numbers[4:]).T)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the recoloured pictures, 0..255."""
        if pictures.is_cuda:
            return _jitter(pictures, *drawn)
        out = torch.empty(pictures.shape)
        for part in _chunks(len(pictures)):
            out[part] = _jitter(pictures[part], *(parameter[part] for parameter in drawn))
        return out


@final
@dataclass(frozen=True, kw_only=True)
class NetworkRandomization(Augmentation):
    """One random 3x3 convolution of the colours, the same for all samples; not clamped."""

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns standard normal numbers, one for each weight."""
        return normal((3, 3, 3, 3), generator)

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the filter, Xavier-normal."""
        fan = 3 * 3 * 3
        return (numbers * math.sqrt(2.0 / (fan + fan)),)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the filtered pictures: without a bias the scale 1/255 cancels."""
        frames = pictures.reshape(-1, 3, *pictures.shape[2:])
        if pictures.is_cuda:
            padded = functional.pad(frames.float(), [1] * 4)
            return shifted_sum(padded, drawn[0][None]).view(pictures.shape)
        out = torch.empty(frames.shape)
        for part in _chunks(len(frames)):
            out[part] = functional.conv2d(frames[part].float(), drawn[0], padding=1)
        return out.view(pictures.shape)


@final
@dataclass(frozen=True, kw_only=True)
class RandomConvolution(Augmentation):
    """A random 3x3 convolution of the colours for each sample, squashed to 0..255: SVEA's."""

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns standard normal numbers, one for each weight of each sample's filter."""
        return normal((shape[0], 3, 3, 3, 3), generator)

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the filters as they were drawn."""
        return (numbers,)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns every frame of a stack filtered alike, the border repeated."""
        if pictures.is_cuda:
            padded = _bordered(pictures)
            filters = drawn[0].repeat_interleave(pictures.shape[1] // 3, dim=0)
            return (torch.sigmoid(shifted_sum(padded, filters)) * 255.0).view(pictures.shape)
        out = torch.empty(pictures.shape)
        for part in _chunks(len(pictures)):
            out[part] = _each_filtered(pictures[part], drawn[0][part])
        return out


@final
@dataclass(frozen=True, kw_only=True)
class Grayscale(Augmentation):
    """Takes the colour away, with even odds."""

    def draws(self, shape: torch.Size) -> int:
        """Returns 1."""
        return 1

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns which pictures turn grey."""
        return (integers(0, 1, numbers[0]),)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns grey or unchanged pictures."""
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
        return normal((shape[0],), generator)

    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the powers."""
        return (1.0 + 0.45 * numbers,)

    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the pictures, 0..255."""
        power = drawn[0].view(-1, 1, 1, 1)
        if pictures.is_cuda:
            return _gamma(pictures, power)
        out = torch.empty(pictures.shape)
        for part in _chunks(len(pictures)):
            out[part] = _gamma(pictures[part], power[part])
        return out


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


def _bordered(pictures: Tensor) -> Tensor:
    """Returns single frames, 0..1, with one pixel of border repeated."""
    frames = pictures.reshape(-1, 3, *pictures.shape[2:]).float() / 255.0
    return functional.pad(frames, [1] * 4, mode="replicate")


def _each_filtered(pictures: Tensor, filters: Tensor) -> Tensor:
    """Returns pictures, each by its own filter: the samples are groups of one convolution."""
    count = len(pictures)
    padded = _bordered(pictures)
    grouped = padded.view(count, -1, *padded.shape[1:]).transpose(0, 1).flatten(1, 2)
    made = functional.conv2d(grouped, filters.flatten(0, 1), groups=count)
    made = made.view(-1, count, 3, *made.shape[2:]).transpose(0, 1)
    return torch.sigmoid(made).reshape(pictures.shape) * 255.0


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, _CHUNK):
        yield slice(start, start + _CHUNK)


def _frames(pictures: Tensor) -> Tensor:
    """Returns (N, k, 3, H, W) float32."""
    count, channels, height, width = pictures.shape
    return pictures.float().view(count, channels // 3, 3, height, width)


def _gamma(pictures: Tensor, power: Tensor) -> Tensor:
    return ((pictures / 255.0) ** power * 255.0).clamp(0.0, 255.0)


def _jitter(
    pictures: Tensor,
    *drawn: Tensor,  # brightness, saturation, contrast, hue, order
) -> Tensor:
    brightness, saturation, contrast, hue, first = drawn
    wide = (-1, 1, 1, 1)
    frames = _frames(pictures) / 255.0
    factor = contrast[:, None]
    frames = _contrast(frames, torch.where(first == 1, factor, 1.0))
    red, green, blue = frames.unbind(2)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    shifted = _sixths(red, green, blue, value, chroma) + 6.0 * hue.view(wide)
    grown = (chroma / value.clamp_min(1e-12) * saturation.view(wide)).clamp(0.0, 1.0)
    value = (value * brightness.view(wide)).clamp(0.0, 1.0)
    depth = value * grown
    places = 5.0 - 2.0 * torch.arange(3, device=pictures.device).view(3, 1, 1)  # 5, 3, 1
    below = _notch(shifted[:, :, None] + places)
    out = value[:, :, None] - depth[:, :, None] * below
    out = _contrast(out, torch.where(first == 1, 1.0, factor))
    return (out * 255.0).view(pictures.shape)


def _contrast(frames: Tensor, factor: Tensor) -> Tensor:
    """Returns frames stretched about the mean of each colour, 0..1; factors are (N, k or 1)."""
    mean = frames.mean(dim=(3, 4), keepdim=True)
    return torch.lerp(mean, frames, factor[:, :, None, None, None]).clamp(0.0, 1.0)


def _sixths(red: Tensor, green: Tensor, blue: Tensor, value: Tensor, chroma: Tensor) -> Tensor:
    """Returns the hue in sixths of the circle, 0 for greys."""
    scale = 1.0 / chroma.clamp_min(1e-12)
    by_red = (green - blue) * scale
    by_green = (blue - red) * scale + 2.0
    by_blue = (red - green) * scale + 4.0
    hue = torch.where(value == red, by_red, torch.where(value == green, by_green, by_blue))
    return torch.where(chroma > 0.0, hue, 0.0)


def _notch(angle: Tensor) -> Tensor:
    """Returns how far a colour lies below the value, as a share of the chroma."""
    turned = angle - 6.0 * torch.floor(angle / 6.0)  # cheaper than a remainder
    return torch.minimum(turned, 4.0 - turned).clamp(0.0, 1.0)
