"""Statistics to compare photographs by: brightness, contrast, colour, slope of the spectrum."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interverse.art.textures.colour import luminance, saturation
from interverse.art.textures.fields import FloatArray, IntArray

_LOWEST, _HIGHEST = 4, 100  # cycles a side between which the slope is fitted, at 256 pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A picture in seven numbers, all but the last in 0..1."""

    luminance: float
    contrast: float
    saturation: float
    red: float
    green: float
    blue: float
    beta: float


def statistics(image: NDArray[np.uint8]) -> Statistics:
    """Returns the statistics of a (size, size, 3) picture.

    >>> flat = np.full((64, 64, 3), 128, dtype=np.uint8)
    >>> round(statistics(flat).luminance, 3), statistics(flat).saturation
    (0.502, 0.0)
    """
    floats = image.astype(np.float64) / 255.0
    grey = luminance(floats)
    red, green, blue = (float(c) for c in floats.mean(axis=(0, 1)))
    return Statistics(
        luminance=float(grey.mean()),
        contrast=float(grey.std()),
        saturation=float(saturation(floats).mean()),
        red=red,
        green=green,
        blue=blue,
        beta=slope(grey),
    )


def slope(grey: FloatArray) -> float:
    """Returns beta of the fit k^-beta to the radial power spectrum, k = 4 to 100 (at 256)."""
    return _fit(np.fft.rfft2(grey - grey.mean()))


def respectrum(
    image: FloatArray, beta: float, *, most: float = 1.0, wraps: bool = True
) -> FloatArray:
    """Returns the picture, in 0..1, with its luminance's spectrum tilted towards beta.

    Args:
        image: (size, size, 3).
        beta: exponent to reach, as `slope` measures it.
        most: largest change of the exponent; more would turn shapes into clouds or into grain.
        wraps: whether bottom meets top; if not, the picture is mirrored there while it is filtered.
    """
    size, grey = len(image), luminance(image)
    wave = np.fft.rfft2(grey)
    change = float(np.clip(beta - _fit(wave), -most, most))
    if not wraps:
        wave = np.fft.rfft2(np.concatenate([grey, grey[::-1]]))
    # Below the fitted band nothing changes: large shapes and the mean stay as they are.
    weight = (np.maximum(_radius(len(wave), size), _LOWEST) / _LOWEST) ** (-change / 2)
    filtered = np.fft.irfft2(wave * weight, s=(len(wave), size))[:size]
    return np.clip(image + (filtered - grey)[..., None], 0.0, 1.0)


def _fit(wave: NDArray[np.complex128]) -> float:
    power = wave.real**2 + wave.imag**2
    size = len(wave)
    ring, count, k = _rings(size)
    mean = np.bincount(ring.reshape(-1), power.reshape(-1), minlength=len(count)) / count
    height = min(round(_HIGHEST * size / 256), size // 2 - 1)
    x, y = np.log(k[_LOWEST : height + 1]), np.log(mean[_LOWEST : height + 1] + 1e-12)
    x = x - x.mean()
    return float(-(x * (y - y.mean())).sum() / (x * x).sum())


@functools.lru_cache(maxsize=8)
def _radius(rows: int, columns: int) -> FloatArray:
    y = np.fft.fftfreq(rows, 1 / columns)[:, None]  # cycles per width, also of a mirrored picture
    x = np.fft.rfftfreq(columns, 1 / columns)[None, :]
    return np.sqrt(y * y + x * x)


@functools.lru_cache(maxsize=8)
def _rings(size: int) -> tuple[IntArray, IntArray, FloatArray]:
    ring = np.rint(_radius(size, size)).astype(np.int64)
    count = np.maximum(np.bincount(ring.reshape(-1)), 1)
    return ring, count, np.arange(len(count), dtype=np.float64)
