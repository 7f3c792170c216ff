"""The vector forms of the wrappers: goal dicts and smoothed actions for N worlds at once."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from interverse.core.errors import check_whole
from interverse.envs.wrappers.goals import goals_of, with_goals


@final
class MovingAverageActionVector(VectorWrapper):
    """Passes on each world's mean of its last `window` actions, bit for bit as the single form.

    A world that starts anew forgets its actions, also when it does so by itself.
    """

    def __init__(self, env: Any, window: int = 8) -> None:
        super().__init__(env)
        check_whole(window, "window", 10**6)
        self.window = window
        space = env.single_action_space
        self._last = np.zeros((window, env.num_envs, *space.shape), dtype=space.dtype)
        self._count = np.zeros(env.num_envs, dtype=np.int64)
        self._ended = np.zeros(env.num_envs, dtype=bool)  # worlds that the next step resets

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts episodes with no action remembered."""
        mask = None if options is None else options.get("reset_mask")
        rows = slice(None) if mask is None else mask
        self._count[rows], self._ended[rows] = 0, False
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advances every world by the mean of its actions."""
        given = np.asarray(actions)
        self._last = np.concatenate([self._last[1:], given[None]])
        self._count = np.minimum(self._count + 1, self.window)
        full = (self._count == self.window).reshape(-1, *(1,) * (given.ndim - 1))
        mean = np.where(full, np.mean(self._last, axis=0).astype(given.dtype), given)
        out = self.env.step(mean)
        self._count[self._ended] = 0  # the action of a world that was just reset did not count
        inner: Any = self.env.unwrapped
        ended = out[2] | out[3]
        self._count[ended & (inner.autoreset_mode is AutoresetMode.SAME_STEP)] = 0
        self._ended = ended & (inner.autoreset_mode is AutoresetMode.NEXT_STEP)
        return out


@final
class GoalDictVector(VectorWrapper):
    """Turns observations into dicts of observation, achieved_goal and desired_goal, (N, ...) each.

    >>> import interverse as iv
    >>> venv = GoalDictVector(iv.make_vec("trifinger/pushing-v1", num_envs=2))
    >>> venv.reset(seed=0)[0]["achieved_goal"].shape
    (2, 6)
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        space = env.single_observation_space
        self._reward, self.single_observation_space = goals_of(env, space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts episodes."""
        seen, info = self.env.reset(seed=seed, options=options)
        return with_goals(seen, info), info

    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """Advances every world by one action."""
        seen, reward, terminated, truncated, info = self.env.step(actions)
        if "final_obs" in info:
            info = {**info, "final_obs": with_goals(info["final_obs"], info["final_info"])}
        return with_goals(seen, info), reward, terminated, truncated, info

    def compute_reward(
        self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any = None
    ) -> NDArray[np.float64]:
        """Returns what achieving one when desiring the other earns, (n,), for (n, k) goals."""
        return self._reward(np.asarray(achieved_goal), np.asarray(desired_goal))
