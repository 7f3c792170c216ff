"""Many small things strewn on a wrapping ground: blades and needles, leaves and stones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from interverse.art.textures.fields import FloatArray, IntArray


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
