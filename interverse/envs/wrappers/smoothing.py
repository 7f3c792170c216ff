"""Actions averaged over the last few: smoother motion on a robot."""

from __future__ import annotations

from collections import deque
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
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
