"""Laid things that tile: bricks in courses, boards, square, diamond and six-sided tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from interverse.art.textures.fields import FloatArray, IntArray


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
    return {"diamond": _diamonds, "hexagon": _hexagons}[pattern](y, x, side)


def _diamonds(y: FloatArray, x: FloatArray, side: int) -> Masonry:
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
