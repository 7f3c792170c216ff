"""Tileable scalar fields: spectral noise, Voronoi cells, relief shading, colour ramps; resizing.

Rows run down (axis 0, y) and columns right (axis 1, x); lengths are fractions of the picture's
side unless they say pixels. Everything is float64: sums of such length differ between machines in
the last bits only, which the rounding to 256 levels hides.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Colour = tuple[float, float, float]  # red, green, blue in 0..1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A periodic Voronoi pattern; distances are in units of the mean cell's side."""

    nearest: FloatArray  # (size, size), distance to the nearest centre
    second: FloatArray  # (size, size), distance to the second nearest
    index: IntArray  # (size, size), number of the nearest centre, 0 to side * side - 1

    @property
    def border(self) -> FloatArray:
        """How far a pixel is from its cell's border: 0 on it."""
        return self.second - self.nearest


def spectral(
    rng: np.random.Generator,
    size: int,
    beta: float,
    *,
    stretch: tuple[float, float] = (1.0, 1.0),
    band: tuple[float, float] = (0.0, np.inf),
) -> FloatArray:
    """Returns periodic noise (size, size) of power k^-beta, zero mean and unit deviation.

    Args:
        rng: draws the coefficients.
        size: pixels a side.
        beta: exponent; 0 is white, 2 like most photographs, 3 and more like hills.
        stretch: how much longer features are than isotropic ones, along y and along x.
        band: smallest and largest frequency kept, in cycles a side after stretching.

    >>> spectral(np.random.default_rng(0), 64, 2.0).shape
    (64, 64)
    """
    half = size // 2 + 1
    parts = rng.standard_normal((2, size, half))
    amplitude = _amplitude(size, float(beta), tuple(stretch), tuple(band))
    field = np.fft.irfft2((parts[0] + 1j * parts[1]) * amplitude, s=(size, size))
    return normalise(field)


def turbulence(rng: np.random.Generator, size: int, beta: float) -> FloatArray:
    """Returns folded noise: zero mean, unit deviation, with sharp dark creases like rock's."""
    return normalise(np.abs(spectral(rng, size, beta)) + 0.5 * np.abs(spectral(rng, size, beta)))


def cells(rng: np.random.Generator, size: int, count: int, *, jitter: float = 0.7) -> Cells:
    """Returns a periodic Voronoi pattern of about `count` cells (a square number of them).

    Args:
        rng: draws the centres.
        size: pixels a side.
        count: how many cells; rounded to the nearest square number.
        jitter: 0 for a lattice, 0.7 for natural; up to there the nine neighbours suffice.

    >>> int(cells(np.random.default_rng(0), 64, 25).index.max())
    24
    """
    side = max(1, round(count**0.5))
    # float32 halves the time; sums and products round alike on every machine, so nothing is lost.
    centre = (0.5 + jitter * (rng.random((2, side, side)) - 0.5)).astype(np.float32)
    position = (np.arange(size) + 0.5) * side / size
    own = position.astype(np.int64)
    inside = (position - own).astype(np.float32)
    nearest = np.full((size, size), np.inf, dtype=np.float32)
    second = nearest.copy()
    index = np.zeros((size, size), dtype=np.int64)
    for dy in (-1, 0, 1):
        row = (own + dy) % side
        for dx in (-1, 0, 1):
            column = (own + dx) % side
            y = centre[0][row].take(column, axis=1)
            x = centre[1][row].take(column, axis=1)
            y += (dy - inside)[:, None]
            x += (dx - inside)[None, :]
            y *= y
            x *= x
            distance = np.add(y, x, out=x)
            closer = distance < nearest
            np.minimum(second, np.maximum(distance, nearest), out=second)
            np.minimum(nearest, distance, out=nearest)
            np.copyto(index, row[:, None] * side + column[None, :], where=closer)
    first, then = (np.sqrt(d.astype(np.float64)) for d in (nearest, second))
    return Cells(first, then, index)


