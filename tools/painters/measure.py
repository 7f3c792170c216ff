"""Statistics to compare photographs by, and pictures moved to them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interverse.art.textures import FloatArray, IntArray

WEIGHTS = (0.299, 0.587, 0.114)  # of red, green and blue in luminance (ITU-R BT.601)
_ROUNDS = 4
_MOST_VIVID = 1.7  # more would make neon of a grey picture's least tint
_MOST_LIFT = 1.5
_MOST_CONTRAST = 2.5
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


def luminance(image: FloatArray) -> FloatArray:
    """Returns (..., ) luminance of (..., 3) colours."""
    return image[..., 0] * WEIGHTS[0] + image[..., 1] * WEIGHTS[1] + image[..., 2] * WEIGHTS[2]


def saturation(image: FloatArray) -> FloatArray:
    """Returns (..., ) saturation (of hue, saturation, value) of (..., 3) colours; black has 0."""
    high = np.maximum(np.maximum(image[..., 0], image[..., 1]), image[..., 2])
    low = np.minimum(np.minimum(image[..., 0], image[..., 1]), image[..., 2])
    return (high - low) / np.maximum(high, 1e-6)


def match(
    image: FloatArray,
    target_luminance: float,
    contrast: float,
    target_saturation: float,
) -> FloatArray:
    """Returns the picture with that mean luminance, deviation of it, and mean saturation, in 0..1.

    Hues stay. What falls outside 0..1 is clipped, so an extreme target is met approximately.

    Args:
        image: (size, size, 3).
        target_luminance: mean to reach, 0..1.
        contrast: deviation of the luminance over the picture to reach.
        target_saturation: mean to reach, 0..1.
    """
    planes = np.moveaxis(image, -1, 0)
    wanted = np.array([target_luminance, contrast, target_saturation])
    # Clipping spoils what was just matched: aim beside the target until a coarse copy meets it.
    coarse = np.ascontiguousarray(planes[:, ::3, ::3])
    aim = wanted
    for _ in range(_ROUNDS):
        aim = np.maximum(aim + wanted - _measure(_apply(coarse, coarse, aim)), 1e-3)
    planes = _apply(np.ascontiguousarray(planes), coarse, aim)
    return np.moveaxis(planes, 0, -1)


def balance(image: FloatArray, mean: tuple[float, float, float], share: float) -> FloatArray:
    """Returns the picture with each channel scaled so that its mean moves by `share` to the given.

    Args:
        image: (size, size, 3).
        mean: red, green and blue to move to.
        share: 0 leaves the picture, 1 reaches the mean.
    """
    now = np.maximum(image.mean(axis=(0, 1)), 1e-4)
    return image * (np.asarray(mean) / now) ** share


def _grey(planes: FloatArray) -> FloatArray:
    return planes[0] * WEIGHTS[0] + planes[1] * WEIGHTS[1] + planes[2] * WEIGHTS[2]


def _apply(planes: FloatArray, coarse: FloatArray, aim: FloatArray) -> FloatArray:
    """Returns channels-first planes scaled to the aim, with gains measured on a coarse copy."""
    mean, deviation, vivid = _measure(coarse)
    grey = _grey(planes)
    level = np.clip(
        aim[0] + (grey - mean) * min(aim[1] / max(deviation, 1e-9), _MOST_CONTRAST), 0.0, 1.0
    )
    gain = min(aim[2] / max(vivid, 1e-6), _MOST_VIVID)
    # Chroma follows brightness, as under more light; but lifted shadows must not turn neon.
    gain = gain * np.minimum(level / np.maximum(grey, 1e-3), _MOST_LIFT)
    return np.clip(level + (planes - grey) * gain, 0.0, 1.0)


def _measure(planes: FloatArray) -> FloatArray:
    grey = _grey(planes)
    high, low = planes.max(axis=0), planes.min(axis=0)
    vivid = ((high - low) / np.maximum(high, 1e-6)).mean()
    return np.array([grey.mean(), grey.std(), vivid])
