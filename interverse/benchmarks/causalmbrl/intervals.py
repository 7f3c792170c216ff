"""Welch's interval of the difference between our mean over seeds and a printed one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

PUBLISHED_SEEDS = 3
"""Seeds behind each printed number."""
LEVEL = 0.95


def welch(
    ours: Sequence[float], mean: float, deviation: float, *, count: int = PUBLISHED_SEEDS
) -> tuple[float, float] | None:
    """Returns the 95 % interval of our mean minus theirs; None where we have one value only.

    Args:
        ours: our values, one per seed.
        mean: the printed mean.
        deviation: the printed standard deviation, of the population of `count` seeds.
        count: how many seeds are behind the printed mean.

    >>> low, high = welch([1.0, 2.0, 3.0], 2.0, 1.0)
    >>> round(low, 2), round(high, 2)
    (-2.58, 2.58)
    """
    values = np.asarray(ours, dtype=float)
    if len(values) < 2:
        return None
    own = float(values.var(ddof=1)) / len(values)
    other = deviation**2 / (count - 1)  # the population's variance, corrected, over count
    difference = float(values.mean()) - mean
    if own + other == 0.0:
        return difference, difference
    freedom = (own + other) ** 2 / (own**2 / (len(values) - 1) + other**2 / (count - 1))
    reach = float(stats.t.ppf(0.5 + LEVEL / 2, freedom)) * math.sqrt(own + other)
    return difference - reach, difference + reach
