"""The two forms of a wrapper: its rules are written once, over N worlds; one world is N = 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from interverse.envs.build import select_worlds

Options = dict[str, Any] | None


class Rules:
    """What a wrapper changes; each method does nothing until a wrapper has a rule for it."""

    many: bool  # whether observations and rewards have a world axis
    count: int  # of worlds
    seen_space: gym.Space[Any]  # of one world, without the wrapper
    action_of_one: gym.Space[Any]
    env: Any
    unwrapped: Any
    acts: bool = False  # whether it passes other actions on; without, they may be tensors
    last_of: tuple[str, ...] = ()  # entries of `info` that `shown` reads

    def __init__(self, env: Any, **made_with: Any) -> None:
        raise NotImplementedError

    def set_spaces(self, seen: gym.Space[Any] | None, action: gym.Space[Any] | None) -> None:
        """Takes other spaces of one world."""
        raise NotImplementedError

    def asked(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns the actions to pass on, (N, ...)."""
        return actions

    def opened(self, worlds: NDArray[np.int64]) -> Any:
        """Acts where episodes have just begun; returns every world's new observation, if any."""
        return None

    def shown(self, seen: Any, told: Mapping[str, Any]) -> Any:
        """Returns an observation as the wrapper gives it, with or without a world axis."""
        return seen

    def earned(self, reward: Any, told: Mapping[str, Any], idle: Any) -> Any:
        """Returns the reward; `idle` is where no action was taken."""
        return reward

    def more(self) -> Mapping[str, NDArray[Any]]:
        """Returns further entries for `info` of the last step, (N, ...) each."""
        return {}


class SingleForm(Rules, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A wrapper of one world."""

    many, count = False, 1

    def __init__(self, env: gym.Env[Any, Any], **made_with: Any) -> None:
        RecordConstructorArgs.__init__(self, **made_with)
        gym.Wrapper.__init__(self, env)
        self.seen_space, self.action_of_one = env.observation_space, env.action_space

    def set_spaces(self, seen: gym.Space[Any] | None, action: gym.Space[Any] | None) -> None:
        """Takes other spaces."""
        self.observation_space = seen or self.observation_space
        self.action_space = action or self.action_space

    def reset(self, *, seed: int | None = None, options: Options = None) -> tuple[Any, Any]:
        """Starts an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        again = None if "snapshot" in (options or {}) else self.opened(np.arange(1))
        return self.shown(seen if again is None else again[0], info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Advances the world by one action."""
        action = self.asked(np.asarray(action)[None])[0] if self.acts else action
        seen, reward, terminated, truncated, info = self.env.step(action)
        reward = self.earned(reward, info, idle=False)
        more = {name: rows[0] for name, rows in self.more().items()}
        return self.shown(seen, info), reward, terminated, truncated, {**info, **more}


class VectorForm(Rules, VectorWrapper):
    """A wrapper of N worlds; worlds that start anew by themselves begin as after a reset."""

    many = True

    def __init__(self, env: Any, **made_with: Any) -> None:
        VectorWrapper.__init__(self, env)
        self.count = env.num_envs
        self.seen_space, self.action_of_one = env.single_observation_space, env.single_action_space

    def set_spaces(self, seen: gym.Space[Any] | None, action: gym.Space[Any] | None) -> None:
        """Takes other spaces of one world, and those of the batch with them."""
        if seen is not None:
            self.single_observation_space = seen
            self.observation_space = batch_space(seen, self.count)
        if action is not None:
            self.single_action_space = action
            self.action_space = batch_space(action, self.count)

    def reset(self, *, seed: Any = None, options: Options = None) -> tuple[Any, Any]:
        """Starts episodes."""
        seen, info = self.env.reset(seed=seed, options=options)
        given, again = options or {}, None
        if "snapshot" not in given:
            again = self.opened(select_worlds(given.get("reset_mask"), self.count))
        return self.shown(seen if again is None else again, info), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advances every world by one action."""
        idle = fresh = self.env.unwrapped.resets_next
        actions = self.asked(np.asarray(actions)) if self.acts else actions
        seen, reward, terminated, truncated, info = self.env.step(actions)
        told = info.get("final_info", info)  # what the actions led to, before any reset
        reward = self.earned(reward, told, idle)
        if "final_obs" in info:
            last, fresh = info["final_obs"].copy(), info["_final_obs"]
            for i in np.flatnonzero(fresh).tolist():
                last[i] = self.shown(last[i], {name: told[name][i] for name in self.last_of})
            info = {**info, "final_obs": last}
        again = self.opened(np.flatnonzero(fresh)) if fresh.any() else None
        for name, rows in self.more().items():
            info = {**info, name: rows, f"_{name}": np.ones(self.count, dtype=bool)}
        seen = self.shown(seen if again is None else again, info)
        return seen, reward, terminated, truncated, info
