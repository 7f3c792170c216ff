"""Reaching: bring each fingertip to its own point, around small fixed cubes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import final

import numpy as np

from interverse.core.arrays import Array, copy_of
from interverse.core.rng import Noise
from interverse.scm import Integers, Space, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.objects import goal_variables, obstacle_place
from interverse.worlds.trifinger.observation import Group
from interverse.worlds.trifinger.rewards import Instant, reaching_score
from interverse.worlds.trifinger.robot import inverse_kinematics
from interverse.worlds.trifinger.scene import ArenaScene, Goal, Obstacle
from interverse.worlds.trifinger.tasks.task import Task, draw, draw_on_disc
from interverse.worlds.trifinger.variables import UNBOUNDED, declare

COUNT = "obstacles/count"
MOST = 5
_EDGE = 0.01  # m
_LOW, _HIGH = (-0.15, -0.15, 0.0), (0.15, 0.15, 0.3)  # of their centres, m


def spare_obstacles() -> tuple[Obstacle, ...]:
    """Returns the cubes a scene keeps ready, below the floor."""
    return tuple(
        Obstacle(name=f"obstacle_{i}", position=(0.0, 0.0, -3.0 - i), size=(_EDGE,) * 3)
        for i in range(MOST)
    )


def count_variable(scene: ArenaScene) -> Variable:
    """Returns the variable that says how many cubes there are."""
    return declare(
        COUNT,
        "latent",
        0,
        Integers(0, MOST),
        spaces=(Integers(1, MOST), None),
        doc="Fixed cubes of 1 cm at random places of the arena.",
        bindings=tuple(obstacle_place(o, i) for i, o in enumerate(scene.obstacles)),
    )


def place_obstacles(rows: Rows, noise: Noise) -> None:
    """Puts the first cubes at addressed random places; the same ones whatever their number."""
    count = rows["obstacle/used"].shape[1]
    u = noise.uniform(COUNT, (count, 3))
    low, high = np.array(_LOW), np.array(_HIGH)
    rows["obstacle/used"][:] = np.arange(count) < rows[COUNT][:, None]
    place = low + u * (high - low)
    rows["obstacle/position"][:] = np.where(
        rows["obstacle/used"][..., None], place, rows["obstacle/position"]
    )


_SIZE = (0.03, 0.03, 0.03)
_COLORS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_NEAR = 0.01  # mean distance of tips and goals that counts as reached, m


@final
class Reaching(Task):
    """Three spheres, one for each finger; small fixed cubes can be put in the way."""

    name = "reaching"
    weights = (100000.0, 0.0, 0.0, 0.0)
    generators = (COUNT,)

    def scene(self) -> ArenaScene:
        """Returns three spheres above the middle."""
        heights = (0.10, 0.13, 0.16)
        return ArenaScene(
            goals=tuple(
                Goal(position=(0.0, 0.0, z), size=_SIZE, color=color, shape="sphere")
                for z, color in zip(heights, _COLORS, strict=True)
            ),
            obstacles=spare_obstacles(),
        )

    def seconds(self, scene: ArenaScene) -> float:
        """Returns how long an episode lasts, s."""
        return 5.0

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the spheres' variables and the number of obstacles."""
        goals = [v for i in range(3) for v in goal_variables(scene, i, sizes=UNBOUNDED)]
        return [*goals, count_variable(scene)]

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Puts obstacles in the way, as many as asked for."""
        if COUNT in given:
            place_obstacles(rows, noise)
        return {}

    def groups(self, scene: ArenaScene) -> tuple[list[Group], list[str]]:
        """Returns the goals' positions alone."""
        goals = [Group(f"goal_{i}", ("cartesian_position",)) for i in range(3)]
        return goals, [g.name for g in goals]

    def observed(self, scene: ArenaScene) -> list[tuple[str, tuple[str, ...], Array | None]]:
        """Returns the goals' positions."""
        return [("goal", ("position",), None)]

    def fraction(self, now: Instant, rule: str) -> Array:
        """Returns 1 where the tips are within a centimetre on average, 0 beyond three."""
        return _reached(now)[0]

    def solved(self, now: Instant) -> Array:
        """Returns whether the tips are within a centimetre on average."""
        return _reached(now)[1] < _NEAR

    def goal_arrays(self, now: Instant) -> tuple[Array, Array]:
        """Returns tips and goals, (N, 9) each."""
        return copy_of(now.tips), copy_of(now.goals.positions.reshape(-1, 9))

    def fraction_of(self, achieved: Array, desired: Array) -> tuple[Array, Array]:
        """Returns fraction and success of tips and goals, (n,) each."""
        fraction, distance = reaching_score(achieved, desired)
        return fraction, distance < _NEAR

    def bonus(self, now: Instant, *, mended: bool) -> Array:
        """Returns the mean distance, as the original's code does, or the fraction it meant."""
        return now.fraction if mended else _reached(now)[1]

    def terms(self, before: Instant, now: Instant, *, mended: bool) -> Sequence[Array]:
        """Returns the dense terms of a step; see `interverse.worlds.trifinger.rewards`."""
        goals = now.goals.positions.reshape(-1, 9)
        return rewards.reaching(before, now, goals, now.torques())

    def solution(self, rows: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns joint angles that bring the tips to their goals."""
        joints = rows["joint_positions"]
        wanted = rows["goal/position"].reshape(len(joints), 9)
        return {"joint_positions": inverse_kinematics(wanted, joints, rows["robot/height"])}

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


def _reached(now: Instant) -> tuple[Array, Array]:
    """Returns the fractional success and the mean distance of tips and goals, (N,) each."""
    return reaching_score(now.tips, now.goals.positions.reshape(-1, 9))
