"""A user's mistake in the words of a command, told in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tyro.conf import Positional, Suppress

from interverse.core.errors import explain, unknown

_NUMBERS = {int: "a whole number", float: "a number"}


def mistake(config: type[Any], verb: str, args: Sequence[str]) -> str | None:
    """Returns what is wrong with the words of a command; None if no mistake is seen.

    >>> from interverse.cli.describe import Describe
    >>> mistake(Describe, "describe", [])
    'ID is missing. Give it: interverse describe ID.'
    >>> mistake(Describe, "describe", ["chemistry/chain-v1", "--jsn"])
    "unknown flag 'jsn'. Did you mean 'json'? Allowed: all, edges, json, mermaid."
    """
    hints = get_type_hints(config, include_extras=True)
    flags = {f"--{name.replace('_', '-')}": hint for name, hint in hints.items() if _is_flag(hint)}
    bare = [name for name, hint in hints.items() if Positional in _marks(hint)]
    words: list[str] = []
    given: set[str] = set()
    for flag, values in _grouped(args):
        if not flag:
            words += values
            continue
        name = flag if flag in flags else flag.replace("--no-", "--", 1)
        if name not in flags or (flag != name and _plain(flags[name]) is not bool):
            return unknown("flag", flag[2:], [known[2:] for known in flags])
        told, rest = _value_mistake(name, _plain(flags[name]), values)
        if told:
            return told
        given.add(name)
        words += rest
    return _bare_mistake(hints, bare, words) or _missing(config, verb, given, len(words))


def _is_flag(hint: Any) -> bool:
    return Positional not in _marks(hint) and Suppress not in _marks(hint)


def _marks(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__metadata__", ())


def _plain(hint: Any) -> Any:
    """Returns a hint without marks and without `| None`."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return _plain(kinds[0]) if get_origin(hint) in (Union, UnionType) and len(kinds) == 1 else hint


def _grouped(args: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields each flag with the words after it; what stands before the first has no flag."""
    flag, values = "", list[str]()
    for word in args:
        if word.startswith("--"):
            yield flag, values
            name, equals, value = word.partition("=")
            flag, values = name.replace("_", "-"), [value] if equals else []
        else:
            values.append(word)
    yield flag, values


def _value_mistake(flag: str, kind: Any, values: list[str]) -> tuple[str, list[str]]:
    """Returns what is wrong with a flag's values, and the words that are not its own."""
    if kind is bool:
        return "", values
    many = get_origin(kind) is tuple
    if not values and not many:
        return explain(f"{flag} has no value", fix=f"Write it after the flag: {flag} VALUE"), []
    own, rest = (values, []) if many else (values[:1], values[1:])
    kind = _plain(get_args(kind)[0]) if many else kind
    return next(filter(None, (_word_mistake(flag, kind, word) for word in own)), ""), rest


def _word_mistake(name: str, kind: Any, word: str) -> str:
    allowed, choices = _NUMBERS.get(kind, ""), _choices(kind)
    if choices and word not in choices:
        return unknown(f"value of {name}", word, choices)
    try:
        if allowed:
            kind(word)
    except ValueError:
        return explain(f"{name} is {word!r}", allowed=allowed)
    return ""


def _choices(kind: Any) -> list[str]:
    """Returns the words that a flag takes, where these are counted."""
    if get_origin(kind) is Literal:
        return [str(word) for word in get_args(kind)]
    parts = [_choices(part) for part in get_args(kind)]
    whole = get_origin(kind) in (Union, UnionType) and all(parts)
    return [word for part in parts for word in part] if whole else []


def _bare_mistake(hints: dict[str, Any], bare: list[str], words: list[str]) -> str:
    for name, word in zip(bare, words, strict=False):
        told = _word_mistake(name.upper(), _plain(hints[name]), word)
        if told:
            return told
    many = any(get_origin(_plain(hints[name])) is tuple for name in bare)
    if len(words) <= len(bare) or many:
        return ""
    allowed = f"flags, such as --{next(iter(hints)).replace('_', '-')}"
    if bare:
        allowed = f"{', '.join(map(str.upper, bare))}, then flags"
    return explain(f"{words[len(bare)]!r} belongs to no flag", allowed=allowed)


def _missing(config: type[Any], verb: str, given: set[str], words: int) -> str | None:
    """Returns the line for values that must be given and were not."""
    hints = get_type_hints(config, include_extras=True)
    needed = [f.name for f in fields(config) if f.default is f.default_factory is MISSING]
    bare = [name for name in needed if Positional in _marks(hints[name])]
    flags = [f"--{n.replace('_', '-')}" for n in needed if n not in bare]
    absent = [n.upper() for n in bare[words:]] + [flag for flag in flags if flag not in given]
    if not absent:
        return None
    whole = [n.upper() for n in bare] + [f"{flag} {flag[2:].upper()}" for flag in flags]
    verb_words = " ".join(["interverse", verb, *whole])
    is_one = len(absent) == 1
    return explain(
        f"{' and '.join(absent)} {'is' if is_one else 'are'} missing",
        fix=f"Give {'it' if is_one else 'them'}: {verb_words}",
    )
