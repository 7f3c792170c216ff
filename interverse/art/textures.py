"""Pictures by arithmetic: tileable fields, colour ramps, laid and strewn things, other sizes.

Arrays only: a picture is (size, size, 3) float64 in 0..1 until `quantise` makes it uint8. What
draws takes a NumPy generator. Rows run down (axis 0, y) and columns right (axis 1, x); lengths are
fractions of the picture's side unless they say pixels. All fields wrap round, so a texture made of
them tiles. Sums of such length differ between machines in the last bits only, which the rounding to
256 levels hides.
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


# ------------------------------------------------------------------------------------ laid things


@final
@dataclass(frozen=True, slots=True, eq=False)
class Masonry:
    """Which piece each pixel belongs to, and where in it."""

    index: IntArray  # (size, size), number of the piece
    edge: FloatArray  # (size, size), distance to the piece's edge, fraction of the picture's side
    across: FloatArray  # (size, size), place in the piece from left to right, 0..1
    down: FloatArray  # (size, size), place in the piece from top to bottom, 0..1
    parity: IntArray  # (size, size), 0 or 1: two colours for neighbours (six-sided: for rows)


def bricks(
    size: int,
    rows: int,
    columns: int,
    *,
    shifts: FloatArray | None = None,
    wobble: tuple[FloatArray, FloatArray] | None = None,
) -> Masonry:
    """Returns courses of equal bricks.

    Args:
        size: pixels a side.
        rows: courses in the picture.
        columns: bricks in a course.
        shifts: (rows,) of bricks each course is moved by; every second one by a half if None.
        wobble: fields that bend the joints along y and x, fractions of the picture's side.

    >>> int(bricks(32, 4, 2).index.max())
    7
    """
    if shifts is None:
        shifts = np.asarray(0.5 * (np.arange(rows) % 2), dtype=np.float64)
    place = (np.arange(size) + 0.5) / size
    y = np.broadcast_to(place[:, None], (size, size))
    x = np.broadcast_to(place[None, :], (size, size))
    if wobble is not None:
        y, x = y + wobble[0], x + wobble[1]
    y = y * rows
    row = np.floor(y).astype(np.int64)
    down = y - row
    row %= rows
    x = x * columns + np.asarray(shifts)[row]
    column = np.floor(x).astype(np.int64)
    across = x - column
    column %= columns
    edge = np.minimum(np.minimum(across, 1 - across) / columns, np.minimum(down, 1 - down) / rows)
    return Masonry(row * columns + column, edge, across, down, (row + column) % 2)


def planks(rng: np.random.Generator, size: int, rows: int, columns: int) -> Masonry:
    """Returns boards that run from left to right, their ends at random places in each row."""
    return bricks(size, rows, columns, shifts=rng.random(rows))


def tiles(size: int, side: int, *, pattern: str = "square") -> Masonry:
    """Returns floor tiles: `square`, `diamond` (turned by 45 degrees) or `hexagon`.

    >>> len(np.unique(tiles(64, 4, pattern="diamond").index))
    32
    """
    if pattern == "square":
        return bricks(size, side, side, shifts=np.zeros(side))
    place = (np.arange(size) + 0.5) / size * side
    y, x = np.meshgrid(place, place, indexing="ij")
    if pattern == "hexagon":
        return _hexagons(y, x, side)
    p, q = x + y, x - y
    a, b = np.floor(p).astype(np.int64), np.floor(q).astype(np.int64)
    across, down = p - a, q - b
    edge = np.minimum(np.minimum(across, 1 - across), np.minimum(down, 1 - down))
    # The corner's place on the torus, doubled so that it is whole, names the tile.
    corner_x, corner_y = (a + b) % (2 * side), (a - b) % (2 * side)
    index = np.unique(corner_y * 2 * side + corner_x, return_inverse=True)[1].reshape(y.shape)
    return Masonry(index, edge / (side * 2**0.5), across, down, (a + b) % 2)


def _hexagons(y: FloatArray, x: FloatArray, side: int) -> Masonry:
    """Six-sided tiles are the nearest centres of a lattice whose every second row is shifted."""
    rows = max(2, 2 * round(side / 3**0.5))  # even, so the shifts wrap
    tall = side / rows  # a row's height in widths of a tile
    y = y / tall
    nearest = np.full(y.shape, np.inf)
    second, across, down = nearest.copy(), np.zeros(y.shape), np.zeros(y.shape)
    index = np.zeros(y.shape, dtype=np.int64)
    for step in (0, 1):
        row = np.floor(y - 0.5).astype(np.int64) + step
        left = x - 0.5 * (row % 2) - 0.5
        for column in (np.floor(left).astype(np.int64), np.floor(left).astype(np.int64) + 1):
            dy, dx = (y - row - 0.5) * tall, left - column
            distance = dy * dy + dx * dx
            closer = distance < nearest
            second = np.where(closer, nearest, np.minimum(second, distance))
            nearest = np.where(closer, distance, nearest)
            index = np.where(closer, (row % rows) * side + column % side, index)
            across, down = np.where(closer, dx + 0.5, across), np.where(closer, dy + 0.5, down)
    edge = (np.sqrt(second) - np.sqrt(nearest)) / 2 / side
    return Masonry(index, edge, across, down, index // side % 2)


# ---------------------------------------------------------------------------------- strewn things


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """What lies on top at each pixel."""

    index: IntArray  # (size, size), number of the thing, -1 where the ground shows
    height: FloatArray  # (size, size), 0 at the thing's edge, 1 in its middle (blades: at the tip)
    along: FloatArray  # (size, size), place along the thing, -1..1 (blades: 0 root to 1 tip)


def strokes(
    rng: np.random.Generator,
    size: int,
    count: int,
    *,
    length: float,
    angle: FloatArray | float | None = None,
    bend: float = 0.6,
) -> Scatter:
    """Returns thin curved strokes, later ones over earlier ones.

    Args:
        rng: draws roots, lengths, bends and, if not given, angles.
        size: pixels a side.
        count: how many.
        length: of the longest, fraction of the side.
        angle: (count,) or one direction, radians, pi / 2 is up; None for all directions.
        bend: how much a stroke turns from root to tip, radians, as a deviation.
    """
    points = max(2, round(1.2 * length * size))
    if angle is None:
        angle = rng.random(count) * 2 * np.pi
    root = rng.random((2, count, 1)) * size
    reach = length * size * (0.4 + 0.6 * rng.random((count, 1)))
    t = np.linspace(0.0, 1.0, points)[None, :]
    heading = np.broadcast_to(np.asarray(angle, dtype=np.float64), (count,))[:, None]
    heading = heading + bend * rng.standard_normal((count, 1)) * t
    y = (root[0] - np.sin(heading) * reach * t).astype(np.int64) % size
    x = (root[1] + np.cos(heading) * reach * t).astype(np.int64) % size
    place = (y * size + x).reshape(-1)
    index = np.full(size * size, -1, dtype=np.int64)
    along = np.zeros(size * size)
    # NumPy writes repeated places in order, so the last stroke lies on top.
    index[place] = np.repeat(np.arange(count), points)
    along[place] = np.tile(t[0], count)
    shape = (size, size)
    return Scatter(index.reshape(shape), along.reshape(shape), along.reshape(shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobShape:
    """What strewn things look like."""

    radius: float = 0.6
    """Of the largest along its length, in cells; at most 1."""
    aspect: float = 1.0
    """Length over width."""
    pointed: bool = False
    """Whether the ends are sharp, as leaves' are."""
    share: float = 1.0
    """Part of the cells that have a thing at all."""


