"""Carry a block over a wall to a place on the other side."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from interverse.core.rng import Noise
from interverse.scm import Box, Space, Variable
from interverse.scm.store import Rows
from interverse.scm.variable import Bounds, Values
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.goals import draw, draw_side, quarter_turn
from interverse.worlds.trifinger.objects import block_variables, goal_variables, obstacle_variables
from interverse.worlds.trifinger.rewards import Instant
from interverse.worlds.trifinger.scene import ArenaScene, Block, Goal, Obstacle
from interverse.worlds.trifinger.tasks.follow import same_size, size_constraints, size_edges
from interverse.worlds.trifinger.tasks.task import Edge, Task

Array = Any
_BLOCK, _GOAL = "block_0/cylindrical_position", "goal_0/cylindrical_position"
_RADII = ((0.07, 0.12), (0.12, 0.15))  # in A and B, m


@final
class PickAndPlace(Task):
    """One block, one goal on the other side of a low wall."""

    name = "pick_and_place"
    weights = (750.0, 50.0, 250.0, 0.0, 0.005)
    fractional_weight = 0.0

    def scene(self) -> ArenaScene:
        """Returns a block in front of the wall and a goal behind it."""
        return ArenaScene(
            blocks=(Block(position=(0.0, -0.09, 0.0325), mass=0.02),),
            goals=(Goal(position=(0.0, 0.09, 0.0325)),),
            obstacles=(Obstacle(),),
        )

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the variables of block, goal and wall; the goal's side is not the block's."""
        own = [
            *block_variables(scene, 0, heights="pinned"),
            *goal_variables(scene, 0, heights="pinned"),
            *obstacle_variables(scene),
        ]
        sides = {_BLOCK: _half_ring("block_0/size", 1.0), _GOAL: _half_ring("goal_0/size", -1.0)}
        return [_with_spaces(item, sides) for item in own]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that a size seats its object on the floor."""
        return size_edges(("block_0", "goal_0"))

    def constraints(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that block and goal have one size."""
        return size_constraints()

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Gives block and goal one size and seats them and the wall on the floor."""
        if "obstacle/size" in given:
            rows["obstacle/position"][:, 0, 2] = rows["obstacle/size"][:, 0, 2] / 2
        return same_size(rows, given, seated=("block", "goal"))

    def terms(self, before: Instant, now: Instant, *, mended: bool) -> Sequence[Array]:
        """Returns the dense terms of a step; see `interverse.worlds.trifinger.rewards`."""
        reference = before.rates if mended else now.start_rates
        return rewards.pick_and_place(before, now, now.goals, reference)

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns a side for the block, in its middle, and a goal and yaw on the other side."""
        side = draw_side(_BLOCK, noise)
        height = values["block_0/size"][:, 2] / 2
        block = np.stack([np.full_like(side, 0.09), quarter_turn(side), height], axis=1)
        goal = draw(_GOAL, spaces[_GOAL], noise)
        goal[:, 1] = np.abs(goal[:, 1]) * -side
        turn = "goal_0/orientation"
        return {_BLOCK: block, _GOAL: goal, turn: draw(turn, spaces[turn], noise)}


def _half_ring(size: str, sign: float) -> tuple[Bounds, Bounds]:
    """Returns A and B on the block's own side of the wall (sign 1) or on the other (-1)."""

    def bounds(part: int, values: Values) -> Box:
        half = np.asarray(values[size], dtype=np.float64)[..., 2] / 2
        behind = sign * np.sin(np.asarray(values[_BLOCK])[..., 1]) > 0.0
        low, high = np.full_like(half, math.pi / 6), np.full_like(half, 5 * math.pi / 6)
        turns = np.where(behind, low, -high), np.where(behind, high, -low)
        radii = [np.full_like(half, r) for r in _RADII[part]]
        if part:  # only the bound that A and B share is open
            turns = np.nextafter(turns[0], -np.inf), turns[1]
        lows, highs = (np.stack([radii[i], turns[i], half], axis=-1) for i in range(2))
        return Box(lows, highs, (3,), open_low=part == 1)

    return (lambda v: bounds(0, v)), (lambda v: bounds(1, v))


def _with_spaces(item: Variable, spaces: Mapping[str, tuple[Bounds, Bounds]]) -> Variable:
    if item.name not in spaces:
        return item
    a, b = spaces[item.name]
    return replace(item, space_a=a, space_b=b)
