"""Tables a paper needs, from the tidy table: scores, aggregates, refusals, gaps.

Each is one function of the results and returns a `TextTable`. Where an experiment has several
trainings its intervals are over their seeds, else over episodes; `estimates` has them.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from interverse.metrics import generalisation, statistics
from interverse.results.estimates import (
    MEDIAN,
    Unit,
    are_successes,
    count,
    estimates,
    groups,
    interval_rng,
    mean_of_episodes,
    mean_of_seeds,
    over_episodes,
    over_seeds,
    pooled_mean,
    score_range,
    seeds_of,
    unit_words,
    units,
    wilson,
)
from interverse.results.text import Cell, Estimate, Format, Text, TextTable, less_is_better

if TYPE_CHECKING:
    from interverse.results.results import Results

_ROUNDING = 1e-9  # a height that follows from a size is rarely its bound to the last bit
BASES = ("train", "none", "P0")  # protocols that stand for what was trained on
_LOOKS_BASE = "few_shot_train"  # and for a policy that was trained in drawn looks
_ROUGH = "rough below some 20"
_NOTES: Mapping[Unit, str] = {
    "episode": f"mean [95% bootstrap interval over the scored episodes, {_ROUGH}]",
    "seed": "mean of the seeds' means [95% interval over seeds, Student's t]",
}
_AGGREGATE_NOTES: Mapping[Unit, str] = {
    "episode": f"[95% bootstrap interval over episodes, within protocols, {_ROUGH}]",
    "seed": "of each seed, and their mean [95% interval over seeds, Student's t]",
}
_LOST_NOTES: Mapping[Unit, str] = {
    "episode": f"[95% bootstrap interval over episodes, {_ROUGH}]",
    "seed": "[95% interval over seeds, Student's t]",
}
_MEDIANS = "; median, not mean, where a score is infinite and a cell says so"
_POOLED = "; episodes of several trainings count together, so this is of these trainings alone"
_WILSON = "successes, 0 or 1 each, have Wilson's interval"
_NO_INTERVAL = "; no interval where all scores are equal, or there is one"
_REPEATS = (
    "repeats are step for step an episode that is there already: "
    "they count in means, and intervals are as wide as those of the distinct episodes"
)
_MEAN, _GAP = "mean", "optimality gap"
_MOST_LACKING = 6  # named in a caption

__all__ = ["Format", "Text", "TextTable", "Unit", "estimates", "groups", "interval_rng"]


def scores(
    results: Results, *, metrics: Sequence[str] | None = None, unit: Unit | None = None
) -> TextTable:
    """Returns one row per experiment, task and protocol: how many were scored, and each mean."""
    last = results.final()
    over = units(last, unit)
    chosen = results.metrics if metrics is None else metrics
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    if metrics is None and {"solved", "success"} <= set(names):  # the same, in most tasks
        same = np.array_equal(last.scores("solved"), last.scores("success"), equal_nan=True)
        names = [name for name in names if not (same and name == "success")]
    columns = [estimates(last, name, unit) for name in names]
    alike = last.first_alike
    several = count(alike) < len(last)  # a column that is 0 in all tables but these says nothing
    by_seed = "seed" in over.values()
    refused, seeds = last.refused, last.column("seed")
    rows: list[tuple[Cell, ...]] = []
    some_lack = False
    for key, at in groups(last).items():
        lost, scored = int(refused[at].sum()), at[~refused[at]]
        repeated = (len(at) - count(alike[at]),) if several else ()
        drawn = f"seed ({np.unique(seeds[scored]).size})"
        by = ("episode" if over[key[:2]] == "episode" else drawn,) if by_seed else ()
        counts = (len(scored), lost, *repeated, *by)
        cells = []
        for name, column in zip(names, columns, strict=True):
            known = int(np.sum(~np.isnan(last.scores(name)[scored])))
            lacks = 0 < known < len(scored)  # NaN is no score, and a mean is of the others alone
            cells.append(column[key].among(known, len(scored)) if lacks else column[key])
            some_lack |= lacks
        rows.append((*key, *counts, *cells))
    extra = (*["repeats"] * several, *["by"] * by_seed)
    header = ("experiment", "task", "protocol", "scored", "refused", *extra, *names)
    notes = [unit_words(over, _NOTES)] + [_REPEATS] * several
    if any(
        over[key[:2]] == "episode" and are_successes(name, last.scores(name)[at])
        for name in names
        for key, at in groups(last).items()
    ):
        notes.append(_WILSON)
    notes += ["(n of m): n of m scored episodes have this score"] * some_lack
    caption = "; ".join(notes) + median_note(rows) + bare_note(rows)
    return TextTable(header=header, rows=tuple(rows), caption=caption)


def brief_metrics(results: Results, metric: str | None = None) -> list[str]:
    """Returns the metrics a person reads first: one primary metric, and whether tasks were solved.

    A mean of .6 may hide that nothing was ever finished.
    """
    names = list(results.metrics)
    first = metric or next(iter(names), "")
    beside = next((name for name in ("solved", "success") if name in names), first)
    return list(dict.fromkeys([first, beside])) if first in names else []


def aggregates(results: Results, metric: str, *, unit: Unit | None = None) -> TextTable:
    """Returns one row per experiment and task: aggregates over all protocols' episodes.

    Of several trainings each has its own aggregates, and the table their mean over the seeds.
    """
    rows: list[tuple[Cell, ...]] = []
    over = units(results.final(), unit)
    tested: dict[str, dict[str, set[str]]] = {}  # task -> whose mean -> the protocols it is over
    for experiment, task, part in _parts(results):
        scored = int(np.sum(~np.isnan(part.scores(metric))))
        if not scored:
            continue
        ends, of = score_range(results, task, metric), tested.setdefault(task, {})
        if over[experiment, task] == "seed":
            seeds = seeds_of(part)
            cells = _of_seeds([score_matrix(one, metric) for one in seeds], ends)
            named = {f"seed {one.column('seed')[0]} of {experiment}": one for one in seeds}
        else:
            named = {experiment: part}
            cells = _of_episodes(part, metric, ends, f"{experiment}|{task}|{metric}")
        for who, one in named.items():
            of[who] = set(one.column("protocol")[~np.isnan(one.scores(metric))])
        rows.append((experiment, task, scored, *cells))
    told = []  # of means that are not over the same protocols
    for of in tested.values():
        every = set().union(*of.values())
        told += [
            f"{who} lacks {', '.join(sorted(every - own))}"
            for who, own in of.items()
            if own and own != every
        ]
    more = f"; and {len(told) - _MOST_LACKING} more" if len(told) > _MOST_LACKING else ""
    lack = f"; NOT OVER THE SAME PROTOCOLS: {'; '.join(told[:_MOST_LACKING])}{more}" if told else ""
    return TextTable(
        header=("experiment", "task", "scored", *_AGGREGATES, _GAP),
        rows=tuple(rows),
        caption=f"{metric} over all scored episodes {unit_words(over, _AGGREGATE_NOTES)}; "
        "the gap is the share of the score's range that is missing to its top"
        f"{lack}{median_note(rows)}{bare_note(rows)}",
    )


def _of_seeds(seeds: list[NDArray[np.float64]], ends: tuple[float, float] | None) -> list[Estimate]:
    """Returns mean, median, IQM and gap over the seeds' (run, protocol) scores."""
    known = [matrix for matrix in seeds if not np.isnan(matrix).all()]
    cells = [mean_of_seeds(known, ends)]
    for statistic in _ROBUST.values():
        cells.append(over_seeds(np.array([statistic(matrix) for matrix in known]), ends))
    if ends is None:
        return [*cells, Estimate(np.nan)]
    gaps = np.array([_pooled_gap(matrix, ends) for matrix in known])
    return [*cells, over_seeds(gaps, (0.0, 1.0))]


