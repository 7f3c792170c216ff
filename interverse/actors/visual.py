"""Changes how things look and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.core.errors import InvalidValueError, explain
from interverse.scm.variable import SpaceName


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Visual(Actor):
    """CausalWorld's visual actor: draws every colour, and every other look with a space."""

    group: str = ""
    """Only things whose names start so: `block`, `floor`; empty takes all."""
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""

    def act(self, moment: Moment) -> Assignment:
        """Returns one look per world."""
        looks = [
            name
            for name in matching(moment.variables, [f"{self.group}*"])
            if moment.variables[name].kind == "appearance"
            and moment.variables[name].space_a is not None
        ]
        if not looks:
            raise InvalidValueError(
                explain(
                    f"{moment.driver.id} has no looks to draw of {self.group or 'anything'}",
                    allowed="appearance variables with a space",
                )
            )
        return moment.draw(looks, self.space)
