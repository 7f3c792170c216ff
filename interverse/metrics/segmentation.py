"""Do slots follow objects? Segments found against segments given, on plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from interverse.core.errors import InvalidValueError

Labels = NDArray[Any]


def adjusted_rand(found: ArrayLike, given: ArrayLike) -> float:
    """Returns the adjusted Rand index of two labelings of the same pixels.

    >>> adjusted_rand([0, 0, 1, 1], [5, 5, 2, 2])
    1.0
    """
    table = _contingency(*_checked(found, given))
    pairs, rows, columns = (
        float(np.sum(n * (n - 1.0)) / 2) for n in (table, table.sum(1), table.sum(0))
    )
    every = table.sum() * (table.sum() - 1) / 2
    expected = rows * columns / every if every else 0.0
    most = (rows + columns) / 2
    return 1.0 if most == expected else float((pairs - expected) / (most - expected))


def foreground_ari(found: ArrayLike, given: ArrayLike, background: int = 0) -> float:
    """Returns the adjusted Rand index over pixels that are not background; NaN without any.

    A picture with one object alone says nothing: it scores 1 if that object is one segment,
    else 0.
    """
    left, right = _checked(found, given)
    seen = right != background
    return adjusted_rand(left[seen], right[seen]) if seen.any() else float("nan")


def mean_iou(found: ArrayLike, given: ArrayLike, background: int = 0) -> float:
    """Returns the mean over objects of intersection over union, each with a segment of its own.

    The pairing is the best one there is (Hungarian); NaN without objects.
    """
    overlap = _overlaps(found, given, background)
    if not overlap.shape[1]:
        return float("nan")
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    return float(overlap[rows, columns].sum() / overlap.shape[1])


def mean_best_overlap(found: ArrayLike, given: ArrayLike, background: int = 0) -> float:
    """Returns the mean over objects of the highest intersection over union with any segment."""
    overlap = _overlaps(found, given, background)
    return float(overlap.max(axis=0).mean()) if overlap.shape[1] else float("nan")


def _overlaps(found: ArrayLike, given: ArrayLike, background: int) -> NDArray[np.float64]:
    """Returns (segments, objects) intersection over union."""
    left, right = _checked(found, given)
    table = _contingency(left, right)
    union = table.sum(1, keepdims=True) + table.sum(0, keepdims=True) - table
    out: NDArray[np.float64] = (table / union)[:, np.unique(right) != background]
    return out


def _checked(found: ArrayLike, given: ArrayLike) -> tuple[Labels, Labels]:
    left, right = np.asarray(found), np.asarray(given)
    if left.shape != right.shape or not left.size:
        raise InvalidValueError(
            f"segments are {left.shape}, objects {right.shape}", allowed="equal, not empty"
        )
    return left.ravel(), right.ravel()


def _contingency(left: Labels, right: Labels) -> NDArray[np.float64]:
    """Returns how many pixels have each pair of labels, labels in ascending order."""
    rows, row = np.unique(left, return_inverse=True)
    columns, column = np.unique(right, return_inverse=True)
    counts = np.bincount(row * len(columns) + column, minlength=len(rows) * len(columns))
    return counts.reshape(len(rows), len(columns)).astype(np.float64)
