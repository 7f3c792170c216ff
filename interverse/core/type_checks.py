"""Checks of values against the types and bounds that a dataclass or a function declares."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from interverse.core.errors import (
    InterverseError,
    InvalidValueError,
    check_name,
    check_number,
    check_whole,
)
from interverse.core.rng import check_seed

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    bytes: "bytes",
    Literal: "a text",
    Path: "the path of a file",
    os.PathLike: "the path of a folder",
    Callable: "a function",
    Mapping: "a dict",
    tuple: "a list",
    list: "a list",
    Sequence: "a list",
    type(None): "None",
}
_PLAIN: dict[Any, Any] = {bool: bool | np.bool_, int: Integral, float: Real}


_Kind = TypeVar("_Kind", bound=type)
Check = Callable[..., object]  # of a value and the `name=` it goes by; raises, or all is well


def whole(most: int, *, least: int = 1) -> Check:
    """Returns the bound of a field: a whole number from `least` to `most`."""
    return partial(check_whole, most=most, least=least)


def number(
    least: float = 0.0, most: float = math.inf, *, above: bool = False, below: bool = False
) -> Check:
    """Returns the bound of a field: a number from `least` to `most`, or `above`, `below` them."""
    return partial(check_number, least=least, most=most, above=above, below=below)


def one_of(names: Collection[Any]) -> Check:
    """Returns the bound of a field: one of these names."""
    return lambda value, name: check_name(name, value, names)


def named(words: str, check: Check) -> Check:
    """Returns a bound whose error calls the value by other words than its field's name."""
    return lambda value, name: check(value, name=words)


Seed = Annotated[int, check_seed]
Share = Annotated[float, number(most=1.0)]
Positive = Annotated[float, number(above=True)]


def validated(kind: _Kind) -> _Kind:
    """Returns a class whose dataclass checks its fields' bounds; it stands below `@dataclass`.

    A bound is a function of (value, name=...) in `Annotated`; a `Literal` is one as it is. Bounds
    of parts (`tuple[Annotated[...], ...]`) hold for every part, and None passes where it is
    declared. First come the bounds and rules of the base class, then the own bounds, then the own
    `__post_init__`, which is left with rules that concern several fields.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... @validated
    ... class Options:
    ...     share: Share = 1.0
    ...     layers: tuple[Annotated[int, whole(100)], ...] = ()
    >>> Options(share=2)
    Traceback (most recent call last):
    interverse.core.errors.InvalidValueError: share is 2. Allowed: a number from 0 to 1.
    """
    rules = vars(kind).get("__post_init__")
    inherited = next(
        (vars(k)["__post_init__"] for k in kind.__mro__[1:] if "__post_init__" in vars(k)), None
    )

    @functools.cache  # names are looked up when the first one is made, not at import
    def bounds() -> list[tuple[str, list[Check]]]:
        hints = get_type_hints(kind, include_extras=True)
        return [
            (name, checks)
            for name in inspect.get_annotations(kind)
            if (checks := list(_bounds(hints[name])))
        ]

    def __post_init__(self: Any) -> None:
        if inherited is not None:
            inherited(self)
        for name, checks in bounds():
            for check in checks:
                check(getattr(self, name), name=name)
        if rules is not None:
            rules(self)

    kind.__post_init__ = __post_init__  # type: ignore[attr-defined]
    return kind


def _bounds(hint: Any) -> Iterator[Check]:
    """Yields the checks that a type hint asks for."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        own = [part for part in hint.__metadata__ if isinstance(part, FunctionType | partial)]
        optional = type(None) in get_args(parts[0])
        yield from map(_unless_none, own) if optional else own
        if not own:
            yield from _bounds(parts[0])
    elif origin is Literal:
        yield one_of(parts)
    elif origin in (Union, UnionType):
        several = [part for part in parts if part is not type(None)]
        if len(several) == 1:
            yield from map(_unless_none, _bounds(several[0]))
    elif origin is tuple and parts[-1] is ...:
        for check in _bounds(parts[0]):
            yield lambda values, name, check=check: [check(value, name=name) for value in values]


def _unless_none(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name=name)


_hints = functools.cache(get_type_hints)  # they are many, and read slowly


def check_types(kind: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raises if a value is of another type than a dataclass or function declares for it.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Options:
    ...     shadows: bool = True
    >>> check_types(Options, {"shadows": "no"})
    Traceback (most recent call last):
    interverse.core.errors.InvalidValueError: shadows is 'no'. Allowed: True or False.
    """
    try:
        declared = _hints(kind)
    except NameError:  # of somebody's own options, from a module that is read by type checkers only
        return
    for name, value in given.items():
        check_type(name, value, declared.get(name, Any))


def check_type(name: str, value: object, declared: Any) -> None:
    """Raises if a value is of another type than is declared for its name."""
    if not _fits(value, declared):
        raise InvalidValueError(f"{name} is {value!r}", allowed=_in_words(declared))


def blames_fields(kind: _Kind) -> _Kind:
    """Returns a dataclass whose bare errors of making one name the field that is wrong."""
    kind.__init__ = blames_types(kind.__init__)  # type: ignore[misc]
    return kind


def blames_types(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Returns the function, whose bare errors name an argument of the wrong name or type, if any.

    >>> @blames_types
    ... def half(number: float) -> float:
    ...     return number / 2
    >>> half("x")
    Traceback (most recent call last):
    interverse.core.errors.InvalidValueError: number is 'x'. Allowed: a number.
    """

    @functools.wraps(function)
    def call(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except InterverseError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError):
            taken = inspect.signature(function)
            if not any(p.kind is p.VAR_KEYWORD for p in taken.parameters.values()):
                for name in kwargs:
                    check_name("argument", name, taken.parameters.keys() - {"self"})
            try:
                given = taken.bind(*args, **kwargs).arguments
            except TypeError:  # too many, or one is missing: Python's own words
                given = {}
            check_types(function, given)
            raise

    return call


def _in_words(declared: Any) -> str:
    kind = get_origin(declared) or declared
    parts = get_args(declared)
    if kind in (Union, UnionType):
        return ", or ".join(map(_in_words, parts))
    words = _WORDS.get(kind, str(getattr(kind, "__name__", kind)))
    if kind in (Mapping, tuple, list, Sequence):
        held = parts[1:] if kind is Mapping else parts
        told = {_in_words(part) for part in held if part not in (..., Any)}
        return f"{words} whose every value is {', or '.join(sorted(told))}" if told else words
    return words


def _fits(value: object, declared: Any) -> bool:
    """Returns whether a value is of a declared type; any sequence will do for a tuple or list."""
    kind, parts = get_origin(declared) or declared, get_args(declared)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if kind is Literal:
        return isinstance(value, tuple(map(type, parts)))  # which of them, the options say
    if kind in _PLAIN:
        truth = isinstance(value, bool) and kind is not bool
        return isinstance(value, _PLAIN[kind]) and not truth
    if kind is Mapping:
        of = parts[1] if parts else Any
        return isinstance(value, Mapping) and all(_fits(item, of) for item in value.values())
    if kind in (tuple, list, Sequence):
        kinds = [part for part in parts if part is not ...] or [Any]
        several = isinstance(value, Collection) and not isinstance(value, Mapping)
        return several and all(any(_fits(item, k) for k in kinds) for item in value)  # type: ignore[attr-defined]
    try:
        return kind is Any or not isinstance(kind, type) or isinstance(value, kind)
    except TypeError:  # a protocol that cannot be asked at run time
        return True
