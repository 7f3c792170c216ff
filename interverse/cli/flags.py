"""Command-line words for values of a file, so that a flag's type is checked in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from interverse.core.errors import InvalidValueError, explain


def flag_words(given: Mapping[str, Any]) -> list[str]:
    """Returns the flags that stand for values by name; null leaves a flag out.

    >>> flag_words({"steps": 1000, "her": True, "option": {"skip_frame": 3}, "actor": ["visual"]})
    ['--steps', '1000', '--her', '--option', 'skip_frame=3', '--actor', 'visual']
    """
    words: list[str] = []
    for name, value in given.items():
        flag = name.replace("_", "-")
        if value is None or value == [] or value == {}:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, Mapping):
            words += [f"--{flag}", *(f"{key}={json.dumps(part)}" for key, part in value.items())]
        else:
            parts = value if isinstance(value, list) else [value]
            words += [f"--{flag}", *(_word(name, part) for part in parts)]
    return words


def _word(name: str, value: Any) -> str:
    if isinstance(value, Mapping | list | bool) or value is None:
        raise InvalidValueError(
            explain(
                f"{name} holds {json.dumps(value)}", allowed="text, a number, or a list of these"
            )
        )
    return str(value)
