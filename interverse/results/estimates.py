"""Units of intervals: the episodes of one policy, or the seeds of several trainings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from interverse.core.errors import InvalidValueError
from interverse.core.rng import generator
from interverse.metrics import bootstrap, statistics
from interverse.results.text import Estimate, is_share

if TYPE_CHECKING:
    from interverse.results.results import Results

Unit = Literal["episode", "seed"]
UNITS: tuple[Unit, ...] = ("episode", "seed")


def units(results: Results, asked: Unit | None = None) -> dict[tuple[str, str], Unit]:
    """Returns (experiment, task) -> what its intervals are over.

    Episodes of one training share its luck, so of several trainings the seeds are what was drawn.
    The unit that is asked for is that of all; None finds out which have several trainings.
    """
    if asked is not None and asked not in UNITS:
        raise InvalidValueError(f"unknown unit {asked!r}", allowed=", ".join(UNITS))
    seeds: dict[tuple[str, str], set[int]] = {}
    columns = (results.column(name) for name in ("experiment", "task", "seed"))
    for experiment, task, seed in zip(*columns, strict=True):
        seeds.setdefault((experiment, task), set()).add(seed)
    return {
        key: asked or ("seed" if len(held) > 1 and not is_one_policy(results, *key) else "episode")
        for key, held in seeds.items()
    }


def is_one_policy(results: Results, experiment: str, task: str) -> bool:
    """Returns whether all seeds are known to be of one policy, as `evaluate` with `seeds` has them.

    Several policies, or those that nobody can tell apart, may be one training each.
    """
    runs = results.provenance.get("runs") or []
    mine = [r for r in runs if (r.get("experiment"), r.get("task")) == (experiment, task)]
    known = {run.get("policy") for run in mine}
    return len(known) == 1 and None not in known


def unit_words(found: Mapping[tuple[str, str], Unit], words: Mapping[Unit, str]) -> str:
    """Returns the words of the units that were found; where both were, with whose they are.

    >>> unit_words({("ppo", "t"): "seed"}, {"seed": "over seeds", "episode": "over episodes"})
    'over seeds'
    """
    names = {unit: dict.fromkeys(e for (e, _), u in found.items() if u == unit) for unit in UNITS}
    held = {unit: who for unit, who in names.items() if who} or {"episode": {}}
    if len(held) == 1:
        return words[next(iter(held))]
    return "; ".join(f"{', '.join(who)}: {words[unit]}" for unit, who in held.items())


def seeds_of(results: Results) -> list[Results]:
    """Returns the rows of each seed apart."""
    return [results.select(seed=int(seed)) for seed in np.unique(results.column("seed"))]


MEDIAN = "median"
Range: TypeAlias = "tuple[float, float]"  # the least and the greatest score there can be


def groups(results: Results) -> dict[tuple[str, str, str], NDArray[np.intp]]:
    """Returns (experiment, task, protocol) -> its rows, in reading order."""
    columns = [results.column(name) for name in ("experiment", "task", "protocol")]
    found: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(*columns, strict=True)):
        found.setdefault(key, []).append(row)
    order = itertools.product(results.experiments, results.tasks, results.protocols)
    return {key: np.array(found[key]) for key in order if key in found}


def estimates(
    results: Results, metric: str, unit: Unit | None = None
) -> dict[tuple[str, str, str], Estimate]:
    """Returns (experiment, task, protocol) -> the mean score at the last step with its interval."""
    values, seeds, alike = results.scores(metric), results.column("seed"), results.first_alike
    over = units(results, unit)
    found = {}
    for key, rows in groups(results).items():
        at = rows[~np.isnan(values[rows])]
        if over[key[:2]] == "seed":
            parts = [values[at][seeds[at] == seed] for seed in np.unique(seeds[at])]
            found[key] = mean_of_seeds(parts, score_range(results, key[1], metric))
        elif are_successes(metric, values[at]):
            found[key] = wilson(values[at], count(alike[at]))
        else:
            rng = interval_rng("|".join([*key, metric]))
            found[key] = mean_of_episodes(values[at][:, None], np.array([count(alike[at])]), rng)
    return found


def are_successes(metric: str, values: NDArray[np.float64]) -> bool:
    """Returns whether scores are successes and failures alone: 0 or 1 each, of a share."""
    known = values[~np.isnan(values)]
    return is_share(metric) and bool(known.size) and bool(np.isin(known, (0.0, 1.0)).all())


def wilson(values: NDArray[np.float64], apart: int) -> Estimate:
    """Returns the share of successes with Wilson's interval of so many independent episodes.

    Draws from eight successes of eight are all successes, so a bootstrap would claim certainty.
    """
    share = float(np.nanmean(values))
    if apart < 2:
        return Estimate(share)
    z2 = special.ndtri(0.975) ** 2 / apart
    middle = (share + z2 / 2) / (1 + z2)
    reach = np.sqrt(z2 * share * (1 - share) + z2**2 / 4) / (1 + z2)
    return Estimate(share, max(middle - reach, 0.0), min(middle + reach, 1.0))


def score_range(results: Results, task: str, metric: str) -> Range | None:
    """Returns the least and the greatest score a task can give, None where that is not known."""
    if is_share(metric):
        return 0.0, 1.0
    known = results.provenance.get("ranges", {}).get(task, {}).get(metric)
    return None if known is None else (float(known[0]), float(known[1]))


def mean_of_seeds(parts: list[NDArray[np.float64]], ends: Range | None = None) -> Estimate:
    """Returns the mean of the seeds' means with its t interval, from each seed's scores.

    With an infinite score it is the median of the seeds' medians, without an interval.
    """
    if any(np.isinf(part).any() for part in parts):
        middles = [np.nanmedian(part) for part in parts if not np.isnan(part).all()]
        return Estimate(float(np.median(middles)), statistic=MEDIAN)
    means = np.array([statistics.mean_known(part.ravel(), axis=0) for part in parts])
    return over_seeds(means, ends)


def over_seeds(found: NDArray[np.float64], ends: Range | None = None) -> Estimate:
    """Returns the mean of (seed,) numbers with its t interval, within what can be.

    Where one is infinite there is no interval.
    """
    if np.isinf(found).any():
        return Estimate(float(np.mean(found)))
    whole = bootstrap.t_interval(found)
    if ends is not None:
        whole = replace(whole, low=np.clip(whole.low, *ends), high=np.clip(whole.high, *ends))
    return Estimate.of(whole)


def mean_of_episodes(
    matrix: NDArray[np.float64], apart: NDArray[np.int64], rng: np.random.Generator
) -> Estimate:
    """Returns the mean of all (run, protocol) scores, or their median where one is infinite."""
    if np.isinf(matrix).any():
        return over_episodes(matrix, apart, statistics.median, rng, name=MEDIAN)
    return over_episodes(matrix, apart, pooled_mean, rng)


def over_episodes(
    matrix: NDArray[np.float64],
    apart: NDArray[np.int64],
    statistic: bootstrap.Statistic,
    rng: np.random.Generator,
    *,
    name: str = "",
) -> Estimate:
    """Returns a statistic with its interval: the corrected one, which infinite scores forbid."""
    method: bootstrap.Method = "percentile" if np.isinf(matrix).any() else "bca"
    found = bootstrap.interval(matrix, statistic, rng=rng, method=method, independent=apart)
    return Estimate.of(found, statistic=name)


def pooled_mean(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the mean of all scores, as each table's mean is one over episodes."""
    return statistics.mean_known(matrix.reshape(*matrix.shape[:-2], -1), axis=-1)


def count(labels: NDArray[np.intp]) -> int:
    """Returns how many labels differ."""
    return int(np.unique(labels).size)


def interval_rng(address: str) -> np.random.Generator:
    """Returns the generator of one interval's draws, by what the interval is about."""
    return generator(seed=0, name=f"report|{address}")