def blobs(
    rng: np.random.Generator,
    size: int,
    count: int,
    shape: BlobShape,
    *,
    rough: FloatArray | None = None,
) -> Scatter:
    """Returns rounded things (pebbles, leaves) that may overlap, one to each cell of a lattice.

    Args:
        rng: draws places, sizes, directions and which lies on top.
        size: pixels a side.
        count: how many; rounded to the nearest square number.
        shape: how large, how long, how sharp.
        rough: a field that dents the outlines, about 0.2 in deviation.
    """
    side = max(1, round(count**0.5))
    centre = rng.random((2, side, side))
    turn = rng.random((side, side)) * 2 * np.pi
    reach = shape.radius * (0.55 + 0.45 * rng.random((side, side)))
    order = rng.permutation(side * side)
    cos, sin = np.cos(turn) / reach, np.sin(turn) / reach
    # Per cell: what turns a place into coordinates along and across the thing.
    parts = (
        cos,
        sin,
        centre[1] * cos + centre[0] * sin,
        centre[0] * cos - centre[1] * sin,
        np.where(rng.random((side, side)) < shape.share, order.reshape(side, side), -1),
    )
    table = tuple(part.astype(np.float32) for part in parts)  # half the time of float64
    position = (np.arange(size) + 0.5) * side / size
    own = position.astype(np.int64)
    inside = (position - own).astype(np.float32)
    top = np.full((size, size), -1, dtype=np.float32)
    height, along = np.zeros_like(top), np.zeros_like(top)
    dent = np.float32(1.0) if rough is None else (1.0 + rough).astype(np.float32)
    for dy in (-1, 0, 1):
        y = (dy - inside)[:, None]
        for dx in (-1, 0, 1):
            x = (dx - inside)[None, :]
            row, column = (own + dy) % side, (own + dx) % side
            c, s, u, v, rank = (part[row].take(column, axis=1) for part in table)
            u = u + x * c + y * s
            v = (v + y * c - x * s) * np.float32(shape.aspect)
            f = dent - (u * u + (np.abs(v) if shape.pointed else v * v))
            over = (f > 0) & (rank > top)
            np.copyto(top, rank, where=over)
            np.copyto(height, f, where=over)
            np.copyto(along, u, where=over)
    index = np.append(np.argsort(order), -1)[top.astype(np.int64)]
    return Scatter(index, np.minimum(height, 1.0).astype(np.float64), along.astype(np.float64))
