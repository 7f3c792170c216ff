"""Does a representation hold the true factors? Correlations and R2, on plain arrays.

`latents` are (samples, latents), `factors` (samples, factors). A column that never changes
correlates with nothing: its scores are 0. Trees and mutual information: `disentanglement`.

Scores of fitted readers are held out: a random half of the samples is fitted, the other judged.
Samples that are near copies (two pictures of one scene) belong to one of `groups`, (samples,)
numbers or names: a group's samples go to one half, or the reader would know the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from interverse.core.errors import InvalidValueError

Floats = NDArray[np.float64]
Method = Literal["pearson", "spearman"]
Kind = Literal["continuous", "angle", "categorical"]
_RIDGE = 1e-3  # relative to the number of samples: for copies of a column, and few samples
_ROUNDING = 1e-13  # relative to the largest value of a column
_SAME_ANGLE = 1e-12  # radians
_MOST_TURNS = 2  # of an angle in radians; degrees reach further


def correlations(latents: ArrayLike, factors: ArrayLike, method: Method = "pearson") -> Floats:
    """Returns absolute correlations, (latents, factors).

    >>> correlations([[0, 1], [1, 5], [2, 1]], [[1], [2], [3]]).round(3).tolist()
    [[1.0], [0.0]]
    """
    left, right = two_arrays(latents, factors)
    if method == "spearman":
        left, right = rankdata(left, axis=0), rankdata(right, axis=0)
    return np.abs(_unit(left).T @ _unit(right))


def mcc(latents: ArrayLike, factors: ArrayLike, method: Method = "pearson") -> float:
    """Returns the mean correlation coefficient: each factor with a latent of its own.

    The pairing is the best one there is (Hungarian); a factor left without a latent counts 0.

    >>> round(mcc([[0, 1], [1, 0], [2, 2]], [[3, 0], [1, 1], [5, 2]]), 6)
    1.0
    """
    return _matched(correlations(latents, factors, method))


def canonical_mcc(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    rng: np.random.Generator,
    groups: ArrayLike | None = None,
) -> float:
    """Returns the mean canonical correlation: MCC up to a linear map of the latents.

    The maps are fitted on a random half of the samples and judged by the other; a correlation
    that turns its sign there counts 0, and so does a factor that has no direction left.
    """
    both = two_arrays(latents, factors)
    fit, test = halves(len(both[0]), rng, groups)
    whole = [_decorrelated(values[fit], values) for values in both]
    left, _, right = np.linalg.svd(whole[0][fit].T @ whole[1][fit], full_matrices=False)
    one, two = (_unit(whole[k][test] @ turn) for k, turn in enumerate((left, right.T)))
    return float(np.clip((one * two).sum(0), 0, 1).sum() / both[1].shape[1])


def r2(prediction: ArrayLike, truth: ArrayLike, kind: Kind = "continuous") -> Floats:
    """Returns 1 - (squared error) / (squared error of the best constant), per column.

    Angles are in radians and go round; for categories an error counts 1 and the constant is the
    most frequent one. A truth that never changes scores 0.

    >>> r2([[1.0], [2.0]], [[1.0], [2.0]]).tolist(), r2([[1], [1]], [[1], [2]], "categorical")
    ([1.0], array([0.]))
    """
    guess, true = two_arrays(prediction, truth)
    if kind == "angle":
        reach = float(np.abs(true).max(initial=0.0))
        if reach > _MOST_TURNS * 2 * np.pi:
            told = f"angles reach {reach:.4g} radians, {reach / (2 * np.pi):.1f} turns"
            raise InvalidValueError(told, fix="Turn degrees into radians: np.radians")
        middle = np.array([_middle_angle(column) for column in true.T])
        error, spread = _turn(guess - true) ** 2, _turn(true - middle) ** 2
        varies = spread.max(0) > _SAME_ANGLE**2  # -pi and pi are one angle
        return _one_minus(error, spread, varies)
    if kind == "categorical":
        counted = [np.unique(column, return_counts=True) for column in true.T]
        modes = np.array([values[counts.argmax()] for values, counts in counted])
        error, spread = (guess != true).astype(float), (true != modes).astype(float)
    else:
        error, spread = (guess - true) ** 2, (true - true.mean(0)) ** 2
    return _one_minus(error, spread, np.ptp(true, axis=0) > 0)


def r2_matrix(
    latents: ArrayLike,
    factors: ArrayLike,
    blocks: Sequence[int] | None = None,
    *,
    rng: np.random.Generator,
    groups: ArrayLike | None = None,
) -> Floats:
    """Returns R2 of every factor from every block of latents, (blocks, factors).

    By linear regression on a random half of the samples, scored on the other half; below 0 is
    told as 0. The CITRIS protocol with a network is `interverse.models.pairs.readout`.

    Args:
        latents: (samples, latents).
        factors: (samples, factors).
        blocks: the block of each latent, from 0; None: each latent alone.
        rng: draws the halves.
        groups: the group of each sample, which stays together; None: each sample alone.
    """
    found = _read(latents, factors, blocks, rng, groups)
    return np.stack([np.clip(r2(guess, true), 0, None) for guess, true in found])


def r2_summary(matrix: ArrayLike, owners: Sequence[int]) -> dict[str, float]:
    """Returns CITRIS's two numbers of an R2 matrix (blocks, factors).

    Args:
        matrix: R2 of each factor from each block.
        owners: the block that should hold each factor.

    Returns:
        diagonal: mean R2 of factors from their own block, best 1; off_diagonal: mean over
        factors of the highest R2 from another block, best 0.

    >>> r2_summary([[0.9, 0.1], [0.3, 0.8]], [0, 1])
    {'diagonal': 0.85, 'off_diagonal': 0.2}
    """
    table = np.asarray(matrix, dtype=np.float64)
    own = np.zeros(table.shape, dtype=bool)
    own[list(owners), np.arange(table.shape[1])] = True
    others = np.where(own, 0.0, table).max(axis=0)
    return {
        "diagonal": round(float(table[own].mean()), 6),
        "off_diagonal": round(float(others.mean()), 6),
    }


def block_mcc(
    latents: ArrayLike,
    factors: ArrayLike,
    blocks: Sequence[int] | None = None,
    *,
    rng: np.random.Generator,
    groups: ArrayLike | None = None,
) -> float:
    """Returns MCC between blocks and factors: each factor with a block of its own.

    A block's correlation with a factor is that of its linear prediction, on the half of the
    samples that it was not fitted on.
    """
    rows = []
    for guess, true in _read(latents, factors, blocks, rng, groups):
        rows.append(np.abs((_unit(guess) * _unit(true)).sum(0)))
    return _matched(np.stack(rows))


def two_arrays(latents: ArrayLike, factors: ArrayLike) -> tuple[Floats, Floats]:
    """Returns both as float arrays (samples, columns), or raises where they do not fit."""
    left, right = (np.asarray(values, dtype=np.float64) for values in (latents, factors))
    if left.ndim != 2 or right.ndim != 2 or len(left) != len(right) or len(left) < 2:
        raise InvalidValueError(
            f"latents are {left.shape}, factors {right.shape}",
            allowed="(samples, latents) and (samples, factors), at least 2 samples",
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InvalidValueError("latents or factors hold NaN or infinite values")
    return left, right


def halves(
    count: int, rng: np.random.Generator, groups: ArrayLike | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the numbers of the samples to fit on and of those to judge by.

    Samples of one of the `groups`, (count,), stay together.
    """
    if groups is None:
        order = rng.permutation(count)
        return order[: count // 2], order[count // 2 :]
    names, of = np.unique(np.asarray(groups), return_inverse=True)
    if of.shape != (count,) or len(names) < 2:
        raise InvalidValueError(
            f"groups are {np.shape(groups)} with {len(names)} different",
            allowed=f"({count},), one for each sample, at least 2 different",
        )
    fitted = np.isin(of, rng.permutation(len(names))[: len(names) // 2])
    return np.flatnonzero(fitted), np.flatnonzero(~fitted)


def _read(
    latents: ArrayLike,
    factors: ArrayLike,
    blocks: Sequence[int] | None,
    rng: np.random.Generator,
    groups: ArrayLike | None,
) -> list[tuple[Floats, Floats]]:
    """Returns per block the factors predicted on the second half of the samples, and the truth."""
    left, right = two_arrays(latents, factors)
    at = np.arange(left.shape[1]) if blocks is None else np.asarray(blocks)
    if at.shape != (left.shape[1],):
        raise InvalidValueError(
            f"blocks name {at.size} latents", allowed=f"one block for each of {len(left.T)}"
        )
    fit, test = halves(len(left), rng, groups)
    return [
        (_linear(left[np.ix_(fit, at == b)], right[fit], left[np.ix_(test, at == b)]), right[test])
        for b in np.unique(at)
    ]


def _linear(inputs: Floats, targets: Floats, asked: Floats) -> Floats:
    mean, target_mean = inputs.mean(0), targets.mean(0)
    scale = inputs.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    ready = (inputs - mean) / scale
    gram = ready.T @ ready + _RIDGE * len(ready) * np.eye(ready.shape[1])
    slopes = np.linalg.solve(gram, ready.T @ (targets - target_mean))
    out: Floats = (asked - mean) / scale @ slopes + target_mean
    return out


def _matched(scores: Floats) -> float:
    rows, columns = linear_sum_assignment(scores, maximize=True)
    return float(scores[rows, columns].sum() / scores.shape[1])


def _unit(values: Floats) -> Floats:
    """Returns columns of mean 0 and length 1; constant columns become 0."""
    shifted = values - values[0]  # a sum of values far from zero would round
    centred = shifted - shifted.mean(0)
    still = _constant(values)
    length = np.where(still, 1.0, np.linalg.norm(centred, axis=0))
    out: Floats = np.where(still, 0.0, centred / length)
    return out


def _constant(values: Floats) -> NDArray[np.bool_]:
    """Returns which columns hold one value, up to rounding."""
    out: NDArray[np.bool_] = np.ptp(values, axis=0) <= _ROUNDING * np.abs(values).max(0)
    return out


def _decorrelated(fitted: Floats, values: Floats) -> Floats:
    """Returns values by directions in which the fitted ones are orthonormal, but for the ridge."""
    scale = np.where(_constant(fitted), np.inf, fitted.std(0))
    ready = [(part - fitted[0]) / scale for part in (fitted, values)]
    mean = ready[0].mean(0)
    _, s, directions = np.linalg.svd(ready[0] - mean, full_matrices=False)
    kept = s > 1e-10 * max(s.max(initial=0.0), 1e-300)
    out: Floats = (ready[1] - mean) @ (
        directions[kept].T / np.sqrt(s[kept] ** 2 + _RIDGE * len(fitted))
    )
    return out


def _one_minus(error: Floats, spread: Floats, varies: NDArray[np.bool_]) -> Floats:
    return np.where(varies, 1 - error.sum(0) / np.where(varies, spread.sum(0), 1.0), 0.0)


def _middle_angle(column: Floats) -> float:
    """Returns the angle with the least sum of squared turns to all others.

    It is the mean of the angles with the lowest few of them taken a whole turn further.
    """
    ordered = np.sort(_turn(column))
    count = len(ordered)
    further = np.arange(count)
    middles = ordered.mean() + 2 * np.pi * further / count
    lowest = np.cumsum(ordered) - ordered  # the sum of those that go further
    squares = 4 * np.pi * lowest + 4 * np.pi**2 * further - count * middles**2
    return float(middles[squares.argmin()])


def _turn(angle: Floats) -> Floats:
    out: Floats = (angle + np.pi) % (2 * np.pi) - np.pi
    return out
