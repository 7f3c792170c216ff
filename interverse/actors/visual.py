"""Changes how things look and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.core.errors import InvalidValueError, explain
from interverse.scm.variable import SpaceName, Variable


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Visual(Actor):
    """CausalWorld's visual actor: draws every colour, and every other look with a space."""

    group: str = ""
    """Only things whose names start so: `block`, `floor`; empty takes all."""
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if nothing of the group has a look to draw."""
        self._looks(variables)

    def act(self, moment: Moment) -> Assignment:
        """Returns one look per world."""
        return moment.draw(self._looks(moment.variables), self.space)

    def _looks(self, variables: Mapping[str, Variable]) -> list[str]:
        looks = [
            name
            for name in matching(variables, [f"{self.group}*"])
            if variables[name].kind == "appearance" and variables[name].space_a is not None
        ]
        if not looks:
            raise InvalidValueError(
                explain(
                    f"the world has no looks to draw of {self.group or 'anything'}",
                    allowed="appearance variables with a space",
                )
            )
        return looks
