"""A task of one's own without goals: a block leaves a ring whose radius is a variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import interverse as iv
from interverse.scm import Box, Variable
from interverse.worlds.trifinger import ArenaScene, Block, Task
from interverse.worlds.trifinger.objects import block_variables, to_cylindrical

RING = "ring/radius"


class Clearing(Task):
    """One block on the floor; it is to leave a ring about the middle."""

    name = "clearing"
    own = (RING,)

    def scene(self) -> ArenaScene:
        """Returns a block beside the middle."""
        return ArenaScene(blocks=(Block(position=(0.0, -0.05, 0.0325), mass=0.02),))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the block's variables and the ring's radius."""
        ring = Variable(
            name=RING,
            kind="goal",
            default=np.array(0.12),
            domain=Box(0.06, 0.15),
            space_a=Box(0.1, 0.13),
            space_b=Box(0.13, 0.15, open_low=True),
            unit="m",
            doc="What the block is to leave.",
        )
        return [*block_variables(scene, 0, place="pinned"), ring]

    def score_causes(self, scene: ArenaScene) -> tuple[str, ...]:
        """Returns the block's place and the ring."""
        return ("block_0/cartesian_position", RING)

    def fraction(self, now: Any, rule: str) -> Any:
        """Returns how far the block is on its way out."""
        return (self._away(now)[:, 0] / now.own[RING]).clip(0.0, 1.0)

    def goal_arrays(self, now: Any) -> tuple[Any, Any]:
        """Returns the block's distance from the middle, and the radius."""
        return self._away(now), now.own[RING][:, None].copy()

    def bonus_of(self, achieved: Any, desired: Any, *, corrected_reward: bool) -> tuple[Any, Any]:
        """Returns the fraction and success of distances and radii."""
        fraction = (achieved / desired)[:, 0].clip(0.0, 1.0)
        return fraction, fraction > 0.9

    def solution(self, rows: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the block outside the ring, on its own ray."""
        place = to_cylindrical(rows["block/position"][:, 0])
        place[:, 0] = np.maximum(place[:, 0], rows[RING] + 0.01)
        return {"block_0/cylindrical_position": place}

    @staticmethod
    def _away(now: Any) -> Any:
        return to_cylindrical(now.positions[:, 0])[:, :1]


iv.register(
    "lab/clearing-v1",
    "interverse.worlds.trifinger.world:TriFinger",
    task="tests.worlds.trifinger.clearing:Clearing",
)
