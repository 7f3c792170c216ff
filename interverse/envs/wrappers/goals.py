"""Observations with what was achieved and what is desired, for hindsight experience replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain


@final
class GoalDict(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Turns the observation into a dict of observation, achieved_goal and desired_goal.

    The world must put both goals into `info` and offer `goal_reward`, as the TriFinger worlds do.

    >>> import interverse as iv
    >>> env = GoalDict(iv.make("trifinger/pushing-v1"))
    >>> sorted(env.reset(seed=0)[0])
    ['achieved_goal', 'desired_goal', 'observation']
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        world: Any = env.unwrapped.world  # type: ignore[attr-defined]
        self._reward: Any = getattr(world, "goal_reward", None)
        if self._reward is None:
            raise InvalidValueError(
                explain(
                    f"{env} has no goals to relabel",
                    allowed="worlds with goal_reward, such as trifinger",
                )
            )
        achieved, desired = world.goal_sizes
        self.observation_space = gym.spaces.Dict(
            {
                "observation": env.observation_space,
                "achieved_goal": gym.spaces.Box(-np.inf, np.inf, (achieved,), np.float64),
                "desired_goal": gym.spaces.Box(-np.inf, np.inf, (desired,), np.float64),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        return _dict(seen, info), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Advances the world by one action."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        return _dict(seen, info), reward, terminated, truncated, info

    def compute_reward(
        self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any = None
    ) -> NDArray[np.float64] | np.float64:
        """Returns what achieving one when desiring the other earns, for one pair or many.

        Args:
            achieved_goal: (..., k).
            desired_goal: (..., k).
            info: not needed; Stable-Baselines3 passes it.
        """
        achieved, desired = np.asarray(achieved_goal), np.asarray(desired_goal)
        rows = self._reward(np.atleast_2d(achieved), np.atleast_2d(desired))
        return rows[0] if achieved.ndim == 1 else rows


def _dict(seen: Any, info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "observation": seen,
        "achieved_goal": np.array(info["achieved_goal"]),
        "desired_goal": np.array(info["desired_goal"]),
    }
