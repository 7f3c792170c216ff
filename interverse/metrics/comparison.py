"""Paired comparison on the same episodes: of two policies, or of two methods by their seeds."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from interverse.core.errors import InvalidValueError
from interverse.metrics.bootstrap import (
    ROUNDING,
    Interval,
    interval,
    standard_error,
    t_interval,
    varies,
)
from interverse.metrics.statistics import FloatArray, known_runs, mean_known, two_tables

_EXACT_UP_TO = 15  # unequal pairs; beyond this the normal approximation of the test is good


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides on the same episodes; every field has one entry per task."""

    difference: Interval  # mean of the first minus mean of the second; NaN with infinite scores
    p_value: FloatArray  # two-sided; NaN without a pair
    adjusted: FloatArray  # the same after Holm's correction over all tasks
    pairs: NDArray[np.int64]  # episodes, or seeds, that both have a score for


def compare(
    first: ArrayLike,
    second: ArrayLike,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
    alike: ArrayLike | None = None,
) -> Comparison:
    """Returns the paired comparison of two policies' (episode, task) tables of the same episodes.

    The test is Wilcoxon's signed-rank test. An episode that either lacks is left out of both. Equal
    scores have ranks and no sign: dropping them would let one lucky episode among ties look
    certain. An infinite score, such as the time of a task that was never solved, is one worse than
    the worst of both. `alike` (episode,) is equal for pairs that are one and the same: they keep
    their sign together. It says nothing of methods whose policies differ by their training seed:
    see `compare_seeds`.

    >>> base = np.linspace(0.0, 0.8, 20)[:, None]
    >>> found = compare(base + 0.1, base, rng=np.random.default_rng(0))
    >>> round(float(found.difference.estimate[0]), 6), bool(found.adjusted[0] < 0.001)
    (0.1, True)
    """
    difference, infinite = _difference(first, second)
    labels = _labels(range(len(difference)) if alike is None else alike, difference, "alike")
    p_value = np.array([_signed_rank(column, labels) for column in difference.T])
    apart = [np.unique(labels[~np.isnan(column)]).size for column in difference.T]
    found = interval(
        difference.T[..., None],  # every task is a table of its own
        rng=rng,
        confidence=confidence,
        resamples=resamples,
        independent=np.array(apart, dtype=np.int64)[:, None],
    )
    return _comparison(found, infinite, p_value, known_runs(difference))


def compare_seeds(
    first: ArrayLike, second: ArrayLike, seeds: ArrayLike, *, confidence: float = 0.95
) -> Comparison:
    """Returns the comparison of two methods, of whose every training seed there are episodes.

    Episodes of one seed share its policy, so the seeds are what was drawn: interval and test are
    Student's t of the differences of the seeds' means.

    Args:
        first: (episode, task) scores of one method.
        second: those of the other on the same episodes.
        seeds: (episode,) the training seed.
        confidence: of the interval.

    >>> found = compare_seeds([[1.0], [1.2], [2.0], [2.4]], np.ones((4, 1)), [0, 0, 1, 1])
    >>> found.pairs.tolist(), round(float(found.p_value[0]), 3)
    ([2], 0.447)
    """
    difference, infinite = _difference(first, second)
    of = _labels(seeds, difference, "seeds")
    means = np.array([mean_known(difference[of == seed], axis=0) for seed in np.unique(of)])
    pairs, middle = known_runs(means), mean_known(means, axis=0)
    spread = varies(means)
    size = np.abs(middle) / np.where(spread, standard_error(means.T), 1.0)
    alike = np.where(middle == 0, 1.0, 2.0 ** (1 - pairs))  # no spread: by the signs alone
    p_value = np.where(spread, 2 * stats.t.sf(size, np.maximum(pairs - 1, 1)), alike)
    found = t_interval(means.T, confidence=confidence)
    return _comparison(found, infinite, np.where(pairs > 0, p_value, np.nan), pairs)


def _comparison(
    found: Interval, infinite: NDArray[np.bool_], p_value: FloatArray, pairs: NDArray[np.int64]
) -> Comparison:
    ends = (np.where(infinite, np.nan, end) for end in (found.estimate, found.low, found.high))
    estimate, low, high = ends
    return Comparison(
        difference=Interval(estimate=estimate, low=low, high=high),
        p_value=p_value,
        adjusted=holm(p_value),
        pairs=pairs,
    )


def _labels(given: ArrayLike, difference: FloatArray, name: str) -> NDArray[np.generic]:
    labels = np.asarray(given)
    if labels.shape != difference.shape[:1]:
        allowed = f"one entry per episode, ({len(difference)},)"
        raise InvalidValueError(f"{name} has shape {labels.shape}", allowed=allowed)
    return labels


def _difference(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Returns (episode, task) differences, and (task,) whether some score was infinite.

    Two scores that differ by rounding alone are equal: their signs would count as wins.
    """
    left, right = two_tables(first, second)
    if left.shape != right.shape:
        raise InvalidValueError(
            f"paired tables have shapes {left.shape} and {right.shape}",
            allowed="the same episodes in both",
            fix="Join them on (task, protocol, seed, episode) first",
        )
    both = np.stack([left, right])
    worst = np.max(np.abs(both), axis=(0, 1), where=np.isfinite(both), initial=0.0) + 1.0
    left, right = np.clip(both, -worst, worst)
    apart = left - right
    equal = np.abs(apart) <= ROUNDING * np.maximum(np.abs(left), np.abs(right))
    return np.where(equal, 0.0, apart), np.asarray(np.isinf(both).any(axis=(0, 1)))


def holm(p_values: ArrayLike) -> FloatArray:
    """Returns p-values adjusted by Holm's step-down rule; NaN (no test was made) stays NaN.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64)
    if given.ndim != 1 or np.any((given < 0) | (given > 1)):
        raise InvalidValueError(
            f"p_values must be a list of probabilities, got {given.tolist()}", allowed="0 to 1"
        )
    adjusted = np.full(given.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(given))
    order = tested[np.argsort(given[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1.0)
    return adjusted


def _signed_rank(difference: FloatArray, labels: NDArray[np.generic]) -> float:
    """Returns the two-sided p-value of the sum of signed ranks; equal sizes share their rank.

    Of few pairs all signs are tried, of more the sum is normal with the variance of these ranks.
    """
    known = difference[~np.isnan(difference)]
    if not known.size:
        return float("nan")
    signed = stats.rankdata(np.abs(known)) * np.sign(known)
    _, place = np.unique(labels[~np.isnan(difference)], return_inverse=True)
    ranks = np.bincount(place, signed)
    ranks = ranks[ranks != 0]
    total, sizes = abs(ranks.sum()), np.abs(ranks)
    if not ranks.size:
        return 1.0
    if ranks.size <= _EXACT_UP_TO:
        signs = np.array(list(itertools.product((-1, 1), repeat=ranks.size)))
        return float(np.mean(np.abs(signs @ sizes) >= total))  # halves of whole numbers: exact
    return float(2 * special.ndtr(-total / np.sqrt(np.sum(sizes**2))))
