"""Pictures in 256 levels, and at another size: area means downwards, straight lines upwards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from interverse.art.textures.fields import FloatArray


def resize(image: NDArray[np.uint8], size: int, *, wraps: bool = True) -> NDArray[np.uint8]:
    """Returns the square picture at another size.

    Sums and products only, no FFT, so the bits are the same on every machine.

    Args:
        image: (side, side, 3).
        size: pixels a side to return.
        wraps: whether opposite edges meet; else the edge is repeated where it is read beyond.

    >>> resize(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), 1).tolist()
    [[[5, 6, 7]]]
    """
    if size == len(image):
        return image
    along = _means if size < len(image) else _lines
    rows = along(image.astype(np.float64), size, wraps)
    both = along(np.swapaxes(rows, 0, 1), size, wraps)
    return (np.swapaxes(both, 0, 1) + 0.5).astype(np.uint8)


def quantise(image: FloatArray) -> NDArray[np.uint8]:
    """Returns the picture in 256 levels.

    >>> quantise(np.array([[[0.0, 0.5, 1.2]]])).tolist()
    [[[0, 128, 255]]]
    """
    return (np.clip(image, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


def _means(values: FloatArray, size: int, wraps: bool) -> FloatArray:
    """Returns means over equal stretches of axis 0; the sums of whole numbers are exact."""
    del wraps  # a mean reads nothing beyond the edge
    side = len(values)
    sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    edges = np.arange(size + 1) * side / size
    whole = np.minimum(edges.astype(np.int64), side - 1)
    part = (edges - whole)[:, None, None]
    at = sums[whole] * (1 - part) + sums[whole + 1] * part
    return (at[1:] - at[:-1]) * (size / side)


def _lines(values: FloatArray, size: int, wraps: bool) -> FloatArray:
    """Returns values between the centres of axis 0 by straight lines."""
    side = len(values)
    place = (np.arange(size) + 0.5) * side / size - 0.5
    low = np.floor(place).astype(np.int64)
    part = (place - low)[:, None, None]
    if wraps:
        before, after = low % side, (low + 1) % side
    else:
        before, after = np.clip(low, 0, side - 1), np.clip(low + 1, 0, side - 1)
    return values[before] * (1 - part) + values[after] * part
