"""Planning episodes in blocks and chemistry, and the policies that planning is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.agents.planner import Chooser, PlanningWorld
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import generator
from interverse.envs import make_vec
from interverse.models.source import DataWorld

NOTHING = -1
"""The action of a world that is left alone; its reward is that of the state it is in."""


@final
class GridPlanning:
    """Episodes of a registered grid world, for `interverse.agents.planner.plan`.

    Args:
        id: a blocks or chemistry id.
        seed: episode i is the world of seed + i, whatever the horizon; choose seeds at least as
            many apart as there are episodes, or they share most of them.
        **options: of the world; `cpt_seed` chooses chemistry's mechanisms.
    """

    def __init__(self, id: str, *, seed: int = 0, **options: Any) -> None:
        self.id, self.seed, self.options = id, seed, options
        self.best_reward = 0.0 if id.startswith("blocks/") else 1.0
        self.step_count = 0
        self.world = DataWorld(id, options)

    def reset(self, episodes: int, *, target_steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns first and target images of new episodes."""
        self._target_steps = target_steps
        return self._reset([self.seed + i for i in range(episodes)])

    def twins(self, episodes: int, count: int) -> GridPlanning:
        """Returns `count` worlds for each of the first episodes, as they were at the reset."""
        other = GridPlanning(self.id, seed=self.seed, **self.options)
        other._target_steps = self._target_steps
        other._reset([self.seed + i for i in range(episodes) for _ in range(count)])
        return other

    def _reset(self, seeds: list[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        steps = self._target_steps
        options = {**self.options, "target_steps": steps, "max_steps": steps + 1}
        self.env = make_vec(self.id, num_envs=len(seeds), **options)
        self.num_actions = int(cast("gym.spaces.Discrete", self.env.single_action_space).n)
        observation, self.info = self.env.reset(seed=seeds)
        self.step_count = 0
        self._images = np.asarray(observation["image"])
        return self._images, np.asarray(observation["target"])

    def step(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """Returns the rewards after one action each; worlds with `NOTHING` stay as they are."""
        actions = np.asarray(actions, dtype=np.int64)
        moving = np.flatnonzero(actions != NOTHING)
        moment = self.env.driver.step(np.where(actions == NOTHING, 0, actions), moving)
        self.step_count += 1
        self._images = np.asarray(moment.observation["image"])
        return moment.reward

    def images(self) -> NDArray[np.uint8]:
        """Returns the present images."""
        return self._images


def random_policy(seed: int) -> Chooser:
    """Returns the policy that takes any action, each as likely."""
    rng = generator(seed=seed, name="planning/random")
    return lambda world: rng.integers(world.num_actions, size=len(world.images()))


def _nothing(world: PlanningWorld) -> NDArray[Any]:
    """Leaves the world alone."""
    return np.full(len(world.images()), NOTHING)


def _scripted(world: PlanningWorld) -> NDArray[Any]:
    """Takes the actions of the world's own policy, which sees its state.

    In blocks it is greedy for the true reward. In chemistry it paints the first object unlike its
    goal, which the original has no counterpart of.
    """
    known = cast("GridPlanning", world)
    policy: Callable[[Any], NDArray[Any]] | None = known.env.world.scripted_policy()
    if policy is None:
        raise InvalidValueError(explain(f"{known.id} has no scripted policy in this form"))
    return policy(None)


def _replay(world: PlanningWorld) -> NDArray[Any]:
    """Repeats the actions that made the target.

    The original calls it optimal; chance may answer otherwise the second time.
    """
    known = cast("GridPlanning", world)
    if "target_actions" not in known.info:
        raise InvalidValueError(
            f"{known.id} does not tell how its targets were made", allowed="chemistry"
        )
    return np.asarray(known.info["target_actions"])[:, known.step_count]


BASELINES: Mapping[str, Callable[[int], Chooser]] = MappingProxyType(
    {
        "nothing": lambda seed: _nothing,
        "random": random_policy,
        "replay": lambda seed: _replay,
        "scripted": lambda seed: _scripted,
    }
)
"""By name, from a seed."""