def _of_episodes(
    part: Results, metric: str, ends: tuple[float, float] | None, address: str
) -> list[Estimate]:
    """Returns mean, median, IQM and gap with intervals over the episodes of each protocol."""
    matrix, apart = score_matrix(part, metric), independent(part, metric)
    rngs = {name: interval_rng(f"{address}|{name}") for name in (*_AGGREGATES, _GAP)}
    if are_successes(metric, matrix):
        cells = [wilson(matrix, int(apart.sum()))]
    else:
        cells = [mean_of_episodes(matrix, apart, rngs[_MEAN])]
    cells += [over_episodes(matrix, apart, _ROBUST[name], rngs[name]) for name in _ROBUST]
    if ends is None:
        return [*cells, Estimate(np.nan)]
    gap = functools.partial(_pooled_gap, ends=ends)
    return [*cells, over_episodes(matrix, apart, gap, rngs[_GAP])]


def _pooled_gap(matrix: NDArray[np.float64], ends: tuple[float, float]) -> NDArray[np.float64]:
    """Returns which share of the range of scores is missing to its top."""
    low, high = ends
    return 1.0 - pooled_mean(np.minimum((matrix - low) / (high - low), 1.0))


_ROBUST = {"median": statistics.median, "IQM": statistics.iqm}
_AGGREGATES = (_MEAN, *_ROBUST)


