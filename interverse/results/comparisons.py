"""The table of paired comparisons: every two experiments on the episodes they share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from interverse.metrics.comparison import holm
from interverse.results.pairs import shared
from interverse.results.settings import check_poolable, unlike_tests
from interverse.results.tables import bare_note, interval_rng
from interverse.results.text import MISSING, Estimate, TextTable

if TYPE_CHECKING:
    from interverse.results.results import Results

_CAPTION = (
    "Mean of the first minus the second on the same episodes [95% interval], corrected p-values "
    "over all rows. By seed: Student's t of the seeds' means, which tells training methods apart. "
    "By episode: Wilcoxon's signed-rank test, which tells these runs apart, not methods"
)

_UNLIKE = ", not the same test"  # in the row, too: a CSV file has no caption


def comparisons(results: Results, metric: str) -> TextTable:
    """Returns each pair of experiments on the episodes they share, Holm-corrected over all rows.

    Where two were tested under other options, another engine or another protocol of the same name,
    the caption says so.
    """
    check_poolable(results.provenance)
    last = results.final()
    found, notes = [], ""
    for first, second in itertools.combinations(last.experiments, 2):
        sides = (last.select(experiment=first), last.select(experiment=second))
        differ = unlike_tests(last.provenance, first, second)
        both = shared(*sides, metric)
        if not both:
            notes += f"; {first} and {second} share no scored episode"
        for (task, protocol), pairs in both.items():
            rng = interval_rng(f"{first}|{second}|{task}|{protocol}|{metric}")
            key = (f"{first} vs {second}", task, protocol)
            by = pairs.unit + (_UNLIKE if task in differ else "")
            found.append((key, len(pairs.first), by, pairs.compare(rng)))
        for task, told in differ.items():
            notes += f"; NOT THE SAME TEST: {first} vs {second} in {task}: {'; '.join(told)}"
    adjusted = holm([float(result.p_value[0]) for *_, result in found])
    rows = tuple(
        (*key, count, by, Estimate.of(result.difference), _p_text(float(p)))
        for (key, count, by, result), p in zip(found, adjusted, strict=True)
    )
    names = ("pair", "task", "protocol", "episodes", "by", f"{metric}, difference", "p (Holm)")
    return TextTable(header=names, rows=rows, caption=_CAPTION + bare_note(rows) + notes)


def _p_text(p: float) -> str:
    """Returns a p-value as papers print it."""
    if np.isnan(p):
        return MISSING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
