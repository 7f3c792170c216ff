"""Bring each fingertip to its own point."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import numpy as np

from interverse.rng import Noise
from interverse.scm import Space
from interverse.worlds.trifinger.goals import draw, draw_on_disc
from interverse.worlds.trifinger.observation import Group
from interverse.worlds.trifinger.scene import Goal, Scene
from interverse.worlds.trifinger.tasks.obstacles import (
    COUNT,
    count_variable,
    place_obstacles,
    spare_obstacles,
)
from interverse.worlds.trifinger.tasks.task import Moment, Rows, Task
from interverse.worlds.trifinger.variables import UNBOUNDED, Declared, goal_variables

Array = Any
_SIZE = (0.03, 0.03, 0.03)
_COLORS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_NEAR, _FAR = 0.01, 0.03  # mean distances that count as reached and as not at all, m


@final
class Reaching(Task):
    """Three spheres, one for each finger; small fixed cubes can be put in the way."""

    name = "reaching"
    weights = (100000.0, 0.0, 0.0, 0.0)
    generators = (COUNT,)

    def scene(self) -> Scene:
        """Returns three spheres above the middle."""
        heights = (0.10, 0.13, 0.16)
        return Scene(
            goals=tuple(
                Goal(position=(0.0, 0.0, z), size=_SIZE, color=color, shape="sphere")
                for z, color in zip(heights, _COLORS, strict=True)
            ),
            obstacles=spare_obstacles(),
        )

    def seconds(self, scene: Scene) -> float:
        """Returns how long an episode lasts, s."""
        return 5.0

    def variables(self, scene: Scene) -> list[Declared]:
        """Returns the spheres' variables and the number of obstacles."""
        goals = [v for i in range(3) for v in goal_variables(i, sizes=UNBOUNDED)]
        return [*goals, count_variable()]

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Puts obstacles in the way, as many as asked for."""
        if COUNT in given:
            place_obstacles(rows, noise)
        return {}

    def groups(self, scene: Scene) -> tuple[list[Group], list[str]]:
        """Returns the goals' positions alone."""
        goals = [Group(f"goal_{i}", ("cartesian_position",)) for i in range(3)]
        return goals, [g.name for g in goals]

    def observe(self, scene: Scene, rows: Mapping[str, Array]) -> list[Array]:
        """Returns the goals' positions."""
        return [rows["goal/position"].reshape(len(rows["goal/position"]), 9)]

    def fraction(self, moment: Moment, rule: str) -> Array:
        """Returns 1 where the tips are within a centimetre on average, 0 beyond three."""
        distance = _distance(moment)
        return 1.0 - (np.clip(distance, _NEAR, _FAR) - _NEAR) / (_FAR - _NEAR)

    def solved(self, moment: Moment, fraction: Array) -> Array:
        """Returns whether the tips are within a centimetre on average."""
        return _distance(moment) < _NEAR

    def goal_arrays(self, moment: Moment) -> tuple[Array, Array]:
        """Returns tips and goals, (N, 9) each."""
        n = len(moment.tips)
        return moment.tips.reshape(n, 9).copy(), moment.goals.reshape(n, 9).copy()

    def terms(self, before, after):
        z = after.rates[:, 0] * 0
        return (z,) * 4

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns a place for each sphere, uniform over the area, and a yaw."""
        out = {}
        for i in range(3):
            place, turn = f"goal_{i}/cylindrical_position", f"goal_{i}/orientation"
            out[place] = draw_on_disc(place, spaces[place], noise)
            out[turn] = draw(turn, spaces[turn], noise)
        return out


def _distance(moment: Moment) -> Array:
    """Returns the mean over nine coordinates of the distance of tips and goals, (N,), m."""
    gap = np.abs(moment.tips - moment.goals)
    total = gap[..., 0] + gap[..., 1] + gap[..., 2]
    return (total[:, 0] + total[:, 1] + total[:, 2]) / 9.0