def relief(height: FloatArray, strength: float, azimuth: float) -> FloatArray:
    """Returns how much brighter (+) or darker (-) a lit surface is than a flat one, in -1..1.

    Args:
        height: the surface, in any unit.
        strength: height units to steepness; 1 is a mild relief for noise of unit deviation.
        azimuth: where the light comes from, radians, 0 right and pi / 2 above.
    """
    scale = strength * len(height) / 256
    x = (np.roll(height, 1, axis=1) - np.roll(height, -1, axis=1)) * scale
    y = (np.roll(height, -1, axis=0) - np.roll(height, 1, axis=0)) * scale
    return (np.cos(azimuth) * x + np.sin(azimuth) * y) / np.sqrt(1.0 + x * x + y * y)


def warp(field: FloatArray, dy: FloatArray, dx: FloatArray) -> FloatArray:
    """Returns the field read at displaced places (shifts in pixels, bilinear, wrapping round)."""
    size = len(field)
    y = np.arange(size)[:, None] + dy
    x = np.arange(size)[None, :] + dx
    top, left = np.floor(y), np.floor(x)
    v, u = y - top, x - left
    rows, columns = top.astype(np.int64) % size, left.astype(np.int64) % size
    below, right = (rows + 1) % size, (columns + 1) % size
    flat = field.reshape(-1)
    upper = flat[rows * size + columns] * (1 - u) + flat[rows * size + right] * u
    lower = flat[below * size + columns] * (1 - u) + flat[below * size + right] * u
    return upper * (1 - v) + lower * v


def blur(field: FloatArray, pixels: float) -> FloatArray:
    """Returns the field blurred by a periodic Gaussian of that deviation."""
    k = _frequencies(len(field), (1.0, 1.0))
    kernel = np.exp(-2.0 * (np.pi * pixels * k / len(field)) ** 2)
    return np.fft.irfft2(np.fft.rfft2(field) * kernel, s=field.shape)


def normalise(field: FloatArray) -> FloatArray:
    """Returns the field with zero mean and unit deviation; a constant one becomes zero."""
    centred = field - field.mean()
    deviation = float(np.sqrt((centred * centred).mean()))
    return centred / deviation if deviation > 0 else centred


def smoothstep(field: FloatArray, low: float, high: float) -> FloatArray:
    """Returns 0 below `low`, 1 above `high`, a smooth step between.

    >>> smoothstep(np.array([-1.0, 0.5, 2.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    t = np.clip((field - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def mix(mask: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Returns `a` where the mask is 0 and `b` where it is 1; a mask of one channel serves three.

    >>> mix(np.array([[0.5]]), np.zeros((1, 1, 3)), np.ones((1, 1, 3))).tolist()
    [[[0.5, 0.5, 0.5]]]
    """
    if mask.ndim == np.ndim(a):
        return a + mask * (b - a)
    out = np.empty(np.shape(a))
    for channel in range(3):  # long rows of one channel are twice as fast as broadcasting
        part = b[..., channel] - a[..., channel]
        part *= mask
        part += a[..., channel]
        out[..., channel] = part
    return out


def palette(field: FloatArray, colours: Sequence[Colour | FloatArray]) -> FloatArray:
    """Returns (..., 3) colours for a field in 0..1: the given ones at equal steps, mixed between.

    >>> palette(np.array([0.0, 0.25]), [(0, 0, 0), (1, 0.5, 0)]).tolist()
    [[0.0, 0.0, 0.0], [0.25, 0.125, 0.0]]
    """
    table = np.asarray(colours, dtype=np.float64)
    stops = np.linspace(0.0, 1.0, len(table))
    out = np.empty((*field.shape, 3))
    for channel in range(3):
        out[..., channel] = np.interp(field, stops, table[:, channel])
    return out


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


@functools.lru_cache(maxsize=64)
def _amplitude(
    size: int, beta: float, stretch: tuple[float, float], band: tuple[float, float]
) -> FloatArray:
    k = _frequencies(size, stretch)
    inside = (k > 0) & (k >= band[0]) & (k <= band[1])
    return np.where(inside, np.maximum(k, 0.1) ** (-beta / 2), 0.0)


@functools.lru_cache(maxsize=64)
def _frequencies(size: int, stretch: tuple[float, float]) -> FloatArray:
    y = np.fft.fftfreq(size, 1 / size)[:, None] * stretch[0]
    x = np.fft.rfftfreq(size, 1 / size)[None, :] * stretch[1]
    return np.sqrt(y * y + x * x)
