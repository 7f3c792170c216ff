"""The base class of TriFinger tasks, and draws of new goals.

A task of your own is a short subclass: give it a `scene`, and where needed its own variables,
propagation (`settle`), dense reward (`terms`) and goals (`sample_goal`). Draws are uniform numbers
with addresses, mapped into the active spaces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, copy_of
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise
from interverse.scm import Space, Variable
from interverse.scm.store import Rows
from interverse.scm.variable import SpaceName
from interverse.worlds.trifinger.objects import block_variables, goal_variables
from interverse.worlds.trifinger.observation import (
    CUBE,
    FIXED,
    GOAL_CUBE,
    GOAL_MESH,
    GOAL_SPHERE,
    MESH,
    MOVING,
    STILL,
)
from interverse.worlds.trifinger.penetration import NO_CAPSULES, Capsules
from interverse.worlds.trifinger.rewards import Instant, aabb_score, oriented_score
from interverse.worlds.trifinger.robot import REST
from interverse.worlds.trifinger.scene import ArenaScene, Obstacle

NAME = "sample_goal/"  # start of the noise addresses of goal draws


def draw(name: str, space: Space, noise: Noise) -> Array:
    """Returns one value per world, uniform in the space, (N, *shape)."""
    return space.from_uniform(noise.uniform(NAME + name, (space.draws,)))


@final
class ReadWhenAsked(Mapping[str, Any]):
    """What belongs to each of some names, worked out when it is asked for."""

    def __init__(self, names: Collection[str], read: Callable[[str], Any]) -> None:
        self._names, self._read = names, read

    def __getitem__(self, name: str) -> Any:
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def active_spaces(
    variables: Mapping[str, Variable], values: Mapping[str, Array], space: SpaceName
) -> Mapping[str, Space]:
    """Returns the active space of each variable at the present values."""

    def resolved(name: str) -> Space:
        region = variables[name].resolve(values).region(space)
        if region is None:
            raise InvalidValueError(explain(f"{name} has no space to draw from"))
        return region

    return ReadWhenAsked(variables, resolved)


Edge = tuple[str, str]

TIPS, RATES = "end_effector_positions", "joint_velocities"
SUCCESS = 0.9  # fractional success above which a task is solved
_SECONDS_PER_OBJECT = 10.0


class Task(ABC):
    """One task. Subclasses are final."""

    name: ClassVar[str]
    weights: ClassVar[tuple[float, ...]] = ()  # of the dense terms
    own: ClassVar[tuple[str, ...]] = ()  # variables that the score sees too, in `Instant.own`
    term_causes: ClassVar[tuple[tuple[str, ...], ...]] = ()  # what each dense term follows from
    fractional_weight: ClassVar[float] = 1.0
    dense: Callable[[Instant, Instant], Sequence[Array]] | None = None  # see `terms`
    start: ClassVar[tuple[float, ...]] = REST  # joint angles of a new episode
    generators: ClassVar[tuple[str, ...]] = ()  # variables that the scene is built from
    drawn: ClassVar[tuple[str, ...]] = ()  # variables that a drawn goal sets; none: the generators
    seated: ClassVar[tuple[str, ...]] = ("block",)  # kinds of object whose size places their middle
    interleaved: ClassVar[bool] = False  # whether each goal is observed after its block
    draws: ClassVar[bool] = False  # whether a new episode is drawn at random
    varies: ClassVar[bool] = False  # whether the number of blocks can vary

    def __init__(self) -> None:
        self.capsules: Capsules = NO_CAPSULES  # of the links; the world sets it
        self.draws_scenes = False  # whether each episode builds another scene; the world sets it

    @abstractmethod
    def scene(self) -> ArenaScene:
        """Returns the default scene."""

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The variables that the original sets without looking: what its scene is built from."""
        return self.generators

    def seconds(self, scene: ArenaScene) -> float:
        """Returns how long an episode lasts, s."""
        return _SECONDS_PER_OBJECT * (len(scene.blocks) + len(_placed(scene)))

    # -------------------------------------------------------------------- causes

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the variables of blocks and goals, and the task's own."""
        out: list[Variable] = []
        for i in range(scene.block_count):
            out += block_variables(scene, i)
        for i in range(scene.goal_count):
            out += goal_variables(scene, i)
        return out

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns the causal edges within a moment: a size places the middle of its object."""
        counts = {"block": scene.block_count, "goal": scene.goal_count}
        names = [f"{kind}_{i}" for kind in self.seated for i in range(counts[kind])]
        return [(f"{name}/size", f"{name}/cartesian_position") for name in names]

    def constraints(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns pairs of variables that describe one thing."""
        return ()

    def room(self, scene: ArenaScene, max_blocks: int) -> dict[str, int]:
        """Returns the scene's fields that make room for so many blocks."""
        return {"max_blocks": max_blocks, "max_goals": max_blocks}

    def most_blocks(self, spaces: Mapping[str, Space]) -> int:
        """Returns how many blocks generators of these spaces can ask for, where that is many."""
        return 0

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Changes rows so that what follows from the given variables holds.

        Returns:
            By row, why the values cannot be.
        """
        return {}

    def scene_tag(self, values: tuple[Any, ...], default: Sequence[float]) -> str:
        """Returns the end of the noise names of a scene: equal values give an equal scene.

        Other values draw another one, so that episodes of one seed still differ where their
        variables do. Without it where each episode draws a scene of its own.
        """
        return "" if self.draws_scenes or values == tuple(default) else f" {values}"

    def pieces(self, rows: Rows, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns how many blocks and goals scenes of these generators have, (n,) each.

        Args:
            rows: of the generators, and of what is in use now.
            noise: that the scene is built with.
        """
        return rows["block/used"].sum(axis=1), rows["goal/used"].sum(axis=1)

    # --------------------------------------------------------------- observation

    def groups(self, scene: ArenaScene) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        """Returns observed objects in order with their keys, and names as they lie side by side."""
        blocks = {f"block_{i}": MOVING for i in range(scene.block_count)}
        goals = {f"goal_{i}": STILL for i in range(scene.goal_count)}
        shown = {**blocks, **goals, **{o.name: STILL for o in _placed(scene)}}
        stored, partner = [*shown], self.partners(scene)
        if not self.interleaved:
            return shown, stored
        order: list[str] = []
        for i, block in enumerate(blocks):
            order += [block, *(f"goal_{g}" for g, b in enumerate(partner) if b == i)]
        return {name: shown[name] for name in dict.fromkeys([*order, *stored])}, stored

    def partners(self, scene: ArenaScene) -> Sequence[int]:
        """Returns, for each goal, the block after which it is observed."""
        return range(scene.goal_count)

    def types(self, scene: ArenaScene) -> tuple[Array, Array, Array]:
        """Returns the type numbers of blocks, goals and fixed objects, one array each."""
        blocks = [CUBE] * scene.block_count
        goals = [GOAL_CUBE] * scene.goal_count
        for i, block in enumerate(scene.blocks):
            blocks[i] = CUBE if block.mesh is None else MESH
        for i, goal in enumerate(scene.goals):
            solid = GOAL_SPHERE if goal.shape == "sphere" else GOAL_CUBE
            goals[i] = solid if goal.mesh is None else GOAL_MESH
        fixed = [FIXED] * len(_placed(scene))
        return np.array(blocks, float), np.array(goals, float), np.array(fixed, float)

    def observed(self, scene: ArenaScene) -> list[tuple[str, tuple[str, ...], Array | None]]:
        """Returns the kinds of object observed, the arrays they show, and their type numbers."""
        kinds = (("block", MOVING), ("goal", STILL), ("obstacle", STILL))
        return [
            (kind, tuple(key.removeprefix("cartesian_") for key in keys[1:]), numbers)
            for (kind, keys), numbers in zip(kinds, self.types(scene), strict=True)
            if len(numbers)
        ]

    # -------------------------------------------------------------------- reward

    def fraction(self, now: Instant, rule: str) -> Array:
        """Returns the share of the goals' volume that blocks fill, (N,)."""
        if rule == "aabb":
            return aabb_score(now.bounds, now.goals.bounds)
        blocks = now.positions, now.orientations, now.sizes
        goals = now.goals.positions, now.goals.orientations, now.goals.sizes
        return oriented_score(blocks, goals)

    def solved(self, now: Instant) -> Array:
        """Returns whether the task is solved now, (N,)."""
        return now.fraction > SUCCESS

    def bonus(self, now: Instant, *, corrected_reward: bool) -> Array:
        """Returns what `fractional_reward_weight` multiplies, (N,)."""
        return now.fraction

    def score_causes(self, scene: ArenaScene) -> tuple[str, ...]:
        """Returns the variables that the fractional success follows from."""
        pose = ("cartesian_position", "orientation", "size")
        blocks = [f"block_{i}/{key}" for i in range(scene.block_count) for key in pose]
        goals = [f"goal_{i}/{key}" for i in range(scene.goal_count) for key in pose]
        return (*blocks, *goals, *self.own)

    def bonus_causes(self, *, corrected_reward: bool) -> tuple[str, ...]:
        """Returns the variables that `bonus` follows from."""
        return ("fractional_success",)

    def goal_arrays(self, now: Instant) -> tuple[Array, Array]:
        """Returns what was achieved and what is desired: corners of bounding boxes, (N, 6 K)."""
        goals = copy_of(now.goals.bounds)  # kept while goals stay; `now` is nobody else's
        return now.bounds.reshape(len(goals), -1), goals.reshape(len(goals), -1)

    def bonus_of(
        self, achieved: Array, desired: Array, *, corrected_reward: bool
    ) -> tuple[Array, Array]:
        """Returns bonus and success of `goal_arrays` alone, (n,) each, for relabelled goals."""
        boxes = [rows.reshape(rows.shape[0], -1, 2, 3) for rows in (achieved, desired)]
        fraction = aabb_score(*boxes)
        return fraction, fraction > SUCCESS

    def terms(self, before: Instant, now: Instant, *, corrected_reward: bool) -> Sequence[Array]:
        """Returns the dense terms of a step, (N,) each, as many as there are weights.

        Args:
            before: the start of the step.
            now: its end.
            corrected_reward: whether to follow the paper where the original's code slips.
        """
        return () if self.dense is None else self.dense(before, now)

    # --------------------------------------------------------------------- goals

    def solution(self, rows: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns values that solve the task, (N, *shape) each: every block in its goal."""
        out = {}
        count = min(rows["block/used"].shape[1], rows["goal/used"].shape[1])
        for i in range(count):
            out[f"block_{i}/cartesian_position"] = copy_of(rows["goal/position"][:, i])
            out[f"block_{i}/orientation"] = copy_of(rows["goal/orientation"][:, i])
        return out

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns an intervention, (N, *shape) each, that sets a goal drawn from the spaces."""
        return {name: draw(name, spaces[name], noise) for name in self.drawn or self.generators}


def _placed(scene: ArenaScene) -> list[Obstacle]:
    """Returns the obstacles that are there from the start; those below the floor wait."""
    return [o for o in scene.obstacles if o.position[2] > 0]
