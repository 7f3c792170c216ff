"""Tasks with one block or none: pushing, picking, pick_and_place, reaching."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, final

import numpy as np

from interverse.core.arrays import Array, copy_of, to_numpy
from interverse.core.errors import explain
from interverse.core.rng import Noise
from interverse.scm import Box, Space, Variable
from interverse.scm.store import Rows
from interverse.scm.variable import Values
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.objects import (
    COUNT,
    Place,
    block_variables,
    count_variable,
    goal_variables,
    obstacle_variables,
    place_obstacles,
    spare_obstacles,
)
from interverse.worlds.trifinger.rewards import Instant, reaching_score
from interverse.worlds.trifinger.robot import inverse_kinematics
from interverse.worlds.trifinger.scene import ArenaScene, Block, Goal, Obstacle
from interverse.worlds.trifinger.tasks.task import NAME, RATES, TIPS, Edge, Task, draw
from interverse.worlds.trifinger.variables import UNBOUNDED, Spaces

_AT, _TO = "block_0/cartesian_position", "goal_0/cartesian_position"
_BLOCK, _GOAL = "block_0/cylindrical_position", "goal_0/cylindrical_position"
_TURNS = ("block_0/orientation", "goal_0/orientation")
_CONTRADICTION = explain(
    "block_0/size and goal_0/size describe one thing and disagree",
    fix="Set one of them, or give values that agree",
)


def _is_placed(name: str, given: Collection[str]) -> bool:
    """Returns whether an intervention places an object."""
    return f"{name}/cartesian_position" in given or f"{name}/cylindrical_position" in given


class OneBlock(Task):
    """One block and one goal of one size; what is `seated` stands on the floor."""

    seated: ClassVar[tuple[str, ...]] = ("block", "goal")
    places: ClassVar[tuple[Place, Place]] = ("pinned", "pinned")  # of block and goal

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the block's and the goal's variables."""
        block, goal = self.places
        return [*block_variables(scene, 0, place=block), *goal_variables(scene, 0, place=goal)]

    def constraints(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that block and goal have one size."""
        return [("block_0/size", "goal_0/size")]

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Copies the size of block 0 to goal 0 or back, and seats what has no given position."""
        refused: dict[int, str] = {}
        both = "goal_0/size" in given, "block_0/size" in given
        if all(both):
            differ = to_numpy((rows["block/size"][:, 0] != rows["goal/size"][:, 0]).any(axis=-1))
            refused = dict.fromkeys(np.flatnonzero(differ).tolist(), _CONTRADICTION)
        if not any(both):
            return refused
        taken, follows = ("goal", "block") if both[0] else ("block", "goal")
        rows[f"{follows}/size"][:, 0] = rows[f"{taken}/size"][:, 0]
        for kind in self.seated:
            if not _is_placed(f"{kind}_0", given):
                turn, size = (rows[f"{kind}/{key}"][:, 0] for key in ("orientation", "size"))
                rows[f"{kind}/position"][:, 0, 2] = rewards.vertical_extent(turn, size) / 2
        return refused


@final
class Pushing(OneBlock):
    """One block, one goal, both on the floor."""

    name = "pushing"
    weights = (750.0, 250.0, 100.0)
    dense = staticmethod(rewards.pushing)
    term_causes = ((TIPS, _AT), (_AT, _TO), _TURNS)
    drawn = (_GOAL, "goal_0/orientation")

    def scene(self) -> ArenaScene:
        """Returns a block in front of the middle and a goal behind it."""
        return ArenaScene(
            blocks=(Block(position=(0.0, -0.08, 0.0325), mass=0.02),),
            goals=(Goal(position=(0.0, 0.08, 0.0325)),),
        )


_ROUNDING = 1e-9  # of a radius of zero, m
_ABOVE_MIDDLE = (  # A and B of picking's goal: only its height is free, m
    Box((0.0, 0.0, 0.08), (0.0, 0.0, 0.20), (3,)),
    Box((0.0, 0.0, 0.20), (0.0, 0.0, 0.25), (3,), open_low=True),
)


@final
class Picking(OneBlock):
    """One block on the floor, one goal above the middle."""

    name = "picking"
    weights = (250.0, 0.0, 125.0, 0.0, 750.0, 0.0, 0.0, 0.005)
    dense = staticmethod(rewards.picking)
    term_causes = (
        *((_AT, _TO),) * 2,
        *((_AT,),) * 2,
        *((TIPS, _AT),) * 2,
        (TIPS, _AT, "block_0/size"),
        (RATES,),
    )
    drawn = (_GOAL,)
    seated = ("block",)
    places = ("free", _ABOVE_MIDDLE)  # a block may start in the air

    def scene(self) -> ArenaScene:
        """Returns a block in the middle and a goal above it."""
        return ArenaScene(
            blocks=(Block(position=(0.0, 0.0, 0.0325), mass=0.02),),
            goals=(Goal(position=(0.0, 0.0, 0.15)),),
        )

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Gives block and goal one size, seats the block; a goal beside the middle is refused."""
        refused = super().settle(rows, given, noise)
        if not _is_placed("goal_0", given):
            return refused
        beside = to_numpy((abs(rows["goal/position"][:, 0, :2]) > _ROUNDING).any(axis=-1))
        reason = explain(
            "goal_0 would not be above the middle",
            allowed="radius 0 (x = y = 0) at any height",
            fix="Use trifinger/pick_and_place-v1 for goals elsewhere",
        )
        return {**refused, **dict.fromkeys(np.flatnonzero(beside).tolist(), reason)}


_RADII = ((0.07, 0.12), (0.12, 0.15))  # in A and B, m


def _half_ring(size: str, sign: float) -> Spaces:
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

    return functools.partial(bounds, 0), functools.partial(bounds, 1)


@final
class PickAndPlace(OneBlock):
    """One block, one goal on the other side of a low wall."""

    name = "pick_and_place"
    weights = (750.0, 50.0, 250.0, 0.0, 0.005)
    dense = staticmethod(rewards.pick_and_place)
    term_causes = ((TIPS, _AT), (_AT, _TO), (_AT, _TO, "goal_0/size"), _TURNS, (RATES,))
    fractional_weight = 0.0
    places = (_half_ring("block_0/size", 1.0), _half_ring("goal_0/size", -1.0))

    def scene(self) -> ArenaScene:
        """Returns a block in front of the wall and a goal behind it."""
        return ArenaScene(
            blocks=(Block(position=(0.0, -0.09, 0.0325), mass=0.02),),
            goals=(Goal(position=(0.0, 0.09, 0.0325)),),
            obstacles=(Obstacle(),),
        )

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the variables of block, goal and wall; the goal's side is not the block's."""
        return [*super().variables(scene), *obstacle_variables(scene)]

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Gives block and goal one size and seats them and the wall on the floor."""
        if "obstacle/size" in given:
            rows["obstacle/position"][:, 0, 2] = rows["obstacle/size"][:, 0, 2] / 2
        return super().settle(rows, given, noise)

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns a side for the block, in its middle, and a goal and yaw on the other side."""
        side = np.where(noise.uniform(NAME + _BLOCK) < 0.5, -1.0, 1.0)  # of y
        height = values["block_0/size"][:, 2] / 2
        block = np.stack([np.full_like(side, 0.09), side * (math.pi / 2), height], axis=1)
        goal = draw(_GOAL, spaces[_GOAL], noise)
        goal[:, 1] = np.abs(goal[:, 1]) * -side
        turn = "goal_0/orientation"
        return {_BLOCK: block, _GOAL: goal, turn: draw(turn, spaces[turn], noise)}


_SPHERE = (0.03, 0.03, 0.03)
_COLORS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_NEAR = 0.01  # mean distance of tips and goals that counts as reached, m
_DISTANCE = (TIPS, *(f"goal_{i}/cartesian_position" for i in range(3)))


@final
class Reaching(Task):
    """Three spheres, one for each finger; small fixed cubes can be put in the way."""

    name = "reaching"
    weights = (100000.0, 0.0, 0.0, 0.0)
    term_causes = (_DISTANCE, _DISTANCE, ("robot/commands", "joint_positions", RATES), (RATES,))
    generators = (COUNT,)

    def scene(self) -> ArenaScene:
        """Returns three spheres above the middle."""
        heights = (0.10, 0.13, 0.16)
        return ArenaScene(
            goals=tuple(
                Goal(position=(0.0, 0.0, z), size=_SPHERE, color=color, shape="sphere")
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

    def groups(self, scene: ArenaScene) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        """Returns the goals' positions alone."""
        names, shown = [f"goal_{i}" for i in range(3)], ("cartesian_position",)
        return dict.fromkeys(names, shown), names

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

    def bonus_of(
        self, achieved: Array, desired: Array, *, corrected_reward: bool
    ) -> tuple[Array, Array]:
        """Returns bonus and success of tips and goals, (n,) each."""
        fraction, distance = reaching_score(achieved, desired)
        return fraction if corrected_reward else distance, distance < _NEAR

    def bonus(self, now: Instant, *, corrected_reward: bool) -> Array:
        """Returns the mean distance, as the original's code does, or the fraction it meant."""
        return now.fraction if corrected_reward else _reached(now)[1]

    def score_causes(self, scene: ArenaScene) -> tuple[str, ...]:
        """Returns the tips and their goals' places: they are points."""
        return _DISTANCE

    def bonus_causes(self, *, corrected_reward: bool) -> tuple[str, ...]:
        """Returns the fraction, or what the distance follows from."""
        return ("fractional_success",) if corrected_reward else _DISTANCE

    def terms(self, before: Instant, now: Instant, *, corrected_reward: bool) -> Sequence[Array]:
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
            u = noise.uniform(NAME + place, (3,))
            low, high = (
                np.broadcast_to(b, u.shape) for b in (spaces[place].low, spaces[place].high)
            )
            area = low[:, 0] ** 2 + u[:, 0] * (high[:, 0] ** 2 - low[:, 0] ** 2)
            rest = low[:, 1:] + u[:, 1:] * (high[:, 1:] - low[:, 1:])
            out[place] = np.concatenate([np.sqrt(area)[:, None], rest], axis=1)
            out[turn] = draw(turn, spaces[turn], noise)
        return out


def _reached(now: Instant) -> tuple[Array, Array]:
    """Returns the fractional success and the mean distance of tips and goals, (N,) each."""
    return reaching_score(now.tips, now.goals.positions.reshape(-1, 9))
