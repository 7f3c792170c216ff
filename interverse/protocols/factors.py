"""Factors of an attribution: named groups of variables, and the region each is drawn from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from interverse.actors.actor import matching
from interverse.core.errors import InvalidValueError
from interverse.scm.variable import SPACE_NAMES, SpaceName, Variable

FactorsLike = Mapping[str, Any] | Sequence[str] | None
DOMAIN: Literal["domain"] = "domain"  # the region of a variable that has no published space
Region = SpaceName | Literal["domain"]
Factors = dict[str, dict[str, Region]]  # factor -> variable -> region
_STATES = ("state", "goal")  # kinds that every episode starts with a value of
_MOST_ALONE = 12  # variables beyond which those of one part and kind are taken together


def as_factors(given: FactorsLike, variables: Mapping[str, Variable]) -> Factors:
    """Returns the factors meant, with every variable named and its region chosen.

    Args:
        given: factor -> a pattern, patterns, or {pattern: region}; or a list of patterns, each a
            factor of its own; None takes every variable with a published space, states and goals
            only if theirs is held out (B), each alone or, where there are many, by the part of the
            world and the kind.
        variables: the world's, resolved or not.

    A region that is not given is B where the variable has one, else A: the shift that was
    published. A variable without either is drawn from its domain, where that is finite, if it is
    named in full or if nothing of its factor has a published space; the region "domain" asks for
    it.
    """
    if given is None:
        return _default(variables)
    words = [] if isinstance(given, Mapping) else _words("factors", given)
    named = given if isinstance(given, Mapping) else {pattern: pattern for pattern in words}
    out = {name: _regions(name, parts, variables) for name, parts in named.items()}
    owner: dict[str, str] = {}
    for factor, regions in out.items():
        for variable in regions:
            if owner.setdefault(variable, factor) != factor:
                raise InvalidValueError(
                    f"{variable} belongs to the factors {owner[variable]} and {factor}",
                    fix="Give each variable to one factor: costs are told apart by them",
                )
    return out


def _words(name: str, given: Any) -> Sequence[str]:
    """Returns patterns as a list; anything but texts raises."""
    words = [given] if isinstance(given, str) else given
    listed = isinstance(words, Iterable) and not isinstance(words, Mapping)
    out = list(words) if listed else []
    if not out or not all(isinstance(word, str) for word in out):
        raise InvalidValueError(
            f"{name} is {given!r}",
            allowed="a pattern of variables, several, or {pattern: region}",
            fix="For instance factors={'look': ['box/color', 'floor/*']}",
        )
    return out


def _regions(name: str, given: Any, variables: Mapping[str, Variable]) -> dict[str, Region]:
    parts = given if isinstance(given, Mapping) else dict.fromkeys(_words(f"factor {name}", given))
    out: dict[str, Region] = {}
    spaceless: dict[str, Region] = {}
    for pattern, region in parts.items():
        for variable in matching(variables, [pattern]):
            declared = variables[variable]
            if region is None and declared.space_a is None and variable != pattern:
                # A pattern such as floor/* may cover what nothing is drawn from.
                if declared.kind not in _STATES and _has_domain(declared):
                    spaceless[variable] = DOMAIN
                continue
            chosen = _published(declared) if region is None else region
            spaces = SPACE_NAMES if declared.space_b is not None else SPACE_NAMES[:1]
            allowed: list[str] = [*(spaces if declared.space_a is not None else ())]
            allowed += [DOMAIN] if _has_domain(declared) else []
            if chosen not in allowed:
                told = f"factor {name}: region of {variable} is {chosen!r}"
                raise InvalidValueError(told, allowed=", ".join(allowed) or "none")
            out[variable] = chosen
    if not (out := out or spaceless):
        raise InvalidValueError(
            f"factor {name} has no variable with a space or a finite domain to draw from",
            fix="See `interverse describe` for the published spaces",
        )
    return out


def _has_domain(variable: Variable) -> bool:
    """Returns whether a variable can be set to any value between finite ends."""
    domain = variable.domain
    return not variable.read_only and bool(np.isfinite([domain.low, domain.high]).all())


def _published(variable: Variable) -> Region:
    if variable.space_a is None:
        return DOMAIN
    return "A" if variable.space_b is None else "B"


def _default(variables: Mapping[str, Variable]) -> Factors:
    drawn = {
        name: v
        for name, v in variables.items()
        if v.space_a is not None and not v.read_only
        if v.space_b is not None or v.kind not in _STATES
    }
    if not drawn:
        raise InvalidValueError(
            "no variable of this world has a space to draw from", fix="Name factors"
        )
    out: Factors = {}
    for name, variable in drawn.items():
        factor, part = name, _part(name)
        if len(drawn) > _MOST_ALONE:  # the part of the world, with the kind where it has several
            kinds = {v.kind for n, v in drawn.items() if _part(n) == part}
            alone = len(kinds) == 1 or variable.kind == part
            factor = part if alone else f"{part}:{variable.kind}"
        out.setdefault(factor, {})[name] = _published(variable)
    return out


def _part(name: str) -> str:
    return re.sub(r"_\d+$", "", name.partition("/")[0])
