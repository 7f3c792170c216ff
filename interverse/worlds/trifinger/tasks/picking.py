"""Lift a block to a height above the middle."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from interverse.core.arrays import to_numpy
from interverse.core.errors import explain
from interverse.core.rng import Noise
from interverse.scm import Box, Space, Variable
from interverse.scm.store import Rows
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
from interverse.worlds.trifinger.tasks.task import Edge, Task

Array = Any
_PLACE = "goal_0/cylindrical_position"
_ROUNDING = 1e-9  # of a radius of zero, m
_HEIGHTS = ((0.08, 0.20), (0.20, 0.25))  # of the goal in A and B, m


def _above_middle(item: Variable) -> Variable:
    """Returns a goal's variable; of its place only the height is free."""
    if item.name != _PLACE:
        return item

    def pinned(part: int) -> Box:
        (low, high), wide = _HEIGHTS[part], bool(part)
        return Box((0.0, 0.0, low), (0.0, 0.0, high), (3,), open_low=wide)

    return replace(item, space_a=pinned(0), space_b=pinned(1))


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
        goal = [_above_middle(item) for item in goal_variables(scene, 0, heights=_HEIGHTS)]
        return [*block_variables(scene, 0), *goal]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the block's size seats it on the floor."""
        return size_edges(("block_0",))

    def constraints(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that block and goal have one size."""
        return size_constraints()

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Gives block and goal one size, seats the block; a goal beside the middle is refused."""
        refused = same_size(rows, given, seated=("block",))
        if not position_given("goal_0", given):
            return refused
        beside = to_numpy((abs(rows["goal/position"][:, 0, :2]) > _ROUNDING).any(axis=-1))
        reason = explain(
            "goal_0 would not be above the middle",
            allowed="radius 0 (x = y = 0) at any height",
            fix="Use trifinger/pick_and_place-v1 for goals elsewhere",
        )
        return refused | dict.fromkeys(np.flatnonzero(beside).tolist(), reason)

    def terms(self, before: Instant, now: Instant, *, mended: bool) -> Sequence[Array]:
        """Returns the dense terms of a step; see `interverse.worlds.trifinger.rewards`."""
        size = now.sizes[:, 0]
        return rewards.picking(before, now, now.goals, size)

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns a height above the middle."""
        return {_PLACE: draw(_PLACE, spaces[_PLACE], noise)}
