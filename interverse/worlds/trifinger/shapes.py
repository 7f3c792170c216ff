"""Constructions of the four building tasks: towers, stacks of levels, heaps.

The functions say where goals stand and where their blocks start; they draw from the generator they
are given and touch no simulator. Heights are measured from the datum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain

Floats = NDArray[np.float64]

ARENA = 0.15  # half edge of the arena, m
_GAP = 0.005
_CORNER = 0.12
_DISC = 0.15
_SPLITS = 3  # how often the pieces of a level may be halved

DROPS = (
    (0.1, 0.1, 0.2),
    (0.0, 0.0, 0.2),
    (0.05, 0.05, 0.3),
    (-0.05, -0.05, 0.1),
    (-0.12, -0.12, 0.2),
    (-0.12, 0.12, 0.2),
    (0.12, -0.10, 0.3),
    (0.09, -0.08, 0.1),
)
DROP_SECONDS = 0.8  # between two drops, and after the last


@final
@dataclass(frozen=True, slots=True, eq=False)
class Construction:
    """A structure to build, piece by piece.

    Attributes:
        sizes: full edges of the pieces, (K, 3), m.
        goals: where the pieces belong, (K, 3), m.
        wanted: which pieces are goals, (K,) bool; the others' blocks may serve freely.
        starts: where their blocks begin, (K, 3), m.
        yaws: the blocks' first turn about the vertical, (K,), rad.
    """

    sizes: Floats
    goals: Floats
    wanted: NDArray[np.bool_]
    starts: Floats
    yaws: Floats


@final
@dataclass(frozen=True, slots=True, eq=False)
class Drop:
    """A cube to let fall: from where, and turned how (rotation vector)."""

    position: Floats  # (3,), m
    rotation: Floats  # (3,), rad


def tower(counts: tuple[int, int, int], dims: Floats, centre: Floats) -> Construction:
    """Returns a tower cut evenly into counts blocks a side, standing on the floor at `centre`.

    Goals fill it upwards. The blocks start on a diagonal from a corner of the arena; past the other
    corner the next row begins at the first, half a block higher.

    Args:
        counts: blocks along x, y, z.
        dims: the whole tower's edges, (3,), m.
        centre: its x, y, (2,), m.
    """
    if min(counts) < 1:
        raise InvalidValueError(explain(f"a tower has at least one block a side, got {counts}"))
    size = np.asarray(dims, float) / np.array(counts)
    low = np.array([centre[0] - dims[0] / 2, centre[1] - dims[1] / 2, 0.0])
    goals = [
        low + size * (np.array((x, y, z)) + 0.5)
        for z in range(counts[2])
        for y in range(counts[1])
        for x in range(counts[0])  # as the original numbers them: along x first
    ]
    return _shape(np.tile(size, (len(goals), 1)), np.array(goals), _diagonal(len(goals), size))


def level_rows(levels: int, edge: float, width: float, ends_only: bool) -> Construction:
    """Returns the default stack: levels of equal cubes in a row, shifted to and fro.

    Args:
        levels: how many.
        edge: of the cubes, m.
        width: of a level, m; as many cubes as fit.
        ends_only: whether only the first and last level are goals (creative).
    """
    count = int(width / edge + 1e-9)
    row = (np.arange(count) - (count - 1) / 2) * edge
    level = np.repeat(np.arange(levels), count)
    odd = level % 2 == 1
    goals = np.zeros((levels * count, 3))
    goals[:, 0] = np.tile(row, levels) + np.where(odd, _GAP, -_GAP)
    goals[:, 2] = (level + 0.5) * edge
    starts = goals + np.array([0.0, 1.0, 0.0]) * np.where(odd, 0.1, -0.1)[:, None]
    wanted = (level == 0) | (level == levels - 1) if ends_only else np.ones(len(level), bool)
    return _shape(np.full((len(level), 3), edge), goals, starts, wanted=wanted)


def random_stack(
    rng: np.random.Generator, levels: int, edge: float, width: float, ends_only: bool
) -> Construction:
    """Returns a random stack that stands: each level's centre lies over the one below.

    Level 0 is placed anywhere in the arena; the wide pieces of a level are then halved, as long as
    every piece stays over the level below. Blocks start on the floor, anywhere in a disc.

    Args:
        rng: draws the levels and the starts.
        levels: how many.
        edge: depth and height of every piece, and the least width, m.
        width: the greatest width of a level, m.
        ends_only: whether only the first and last level are goals (creative).
    """
    spans, y = _random_levels(rng, levels, edge, width)
    pieces = _halve(spans, edge)
    level = np.array([i for i, row in enumerate(pieces) for _ in row])
    low, high = np.array([piece for row in pieces for piece in row]).T
    goals = np.stack([(low + high) / 2, np.full(len(low), y), (level + 0.5) * edge], axis=1)
    sizes = np.stack([high - low, np.full(len(low), edge), np.full(len(low), edge)], axis=1)
    wanted = (level == 0) | (level == levels - 1) if ends_only else np.ones(len(level), bool)
    starts, yaws = floor_starts(rng, sizes)
    return Construction(sizes=sizes, goals=goals, wanted=wanted, starts=starts, yaws=yaws)


def floor_starts(rng: np.random.Generator, sizes: Floats) -> tuple[Floats, Floats]:
    """Returns positions on the floor, even over a disc, and yaws, for blocks of the sizes given."""
    count = len(sizes)
    radius = _DISC * np.sqrt(rng.uniform(size=count))
    angle = rng.uniform(-math.pi, math.pi, count)
    place = np.stack([radius * np.cos(angle), radius * np.sin(angle), sizes[:, 2] / 2], axis=1)
    return place, rng.uniform(-math.pi, math.pi, count)


def drops(count: int, rng: np.random.Generator | None = None) -> tuple[Drop, ...]:
    """Returns the drops whose resting places are general's goals.

    Args:
        count: how many cubes.
        rng: draws the poses. None takes the fixed list of the default scene, which holds eight;
            further ones repeat it.
    """
    if rng is None:
        return tuple(
            Drop(position=np.array(DROPS[i % len(DROPS)]), rotation=np.zeros(3))
            for i in range(count)
        )
    return tuple(
        Drop(
            position=rng.uniform((-0.11, -0.11, 0.0), (0.11, 0.11, 0.22)),
            rotation=rng.uniform(0.0, 2 * math.pi, 3),
        )
        for _ in range(count)
    )


def _shape(
    sizes: Floats, goals: Floats, starts: Floats, *, wanted: NDArray[np.bool_] | None = None
) -> Construction:
    count = len(sizes)
    every = np.ones(count, bool) if wanted is None else wanted
    return Construction(sizes=sizes, goals=goals, wanted=every, starts=starts, yaws=np.zeros(count))


def _diagonal(count: int, size: Floats) -> Floats:
    """Returns start positions along the arena's diagonal, wrapping a half block higher."""
    place = np.array([-_CORNER, -_CORNER, size[2] / 2])
    places = []
    for _ in range(count):
        places.append(place.copy())
        place[:2] += size[:2] + _GAP
        if (place[:2] > _CORNER).any():
            place[:] = (-_CORNER, -_CORNER, place[2] + size[2] / 2)
    return np.array(places)


