"""Lift a block to a height above the middle."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

from interverse.rng import Noise
from interverse.scm import Space, Variable
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.goals import draw
from interverse.worlds.trifinger.objects import block_variables, goal_variables
from interverse.worlds.trifinger.rewards import Instant
from interverse.worlds.trifinger.scene import ArenaScene, Block, Goal
from interverse.worlds.trifinger.tasks.follow import (
    position_given,
    same_size,
    size_constraints,
    size_edges,
)
from interverse.worlds.trifinger.tasks.task import Edge, Rows, Task

Array = Any
_HEIGHTS = ((0.08, 0.20), (0.20, 0.25))  # of the goal in A and B, m


@final
class Picking(Task):
    """One block on the floor, one goal above the middle."""

    name = "picking"
    weights = (250.0, 0.0, 125.0, 0.0, 750.0, 0.0, 0.0, 0.005)

    def scene(self) -> ArenaScene:
        """Returns a block in the middle and a goal above it."""
        return ArenaScene(
            blocks=(Block(position=(0.0, 0.0, 0.0325), mass=0.02),),
            goals=(Goal(position=(0.0, 0.0, 0.15)),),
        )

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the block's and the goal's variables; a block may start in the air."""
        return [*block_variables(scene, 0), *goal_variables(scene, 0, heights=_HEIGHTS)]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the block's size seats it on the floor."""
        return size_edges(("block_0",))

    def constraints(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that block and goal have one size."""
        return size_constraints()

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Gives block and goal one size, seats the block, keeps the goal above the middle."""
        same_size(rows, given, seated=("block",))
        if position_given("goal_0", given):
            rows["goal/position"][:, 0, :2] = 0.0
        return {}

    def terms(self, before: Instant, now: Instant, *, mended: bool) -> Sequence[Array]:
        """Returns the dense terms of a step; see `interverse.worlds.trifinger.rewards`."""
        size = now.sizes[:, 0]
        return rewards.picking(before, now, now.goals, size)

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns a height above the middle."""
        name = "goal_0/cylindrical_position"
        place = draw(name, spaces[name], noise)
        place[:, :2] = 0.0
        return {name: place}
