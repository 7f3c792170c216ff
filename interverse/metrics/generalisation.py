"""Scores outside training: generalisation error, and the difference between spaces A and B."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError
from interverse.metrics.bootstrap import ROUNDING, Interval, t_reach, varies
from interverse.metrics.statistics import FloatArray, mean_known


def generalisation_error(train: ArrayLike, test: ArrayLike) -> float:
    """Returns E_G: the share of the training score that is lost in the test.

    (mean train - mean test) / mean train, as DMC Remastered defines it; NaN for a training score
    of zero. Below zero, the test went better. Scores of tasks with returns below zero have no E_G.

    >>> generalisation_error([900.0, 1100.0], [250.0])
    0.75
    """
    learned, kept = (float(mean_known(_flat(s), axis=0)) for s in (train, test))
    if learned < 0:
        raise InvalidValueError(
            f"the mean training score is {learned:g}, and E_G divides by it",
            allowed="scores that are not negative",
            fix="Shift the scores so that the worst possible one is 0, or report the gap",
        )
    return (learned - kept) / learned if learned > 0 else float("nan")


def generalisation_error_interval(
    train: ArrayLike,
    test: ArrayLike,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
    independent: tuple[int, int] | None = None,
) -> Interval:
    """Returns E_G of one policy with its bootstrap interval over episodes.

    Its train and test episodes are drawn independently. Of several training runs: see
    `generalisation_error_of_runs`.

    `independent` says how many scores of each are independent, where some repeat others.
    """
    estimate = generalisation_error(train, test)
    sizes = (None, None) if independent is None else independent
    learned, kept = (
        _mean_draws(s, rng, resamples, size) for s, size in zip((train, test), sizes, strict=True)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (learned - kept) / learned
    return _around(estimate, drawn, confidence)


def generalisation_error_of_runs(
    train: ArrayLike, test: ArrayLike, *, confidence: float = 0.95
) -> Interval:
    """Returns E_G of a method with Student's t interval over its training runs.

    A run that learned more mostly keeps more, so each is taken with both its scores: the spread is
    that of what its test score lacks to the mean share of its training score. No interval of a
    single run, or where all runs lose the same share.

    Args:
        train: (run,) each run's mean training score.
        test: (run,) its mean test score; a run that lacks either (NaN) is left out.
        confidence: of the interval.

    >>> found = generalisation_error_of_runs([900.0, 500.0, 700.0], [180.0, 120.0, 130.0])
    >>> [round(float(end), 2) for end in (found.low, found.estimate, found.high)]
    [0.74, 0.8, 0.85]
    """
    both = np.stack([_flat(train), _flat(test)])
    both = both[:, ~np.isnan(both).any(axis=0)]
    estimate = generalisation_error(*both)
    reach = np.nan
    if both.shape[1] > 1 and np.isfinite(estimate):
        learned, kept = both
        lacking = ((1 - estimate) * learned - kept) / learned.mean()
        if np.abs(lacking).max() > ROUNDING:
            reach = float(t_reach(lacking, confidence))
    low, high = np.asarray(estimate - reach), np.asarray(estimate + reach)
    return Interval(estimate=np.asarray(estimate), low=low, high=high)


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """The scores where a variable lay in A and where it lay in B.

    Other variables may have moved with it, so a difference says nothing of causes:
    `interverse.attribute` moves one variable at a time.
    """

    variable: str
    mean_a: float
    mean_b: float
    loss: Interval  # mean_a - mean_b
    episodes_a: int
    episodes_b: int


def gaps(
    scores: ArrayLike,
    spaces: Mapping[str, ArrayLike],
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
    alike: ArrayLike | None = None,
) -> list[Gap]:
    """Returns the difference of scores between A and B by variable, in the order given.

    Args:
        scores: (episode,), NaN for an episode without a score.
        spaces: per variable (episode,) of "A", "B" or "" (held at its default, or in neither).
        rng: where the bootstrap draws come from.
        confidence: of the intervals.
        resamples: bootstrap draws.
        alike: (episode,), equal for episodes that are one and the same; all differ by default.

    >>> found = gaps([1.0, 0.9, 0.2, 0.1], {"mass": ["A", "A", "B", "B"]},
    ...              rng=np.random.default_rng(0))
    >>> found[0].variable, round(float(found[0].loss.estimate), 3)
    ('mass', 0.8)
    """
    values = _flat(scores)
    same = np.arange(len(values)) if alike is None else _column(alike, len(values), "alike")
    rows = []
    for variable, labels in spaces.items():
        where = _column(labels, len(values), f"spaces[{variable!r}]")
        in_a, in_b = ((where == name) & ~np.isnan(values) for name in ("A", "B"))
        a, b = values[in_a], values[in_b]
        size_a, size_b = (np.unique(same[rows]).size for rows in (in_a, in_b))
        mean_a, mean_b = (float(mean_known(part, axis=0)) for part in (a, b))
        drawn = _mean_draws(a, rng, resamples, size_a) - _mean_draws(b, rng, resamples, size_b)
        loss = _around(mean_a - mean_b, drawn, confidence)
        rows.append(Gap(variable, mean_a, mean_b, loss, len(a), len(b)))
    return rows


def _mean_draws(
    scores: ArrayLike, rng: np.random.Generator, resamples: int, independent: int | None = None
) -> FloatArray:
    """Returns bootstrap draws of a mean, n - 1 scores each of n independent (see `bootstrap`)."""
    values = _flat(scores)
    values = np.sort(values[~np.isnan(values)])
    size = len(values) if independent is None else min(independent, len(values))
    if size < 2:
        return np.full(resamples, np.nan)
    if not varies(values[:, None]):
        return np.full(resamples, values[0])
    counts = rng.multinomial(size - 1, np.full(len(values), 1 / len(values)), size=resamples)
    return counts @ values / (size - 1)


def _around(estimate: float, drawn: FloatArray, confidence: float) -> Interval:
    if not 0 < confidence < 1:
        raise InvalidValueError(
            f"confidence must be a share, got {confidence}", allowed="above 0, below 1"
        )
    tail = (1 - confidence) / 2
    low, high = (np.nan, np.nan)
    # Draws that are all one number would claim a certainty nobody has.
    if not np.isnan(drawn).any() and varies(drawn[:, None]):
        low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(estimate=np.asarray(estimate), low=np.asarray(low), high=np.asarray(high))


def _flat(scores: ArrayLike) -> FloatArray:
    return np.asarray(scores, dtype=np.float64).ravel()


def _column(values: ArrayLike, length: int, name: str) -> NDArray[np.generic]:
    column = np.asarray(values)
    if column.shape != (length,):
        raise InvalidValueError(
            f"{name} has shape {column.shape}", allowed=f"one entry per score, ({length},)"
        )
    return column