def _random_levels(
    rng: np.random.Generator, levels: int, edge: float, width: float
) -> tuple[list[tuple[float, float]], float]:
    """Returns the x extent of every level, and the y they share: that of the last one drawn."""
    room = ARENA - edge
    centre, y = rng.uniform(-room, room, 2)
    spans: list[tuple[float, float]] = []
    low, high, front, back = -math.inf, math.inf, -room, room
    for _ in range(levels):
        if spans:  # over the level below, and over all that are beneath it
            low, high = max(low, spans[-1][0]), min(high, spans[-1][1])
            front, back = max(front, y - edge / 2), min(back, y + edge / 2)
            centre, y = rng.uniform(low, high), rng.uniform(front, back)
        widest = max(edge, min(width, 2 * (ARENA - abs(centre))))
        half = rng.uniform(edge, widest) / 2
        spans.append((centre - half, centre + half))
    return spans, float(y)


def _halve(spans: list[tuple[float, float]], edge: float) -> list[list[tuple[float, float]]]:
    """Returns the pieces of each level, after halving those wider than two edges."""
    rows = [[span] for span in spans]
    for _ in range(_SPLITS):
        for i, row in enumerate(rows):
            halved: list[tuple[float, float]] = []
            for low, high in row:
                middle = (low + high) / 2
                both = [(low, middle), (middle, high)]
                stands = i == 0 or all(_over(piece, spans[i - 1]) for piece in both)
                halved += both if high - low > 2 * edge and stands else [(low, high)]
            rows[i] = halved
    return rows


def _over(piece: tuple[float, float], below: tuple[float, float]) -> bool:
    """Returns whether a piece's centre lies over the extent of the level below."""
    return below[0] <= (piece[0] + piece[1]) / 2 <= below[1]
