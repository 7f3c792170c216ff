"""Moves variables step by step from where they are to a target: from one task to another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.core.errors import InvalidValueError, explain
from interverse.scm.variable import SpaceName


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Interpolation(Actor):
    """Sets variables on the straight line from their defaults to a target, by episode number."""

    target: Mapping[str, Any]
    """Where each variable ends, by name."""
    episodes: int = 100
    """After how many episodes the target is reached."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise InvalidValueError(
                explain(f"episodes is {self.episodes}", allowed="a whole number from 1")
            )

    def spaces(self, space: SpaceName) -> Collection[SpaceName]:
        """Returns nothing: its values are the target's, whatever their space."""
        return ()

    def act(self, moment: Moment) -> Assignment:
        """Returns the point on the line that each world's episode stands at."""
        matching(moment.variables, self.target)
        share = np.minimum(np.asarray(moment.noise.episodes) / self.episodes, 1.0)
        out = {}
        for name, end in self.target.items():
            variable = moment.variables[name]
            rows = share.reshape((-1,) + (1,) * len(variable.shape))
            line = (1.0 - rows) * variable.default + rows * np.asarray(end)
            whole = variable.domain.integral
            out[name] = np.rint(line).astype(np.int64) if whole else line
        return out
