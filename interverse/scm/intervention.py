"""Interventions as values: frozen, comparable, serialisable, combined with `|`.

`Do` sets a variable (a perfect intervention). `Shift` adds to what the variable would have been
and `Replace` draws it from another distribution (imperfect ones): both turn into a `Do` once the
present values and the noise are known.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InterventionError
from interverse.core.rng import Noise
from interverse.scm.space import Space, space_from_json, space_to_json

Assignment = Mapping[str, NDArray[Any]]
Reader = Callable[[str], NDArray[Any]]


class Intervention(ABC):
    """Something that fixes some variables, given what they are now and their noise."""

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """The names it acts on."""

    @abstractmethod
    def resolve(self, read: Reader, noise: Noise) -> Assignment:
        """Returns the values it sets, each (N, *shape) or of the variable's shape."""

    @property
    def fixed(self) -> Assignment | None:
        """The values it sets, where they are known beforehand."""
        return None

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Returns a JSON-ready description."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __or__(self, other: Mapping[str, Any] | Intervention) -> Joint:
        return Joint((*_parts(self), *_parts(as_intervention(other))))


class _OfArrays(Intervention):
    """An intervention by an array for each variable."""

    __slots__ = ("values",)
    kind: ClassVar[str]

    def __init__(self, values: Mapping[str, Any]) -> None:
        _check_names(values)
        frozen = {}
        for name, value in values.items():
            try:
                frozen[name] = np.array(value)
            except ValueError as error:
                raise InterventionError(f"{name} is no array: {error}", [name]) from error
            frozen[name].flags.writeable = False
        self.values: Assignment = MappingProxyType(frozen)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names it acts on."""
        return tuple(self.values)

    def to_json(self) -> dict[str, Any]:
        """Returns a JSON-ready description."""
        return {self.kind: {name: value.tolist() for name, value in self.values.items()}}

    def __reduce__(self) -> tuple[type[_OfArrays], tuple[dict[str, Any]]]:
        return type(self), (dict(self.values),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({ {n: v.tolist() for n, v in self.values.items()} })"


@final
class Do(_OfArrays):
    """Sets variables to values.

    >>> both = Do({"block/mass": 0.5}) | Do({"floor/friction": 0.1})
    >>> both.variables
    ('block/mass', 'floor/friction')
    """

    __slots__ = ()
    kind = "do"

    @property
    def fixed(self) -> Assignment:
        """The values it sets."""
        return self.values

    def resolve(self, read: Reader, noise: Noise) -> Assignment:
        """Returns its values."""
        return self.values


@final
class Shift(_OfArrays):
    """Adds amounts to what variables would have been.

    >>> Shift({"gravity": 2.0}).to_json()
    {'shift': {'gravity': 2.0}}
    """

    __slots__ = ()
    kind = "shift"

    def resolve(self, read: Reader, noise: Noise) -> Assignment:
        """Returns the present values plus the amounts."""
        return {name: read(name) + amount for name, amount in self.values.items()}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Replace(Intervention):
    """Draws variables uniformly from other spaces, with the variables' own noise addresses."""

    spaces: Mapping[str, Space]

    def __post_init__(self) -> None:
        _check_names(self.spaces)
        for name, space in self.spaces.items():
            if not isinstance(space, Space):
                raise InterventionError(
                    f"{name} is drawn from {space!r}",
                    [name],
                    allowed="a space",
                    fix=f"Pass env.unwrapped.variables[{name!r}].space_a, for instance",
                )

    @property
    def variables(self) -> tuple[str, ...]:
        """The names it draws."""
        return tuple(self.spaces)

    def resolve(self, read: Reader, noise: Noise) -> Assignment:
        """Returns one draw per world."""
        draw = {n: noise.uniform(f"replace:{n}", (s.draws,)) for n, s in self.spaces.items()}
        return {name: space.from_uniform(draw[name]) for name, space in self.spaces.items()}

    def to_json(self) -> dict[str, Any]:
        """Returns a JSON-ready description."""
        return {"replace": {name: space_to_json(s) for name, s in self.spaces.items()}}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Joint(Intervention):
    """Several interventions at once, on different variables."""

    parts: tuple[Intervention, ...]

    def __post_init__(self) -> None:
        names = [name for part in self.parts for name in part.variables]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InterventionError(
                f"{', '.join(twice)} is set twice",
                twice,
                fix="Combine interventions on different variables",
            )

    @property
    def variables(self) -> tuple[str, ...]:
        """The names the parts act on."""
        return tuple(name for part in self.parts for name in part.variables)

    @property
    def fixed(self) -> Assignment | None:
        """The parts' values together, where all are known beforehand."""
        known = [part.fixed for part in self.parts]
        if any(values is None for values in known):
            return None
        return {name: value for values in known if values for name, value in values.items()}

    def resolve(self, read: Reader, noise: Noise) -> Assignment:
        """Returns the parts' values together."""
        return {k: v for part in self.parts for k, v in part.resolve(read, noise).items()}

    def to_json(self) -> dict[str, Any]:
        """Returns a JSON-ready description."""
        return {"joint": [part.to_json() for part in self.parts]}


def _parts(intervention: Intervention) -> tuple[Intervention, ...]:
    return intervention.parts if isinstance(intervention, Joint) else (intervention,)


def as_intervention(given: Mapping[str, Any] | Intervention) -> Intervention:
    """Returns the intervention meant: a plain mapping is a `Do`."""
    return given if isinstance(given, Intervention) else Do(given)


def _check_names(given: object) -> None:
    """Raises unless this is a mapping from names."""
    problem = f"an intervention cannot be a {type(given).__name__}"
    if isinstance(given, Mapping):
        wrong = [name for name in given if not isinstance(name, str)]
        if not wrong:
            return
        problem += f" with the name {wrong[0]!r}"
    raise InterventionError(
        problem,
        allowed="a mapping from variable name to value, Do, Shift, Replace",
        fix='Pass {"block_0/mass": 0.03}, for instance',
    )


def intervention_from_json(data: Mapping[str, Any]) -> Intervention:
    """Returns the intervention that `to_json` described."""
    try:
        ((kind, body),) = data.items()
        if kind == "do":
            return Do(body)
        if kind == "shift":
            return Shift(body)
        if kind == "replace":
            return Replace({name: space_from_json(space) for name, space in body.items()})
        if kind == "joint":
            return Joint(tuple(intervention_from_json(part) for part in body))
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise FileFormatError(f"not an intervention: {error}") from error
    raise FileFormatError(f"not an intervention: {kind!r}", allowed="do, shift, replace")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What an intervention did.

    Attributes:
        applied: whether it took effect; (N,) in a vector env, () in a single one. Worlds that were
            not selected are False.
        reasons: for each refused world, why; empty where all selected worlds changed.
        changed: every variable that changed in some world, propagated ones included.
        observation: the observation after it.
    """

    applied: NDArray[np.bool_]
    reasons: Mapping[int, str]
    changed: frozenset[str]
    observation: Any

    def __bool__(self) -> bool:
        """Returns whether it took effect in any world."""
        return bool(self.applied.any())
