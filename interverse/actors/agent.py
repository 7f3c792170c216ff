"""The agent's own action chooses the intervention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment, drawable
from interverse.core.errors import InvalidValueError, explain
from interverse.envs.values import Overlay
from interverse.scm.variable import SpaceName, Variable


@final
@dataclass(slots=True, kw_only=True)
class AgentDriven(Actor):
    """Maps numbers in [-1, 1], set with `choose`, onto the variables' spaces."""

    patterns: tuple[str, ...]
    space: SpaceName | None = None
    """The region to choose from; None takes the curriculum's, A by default."""
    _choice: NDArray[np.float64] | None = field(default=None)

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if a pattern names nothing to choose."""
        drawable(variables, self.patterns)

    def size(self, moment: Moment) -> int:
        """Returns how many numbers the agent must choose per world."""
        return sum(space.draws for _, space in self._spaces(moment))

    def choose(self, numbers: NDArray[np.float64]) -> None:
        """Takes the agent's choice in [-1, 1]: (worlds, size), a row for every world."""
        self._choice = np.clip(np.asarray(numbers, dtype=np.float64), -1.0, 1.0)

    def act(self, moment: Moment) -> Assignment:
        """Returns the values the choice stands for; empty before the first choice.

        With a row for every world of the environment, some of its worlds take theirs.
        """
        if self._choice is None:
            return {}
        spaces = self._spaces(moment)
        size, count = sum(space.draws for _, space in spaces), len(moment.worlds)
        everyone = moment.driver.world.num_worlds
        if self._choice.shape not in ((count, size), (everyone, size)):
            raise InvalidValueError(
                explain(
                    f"the choice has shape {self._choice.shape}",
                    allowed=f"({everyone}, {size}): one row per world",
                )
            )
        rows = self._choice[moment.worlds] if len(self._choice) == everyone else self._choice
        out, start = {}, 0
        for name, space in spaces:
            part = 0.5 * (rows[:, start : start + space.draws] + 1.0)
            out[name] = space.from_uniform(np.minimum(part, np.nextafter(1.0, 0.0)))
            start += space.draws
        return out

    def _spaces(self, moment: Moment) -> list[tuple[str, Any]]:
        """Returns the spaces of the variables, evaluated at these worlds' values."""
        region = self.space or moment.space
        driver = moment.driver
        now = Overlay(driver.host_values, {}, moment.worlds, driver.world.graph)
        names = drawable(moment.variables, self.patterns)
        return [(name, moment.variables[name].resolve(now).region(region)) for name in names]
