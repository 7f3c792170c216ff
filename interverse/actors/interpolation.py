"""Moves variables step by step from where they are to a target: from one task to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment, between, check_some, matching
from interverse.core.errors import InvalidValueError, explain
from interverse.core.type_checks import validated, whole
from interverse.scm.space import Space
from interverse.scm.variable import SpaceName, Variable, lookup


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Interpolation(Actor):
    """Sets variables on the way from their defaults to a target, by episode number.

    A point of the line that lies outside the space is brought to the next one inside.
    """

    may_idle: ClassVar[bool] = True  # the way begins at the defaults
    target: Mapping[str, Any]
    """Where variables end, by name or pattern; where two match, the later one holds."""
    episodes: Annotated[int, whole(10**9)] = 100
    """After how many episodes the target is reached."""
    space: SpaceName | None = None
    """The region that target and way lie in; None takes the curriculum's, A by default."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if a target names no variable or lies outside its domain or the space."""
        check_some(self.target, "target")
        target = self._target(variables)
        for name, value in target.items():
            _check_target(name, value, variables[name].domain, "its domain", fix="")
        values = {n: np.asarray(target.get(n, v.default)) for n, v in variables.items()}
        for name, value in target.items():
            region = lookup(variables, name).resolve(values).region(self.space or space)
            where, fix = f"space {self.space or space}", "Give Interpolation(space='A_B')"
            if region is not None:
                _check_target(name, value, region, where, fix=f"{fix} in a world of that space")

    def act(self, moment: Moment) -> Assignment:
        """Returns the point on the way that each world's episode stands at."""
        share = np.minimum(np.asarray(moment.noise.episodes) / self.episodes, 1.0)
        target = self._target(moment.variables)
        out: dict[str, NDArray[Any]] = {}
        # Spaces that depend on values come last, so that they see what they depend on.
        for name in sorted(target, key=lambda name: moment.variables[name].bounded):
            variable = moment.variables[name]
            rows = share.reshape((-1,) + (1,) * len(variable.shape))
            space = moment.region(name, self.space, out) or variable.domain
            out[name] = between(space, variable.default, np.asarray(target[name]), rows)
        return out

    def _target(self, variables: Mapping[str, Variable]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for pattern, value in self.target.items():
            out |= dict.fromkeys(matching(variables, [pattern]), value)
        return out


def _check_target(name: str, value: object, space: Space, where: str, *, fix: str) -> None:
    if not space.contains(value):  # type: ignore[arg-type] # whatever the user gave
        raise InvalidValueError(
            explain(
                f"the target of {name} is {value!r}, outside {where}",
                allowed=f"{space.low.tolist()} to {space.high.tolist()}",
                fix=fix,
            )
        )
