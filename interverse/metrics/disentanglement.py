"""Is each latent about one factor, each factor in one latent? DCI, SAP, MIG, modularity.

`latents` are (samples, latents), `factors` (samples, factors); a factor with at most
`DISCRETE` different values is a category, else a number. `groups` of near copies stay in one
half, as in `representation`. Needs scikit-learn, but for mutual information.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError, missing_extra
from interverse.metrics.representation import Floats, correlations, halves, two_arrays

try:
    from sklearn.ensemble import (  # type: ignore[import-untyped]
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]
except ImportError as error:
    raise missing_extra("scikit-learn", "rooms") from error

DISCRETE = 10
Trees = Literal["forest", "boosting"]
_TREES = 50
_MODELS: dict[tuple[Trees, bool], Any] = {
    ("forest", True): RandomForestClassifier,
    ("forest", False): RandomForestRegressor,
    ("boosting", True): GradientBoostingClassifier,
    ("boosting", False): GradientBoostingRegressor,
}
_TINY = 1e-12


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DCI:
    """Eastwood and Williams' three scores.

    Attributes:
        disentanglement: 1 if each latent matters to one factor alone; by importance of latents.
        completeness: 1 if each factor depends on one latent alone; mean over factors.
        informativeness: R2, or for categories accuracy above always guessing the commonest,
            on held-out samples; mean over factors.
        importance: (latents, factors), columns sum to 1.
    """

    disentanglement: float
    completeness: float
    informativeness: float
    importance: Floats


def dci(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    rng: np.random.Generator,
    trees: Trees = "forest",
    groups: ArrayLike | None = None,
) -> DCI:
    """Returns DCI by the importances of trees fitted on a random half of the samples."""
    left, right = two_arrays(latents, factors)
    fit, test = halves(len(left), rng, groups)
    columns, scores = [], []
    for column in right.T:
        kind = _MODELS[trees, is_discrete(column)]
        # Every split chooses among all latents: of a few, an idle one would have to be split on.
        how: dict[str, Any] = {"n_jobs": -1} if trees == "forest" else {}
        seed = int(rng.integers(2**31))
        model = kind(n_estimators=_TREES, random_state=seed, max_features=None, **how)
        if len(np.unique(column[fit])) < 2:
            columns.append(np.zeros(left.shape[1]))
            scores.append(0.0)
            continue
        target = column.astype(str) if is_discrete(column) else column
        model.fit(left[fit], target[fit])
        columns.append(np.asarray(model.feature_importances_))
        guess, true = model.predict(left[test]), target[test]
        if is_discrete(column):
            scores.append(_above_commonest(float(np.mean(guess == true)), true))
            continue
        spread = np.sum((true - true.mean()) ** 2)
        found = 1 - np.sum((guess - true) ** 2) / spread if spread > 0 else 0.0
        scores.append(float(max(0.0, found)))
    importance = np.stack(columns, axis=1)
    used = importance.sum(axis=1)
    focused = np.sum([_focus(row) for row in importance] * used)
    return DCI(
        disentanglement=float(focused / used.sum()) if used.sum() > _TINY else 0.0,
        completeness=float(np.mean([_focus(column) for column in importance.T])),
        informativeness=float(np.mean(scores)),
        importance=importance,
    )


def sap(latents: ArrayLike, factors: ArrayLike) -> float:
    """Returns the separated attribute predictability: mean gap between the two best latents.

    A latent's score is the squared correlation with a number, or for a category the accuracy of
    a linear classifier on that latent, scaled so that the commonest category's share is 0.
    """
    left, right = two_arrays(latents, factors)
    squared = correlations(left, right) ** 2
    for place, column in enumerate(right.T):
        if is_discrete(column):
            for number, latent in enumerate(left.T):
                squared[number, place] = 0.0
                if np.ptp(latent) > 0 and len(np.unique(column)) > 1:
                    ready = ((latent - latent.mean()) / latent.std())[:, None]
                    told = column.astype(str)  # 0 and 0.8 are categories too
                    score = LogisticRegression(max_iter=300).fit(ready, told).score(ready, told)
                    squared[number, place] = _above_commonest(float(score), told)
    return _gap(squared)


def mutual_information(latents: ArrayLike, factors: ArrayLike, bins: int = 20) -> Floats:
    """Returns mutual information over the factor's entropy, (latents, factors), in 0..1.

    Numbers are cut into `bins` of equal width; categories are taken as they are.
    """
    shared, entropies = _information(latents, factors, bins)
    known = entropies > _TINY
    return np.clip(np.where(known, shared / np.where(known, entropies, 1.0), 0.0), 0, 1)


def mig(latents: ArrayLike, factors: ArrayLike, bins: int = 20) -> float:
    """Returns the mutual information gap: mean gap between the two most informed latents."""
    return _gap(mutual_information(latents, factors, bins))


def modularity(latents: ArrayLike, factors: ArrayLike, bins: int = 20) -> float:
    """Returns Ridgeway and Mozer's modularity: 1 if each latent informs one factor alone.

    The mean over all latents, by mutual information as it is (not over the factor's entropy). In
    a finite sample noise seems to inform a little of every factor, so idle latents lower it; one
    without any information, as one that never changes, counts 0.
    """
    squares = _information(latents, factors, bins)[0] ** 2
    if squares.shape[1] < 2:
        raise InvalidValueError("modularity compares factors, and there is only one")
    best = squares.max(axis=1)
    used = best > _TINY
    others = squares.sum(axis=1) - best
    spread = others / np.where(used, best * (squares.shape[1] - 1), 1.0)
    return float(np.mean(np.where(used, 1 - spread, 0.0)))


def explicitness(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    rng: np.random.Generator,
    groups: ArrayLike | None = None,
) -> float:
    """Returns Ridgeway and Mozer's explicitness: how well a linear probe tells categories.

    The area under the curve of one category against the rest on held-out samples, 0.5 told as
    0 and 1 as 1; mean over categories and factors. Numbers are cut at their median.
    """
    left, right = two_arrays(latents, factors)
    fit, test = halves(len(left), rng, groups)
    scale = np.where(left.std(0) > 0, left.std(0), 1.0)
    ready = (left - left.mean(0)) / scale
    found: list[float] = []
    for column in right.T:
        told = column if is_discrete(column) else (column > np.median(column)).astype(float)
        for value in np.unique(told):
            is_it = told == value
            if is_it[fit].all() or not is_it[fit].any() or len(np.unique(is_it[test])) < 2:
                continue
            probe = LogisticRegression(max_iter=300).fit(ready[fit], is_it[fit])
            found.append(roc_auc_score(is_it[test], probe.decision_function(ready[test])))
    return float(2 * np.mean(found) - 1) if found else 0.0


def is_discrete(column: Floats) -> bool:
    """Whether a factor counts as a category."""
    return len(np.unique(column)) <= DISCRETE


def _above_commonest(accuracy: float, true: NDArray[Any]) -> float:
    share = float(np.unique(true, return_counts=True)[1].max()) / len(true)
    return max(0.0, (accuracy - share) / (1 - share)) if share < 1 else 0.0


def _focus(weights: Floats) -> float:
    """Returns 1 - entropy of weights to the base of their number; 0 for no weight at all."""
    total = weights.sum()
    if total <= _TINY or len(weights) < 2:
        return float(total > _TINY)
    shares = weights / total
    shares = shares[shares > 0]
    return float(1 + np.sum(shares * np.log(shares)) / np.log(len(weights)))


def _gap(scores: Floats) -> float:
    """Returns the mean over columns of the best score minus the second best."""
    ordered = np.sort(scores, axis=0)
    second = ordered[-2] if len(ordered) > 1 else 0.0
    return float(np.mean(ordered[-1] - second))


def _information(latents: ArrayLike, factors: ArrayLike, bins: int) -> tuple[Floats, Floats]:
    """Returns mutual information in nats, (latents, factors), and the factors' entropies."""

    def cut(column: Floats) -> NDArray[np.int64]:
        if is_discrete(column):
            return np.unique(column, return_inverse=True)[1].astype(np.int64)
        edges = np.linspace(column.min(), column.max(), bins + 1)[1:-1]
        return np.digitize(column, edges).astype(np.int64)

    left, right = two_arrays(latents, factors)
    cells = [[cut(column) for column in values.T] for values in (left, right)]
    entropies = np.array([_entropy(np.bincount(factor)) for factor in cells[1]])
    out = np.zeros((left.shape[1], right.shape[1]))
    for i, latent in enumerate(cells[0]):
        own = _entropy(np.bincount(latent))
        for j, factor in enumerate(cells[1]):
            joint = np.unique(latent * (factor.max() + 1) + factor, return_counts=True)[1]
            out[i, j] = own + entropies[j] - _entropy(joint)
    return np.clip(out, 0, None), entropies


def _entropy(counts: NDArray[Any]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-np.sum(shares * np.log(shares)))
