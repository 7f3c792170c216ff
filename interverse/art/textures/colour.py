"""Colours of whole pictures: luminance, matching to a target, rounding to 256 levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from interverse.art.textures.fields import FloatArray

WEIGHTS = (0.299, 0.587, 0.114)  # of red, green and blue in luminance (ITU-R BT.601)
_ROUNDS = 4
_MOST_VIVID = 1.7  # more would make neon of a grey picture's least tint
_MOST_LIFT = 1.5
_MOST_CONTRAST = 2.5


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


def quantise(image: FloatArray) -> NDArray[np.uint8]:
    """Returns the picture in 256 levels.

    >>> quantise(np.array([[[0.0, 0.5, 1.2]]])).tolist()
    [[[0, 128, 255]]]
    """
    return (np.clip(image, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


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
