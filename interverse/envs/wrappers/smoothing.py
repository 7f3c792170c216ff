"""Actions averaged over the last few: smoother motion on a robot; for one world and for many."""

from __future__ import annotations

from collections import deque
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorWrapper
from numpy.typing import NDArray

from interverse.core.errors import check_whole


@final
class MovingAverageAction(gym.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Passes on the mean of the last `window` actions; an action before that many as it is.

    A reset forgets all of them.
    """

    def __init__(self, env: gym.Env[Any, Any], window: int = 8) -> None:
        RecordConstructorArgs.__init__(self, window=window)
        gym.ActionWrapper.__init__(self, env)
        check_whole(window, "window", 10**6)
        self._last: deque[NDArray[Any]] = deque(maxlen=window)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with no action remembered."""
        self._last.clear()
        return self.env.reset(seed=seed, options=options)

    def action(self, action: Any) -> NDArray[Any]:
        """Returns the mean of this action and those before it."""
        given = np.asarray(action)
        self._last.append(given)
        if len(self._last) < (self._last.maxlen or 1):
            return given
        return np.mean(self._last, axis=0).astype(given.dtype)


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
