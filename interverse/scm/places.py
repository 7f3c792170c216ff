"""Places of a simulator that variables write to: one variable each, so that values tell the world.

Were two variables to write one place, the later `do` would count, and equal values would not mean
equal worlds. A binding may take over another's place if it is made from all that the other is made
from: then it says the same, whatever came last.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from interverse.core.errors import InvalidValueError, explain
from interverse.scm.variable import Binding, Kind, Variable


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A binding with the variable that declares it and the names it is made from."""

    variable: str
    binding: Binding
    of: tuple[str, ...]
    kind: Kind


@functools.lru_cache(maxsize=64)  # of one world's variables, for the next with them
def bound_by(variables: tuple[Variable, ...]) -> tuple[Bound, ...]:
    """Returns the bindings of variables, no two of which write one place."""
    bound = tuple(
        Bound(variable.name, binding, binding.of or (variable.name,), variable.kind)
        for variable in variables
        for binding in variable.bindings
    )
    refuse_shared_places(bound, factors=False)
    return bound


@functools.lru_cache(maxsize=64)
def refuse_shared_places(bound: tuple[Bound, ...], *, factors: bool) -> None:
    """Raises if two variables write one place, unless the later is made from all of the earlier.

    Args:
        bound: in the order in which they are written.
        factors: whether a factor on what is written there counts too; factors commute where all
            are applied anew, and not where each is written by itself.
    """
    known: dict[str, dict[str | None, list[Bound]]] = {}
    for later in bound:
        if later.binding.relative and not factors:
            continue
        by_element = known.setdefault(later.binding.field, {})
        for earlier in _candidates(by_element, later.binding):
            if earlier.variable != later.variable and not set(earlier.of) <= set(later.of):
                raise InvalidValueError(_message(earlier, later))
        for element in _elements(later.binding):
            by_element.setdefault(element, []).append(later)


def _candidates(by_element: dict[str | None, list[Bound]], binding: Binding) -> Iterator[Bound]:
    """Yields what is known to write one of a binding's places; the same one perhaps twice."""
    whole = binding.element is None
    names = by_element if whole else (*_elements(binding), None)
    mine = _columns(binding)
    for name in names:
        for other in by_element.get(name, ()):
            theirs = _columns(other.binding)
            if mine is None or theirs is None or mine & theirs or whole != (name is None):
                yield other


def _elements(binding: Binding) -> tuple[str | None, ...]:
    """Returns the elements; None alone for a whole field."""
    return binding.element if isinstance(binding.element, tuple) else (binding.element,)


def _columns(binding: Binding) -> frozenset[int] | None:
    """Returns the places in each element; None for all of them."""
    if binding.index is None:
        return None
    return frozenset(binding.index if isinstance(binding.index, tuple) else (binding.index,))


def _message(earlier: Bound, later: Bound) -> str:
    place = later.binding.field
    if later.binding.element is not None:
        place += f" of {later.binding.element}"
    return explain(
        f"{earlier.variable} and {later.variable} both write {place}",
        allowed="one variable for each place, so that values say what the world is",
        fix="Bind one of them elsewhere, or leave it out; a world that takes bindings of several "
        f"variables also takes one of both (function=..., of=({earlier.variable!r}, "
        f"{later.variable!r}))",
    )
