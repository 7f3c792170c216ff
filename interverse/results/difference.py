"""The difference of two results: what made them, which scores differ, and whether it matters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from interverse.metrics import comparison
from interverse.results.results import Results
from interverse.results.tables import interval_rng
from interverse.results.text import Estimate, TextTable

_LEVEL = 0.05
_HARMLESS = ("command", "experiment", "runs", "episodes", "seeds")
_KEY = ("task", "protocol", "seed", "episode")


def made_by(a: Results, b: Results) -> TextTable:
    """Returns in what two results were made otherwise, and whether that can change a score."""
    one, other = (_flat(results.provenance) for results in (a, b))
    rows = [
        (name, one.get(name, ""), other.get(name, ""), _weight(name))
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]
    return TextTable(
        header=("made with", "A", "B", "can it change a score?"),
        rows=tuple(rows),
        caption="" if rows else "A and B were made alike",
    )


def scored(a: Results, b: Results) -> TextTable:
    """Returns how the scores of shared episodes differ, per metric and protocol.

    "same" is equal to the last bit; "differs" is a paired difference that Wilcoxon's signed-rank
    test, corrected over all rows, tells from chance; anything else is "within chance".
    """
    found = [
        (metric, protocol, *pair)
        for metric in a.metrics
        if metric in b.metrics
        for protocol, pair in _shared(a, b, metric).items()
    ]
    made = []
    for metric, protocol, one, other in found:
        rng = interval_rng(f"diff|{metric}|{protocol}")
        made.append(comparison.compare(one[:, None], other[:, None], rng=rng))
    adjusted = comparison.holm([float(result.p_value[0]) for result in made])
    rows = []
    for (metric, protocol, one, other), result, p in zip(found, made, adjusted, strict=True):
        changed = int(np.sum(one != other))
        step = Estimate.of(result.difference)
        verdict = "same" if not changed else "differs" if p < _LEVEL else "within chance"
        rows.append((metric, protocol, len(one), changed, step, verdict))
    return TextTable(
        header=("score", "protocol", "shared", "changed", "A minus B", "verdict"),
        rows=tuple(rows),
        caption=f"Episodes that both have: {_only(a, b)} are in A alone, {_only(b, a)} in B alone",
    )


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Returns path -> text of all that a record holds, down to values and lists."""
    out: dict[str, str] = {}
    for name, value in table.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            out |= _flat(value, f"{path}.")
        else:
            out[path] = value if isinstance(value, str) else json.dumps(value)
    return out


def _weight(name: str) -> str:
    top = name.partition(".")[0]
    if top in _HARMLESS:
        return "no"
    return "yes" if top != "versions" else "if the world uses it"


def _keys(results: Results) -> dict[tuple[Any, ...], int]:
    columns = (results.column(name) for name in _KEY)
    return {key: row for row, key in enumerate(zip(*columns, strict=True))}


def _only(a: Results, b: Results) -> int:
    return len(_keys(a).keys() - _keys(b).keys())


def _shared(a: Results, b: Results, metric: str) -> dict[str, tuple[Any, Any]]:
    """Returns protocol -> both scores of the episodes that both have."""
    ours, theirs = _keys(a), _keys(b)
    one, other = a.scores(metric), b.scores(metric)
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in a.protocols}
    for key in sorted(ours.keys() & theirs.keys()):
        pair = (float(one[ours[key]]), float(other[theirs[key]]))
        if not np.isnan(pair).any():
            pairs[str(key[1])].append(pair)
    arrays = {name: np.array(rows) for name, rows in pairs.items() if rows}
    return {name: (rows[:, 0], rows[:, 1]) for name, rows in arrays.items()}
