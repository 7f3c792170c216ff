"""The table of paired comparisons: every two experiments on the episodes they share.

Apart from the other tables because the signed-rank test brings scipy.stats, which is slow to load.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from interverse.metrics import comparison
from interverse.results.tables import bare_note, interval_rng, side_by_side
from interverse.results.text import MISSING, Estimate, TextTable

if TYPE_CHECKING:
    from interverse.results.results import Results


def comparisons(results: Results, metric: str) -> TextTable:
    """Returns each pair of experiments on the episodes they share, Holm-corrected over all rows."""
    last = results.final().distinct()
    found = []
    for first, second in itertools.combinations(last.experiments, 2):
        for task in last.tasks:
            a, b, protocols = _shared(last.select(task=task), first, second, metric)
            if len(protocols):
                rng = interval_rng(f"{first}|{second}|{task}|{metric}")
                found.append((first, second, task, protocols, comparison.compare(a, b, rng=rng)))
    raw = [float(p) for *_, result in found for p in result.p_value]
    adjusted = iter(comparison.holm(raw))
    rows = []
    for first, second, task, protocols, result in found:
        for i, protocol in enumerate(protocols):
            difference = Estimate(
                float(result.difference.estimate[i]),
                float(result.difference.low[i]),
                float(result.difference.high[i]),
            )
            p = float(next(adjusted))
            pair = f"{first} vs {second}"
            rows.append((pair, task, protocol, int(result.pairs[i]), difference, _p_text(p)))
    return TextTable(
        header=("pair", "task", "protocol", "episodes", f"{metric}, difference", "p (Holm)"),
        rows=tuple(rows),
        caption="Mean of the first minus the second on the same episodes [95% interval]; "
        f"Wilcoxon's signed-rank test, corrected over all rows{bare_note(rows)}",
    )


def _shared(
    results: Results, first: str, second: str, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Returns two (episode, protocol) arrays of the episodes both have, and the protocols."""
    values = results.scores(metric)
    keys = [results.column(name) for name in ("experiment", "protocol", "seed", "episode")]
    held: dict[str, dict[Any, float]] = {first: {}, second: {}}
    for experiment, *key, value in zip(*keys, values, strict=True):
        if experiment in held and not np.isnan(value):
            held[experiment][tuple(key)] = value
    both = sorted(set(held[first]) & set(held[second]))
    protocols = [p for p in results.protocols if any(key[0] == p for key in both)]
    tables = [
        side_by_side([np.array([held[e][k] for k in both if k[0] == p]) for p in protocols])
        for e in (first, second)
    ]
    return tables[0], tables[1], protocols


def _p_text(p: float) -> str:
    """Returns a p-value as papers print it."""
    if np.isnan(p):
        return MISSING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