def refusals(results: Results) -> TextTable:
    """Returns how often each reason refused an episode, the most frequent first."""
    hit = results.data.filter(results.data["refused"]).to_pylist()
    counted = Counter(
        (row["experiment"], row["task"], row["protocol"], row["reason"] or "no reason given")
        for row in hit
    )
    rows = tuple((*key, count) for key, count in counted.most_common())
    return TextTable(header=("experiment", "task", "protocol", "reason", "episodes"), rows=rows)


def gaps(results: Results, metric: str) -> TextTable:
    """Returns the scores with each variable in A and in B, variables as the world declares them.

    Variables move together under a protocol, so a difference is no variable's doing:
    `interverse.attribute` moves one at a time.
    """
    rows = []
    pooled = _POOLED if "seed" in units(results.final()).values() else ""
    for experiment, task, part in _parts(results):
        labels = {
            name: space_labels(part.values(name), part.about(name))
            for name in part.variables
            if part.about(name)
        }
        rng = interval_rng(f"{experiment}|{task}|gaps")
        alike = part.first_alike
        for gap in generalisation.gaps(part.scores(metric), labels, rng=rng, alike=alike):
            if gap.episodes_a and gap.episodes_b:
                numbers = (gap.mean_a, gap.mean_b, Estimate.of(gap.loss))
                rows.append((experiment, task, gap.variable, *numbers))
    return TextTable(
        header=("experiment", "task", "variable", "mean in A", "mean in B", "difference"),
        rows=tuple(rows),
        caption=f"{metric} of the episodes whose value lay in A or in B, and A minus B [95% "
        "interval]; variables move together, so no row is a cause"
        f"{pooled}{bare_note(rows)}",
    )


def generalisation_errors(
    results: Results, metric: str, *, base: str | None = None, unit: Unit | None = None
) -> TextTable:
    """Returns E_G of every protocol: the share of the training score that is lost under it.

    Args:
        results: of any number of experiments.
        metric: which score; tasks whose training score is not above zero have no E_G.
        base: the protocol that stands for training; the first of "train", "none", "P0" by default,
            before them "few_shot_train" for a policy that was trained in drawn looks.
        unit: what the intervals are over; seeds where there are several trainings by default.
    """
    rows = []
    less = less_is_better(metric, results.provenance)
    used: dict[str, None] = {}
    elsewhere: dict[str, None] = {}
    over = units(results.final(), unit)
    for experiment, task, part in _parts(results):
        # The options that say where a policy was trained, where no test has them.
        runs = part.provenance.get("runs") or ()
        mine = (r for r in runs if (r.get("experiment"), r.get("task")) == (experiment, task))
        told = (r["training_place"] for r in mine if "training_place" in r)
        place: Mapping[str, Any] = next(told, {})
        looks = isinstance(place.get("visual_seed"), list)  # drawn ones
        bases = (base,) if base else (_LOOKS_BASE, *BASES) if looks else BASES
        known = [p for p in bases if p in part.protocols]
        learned = part.select(protocol=known[0]).scores(metric) if known else np.zeros(0)
        if not _mean(learned) > 0:
            continue
        used[known[0]] = None
        elsewhere |= {_elsewhere(part, experiment, place, known[0]): None} if place else {}
        apart = dict(zip(part.protocols, independent(part, metric).tolist(), strict=True))
        for protocol in (p for p in part.protocols if p != known[0]):
            tested = part.select(protocol=protocol).scores(metric)
            if np.isnan(_mean(tested)):
                continue
            if over[experiment, task] == "seed":
                both = np.array(  # of the seeds that have both
                    [
                        [_mean(one.select(protocol=p).scores(metric)) for one in seeds_of(part)]
                        for p in (known[0], protocol)
                    ]
                )
                both = both[:, ~np.isnan(both).any(0)]
                if not both[0].sum() > 0:
                    continue
                found = generalisation.generalisation_error_of_runs(*both)
            else:
                rng = interval_rng(f"{experiment}|{task}|{protocol}|{metric}|E_G")
                found = generalisation.generalisation_error_interval(
                    learned, tested, rng=rng, independent=(apart[known[0]], apart[protocol])
                )
            lost = Estimate.of(found)
            if less:  # more of it is the loss
                lost = Estimate(-lost.value, -lost.high, -lost.low, lost.statistic)
            rows.append((experiment, task, protocol, lost))
    gain = "(test - training) / training, as less is better" if less else (
        "(training - test) / training"
    )  # fmt: skip
    return TextTable(
        header=("experiment", "task", "protocol", "generalisation error"),
        rows=tuple(rows),
        caption=f"E_G = {gain}, by {metric} "
        f"{unit_words(over, _LOST_NOTES)}; "
        f"training is the score under {' or '.join(used)}{''.join(elsewhere)}{bare_note(rows)}",
    )


