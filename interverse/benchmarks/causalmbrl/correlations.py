"""Rank correlations of two scores over runs: over all runs, and among runs of one model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from interverse.core.rng import generator

FEWEST = 10
"""Runs below which a correlation says nothing."""
_SHUFFLES = 9999


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """How two scores go together; NaN where there are too few runs.

    Attributes:
        across: Spearman's, over all runs. Runs of one model are alike, so it has no p-value.
        within: among runs of the same model: each run's rank among those of its model.
        chance: p-value of `within`, by shuffling the runs of each model.
        runs: how many have both scores.
        repeated: those of them whose model has runs that differ in both scores.
    """

    across: float
    within: float
    chance: float
    runs: int
    repeated: int

    def __str__(self) -> str:
        """Returns it in words."""
        if math.isnan(self.across):
            return f"not given ({self.runs} runs)"
        told = f"{self.across:.2f} ({self.runs} runs)"
        if math.isnan(self.within):
            return f"{told}; within models not given ({self.repeated} runs)"
        p = "p < 0.001" if self.chance < 0.001 else f"p {self.chance:.3f}"
        return f"{told}; within models {self.within:.2f} ({p}, {self.repeated} runs)"


def correlation(pairs: NDArray[np.float64], models: Sequence[str]) -> Correlation:
    """Returns how the two columns of (runs, 2) scores go together; rows with NaN are left out.

    >>> scores = np.array([[model + run, model - run] for model in (0, 50) for run in range(9)])
    >>> str(correlation(scores.astype(float), ["a"] * 9 + ["b"] * 9))
    '0.50 (18 runs); within models -1.00 (p < 0.001, 18 runs)'
    """
    known = np.isfinite(pairs).all(axis=1)
    pairs, names = pairs[known], np.asarray(models)[known]
    groups = [np.flatnonzero(names == name) for name in sorted(set(names))]
    groups = [rows for rows in groups if _varies(pairs[rows])]
    repeated = sum(map(len, groups))
    within = chance = across = math.nan
    if len(pairs) >= FEWEST and _varies(pairs):
        across = float(stats.spearmanr(pairs[:, 0], pairs[:, 1])[0])
    if not math.isnan(across) and repeated >= FEWEST:
        within, chance = _within([_centred(pairs[rows]) for rows in groups])
    return Correlation(
        across=across, within=within, chance=chance, runs=len(pairs), repeated=repeated
    )


def _varies(pairs: NDArray[np.float64]) -> bool:
    """Returns whether both columns have more than one value: others go together with nothing."""
    return bool((np.ptp(pairs, axis=0) > 0).all())


def _centred(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the ranks of one model's runs, from -1/2 to 1/2 about."""
    return stats.rankdata(pairs, axis=0) / (len(pairs) + 1) - 0.5


def _within(groups: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Returns the correlation of (runs, 2) ranks in all groups together, and its p-value."""
    every = np.concatenate(groups)
    scale = float(np.sqrt((every**2).sum(axis=0).prod()))
    found = float((every[:, 0] * every[:, 1]).sum())
    rng = generator(seed=0, name="results/correlation")
    drawn: Any = np.zeros(_SHUFFLES)
    for ranks in groups:
        shuffled = rng.permuted(np.tile(ranks[:, 1], (_SHUFFLES, 1)), axis=1)
        drawn += shuffled @ ranks[:, 0]
    extreme = int((np.abs(drawn) >= abs(found) - 1e-12).sum())
    return found / scale, (extreme + 1) / (_SHUFFLES + 1)
