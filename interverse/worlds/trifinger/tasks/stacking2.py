"""Stack two blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import final

import numpy as np

from interverse.core.rng import Noise
from interverse.scm import Box, UnitQuaternion, Variable
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
from interverse.worlds.trifinger.scene import ArenaScene, Block, Goal
from interverse.worlds.trifinger.tasks.task import Edge, Task
from interverse.worlds.trifinger.variables import UNBOUNDED, declare

_PLACE, _TURN = "goal_tower/cylindrical_position", "goal_tower/orientation"
_BLOCK_HEIGHT = 0.065


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
