"""The difference of two results: what made them, which scores differ, and whether it matters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from interverse.metrics.comparison import holm
from interverse.results.pairs import keys, shared
from interverse.results.results import Results
from interverse.results.tables import interval_rng
from interverse.results.text import Estimate, TextTable

_LEVEL = 0.05
_HARMLESS = ("command", "experiment", "runs", "episodes", "seeds")


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
    """Returns how the scores of shared episodes differ, per experiment, task, protocol and metric.

    Of each experiment it is the last training step that counts. If A and B hold one experiment each
    these are compared, whatever their names; else those of one name. "same" is equal to the last
    bit; "differs" is a paired difference that the test, of episodes or of several trainings' seeds
    and corrected over all rows, tells from chance; anything else is "within chance".
    """
    a, b = a.final(), b.final()
    sides = _experiments(a, b)
    found = [
        (name, *at, metric, pairs, pairs.compare(interval_rng(f"diff|{name}|{at}|{metric}")))
        for name, (one, other) in sides.items()
        for metric in one.metrics
        if metric in other.metrics
        for at, pairs in shared(one, other, metric).items()
    ]
    adjusted = holm([float(result.p_value[0]) for *_, result in found])
    rows = []
    for (name, task, protocol, metric, pairs, result), p in zip(found, adjusted, strict=True):
        changed = int(np.sum(pairs.first != pairs.second))
        verdict = "same" if not changed else "differs" if p < _LEVEL else "within chance"
        counts = (len(pairs.first), changed, pairs.unit)
        rows.append(
            (name, task, metric, protocol, *counts, Estimate.of(result.difference), verdict)
        )
    both = sum(len(keys(one) & keys(other)) for one, other in sides.values())
    names = ("score", "protocol", "shared", "changed", "by", "A minus B", "verdict")
    return TextTable(
        header=("experiment", "task", *names),
        rows=tuple(rows),
        caption=f"Episodes that both have: {len(a) - both} are in A alone, "
        f"{len(b) - both} in B alone",
    )


def _experiments(a: Results, b: Results) -> dict[str, tuple[Results, Results]]:
    """Returns the experiments to compare, with the rows of each side."""
    if len(a.experiments) == len(b.experiments) == 1:
        return {" vs ".join(dict.fromkeys([*a.experiments, *b.experiments])): (a, b)}
    common = [name for name in a.experiments if name in b.experiments]
    return {name: (a.select(experiment=name), b.select(experiment=name)) for name in common}


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
