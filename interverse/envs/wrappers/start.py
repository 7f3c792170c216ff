"""Starting states of one's own: values that every later episode begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorWrapper

from interverse.core.errors import InvalidValueError


class _KeepsStart:
    """The calls that both forms share; the driver applies the values at every reset."""

    unwrapped: Any

    @property
    def starting_state(self) -> Mapping[str, Any]:
        """The values in force."""
        return self.unwrapped.driver.starting_values

    def set_starting_state(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Starts new episodes with these values, and every later one; returns their beginning.

        They add to the start in force, as CausalWorld's do. If they are refused the old start stays
        in force, episodes begin from it, and the refusal is raised.
        """
        driver = self.unwrapped.driver
        before = driver.starting_values
        driver.starting_values = driver.world.graph.updated(before, values)
        try:
            return self.reset()  # type: ignore[attr-defined]
        except InvalidValueError:
            driver.starting_values = before
            self.reset()  # type: ignore[attr-defined]
            raise

    def reset_default_state(self) -> tuple[Any, dict[str, Any]]:
        """Forgets the starting state; returns the beginning of an episode without it."""
        self.unwrapped.driver.starting_values = {}
        return self.reset()  # type: ignore[attr-defined]


@final
class StartingState(_KeepsStart, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Starts every episode with latched values, as if each reset had been given them.

    They are a `do` at reset, so episodes recorded under them replay. A `do` of the reset itself
    wins over them; a reset to a snapshot ignores them.

    >>> import interverse as iv
    >>> env = StartingState(iv.make("tutorial/slider-v1"))
    >>> seen, info = env.set_starting_state({"box/mass": 0.4})
    >>> seen, info = env.reset(seed=1)
    >>> float(env.unwrapped.values["box/mass"])
    0.4
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)


@final
class StartingStateVector(_KeepsStart, VectorWrapper):
    """The same for a vector environment: one value for all worlds, or one per world.

    Worlds that start anew by themselves start with the values, too.
    """
