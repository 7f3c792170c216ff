"""Checks of values against the types that a dataclass or a function declares for them."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from interverse.core.errors import InterverseError, InvalidValueError, check_name, explain

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
        declared = get_type_hints(kind)
    except NameError:  # of somebody's own options, from a module that is read by type checkers only
        return
    for name, value in given.items():
        check_type(name, value, declared.get(name, Any))


def check_type(name: str, value: object, declared: Any) -> None:
    """Raises if a value is of another type than is declared for its name."""
    if not _fits(value, declared):
        raise InvalidValueError(explain(f"{name} is {value!r}", allowed=_in_words(declared)))


_Kind = TypeVar("_Kind", bound=type)


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
