"""The agent's own action chooses the intervention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment, check_some, drawable
from interverse.core.errors import InvalidValueError, explain
from interverse.scm.space import Space
from interverse.scm.variable import SpaceName, Variable


@final
@dataclass(slots=True, kw_only=True)
class AgentDriven(Actor):
    """Maps numbers in [-1, 1], set with `choose`, onto the variables' spaces."""

    may_idle: ClassVar[bool] = True  # the agent may choose what holds
    patterns: tuple[str, ...]
    space: SpaceName | None = None
    """The region to choose from; None takes the curriculum's, A by default."""
    _choice: NDArray[np.float64] | None = field(default=None)

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if a pattern names nothing to choose."""
        check_some(self.patterns, "patterns")
        drawable(variables, self.patterns)

    def size(self, moment: Moment) -> int:
        """Returns how many numbers the agent must choose per world."""
        return sum(self._draws(moment))

    def choose(self, numbers: NDArray[np.float64]) -> None:
        """Takes the agent's choice in [-1, 1]: (worlds, size), a row for every world."""
        self._choice = np.clip(np.asarray(numbers, dtype=np.float64), -1.0, 1.0)

    def act(self, moment: Moment) -> Assignment:
        """Returns the values the choice stands for; empty before the first choice.

        With a row for every world of the environment, some of its worlds take theirs.
        """
        if self._choice is None:
            return {}
        size, count = self.size(moment), len(moment.worlds)
        everyone = moment.driver.world.num_worlds
        if self._choice.shape not in ((count, size), (everyone, size)):
            raise InvalidValueError(
                explain(
                    f"the choice has shape {self._choice.shape}",
                    allowed=f"({everyone}, {size}): one row per world",
                )
            )
        rows = self._choice[moment.worlds] if len(self._choice) == everyone else self._choice
        names = drawable(moment.variables, self.patterns)
        parts = np.split(rows, np.cumsum(self._draws(moment))[:-1], axis=1)
        chosen = dict(zip(names, parts, strict=True))
        out: dict[str, NDArray[Any]] = {}
        # Spaces that depend on values come last, so that they see what they depend on.
        for name in sorted(chosen, key=lambda name: moment.variables[name].bounded):
            part = np.minimum(0.5 * (chosen[name] + 1.0), np.nextafter(1.0, 0.0))
            out[name] = self._region(moment, name, out).from_uniform(part)
        return out

    def _draws(self, moment: Moment) -> list[int]:
        names = drawable(moment.variables, self.patterns)
        return [self._region(moment, name, {}).draws for name in names]

    def _region(self, moment: Moment, name: str, drawn: Assignment) -> Space:
        region = moment.region(name, self.space, drawn)
        assert region is not None  # `drawable` leaves out what has none
        return region
