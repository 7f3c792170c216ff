"""What a TriFinger task is: a scene, its variables, what follows from them, rewards, goals.

A task of your own is a short subclass: give it a `scene`, and where needed its own variables,
propagation (`settle`), dense reward (`terms`) and goals (`sample_goal`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from interverse.rng import Noise
from interverse.scm import Space
from interverse.worlds.trifinger.observation import (
    CUBE,
    FIXED,
    GOAL_CUBE,
    GOAL_MESH,
    GOAL_SPHERE,
    MESH,
    MOVING,
    STILL,
    Group,
)
from interverse.worlds.trifinger.robot import REST
from interverse.worlds.trifinger.scene import Scene
from interverse.worlds.trifinger.variables import (
    Declared,
    block_variables,
    goal_variables,
)

Array = Any  # a NumPy array or a Torch tensor
Rows = dict[str, Array]  # rows of the store, by key: what a task may read and change
Edge = tuple[str, str]

_SECONDS_PER_OBJECT = 10.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """What rewards and scores are made of, for N worlds.

    Attributes:
        rates: joint velocities, (N, 9).
        tips: fingertips, (N, 3, 3).
        blocks, block_turns, block_sizes: (N, B, 3), (N, B, 4), (N, B, 3); heights from the datum.
        goals, goal_turns, goal_sizes: likewise, (N, G, ...).
        blocks_used, goals_used: which are there, (N, B) and (N, G).
    """

    rates: Array
    tips: Array
    blocks: Array
    block_turns: Array
    block_sizes: Array
    blocks_used: Array
    goals: Array
    goal_turns: Array
    goal_sizes: Array
    goals_used: Array


class Task(ABC):
    """One task. Subclasses are final."""

    name: ClassVar[str]
    weights: ClassVar[tuple[float, ...]] = ()  # of the dense terms
    fractional_weight: ClassVar[float] = 1.0
    start: ClassVar[tuple[float, ...]] = REST  # joint angles of a new episode
    generators: ClassVar[tuple[str, ...]] = ()  # variables that the scene is built from
    interleaved: ClassVar[bool] = False  # whether each goal is observed after its block
    draws: ClassVar[bool] = False  # whether a new episode is drawn at random

    def __init__(self, max_blocks: int | None = None) -> None:
        self.max_blocks = max_blocks

    @abstractmethod
    def scene(self) -> Scene:
        """Returns the default scene."""

    def seconds(self, scene: Scene) -> float:
        """Returns how long an episode lasts, s."""
        return _SECONDS_PER_OBJECT * (len(scene.blocks) + len(scene.obstacles))

    # -------------------------------------------------------------------- causes

    def variables(self, scene: Scene) -> list[Declared]:
        """Returns the variables of blocks and goals, and the task's own."""
        out: list[Declared] = []
        for i in range(scene.block_count):
            out += block_variables(scene, i)
        for i in range(scene.goal_count):
            out += goal_variables(i)
        return out

    def edges(self, scene: Scene) -> Sequence[Edge]:
        """Returns the causal edges within a moment that the task adds."""
        return ()

    def constraints(self, scene: Scene) -> Sequence[Edge]:
        """Returns pairs of variables that describe one thing."""
        return ()

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Changes rows so that what follows from the given variables holds.

        Returns:
            By row, why the values cannot be.
        """
        return {}

    # --------------------------------------------------------------- observation

    def groups(self, scene: Scene) -> tuple[list[Group], list[str]]:
        """Returns the observed objects in order, and their names as they are laid side by side."""
        blocks = [Group(f"block_{i}", MOVING) for i in range(scene.block_count)]
        goals = [Group(f"goal_{i}", STILL) for i in range(scene.goal_count)]
        fixed = [Group(o.name, STILL) for o in scene.obstacles]
        stored = [g.name for g in (*blocks, *goals, *fixed)]
        if not self.interleaved:
            return [*blocks, *goals, *fixed], stored
        partner = self.partners(scene)
        mixed: list[Group] = []
        for i, block in enumerate(blocks):
            mixed += [block, *(goals[g] for g, b in enumerate(partner) if b == i)]
        return [*mixed, *fixed], stored

    def partners(self, scene: Scene) -> Sequence[int]:
        """Returns, for each goal, the block after which it is observed."""
        return range(scene.goal_count)

    def types(self, scene: Scene) -> tuple[list[int], list[int], list[int]]:
        """Returns the type numbers of blocks, goals and fixed objects."""
        blocks = [CUBE] * scene.block_count
        goals = [GOAL_CUBE] * scene.goal_count
        for i, block in enumerate(scene.blocks):
            blocks[i] = CUBE if block.mesh is None else MESH
        for i, goal in enumerate(scene.goals):
            solid = GOAL_SPHERE if goal.shape == "sphere" else GOAL_CUBE
            goals[i] = solid if goal.mesh is None else GOAL_MESH
        return blocks, goals, [FIXED] * len(scene.obstacles)

    # -------------------------------------------------------------------- reward

    def terms(self, before: Moment, after: Moment) -> Sequence[Array]:
        """Returns the dense terms of a step, (N,) each, as many as there are weights."""
        return ()

    # --------------------------------------------------------------------- goals

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns an intervention, (N, *shape) each, that sets a goal drawn from the spaces."""
        return {}
