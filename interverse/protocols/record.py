"""The record of an evaluation: enough to tell it from others and to play it again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from interverse._version import __version__
from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import plain
from interverse.protocols.fingerprint import fingerprint, function_hash
from interverse.protocols.measures import Metric, is_registered
from interverse.protocols.protocol import Protocol
from interverse.rollouts.policy import PolicyLike, engine_note, training_engine, training_space
from interverse.rollouts.policy_world import policy_world
from interverse.worlds.own_code import own_code

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
    seeds: Sequence[int]
    label: str
    policy: PolicyLike
    metrics: tuple[Metric, ...]
    engine: Mapping[str, str]
    policy_version: str | None = None


def is_known(known: Mapping[str, Any]) -> bool:
    """Returns whether an identity tells its policy and its metrics from any other."""
    if known["policy_version"] is not None:
        return True
    metrics = known.get("metrics", {}).values()
    return known["policy"] is not None and all(first is not None for first, *_ in metrics)


def identity(request: Request) -> dict[str, Any]:
    """Returns what a folder is tied to: anything else may differ between two calls.

    The policy is None where its content is unknown; see `interverse.protocols.fingerprint`.
    """
    out = {
        "task": request.task,
        "options": plain(request.options),
        "experiment": request.label,
        "policy": fingerprint(request.policy),
        "policy_version": request.policy_version,
        "engine": dict(request.engine),
        "version": __version__,
    }
    if code := own_code(request.task, request.options):
        out["code"] = code
    if request.metrics:
        out["metrics"] = {m.name: [_metric_hash(m), *m.values] for m in request.metrics}
    return out


def _metric_hash(metric: Metric) -> str | None:
    """Returns the identity of a metric: a row of the table, or a function's content."""
    return f"row {metric.name}" if is_registered(metric) else function_hash(metric.function)


def run(request: Request, known: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what it takes to play an episode of these results again."""
    named = isinstance(request.policy, str | os.PathLike)
    out = {name: known[name] for name in ("experiment", "task", "options", "policy")}
    space, engine = training_space(request.policy), training_engine(request.policy)
    seen: dict[str, Any] = {} if space == "A" else {"training_space": space}
    trained = policy_world(request.policy).place
    place = {name: v for name, v in trained.items() if request.options.get(name) != v}
    seen |= {"training_place": plain(place)} if place else {}
    seen |= {"training_engine": dict(engine)} if engine_note(engine, request.engine) else {}
    return out | {"source": os.fspath(request.policy) if named else None} | seen


def describe(protocol: Protocol) -> dict[str, Any]:
    """Returns a protocol as JSON; `protocol_from` reads it."""
    out: dict[str, Any] = {
        "variables": dict(protocol.variables),
        "at": list(protocol.at),
        "note": protocol.note,
    }
    out |= {n: plain(getattr(protocol, n)) for n in _SPECIAL if getattr(protocol, n)}
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
                fix="Evaluate again",
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
