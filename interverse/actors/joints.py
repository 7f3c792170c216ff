"""Starts the fingers elsewhere: random tip positions, turned into joint angles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

import numpy as np

from interverse.actors.actor import Actor, Assignment, Moment
from interverse.core.errors import InvalidValueError, explain
from interverse.envs.values import to_numpy
from interverse.scm.variable import SpaceName
from interverse.worlds.trifinger import ARENA, inverse_kinematics

_ANGLES, _HEIGHT = "joint_positions", "robot/height"
_TIPS = 9  # x, y, z of three fingertips

Point = tuple[float, float, float]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Joints(Actor):
    """CausalWorld's joints actor: the inverse kinematics of three uniform points in a box.

    Most draws that put a finger into a block or into another finger are refused and drawn again.
    """

    low: Point = ARENA[0]
    """The box's lowest corner, m above the floor."""
    high: Point = ARENA[1]
    """Its highest corner, m."""

    def spaces(self, space: SpaceName) -> Collection[SpaceName]:
        """Returns A_B: nine angles of points anywhere are hardly ever all in A or all in B."""
        whole: SpaceName = "A_B"
        return (whole,)

    def act(self, moment: Moment) -> Assignment:
        """Returns joint angles per world."""
        if _ANGLES not in moment.variables or moment.variables[_ANGLES].shape != (_TIPS,):
            raise InvalidValueError(
                explain(
                    f"{moment.driver.id} has no {_ANGLES} of three fingers",
                    allowed="TriFinger worlds",
                    fix="Use another actor, such as uniform",
                )
            )
        low, high = (np.tile(np.asarray(end, dtype=np.float64), 3) for end in (self.low, self.high))
        uniform = to_numpy(moment.noise.uniform(f"{moment.tag}:tips", (_TIPS,)))
        tips = low + uniform * (high - low)
        angles = inverse_kinematics(tips, moment.values(_ANGLES), moment.values(_HEIGHT))
        return {_ANGLES: angles}
