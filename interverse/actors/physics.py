"""Changes what cannot be seen: the mass of things, or the friction of what has no mass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.core.errors import InvalidValueError, explain
from interverse.scm.variable import SpaceName, Variable

_PROPERTIES = ("mass", "friction")  # of each thing the first that has a space


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalProperties(Actor):
    """CausalWorld's physical properties actor: each thing's mass, else its friction."""

    group: str = ""
    """Only things whose names start so: `block`, `finger_0`, `floor`; empty takes all."""
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if nothing of the group has a mass or friction to draw."""
        self._chosen(variables)

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world and thing."""
        return moment.draw(self._chosen(moment.variables), self.space)

    def _chosen(self, variables: Mapping[str, Variable]) -> Collection[str]:
        chosen: dict[str, str] = {}
        for quality in _PROPERTIES:
            for name in matching(variables, [f"{self.group}*"]):
                thing, _, last = name.rpartition("/")
                if last == quality and variables[name].space_a is not None:
                    chosen.setdefault(thing, name)
        if not chosen:
            raise InvalidValueError(
                explain(
                    f"the world has no mass or friction to draw of {self.group or 'anything'}",
                    fix="Give a group such as block or floor",
                )
            )
        return chosen.values()
