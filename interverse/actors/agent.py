"""The agent's own action chooses the intervention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.errors import InvalidValueError, explain
from interverse.scm.space import Box
from interverse.scm.variable import SpaceName


@final
@dataclass(slots=True, kw_only=True)
class AgentDriven(Actor):
    """Maps numbers in [-1, 1], set with `choose`, onto the variables' spaces."""

    patterns: tuple[str, ...]
    space: SpaceName | None = None
    _choice: NDArray[np.float64] | None = field(default=None)

    def size(self, moment: Moment) -> int:
        """Returns how many numbers the agent must choose per world."""
        return sum(space.draws for _, space in self._spaces(moment))

    def choose(self, numbers: NDArray[np.float64]) -> None:
        """Takes the agent's choice, (worlds, size) in [-1, 1]."""
        self._choice = np.clip(np.asarray(numbers, dtype=np.float64), -1.0, 1.0)

    def act(self, moment: Moment) -> Assignment:
        """Returns the values the choice stands for; empty before the first choice."""
        if self._choice is None:
            return {}
        size = self.size(moment)
        if self._choice.shape != (len(moment.worlds), size):
            raise InvalidValueError(
                explain(
                    f"the choice has shape {self._choice.shape}",
                    allowed=f"({len(moment.worlds)}, {size}): one row per world",
                )
            )
        out, start = {}, 0
        for name, space in self._spaces(moment):
            part = 0.5 * (self._choice[:, start : start + space.draws] + 1.0)
            out[name] = space.from_uniform(np.minimum(part, np.nextafter(1.0, 0.0)))
            start += space.draws
        return out

    def _spaces(self, moment: Moment) -> list[tuple[str, Any]]:
        out = []
        for name in matching(moment.variables, self.patterns):
            declared = moment.variables[name].resolve(moment.driver.host_values)
            region = declared.space(self.space or moment.space)
            if isinstance(region, Box) or region is not None:
                out.append((name, region))
        return out
