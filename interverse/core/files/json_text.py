"""JSON from files, read within limits of size and depth."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from interverse.core.errors import FileFormatError

MOST_BYTES = 8 * 2**20
_DEEPEST = 64
_PLAIN = str | int | float | None


def plain(value: Any, other: Callable[[Any], Any] = str) -> Any:
    """Returns a value as JSON holds it: NumPy arrays and numbers, tuples, mappings likewise.

    `other` gives what stands for anything else, such as a path: its text by default.

    >>> plain({"size": np.array([0.5, 0.25]), "graph": ((0, 1),), "objects": np.int64(3)})
    {'size': [0.5, 0.25], 'graph': [[0, 1]], 'objects': 3}
    """
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(item, other) for name, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item, other) for item in value]
    known = value is None or isinstance(value, str | int | float | bool)
    return value if known else other(value)


def parse_json(text: str | bytes, what: str = "the text") -> Any:
    """Returns the value that JSON text stands for; anything else raises FileFormatError.

    >>> parse_json('{"seed": 3}')
    {'seed': 3}
    """
    if not isinstance(text, str | bytes):
        raise FileFormatError(f"{what} is a {type(text).__name__}", allowed="JSON text")
    if len(text) > MOST_BYTES:
        raise FileFormatError(
            f"{what} has {len(text):,} bytes of JSON", allowed=f"at most {MOST_BYTES:,}"
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{what} is no JSON: {error}") from error
    level = [value]  # deeper than anything written here is refused
    for _ in range(_DEEPEST):
        inner = [part.values() if isinstance(part, Mapping) else part for part in level]
        level = [part for parts in inner if not isinstance(parts, _PLAIN) for part in parts]
        if not level:
            return value
    raise FileFormatError(f"{what} is nested", allowed=f"at most {_DEEPEST} levels deep")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Returns the value in a JSON file; a corrupt one raises FileFormatError naming it."""
    file = Path(path)
    if file.stat().st_size > MOST_BYTES:
        raise FileFormatError(
            f"{file} has {file.stat().st_size:,} bytes", allowed=f"at most {MOST_BYTES:,}"
        )
    return parse_json(file.read_bytes(), str(file))


def read_json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the object in a JSON file; any other value raises FileFormatError."""
    value = read_json(path)
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise FileFormatError(f"{path} holds a {kind}", allowed="a JSON object")
    return value
