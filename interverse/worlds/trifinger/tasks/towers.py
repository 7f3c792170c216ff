"""Build a tower of equal blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from interverse.core.arrays import Array
from interverse.core.rng import Noise
from interverse.scm import Box, Integers, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.robot import RAISED
from interverse.worlds.trifinger.scene import WALL_RADIUS, ArenaScene
from interverse.worlds.trifinger.tasks.building import (
    MASS,
    Construction,
    building_edges,
    changed_generators,
    fill,
    follow,
    piece_variables,
    scene_of,
    tower,
)
from interverse.worlds.trifinger.tasks.task import Edge, Task
from interverse.worlds.trifinger.variables import declare

_COUNTS, _DIMS, _CENTER = "tower/counts", "tower/dims", "tower/center"
_CAUSES = (_COUNTS, _DIMS, _CENTER)
_CORNER, _GAP = 0.12, 0.005  # m
_IN_WALL = 0.17  # half edge of the square that fits into the wall, m


@final
class Towers(Task):
    """A tower cut into equal blocks; the blocks start in a row, the fingers raised."""

    name = "towers"
    generators = (*_CAUSES, MASS)
    start = RAISED
    interleaved = True
    varies = True

    def scene(self) -> ArenaScene:
        """Returns five cubes and a column of five goals."""
        return scene_of(_shape(np.array((1, 1, 5)), np.array((0.035, 0.035, 0.175)), np.zeros(2)))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables and the tower's."""
        return [
            *piece_variables(scene),
            declare(
                _COUNTS,
                "goal",
                (1, 1, 5),
                Integers(1, 6, (3,)),
                spaces=(Integers(1, 3, (3,)), Integers(4, 5, (3,))),
                doc="Blocks along x, y and z.",
            ),
            declare(
                _DIMS,
                "goal",
                (0.035, 0.035, 0.175),
                Box(0.02, 0.3, (3,)),
                spaces=(Box(0.08, 0.12, (3,)), Box(0.12, 0.20, (3,), open_low=True)),
                unit="m",
                doc="Edges of the whole tower.",
            ),
            declare(
                _CENTER,
                "goal",
                (0.0, 0.0),
                Box(-0.15, 0.15, (2,)),
                spaces=(Box(-0.1, 0.05, (2,)), Box(0.05, 0.1, (2,), open_low=True)),
                unit="m",
                doc="Where the tower stands: x, y.",
            ),
        ]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the tower's variables make all pieces."""
        return building_edges(scene, _CAUSES)

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the tower anew where its variables are given."""
        follow(rows, given)
        if not changed_generators(given, _CAUSES):
            return {}
        refused = {}
        for row, counts in enumerate(rows[_COUNTS]):
            reason = fill(rows, row, _shape(counts, rows[_DIMS][row], rows[_CENTER][row]))
            if reason is not None:
                refused[row] = reason
        return refused


def _shape(counts: Array, dims: Array, center: Array) -> Construction:
    x, y, z = (int(c) for c in counts)
    shape = tower((x, y, z), dims, center)
    return replace(shape, starts=_row(len(shape.sizes), shape.sizes[0]))


def _row(count: int, size: Array) -> Array:
    """Returns starts along the diagonal; a full row is followed by one a block higher.

    The original goes up by half a block, so that blocks of two rows stand in each other, and puts
    wide blocks into the wall; these move inwards.
    """
    half, step = size[:2] / 2, size[:2] + _GAP
    inside = np.hypot(*(_CORNER + half)) <= WALL_RADIUS
    first = -(np.full(2, _CORNER) if inside else np.minimum(_CORNER, _IN_WALL - half))
    fit = 1 + int(np.floor((2 * _CORNER + 1e-9) / step).min())
    while fit > 1 and np.hypot(*(first + (fit - 1) * step + half)) > WALL_RADIUS:
        fit -= 1
    k = np.arange(count)
    flat = first + (k % fit)[:, None] * step
    return np.concatenate([flat, ((k // fit + 0.5) * size[2])[:, None]], axis=1)
