"""Tasks with towers: build one of equal blocks, or stack two blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from interverse.core.arrays import Array
from interverse.core.rng import Noise
from interverse.scm import Box, Integers, UnitQuaternion, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.objects import (
    YAWS,
    block_variables,
    goal_variables,
    ring,
    to_cartesian,
    to_cylindrical,
)
from interverse.worlds.trifinger.robot import RAISED
from interverse.worlds.trifinger.scene import WALL_RADIUS, ArenaScene, Block, Goal
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
from interverse.worlds.trifinger.variables import UNBOUNDED, declare

_COUNTS, _DIMS, _CENTER = "tower/counts", "tower/dims", "tower/center"
_CAUSES = (_COUNTS, _DIMS, _CENTER)
_CORNER, _GAP = 0.12, 0.005  # m
_IN_WALL = 0.17  # half edge of the square that fits into the wall, m
_PLACE, _TURN = "goal_tower/cylindrical_position", "goal_tower/orientation"
_BLOCK_HEIGHT = 0.065


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


@final
class Stacking2(Task):
    """Two blocks, and a tower of two goals that moves as one."""

    name = "stacking2"
    weights = (750.0, 250.0, 250.0, 125.0, 0.005)
    dense = staticmethod(rewards.stacking2)
    drawn = (_PLACE, _TURN)

    def scene(self) -> ArenaScene:
        """Returns two blocks on the floor and two goals, one upon the other."""
        return ArenaScene(
            blocks=(
                Block(position=(0.0, 0.0, 0.0325), mass=0.02),
                Block(position=(0.01, 0.08, 0.0325), mass=0.02),
            ),
            goals=(
                Goal(position=(-0.06, -0.06, 0.0325)),
                Goal(position=(-0.06, -0.06, 0.0975)),
            ),
        )

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The tower's place and turn."""
        return _PLACE, _TURN

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the variables of blocks and goals, and the tower's place and turn."""
        out = []
        for i in range(2):
            out += block_variables(scene, i, sizes=UNBOUNDED)
            out += goal_variables(scene, i, bounded=False, sizes=UNBOUNDED)
        height = np.array(_BLOCK_HEIGHT)
        return [
            *out,
            declare(
                _PLACE,
                "goal",
                to_cylindrical(np.array((-0.06, -0.06, _BLOCK_HEIGHT))),
                Box((0.0, -2 * np.pi, 0.02), (0.35, 2 * np.pi, 0.15), (3,)),
                spaces=(ring(0, height, height), ring(1, height, height)),
                unit="m, rad, m",
                doc="Radius and angle of the tower; the height of one of its blocks.",
            ),
            declare(
                _TURN,
                "goal",
                (0.0, 0.0, 0.0, 1.0),
                UnitQuaternion(),
                spaces=YAWS,
                doc="Quaternion x, y, z, w of both goals.",
            ),
        ]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the tower carries its goals, and that a size lifts its block."""
        out = []
        for i in range(2):
            out += [(_PLACE, f"goal_{i}/cartesian_position"), (_TURN, f"goal_{i}/orientation")]
            out += [(f"block_{i}/size", f"block_{i}/cartesian_position")]
        return out

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Moves both goals with the tower."""
        if _PLACE in given:
            place = to_cartesian(rows["goal_tower/place"])
            for i in range(2):
                rows["goal/position"][:, i, :2] = place[:, :2]
                rows["goal/position"][:, i, 2] = place[:, 2] * (i + 0.5)
        if _TURN in given:
            rows["goal/orientation"][:] = rows["goal_tower/orientation"][:, None]
        return {}
