"""Shares of trials with their intervals, as the entries of a table of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Score = dict[str, Any]

_Z = 1.959963984540054  # of a 95% interval
PERCENT = 100.0


def wilson(hits: float, trials: int) -> tuple[float, float]:
    """Returns the 95% interval of a share, by Wilson's score; all is open without a trial.

    >>> tuple(round(end, 3) for end in wilson(0, 100))
    (0.0, 0.037)
    """
    if trials == 0:
        return 0.0, 1.0
    share, weight = hits / trials, _Z**2 / trials
    middle = (share + weight / 2) / (1 + weight)
    half = _Z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(found: ArrayLike, *, scale: float = PERCENT) -> Score:
    """Returns value, interval and number of trials of a row of hits and misses."""
    hits: NDArray[np.bool_] = np.asarray(found, dtype=bool)
    if not hits.size:
        return {"value": None, "interval": None, "trials": 0}
    ends = wilson(float(hits.sum()), hits.size)
    return {
        "value": rounded(scale * float(hits.mean())),
        "interval": [rounded(scale * end) for end in ends],
        "trials": int(hits.size),
    }


def balanced(parts: Sequence[ArrayLike], *, scale: float = PERCENT) -> Score:
    """Returns the mean of the shares of several strata, each with the same weight.

    A stratum without trials is left out. The interval is made of the strata's own: independent
    errors add in squares.
    """
    rows = [np.asarray(part, dtype=bool) for part in parts]
    rows = [row for row in rows if row.size]
    if not rows:
        return {"value": None, "interval": None, "trials": 0}
    shares = np.array([row.mean() for row in rows])
    ends = np.array([wilson(float(row.sum()), row.size) for row in rows])
    middle = float(shares.mean())
    below = math.sqrt(float(((shares - ends[:, 0]) ** 2).sum())) / len(rows)
    above = math.sqrt(float(((ends[:, 1] - shares) ** 2).sum())) / len(rows)
    return {
        "value": rounded(scale * middle),
        "interval": [
            rounded(scale * max(0.0, middle - below)),
            rounded(scale * min(1.0, middle + above)),
        ],
        "trials": sum(row.size for row in rows),
    }


def mean_of(found: ArrayLike) -> float | None:
    """Returns the mean in percent, or None of nothing."""
    values = np.asarray(found, dtype=np.float64)
    return rounded(PERCENT * float(values.mean())) if values.size else None


def absent(reason: str) -> Score:
    """Returns the entry of what a world or a model cannot give."""
    return {"value": None, "absent": reason}


def rounded(value: float) -> float:
    """Returns a number as it is printed and compared."""
    return round(float(value), 6)
