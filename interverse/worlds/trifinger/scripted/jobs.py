"""The present job of every world: which block goes where, around what, and how high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.scripted.memory import Memory, Phase
from interverse.worlds.trifinger.scripted.senses import Boxes, Floats, Sight

TRAVEL = 0.11  # least height of tips that travel, m
ABOVE = 0.04  # of travelling tips over the tallest block, m
CARRY = 0.02  # of a carried block over everything else, m
PLACED = 0.012  # distance from the goal at which a block counts as placed, m


@final
@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """The present job of every world, worked out from what is seen and remembered.

    Attributes:
        sight: all that is seen.
        block, goal: those of the job, without an object axis.
        others: what the fingers and the held block must clear.
        goal_yaw: the goal's, or that of an equal pose of the block nearer to its present one.
        held: whether the block is in the fingers.
        destination: of the held block in this phase, (N, 3).
        travel: height at which tips travel.
        unplaced: the first block that is not in its goal, or else the last.
    """

    sight: Sight
    block: Boxes
    goal: Boxes
    others: Boxes
    goal_yaw: Floats
    held: NDArray[np.bool_]
    destination: Floats
    travel: Floats
    unplaced: NDArray[np.int64]

    @classmethod
    def of(cls, sight: Sight, memory: Memory, blocks: int) -> Jobs:
        """Returns the jobs of all worlds."""
        job, phase = memory.job, memory.phase
        block, goal = sight.blocks.of(job), sight.goals.of(job)
        others = _others(sight, job)
        square = np.abs(block.size[:, 0] - block.size[:, 1]) < 1e-3
        period = np.where(square, np.pi / 2, np.pi)
        goal_yaw = block.yaw + wrap(goal.yaw - block.yaw, period)
        tops = others.position[..., 2] + others.size[..., 2] / 2
        tallest = tops.max(axis=1, initial=0.0)
        high = np.maximum(goal.position[:, 2], tallest + block.size[:, 2] / 2 + CARRY)
        aloft = np.where(phase == Phase.LIFT, memory.path.T[:2], goal.position.T[:2]).T
        aloft = np.concatenate([aloft, high[:, None]], axis=1)
        pairs = sight.goals.position[:, :blocks] - sight.blocks.position[:, :blocks]
        placed = np.sqrt((pairs * pairs).sum(axis=-1)) < PLACED
        return cls(
            sight=sight,
            block=block,
            goal=goal,
            others=others,
            goal_yaw=goal_yaw,
            held=(phase >= Phase.LIFT) & (phase <= Phase.LOWER),
            destination=np.where((phase >= Phase.LOWER)[:, None], goal.position, aloft),
            travel=np.maximum(TRAVEL, np.maximum(tallest, block.size[:, 2]) + ABOVE),
            unplaced=np.where(placed.all(axis=1), blocks - 1, np.argmin(placed, axis=1)),
        )


def _others(sight: Sight, job: NDArray[np.int64]) -> Boxes:
    """Returns the blocks that are not the job's, and the obstacles."""
    count = sight.blocks.yaw.shape[1]
    rest = (job[:, None] + 1 + np.arange(count - 1)) % count
    rows = np.arange(len(job))[:, None]
    parts = zip(sight.blocks.parts, sight.obstacles.parts, strict=True)
    return Boxes(*(np.concatenate([b[rows, rest], o], axis=1) for b, o in parts))


def wrap(angle: Floats, period: Any = 2 * np.pi) -> Floats:
    """Returns the angle less whole periods, nearest to zero."""
    return angle - period * np.floor(angle / period + 0.5)
