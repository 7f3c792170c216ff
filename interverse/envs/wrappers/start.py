"""A starting state of one's own: values that every later episode begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorWrapper
from numpy.typing import NDArray

from interverse.envs.driver import Driver, Transition
from interverse.errors import InterventionError, InvalidValueError, explain
from interverse.scm import CausalGraph
from interverse.worlds.world import Index


@final
class StartingState(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
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
        self.starting_state: Mapping[str, Any] = {}

    def set_starting_state(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Starts a new episode with these values, and every later one; returns its beginning.

        They add to the start in force, as CausalWorld's do. If they are refused the old start stays
        in force, an episode begins from it, and the refusal is raised.
        """
        before = self.starting_state
        self.starting_state = self.unwrapped.graph.updated(before, values)
        try:
            return self.reset()
        except InvalidValueError:
            self.starting_state = before
            self.reset()
            raise

    def reset_default_state(self) -> tuple[Any, dict[str, Any]]:
        """Forgets the starting state; returns the beginning of an episode without it."""
        self.starting_state = {}
        return self.reset()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        given = _with(self.unwrapped.graph, self.starting_state, options)
        return self.env.reset(seed=seed, options=given)


@final
class StartingStateVector(VectorWrapper):
    """The same for a vector environment: one value for all worlds, or one per world.

    Worlds that start anew by themselves start with the values, too.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        driver: Driver = env.unwrapped.driver
        if driver.meddler is not None:
            raise InvalidValueError(
                explain(
                    "the environment has a curriculum already",
                    fix="Give the curriculum a stage that sets the start",
                )
            )
        self._starter = driver.meddler = _Starter()
        self._graph: CausalGraph = driver.world.graph

    @property
    def starting_state(self) -> Mapping[str, Any]:
        """The values in force."""
        return self._starter.values

    def set_starting_state(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Starts new episodes with these values, and every later one; returns their beginning.

        They add to the start in force. If a world refuses them the old start stays in force
        everywhere, episodes begin from it, and the refusal is raised.
        """
        before = self._starter.values
        self._starter.values = self._graph.updated(before, values)
        try:
            return self.reset()
        except InvalidValueError:
            self._starter.values = before
            self.reset()
            raise

    def reset_default_state(self) -> tuple[Any, dict[str, Any]]:
        """Forgets the starting state; returns the beginning of episodes without it."""
        self._starter.values = {}
        return self.reset()

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts episodes in all worlds, or in those of `options["reset_mask"]`."""
        self._starter.asleep = True  # this reset brings the values along itself
        try:
            given = _with(self._graph, self._starter.values, options)
            return self.env.reset(seed=seed, options=given)
        finally:
            self._starter.asleep = False


@final
class _Starter:
    """Sets the values where worlds start anew by themselves."""

    def __init__(self) -> None:
        self.values: Mapping[str, Any] = {}
        self.asleep = False

    def started(self, driver: Driver, worlds: Index) -> None:
        """Sets the values in worlds that have just started."""
        if not self.values or self.asleep or not len(worlds):
            return
        reasons = driver.do(self.values, worlds=worlds).reasons
        if reasons:
            raise InterventionError(next(iter(reasons.values())), self.values)

    def stepped(self, driver: Driver, moment: Transition) -> dict[str, NDArray[np.generic]]:
        """Does nothing between starts."""
        return {}


def _with(
    graph: CausalGraph, start: Mapping[str, Any], options: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Returns reset options that bring the start along; what they `do` themselves wins."""
    if not start or (options is not None and "snapshot" in options):
        return options
    given = dict(options or {})
    return {**given, "do": graph.updated(start, given.get("do") or {})}
