"""Aggregates of score tables: mean, median, interquartile mean, optimality gap, profiles.

A score table is an array (..., run, task): the same number of runs of every task, NaN where a run
has no score (a refused episode is missing, it is never a zero). Axes before the last two are
separate tables. "Run" is whatever was drawn independently (a training seed, an episode), "task"
whatever was fixed beforehand (a task, a protocol). `bootstrap.interval` puts an interval around
any of these functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError

FloatArray = NDArray[np.float64]


def mean(scores: ArrayLike) -> FloatArray:
    """Returns the mean over tasks of each task's mean score.

    >>> float(mean([[0.0, 1.0], [1.0, 1.0]]))
    0.75
    """
    return mean_known(mean_known(score_table(scores), axis=-2), axis=-1)


def median(scores: ArrayLike) -> FloatArray:
    """Returns the middle one of all scores.

    >>> float(median([[0.0, 0.5], [0.6, 9.0]]))
    0.55
    """
    return _trimmed(_pooled(scores), share=0.5)


def median_task(scores: ArrayLike) -> FloatArray:
    """Returns the median over tasks of each task's mean score (as Atari results are reported).

    >>> float(median_task([[0.0, 0.5, 1.0], [0.2, 0.5, 1.0]]))
    0.5
    """
    return _trimmed(mean_known(score_table(scores), axis=-2), share=0.5)


def iqm(scores: ArrayLike) -> FloatArray:
    """Returns the interquartile mean: the mean of the middle half of all scores.

    >>> float(iqm([[0.0], [0.4], [0.6], [9.0]]))
    0.5
    """
    return _trimmed(_pooled(scores), share=0.25)


def optimality_gap(scores: ArrayLike, target: float = 1.0) -> FloatArray:
    """Returns by how much scores fall short of a target on average; excess does not make up.

    >>> float(optimality_gap([[0.5], [2.0]]))
    0.25
    """
    return target - mean(np.minimum(score_table(scores), target))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> FloatArray:
    """Returns (..., threshold): the share of runs above each threshold, averaged over tasks.

    >>> performance_profile([[0.2], [0.6]], [0.0, 0.5, 0.9]).tolist()
    [1.0, 0.5, 0.0]
    """
    table = score_table(scores)
    levels = np.asarray(thresholds, dtype=np.float64).ravel()
    shares = np.empty((*table.shape[:-2], len(levels)))
    known = known_runs(table)
    some = np.where(known > 0, known, np.nan)
    for i, level in enumerate(levels):
        shares[..., i] = mean_known(np.sum(table > level, axis=-2) / some, axis=-1)
    return shares


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Returns the chance that a run of the first beats a run of the second, averaged over tasks.

    Ties count one half: each task's term is the Mann-Whitney U statistic over its largest value.

    >>> float(probability_of_improvement([[0.5], [0.9]], [[0.5], [0.1]]))
    0.875
    """
    left, right = two_tables(first, second)
    terms = [float(w.mean()) if w.size else np.nan for w in wins_by_task(left, right)]
    return mean_known(np.array(terms), axis=-1)


def score_table(scores: ArrayLike) -> FloatArray:
    """Returns the scores as float64 (..., run, task), or raises."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim < 2:
        raise InvalidValueError(
            f"scores have shape {table.shape}",
            allowed="(..., run, task)",
            fix="Write scores[:, None] for the runs of one task",
        )
    return table


def two_tables(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Returns two tables (run, task) over the same tasks, or raises."""
    left, right = score_table(first), score_table(second)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise InvalidValueError(
            f"the two score tables have shapes {left.shape} and {right.shape}",
            allowed="(run, task) with the same tasks",
        )
    return left, right


def known_runs(table: FloatArray) -> NDArray[np.int64]:
    """Returns (..., task): how many runs of each task have a score."""
    return np.sum(~np.isnan(table), axis=-2)


def wins_by_task(left: FloatArray, right: FloatArray) -> list[FloatArray]:
    """Returns for each task (run, run): 1 where left beats right, one half where they tie."""
    wins = []
    for task in range(left.shape[1]):
        a, b = (t[~np.isnan(t[:, task]), task] for t in (left, right))
        wins.append((a[:, None] > b) + 0.5 * (a[:, None] == b))
    return wins


def mean_known(values: FloatArray, axis: int) -> FloatArray:
    """Returns the mean over an axis without NaNs; NaN, and no warning, where nothing is left."""
    known = ~np.isnan(values)
    if known.all() and values.shape[axis]:
        return values.mean(axis=axis)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _pooled(scores: ArrayLike) -> FloatArray:
    table = score_table(scores)
    return table.reshape(*table.shape[:-2], table.shape[-2] * table.shape[-1])


def _trimmed(values: FloatArray, share: float) -> FloatArray:
    """Returns the mean of the last axis without its lowest and highest `share`, and without NaNs.

    With share 0.5 the one or two middle values stay: the median.
    """
    ordered = np.sort(values, axis=-1)  # NaN goes last
    length = values.shape[-1]
    if length and not np.isnan(ordered[..., -1]).any():
        cut = min(int(share * length), (length - 1) // 2)
        return ordered[..., cut : length - cut].mean(axis=-1)
    count = np.sum(~np.isnan(ordered), axis=-1, keepdims=True)
    cuts = np.minimum((share * count).astype(np.int64), np.maximum(count - 1, 0) // 2)
    place = np.arange(length)
    return mean_known(np.where((place >= cuts) & (place < count - cuts), ordered, np.nan), axis=-1)
