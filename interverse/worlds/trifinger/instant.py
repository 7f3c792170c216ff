"""What rewards and scores are made of, gathered from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from interverse.worlds.trifinger.overlap import bounds
from interverse.worlds.trifinger.rewards import Moment, Targets
from interverse.worlds.trifinger.robot import tip_positions
from interverse.worlds.trifinger.store import START_RATES
from interverse.worlds.trifinger.tasks.task import Instant

Array = Any


def goals_of(data: Mapping[str, Array]) -> tuple[Targets, Array]:
    """Returns the goals and their bounding boxes; what is not there has size zero."""
    place, turn = (data[f"goal/{key}"].copy() for key in ("position", "orientation"))
    size = np.where(data["goal/used"][..., None], data["goal/size"], 0.0)
    return Targets(place, turn, size), bounds(place, turn, size)


def instant_of(
    data: Mapping[str, Array], goals: tuple[Targets, Array], torques: Callable[[], Array]
) -> Instant:
    """Returns the present instant of every world.

    Args:
        data: the store.
        goals: what `goals_of` returned; goals change less often than anything else.
        torques: gives what the joints get from their motors, when somebody asks.
    """
    joints, rates = data["joint_positions"], data["joint_velocities"].copy()
    place, turn = (data[f"block/{key}"].copy() for key in ("position", "orientation"))
    size = np.where(data["block/used"][..., None], data["block/size"], 0.0)
    tips = tip_positions(joints, data["robot/height"])
    return Instant(
        moment=Moment(tips, rates, place, turn),
        targets=goals[0],
        block_sizes=size,
        block_bounds=bounds(place, turn, size),
        goal_bounds=goals[1],
        torques=torques,
        start_rates=data[START_RATES],
    )
