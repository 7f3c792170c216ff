"""Student's t intervals of means over training runs, or seeds, of which there are few.

A bootstrap of few runs sees less spread than there is: "95%" intervals of normal runs cover 47% of
the time with two of them and 85% with five. Student's t covers 95% with any number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from interverse.metrics.bootstrap import Interval, varies
from interverse.metrics.statistics import FloatArray, mean_known


def t_interval(runs: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Returns the mean of (..., run) with Student's t interval over the runs.

    NaN is a missing run. A single run, or equal ones, say nothing of the spread: no interval.

    >>> found = t_interval([1.0, 2.0, 3.0])
    >>> round(float(found.low), 2), float(found.estimate), round(float(found.high), 2)
    (-0.48, 2.0, 4.48)
    """
    values = np.asarray(runs, dtype=np.float64)
    middle = mean_known(values, axis=-1)
    some = varies(values[..., None])[..., 0]
    reach = np.where(some, t_reach(values, confidence), np.nan)
    return Interval(estimate=middle, low=middle - reach, high=middle + reach)


def t_reach(runs: FloatArray, confidence: float) -> FloatArray:
    """Returns how far the t interval of a mean of (..., run) reaches to each side."""
    freedom = np.maximum(np.sum(~np.isnan(runs), axis=-1) - 1, 1)
    return np.asarray(stats.t.ppf((1 + confidence) / 2, freedom) * standard_error(runs))


def standard_error(runs: FloatArray) -> FloatArray:
    """Returns the standard error of the mean of (..., run); 0 where there are fewer than two."""
    count = np.sum(~np.isnan(runs), axis=-1)
    away = runs - mean_known(runs, axis=-1)[..., None]
    square = np.nansum(away**2, axis=-1) / np.maximum(count - 1, 1)
    return np.sqrt(square / np.maximum(count, 1))