def _elsewhere(results: Results, experiment: str, place: Mapping[str, Any], base: str) -> str:
    """Returns the words of a caption on a policy that was not trained in the world's own place."""
    told = ", ".join(f"{name}={value}" for name, value in sorted(place.items()))
    told = f"; {experiment} was trained with {told}"
    if base == _LOOKS_BASE and place.keys() == {"visual_seed"}:
        # It may have been trained in every look that stands for training.
        described = results.provenance.get("protocols", {}).get(_LOOKS_BASE, {})
        low, high = place["visual_seed"]
        if all(low <= look <= high for look in described.get("grid", {}).get("visual_seed", ())):
            return told
    look = ", look 0," if "visual_seed" in place and base != _LOOKS_BASE else ""
    return f"{told}, and {base}{look} is not its training score"


def median_note(rows: Iterable[Sequence[Cell]]) -> str:
    """Returns what a caption says of medians that stand for means; nothing if there are none."""
    cells = (cell for row in rows for cell in row if isinstance(cell, Estimate))
    return _MEDIANS if any(cell.statistic.startswith(MEDIAN) for cell in cells) else ""


def bare_note(rows: Iterable[Sequence[Cell]]) -> str:
    """Returns what a caption says of estimates without an interval; nothing if all have one."""
    cells = (cell for row in rows for cell in row if isinstance(cell, Estimate))
    bare = any(not np.isnan(cell.value) and np.isnan(cell.low) for cell in cells)
    return _NO_INTERVAL if bare else ""


def _mean(scores: NDArray[np.float64]) -> float:
    """Returns the mean of the scored episodes; NaN where there are none."""
    return float(statistics.mean_known(scores, axis=0)) if len(scores) else float("nan")


def independent(results: Results, metric: str) -> NDArray[np.int64]:
    """Returns (protocol,) how many scored episodes are distinct, in the order of the protocols."""
    known, alike = ~np.isnan(results.scores(metric)), results.first_alike
    protocol = results.column("protocol")
    return np.array([count(alike[known & (protocol == name)]) for name in results.protocols])


def score_matrix(results: Results, metric: str) -> NDArray[np.float64]:
    """Returns (run, protocol) of every scored episode, NaN where a protocol has fewer."""
    values, protocol = results.scores(metric), results.column("protocol")
    parts = [values[(protocol == name) & ~np.isnan(values)] for name in results.protocols]
    return side_by_side(parts)


def space_labels(values: NDArray[np.float64], spaces: Any) -> NDArray[np.str_]:
    """Returns (row,) "A", "B" or "": the space that holds all components of each value."""
    labels = np.full(len(values), "", dtype="<U1")
    for name in ("B", "A"):  # A last: the shared bound of two touching spaces belongs to A
        bounds = spaces.get(f"space_{name.lower()}")
        options = spaces.get(f"options_{name.lower()}")
        if options is not None:  # a list of values, between which others may lie
            labels[np.isin(values, options).all(axis=1)] = name
        elif bounds is not None:
            low, high = (np.ravel(np.asarray(b, dtype=np.float64)) for b in bounds)
            inside = (values >= low - _ROUNDING) & (values <= high + _ROUNDING)
            labels[np.all(inside, axis=1)] = name
    return labels


def _parts(results: Results) -> list[tuple[str, str, Results]]:
    last = results.final()
    pairs = itertools.product(last.experiments, last.tasks)
    return [(e, t, last.select(experiment=e, task=t)) for e, t in pairs]


def side_by_side(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Returns columns of unequal length side by side, NaN below the shorter ones."""
    table = np.full((max((len(p) for p in parts), default=0), len(parts)), np.nan)
    for i, part in enumerate(parts):
        table[: len(part), i] = part
    return table
