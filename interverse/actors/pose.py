"""Places things elsewhere: positions and orientations of what can be moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.core.errors import InvalidValueError, explain
from interverse.scm.variable import SpaceName, Variable

_POSITIONS, _ORIENTATIONS = ("cylindrical_position", "position"), ("orientation",)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RigidPose(Actor):
    """CausalWorld's rigid pose actor: draws the pose of every object that is not a goal."""

    positions: bool = True
    """Whether to draw positions."""
    orientations: bool = True
    """Whether to draw orientations."""
    group: str = ""
    """Only objects whose names start so: `block_1`; empty takes all."""
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""

    def __post_init__(self) -> None:
        if not (self.positions or self.orientations):
            raise InvalidValueError(
                explain("positions and orientations are both off", fix="Leave one of them on")
            )

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if no object of the group has a pose to draw."""
        self._wanted(variables)

    def act(self, moment: Moment) -> Assignment:
        """Returns one pose per world and object."""
        return moment.draw(self._wanted(moment.variables), self.space)

    def _wanted(self, variables: Mapping[str, Variable]) -> list[str]:
        parts = _POSITIONS * self.positions + _ORIENTATIONS * self.orientations
        wanted = [
            name
            for name in matching(variables, [f"{self.group}*"])
            if name.rpartition("/")[2] in parts
            and variables[name].kind == "state"
            and variables[name].space_a is not None
        ]
        if not wanted:
            raise InvalidValueError(
                explain(
                    f"the world has no pose to draw of {self.group or 'any object'}",
                    allowed=f"state variables named {', '.join(parts)} with a space",
                )
            )
        return wanted
