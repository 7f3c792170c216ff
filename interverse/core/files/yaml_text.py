"""YAML from files: mappings, lists, text and JSON's numbers, read within limits of size and depth.

A plain word is text unless it is true, false, null or a number as JSON writes it, so that `no` and
`1:30` stay what they look like. Anchors, tags, repeated keys and keys that are no text are refused.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from interverse.core.errors import FileFormatError, check_name
from interverse.core.files import check_count

_MOST_BYTES = 64 * 2**10
_MOST_EVENTS = 10_000  # a value is one, a list or mapping two
_DEEPEST = 20
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]{0,30})")
_NUMBER = re.compile(
    r"[-+]?([0-9][0-9_]{0,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?"
)


def read_yaml(path: str | os.PathLike[str], known: Collection[str] = ()) -> dict[str, Any]:
    """Returns the mapping in a YAML file, of known keys only; else raises FileFormatError."""
    file = Path(path)
    if file.stat().st_size > _MOST_BYTES:
        raise FileFormatError(
            f"{file} has {file.stat().st_size:,} bytes", allowed=f"at most {_MOST_BYTES:,}"
        )
    value = parse_yaml(file.read_bytes(), file.name)
    if not isinstance(value, dict):
        raise FileFormatError(
            f"{file} holds a {type(value).__name__}", allowed="lines of KEY: VALUE"
        )
    if known:
        check_keys(value, known, file.name)
    return value


def parse_yaml(text: str | bytes, what: str = "the text") -> Any:
    """Returns the value that YAML text stands for; anything else raises FileFormatError.

    >>> parse_yaml("{seeds: [0, 1], rate: 1e-3, space: no}")
    {'seeds': [0, 1], 'rate': 0.001, 'space': 'no'}
    """
    if len(text) > _MOST_BYTES:
        raise FileFormatError(f"{what} has {len(text):,} bytes", allowed=f"at most {_MOST_BYTES:,}")
    try:
        _check_events(text, what)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, FileFormatError):
            raise
        mark: Any = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None)
        known = mark is not None and problem is not None
        where = f", line {mark.line + 1}," if known else ""
        told = " ".join(str(problem if known else error).split())[:200]
        raise FileFormatError(f"{what}{where} is no YAML: {told}") from error
    return None if node is None else _value(node, what)


def check_keys(given: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Raises for a key that a mapping may not have, with the nearest one that it may."""
    for key in given:
        check_name(f"key of {where}", key, known)


def _check_events(text: str | bytes, what: str) -> None:
    """Raises for what makes YAML more than data, before any of it is built."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        check_count(what, count, _MOST_EVENTS)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        fault = ""
        if depth > _DEEPEST:
            fault = f"is more than {_DEEPEST} levels deep"
        elif isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            fault = "has an anchor"
        elif getattr(event, "tag", None):
            fault = f"has a tag {event.tag}"
        if fault:
            line = event.start_mark.line + 1
            raise FileFormatError(
                f"{what}, line {line}, {fault}", allowed="mappings, lists, text, numbers"
            )


def _value(node: yaml.Node, what: str) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_value(part, what) for part in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node.value) if node.style is None else node.value
    out: dict[str, Any] = {}
    for key, part in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if not isinstance(name, str) or name in out or name == "<<":
            line = key.start_mark.line + 1
            fault = f"a second key {name!r}" if name in out else "a key that is no name"
            raise FileFormatError(f"{what}, line {line}, has {fault}")
        out[name] = _value(part, what)
    return out


def _scalar(word: str) -> Any:
    """Returns what an unquoted word stands for.

    >>> [_scalar(word) for word in ("3", "1_000", "-2.5e-4", "true", "P0-P11", "007")]
    [3, 1000, -0.00025, True, 'P0-P11', '007']
    """
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word):
        return int(word)
    if _NUMBER.fullmatch(word) and not (word.isdigit() and len(word) > 1):
        number = float(word)
        return number if math.isfinite(number) else word
    return word
