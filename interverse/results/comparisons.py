"""Comparisons of experiments on the episodes they share: scores, what made them, and the verdicts.

Apart from the tables because the tests bring scipy.stats, which is slow to load.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.metrics.comparison import Comparison, compare, compare_seeds, holm
from interverse.results.estimates import is_one_policy
from interverse.results.provenance import check_poolable, unlike_tests
from interverse.results.results import Results
from interverse.results.tables import bare_note, interval_rng
from interverse.results.text import MISSING, Estimate, TextTable

if TYPE_CHECKING:
    from interverse.results.results import Results

_KEY = ("task", "protocol", "seed", "episode")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedScores:
    """Scores of two experiments in the same episodes of one task and protocol."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    seeds: NDArray[np.int64]
    alike: NDArray[np.intp]  # equal for pairs of which both episodes repeat those of another
    trained: bool  # the seeds are, or may be, those of trainings: each has a policy of its own

    @property
    def by_seed(self) -> bool:
        """Returns whether seeds are compared, not episodes: there are several trainings."""
        return self.trained and np.unique(self.seeds).size > 1

    @property
    def unit(self) -> str:
        """Returns what is compared, for a table: "episode", or "seed (5)"."""
        return f"seed ({np.unique(self.seeds).size})" if self.by_seed else "episode"

    def compare(self, rng: np.random.Generator) -> Comparison:
        """Returns the comparison of seeds where there are several trainings, else of episodes."""
        first, second = self.first[:, None], self.second[:, None]
        if self.by_seed:
            return compare_seeds(first, second, self.seeds)
        return compare(first, second, rng=rng, alike=self.alike)


def shared(a: Results, b: Results, metric: str) -> dict[tuple[str, str], SharedScores]:
    """Returns (task, protocol) -> the scored episodes that two experiments share at their ends."""
    ours, theirs = _rows(a), _rows(b)
    one, other, first, second = a.scores(metric), b.scores(metric), a.first_alike, b.first_alike
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for key in sorted(ours.keys() & theirs.keys()):
        i, j = ours[key], theirs[key]
        if not np.isnan(one[i]) and not np.isnan(other[j]):
            found.setdefault(key[:2], []).append((one[i], other[j], key[2], (first[i], second[j])))
    out = {}
    for task, protocol in sorted(
        found, key=lambda at: (a.tasks.index(at[0]), a.protocols.index(at[1]))
    ):
        left, right, seeds, both = zip(*found[task, protocol], strict=True)
        number = {pair: i for i, pair in enumerate(both)}
        out[task, protocol] = SharedScores(
            first=np.array(left),
            second=np.array(right),
            seeds=np.array(seeds),
            alike=np.array([number[pair] for pair in both]),
            trained=not all(is_one_policy(side, side.experiments[0], task) for side in (a, b)),
        )
    return out


def keys(results: Results) -> set[tuple[Any, ...]]:
    """Returns the addresses of all episodes: task, protocol, seed, episode."""
    return set(_rows(results))


def _rows(results: Results) -> dict[tuple[Any, ...], int]:
    columns = (results.column(name) for name in _KEY)
    return {key: row for row, key in enumerate(zip(*columns, strict=True))}


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
    shown = (MISSING if np.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}" for p in adjusted)
    rows = tuple(
        (*key, count, by, Estimate.of(result.difference), p)
        for (key, count, by, result), p in zip(found, shown, strict=True)
    )
    names = ("pair", "task", "protocol", "episodes", "by", f"{metric}, difference", "p (Holm)")
    return TextTable(header=names, rows=rows, caption=_CAPTION + bare_note(rows) + notes)


_LEVEL = 0.05
_HARMLESS = ("command", "experiment", "runs", "episodes", "seeds")


def made_by(a: Results, b: Results) -> TextTable:
    """Returns in what two results were made otherwise, and whether that can change a score."""
    one, other = (_flat(results.provenance) for results in (a, b))
    rows = []
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            top = name.partition(".")[0]
            weight = "if the world uses it" if top == "versions" else "yes"
            weight = "no" if top in _HARMLESS else weight
            rows.append((name, one.get(name, ""), other.get(name, ""), weight))
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
    if len(a.experiments) == len(b.experiments) == 1:
        sides = {" vs ".join(dict.fromkeys([*a.experiments, *b.experiments])): (a, b)}
    else:
        common = [name for name in a.experiments if name in b.experiments]
        sides = {n: (a.select(experiment=n), b.select(experiment=n)) for n in common}
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
