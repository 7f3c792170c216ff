"""Comparison of means: ours with a paper's, a method with another, over training runs or seeds.

Two sides that share nothing are compared by Welch's t-test, two sides that share their seeds by
the paired one. Verdicts on several claims are corrected by Holm's rule over all of them. A
bootstrap of three seeds gave a verdict on pure noise in 24% of cases, so ten seeds are the least
for a paired one; the chance that any claim of a family gets a verdict without an effect is then at
most 5%, as far as differences between seeds are spread evenly about their mean: for strongly skewed
ones it is greater. Seeds split the same pairs anew, so they say nothing of other pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from interverse.metrics.bootstrap import standard_error, t_reach
from interverse.metrics.comparison import holm

LEVEL = 0.05
LEAST_SEEDS = 10


def welch(gap: float, *sides: tuple[float, float], least: float = 0.0) -> tuple[float, float]:
    """Returns half of the 95% interval of a difference of two means, and its p-value.

    Args:
        gap: the difference.
        sides: of each mean the squared standard error and the degrees of freedom.
        least: the half is no narrower, and the p-value goes with it.
    """
    total = sum(square for square, _ in sides)
    freedom = total**2 / sum(square**2 / own for square, own in sides)
    error = max(math.sqrt(total), least / reach(1.0, freedom))
    return reach(error, freedom), p_value(gap, error, freedom)


def reach(error: float, freedom: float) -> float:
    """Returns how far the 95% interval of a mean reaches to each side, by Student's t."""
    return float(stats.t.ppf(1 - LEVEL / 2, freedom)) * error


def p_value(gap: float, error: float, freedom: float) -> float:
    """Returns the two-sided p-value of a mean, or of a difference of means."""
    return float(2 * stats.t.sf(abs(gap) / error, freedom))


def verdict(gap: float, p: float) -> str:
    """Returns what a corrected test says of a claim that a difference is above zero."""
    if p >= LEVEL:
        return "open"
    return "confirmed" if gap > 0 else "contradicted"


def summary(values: Mapping[str, float]) -> dict[str, Any]:
    """Returns mean, deviation and 95% t interval over seeds; no interval from one seed.

    Nothing is rounded: who prints rounds, once.
    """
    array = np.array(list(values.values()), dtype=float)
    half = t_reach(array, 1 - LEVEL) if len(array) > 1 else None
    return {
        "mean": float(array.mean()),
        "deviation": float(array.std()),
        "low": None if half is None else float(array.mean() - half),
        "high": None if half is None else float(array.mean() + half),
        "seeds": {seed: float(value) for seed, value in values.items()},
    }


def differences(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Returns what one has more than another, by the seeds that both have."""
    return {seed: value - other[seed] for seed, value in one.items() if seed in other}


def judge(family: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Returns the verdict on each claim of a family: is its mean difference above zero?

    Args:
        family: for each claim, the difference by seed that the claim says is positive.

    >>> clear = {str(seed): 0.1 + 0.001 * seed for seed in range(10)}
    >>> [found["verdict"] for found in judge([clear, dict(list(clear.items())[:3])])]
    ['confirmed', 'too few seeds']
    """
    finite = [bool(np.isfinite([*claim.values()]).all()) for claim in family]
    raw = []
    for claim, known in zip(family, finite, strict=True):
        if known and len(claim) >= LEAST_SEEDS:
            values = np.array(list(claim.values()), dtype=float)
            mean, error = float(values.mean()), float(standard_error(values))
            alike = float(values[0] == 0)  # differences that are all the same leave no doubt
            raw.append(p_value(mean, error, len(values) - 1) if np.ptp(values) else alike)
    corrected, out = iter(holm(raw).tolist()), list[dict[str, Any]]()
    for claim, known in zip(family, finite, strict=True):
        if not claim:
            out.append({"verdict": "no common seed"})
        elif not known:
            out.append({"verdict": "a score is no number"})
        elif len(claim) < LEAST_SEEDS:
            out.append({"verdict": "too few seeds", **summary(claim)})
        else:
            p, told = next(corrected), summary(claim)
            out.append({"verdict": verdict(told["mean"], p), **told, "p": round(p, 4)})
    return out
