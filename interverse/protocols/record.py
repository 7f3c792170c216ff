"""What an evaluation writes about itself: enough to tell it from others and to play it again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from interverse._version import __version__
from interverse.errors import FileFormatError, explain
from interverse.protocols.fingerprint import fingerprint
from interverse.protocols.measures import Metric
from interverse.protocols.protocol import Protocol
from interverse.rollouts.policy import PolicyLike, training_space

_SPECIAL = (
    "everything",
    "grid",
    "paired",
    "options",
    "ranges",
    "by_name",
    "legacy",
)  # written where they are set


@final
@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for."""

    task: str
    options: Mapping[str, Any]
    protocols: tuple[Protocol, ...]
    episodes: int
    seeds: range
    label: str
    policy: PolicyLike
    metrics: tuple[Metric, ...]


def identity(request: Request) -> dict[str, Any]:
    """Returns what a folder is tied to: anything else may differ between two calls."""
    out = {
        "task": request.task,
        "options": json.loads(json.dumps(dict(request.options), default=str)),
        "experiment": request.label,
        "policy": fingerprint(request.policy),
        "version": __version__,
    }
    if request.metrics:
        out["metrics"] = {m.name: [fingerprint(m.function), *m.values] for m in request.metrics}
    return out


def run(request: Request, known: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what it takes to play an episode of these results again."""
    named = isinstance(request.policy, str | os.PathLike)
    out = {name: known[name] for name in ("experiment", "task", "options", "policy")}
    space = training_space(request.policy)
    seen = {} if space == "A" else {"training_space": space}
    return out | {"source": os.fspath(request.policy) if named else None} | seen


def describe(protocol: Protocol) -> dict[str, Any]:
    """Returns a protocol as JSON; `protocol_from` reads it."""
    out: dict[str, Any] = {
        "variables": dict(protocol.variables),
        "at": list(protocol.at),
        "note": protocol.note,
    }
    out |= {n: _plain(getattr(protocol, n)) for n in _SPECIAL if getattr(protocol, n)}
    if protocol.everything is not None:
        out["without"] = list(protocol.without)
    if len(protocol.grid) > 1:  # JSON sorts names, and the order says which one runs fastest
        out["grid_order"] = list(protocol.grid)
    return out


def protocol_from(name: str, described: Mapping[str, Any]) -> Protocol:
    """Returns the protocol that `describe` described.

    >>> gusts = Protocol(name="gusts", variables={"push": "B"}, at=(0, 25))
    >>> protocol_from("gusts", describe(gusts)) == gusts
    True
    """
    given = dict(described)
    order = given.pop("grid_order", list(given.get("grid", {})))
    if len(order) > 1 and "grid_order" not in described:
        raise FileFormatError(
            explain(
                f"the results do not hold the order of the grid of {name}",
                fix="Evaluate again: earlier versions wrote the grid's variables sorted",
            )
        )
    if order:
        given["grid"] = {variable: given["grid"][variable] for variable in order}
    for key in ("at", "without"):
        if key in given:
            given[key] = tuple(given[key])
    given["ranges"] = {
        pattern: {int(part): tuple(ends) for part, ends in parts.items()}
        for pattern, parts in given.get("ranges", {}).items()
    }
    return Protocol(name=name, **given)


def _plain(value: Any) -> Any:
    """Returns a JSON value: mappings with text keys, sequences as lists."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
