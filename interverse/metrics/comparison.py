"""Paired comparison of two policies on the same episodes, with Holm's correction over tasks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from interverse.core.errors import InvalidValueError, explain
from interverse.metrics.bootstrap import Interval, interval
from interverse.metrics.statistics import FloatArray, known_runs, two_tables

_EXACT_UP_TO = 15  # unequal pairs; beyond this the normal approximation of the test is good


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two policies on the same episodes; every field has one entry per task."""

    difference: Interval  # mean of the first minus mean of the second
    p_value: FloatArray  # Wilcoxon's signed-rank test, two-sided; NaN without a pair
    adjusted: FloatArray  # the same after Holm's correction over all tasks
    pairs: NDArray[np.int64]  # episodes both have a score for


def compare(
    first: ArrayLike,
    second: ArrayLike,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Comparison:
    """Returns the paired comparison of two (episode, task) tables of the same episodes.

    An episode that either lacks is left out of both. Equal scores enter the test half for and half
    against ("zsplit"): dropping them would let one lucky episode among ties look certain.

    >>> base = np.linspace(0.0, 0.8, 20)[:, None]
    >>> found = compare(base + 0.1, base, rng=np.random.default_rng(0))
    >>> round(float(found.difference.estimate[0]), 6), bool(found.adjusted[0] < 0.001)
    (0.1, True)
    """
    left, right = two_tables(first, second)
    if left.shape != right.shape:
        raise InvalidValueError(
            explain(
                f"paired tables have shapes {left.shape} and {right.shape}",
                allowed="the same episodes in both",
                fix="Join them on (task, protocol, seed, episode) first",
            )
        )
    difference = left - right
    p_value = np.array([_signed_rank(column) for column in difference.T])
    return Comparison(
        difference=interval(
            difference.T[..., None],  # every task is a table of its own
            rng=rng,
            confidence=confidence,
            resamples=resamples,
        ),
        p_value=p_value,
        adjusted=holm(p_value),
        pairs=known_runs(difference),
    )


def holm(p_values: ArrayLike) -> FloatArray:
    """Returns p-values adjusted by Holm's step-down rule; NaN (no test was made) stays NaN.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64)
    if given.ndim != 1 or np.any((given < 0) | (given > 1)):
        raise InvalidValueError(
            explain(
                f"p_values must be a list of probabilities, got {given.tolist()}", allowed="0 to 1"
            )
        )
    adjusted = np.full(given.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(given))
    order = tested[np.argsort(given[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1.0)
    return adjusted


def _signed_rank(difference: FloatArray) -> float:
    """Returns the two-sided p-value of the sum of signed ranks; equal sizes share their rank.

    Of few pairs all signs are tried, of more the sum is normal with the variance of these ranks.
    """
    known = difference[~np.isnan(difference)]
    if not known.size:
        return float("nan")
    ranks = (stats.rankdata(np.abs(known)) * np.sign(known))[known != 0]
    total, sizes = abs(ranks.sum()), np.abs(ranks)
    if not ranks.size:
        return 1.0
    if ranks.size <= _EXACT_UP_TO:
        signs = np.array(list(itertools.product((-1, 1), repeat=ranks.size)))
        return float(np.mean(np.abs(signs @ sizes) >= total))  # halves of whole numbers: exact
    return float(2 * special.ndtr(-total / np.sqrt(np.sum(sizes**2))))
