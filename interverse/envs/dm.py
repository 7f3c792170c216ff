"""dm_env: the interface of dm_control itself, for code written against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np

from interverse.core.errors import InvalidValueError, missing_extra
from interverse.core.rng import check_seed
from interverse.envs.make import make
from interverse.envs.single import WorldEnv

try:
    import dm_env
    from dm_env import specs
except ImportError as error:
    raise missing_extra("dm_env", "control") from error


@final
class DmEnv(dm_env.Environment):
    """A world as a dm_env environment.

    A time limit ends an episode with discount 1, a failure with discount 0. A control world with
    `observation="state"` gives the parts that dm_control names, each of one axis.
    `env.gymnasium` is the environment inside: `env.gymnasium.do(...)` intervenes.
    """

    def __init__(self, world: str | WorldEnv, *, seed: int = 0, **options: Any) -> None:
        """Makes the environment of an id, or wraps one that was made.

        Args:
            world: an id, or an environment that `make` returned.
            seed: of the first episode; later ones go on from it.
            **options: of the world, as for `make`.
        """
        if not isinstance(world, str) and options:
            raise InvalidValueError(
                f"options {sorted(options)} for a world that is made", fix="Give an id"
            )
        self.gymnasium = make(world, **options) if isinstance(world, str) else world
        self._seed: int | None = check_seed(seed)
        self._running = False

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode: a first time step, without reward and discount."""
        observation, _ = self.gymnasium.reset(seed=self._seed)
        self._seed, self._running = None, True
        return dm_env.restart(self._parts(observation))

    def step(self, action: Any) -> dm_env.TimeStep:
        """Advances by one action; after the last time step, and at first, it starts an episode."""
        if not self._running:
            return self.reset()
        given = np.asarray(action)
        if given.dtype.kind in "iu":  # whole numbers in the world's type; doubles stay as fine
            given = given.astype(self.gymnasium.action_space.dtype)
        observation, reward, terminated, truncated, _ = self.gymnasium.step(given)
        self._running = not (terminated or truncated)
        seen = self._parts(observation)
        if terminated:
            return dm_env.termination(reward, seen)
        return (dm_env.truncation if truncated else dm_env.transition)(reward, seen)

    def observation_spec(self) -> Any:
        """Returns what observations are: an array, or a dict of arrays."""
        space = self.gymnasium.observation_space
        if not self.gymnasium.layout:
            return _spec(space, "observation")
        return {
            name: specs.Array((part.stop - part.start,), space.dtype, name)
            for name, part in self.gymnasium.layout.items()
        }

    def action_spec(self) -> Any:
        """Returns what actions may be."""
        return _spec(self.gymnasium.action_space, "action")

    def reward_spec(self) -> specs.Array:
        """Returns what a reward is."""
        low, high = self.gymnasium.world.reward_range
        if np.isfinite([low, high]).all():
            return specs.BoundedArray((), np.float64, low, high, "reward")
        return specs.Array((), np.float64, "reward")

    @property
    def physics(self) -> Any:
        """dm_control's physics of a control world; its `render` shows the world's look."""
        world = self.gymnasium.world
        if not hasattr(world, "physics"):
            raise InvalidValueError(
                f"{self.gymnasium.driver.id} has no dm_control physics", allowed="control/..."
            )
        return world.physics

    def close(self) -> None:
        """Releases the world."""
        self.gymnasium.close()

    def _parts(self, observation: Any) -> Any:
        layout: Mapping[str, slice] = self.gymnasium.layout
        return {n: observation[part] for n, part in layout.items()} if layout else observation


def _spec(space: gym.Space[Any], name: str) -> Any:
    if isinstance(space, gym.spaces.Dict):
        return {part: _spec(inner, part) for part, inner in space.spaces.items()}
    if isinstance(space, gym.spaces.Discrete):
        return specs.BoundedArray((), space.dtype, space.start, space.start + space.n - 1, name)
    if isinstance(space, gym.spaces.Box) and space.is_bounded():
        return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
    if isinstance(space, gym.spaces.Box):
        return specs.Array(space.shape, space.dtype, name)
    raise InvalidValueError(
        f"dm_env has no spec for {space}", allowed="Box, Discrete and Dict spaces"
    )
