"""Loss of score outside training: generalisation error, A-to-B gaps, variable effects."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.metrics.bootstrap import ROUNDING, Interval, varies
from interverse.metrics.statistics import FloatArray, mean_known
from interverse.metrics.student import t_reach

_RANGE = (0.05, 0.95)  # an effect is measured across the middle nine tenths of a variable's values
_NUMBERS_AT_ONCE = 2**21


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
            explain(
                f"the mean training score is {learned:g}, and E_G divides by it",
                allowed="scores that are not negative",
                fix="Shift the scores so that the worst possible one is 0, or report the gap",
            )
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
@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The score lost from one variable's training space A to its test space B."""

    variable: str
    mean_a: float
    mean_b: float
    loss: Interval  # mean_a - mean_b: above zero, leaving A hurts
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
    """Returns each variable's gap from A to B, the largest loss first.

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
    same = _labels(alike, len(values))
    rows = []
    for variable, labels in spaces.items():
        where = _column(labels, len(values), f"spaces[{variable!r}]")
        in_a, in_b = ((where == name) & ~np.isnan(values) for name in ("A", "B"))
        a, b = values[in_a], values[in_b]
        size_a, size_b = (np.unique(same[rows]).size for rows in (in_a, in_b))
        mean_a, mean_b = (float(mean_known(part, axis=0)) for part in (a, b))
        drawn = _mean_draws(a, rng, resamples, size_a) - _mean_draws(b, rng, resamples, size_b)
        rows.append(
            Gap(
                variable=variable,
                mean_a=mean_a,
                mean_b=mean_b,
                loss=_around(mean_a - mean_b, drawn, confidence),
                episodes_a=len(a),
                episodes_b=len(b),
            )
        )
    return sorted(rows, key=lambda gap: -np.nan_to_num(gap.loss.estimate, nan=-np.inf))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one variable does to the score, all other variables held."""

    variable: str
    change: Interval  # of the score, from a low (5th percentile) to a high (95th) value
    from_value: float
    to_value: float
    worst: float  # share of bootstrap draws in which no other variable moves the score more


def effects(
    scores: ArrayLike,
    values: Mapping[str, ArrayLike],
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
    alike: ArrayLike | None = None,
) -> list[Effect]:
    """Returns each variable's effect by linear regression of score on all values, largest first.

    A vector variable counts as one entry per component, named `variable[i]`. Components that never
    vary are left out. Two that always move together share the effect. Episodes in which a variable
    was not set (NaN) get a level of their own, so a variable's effect is read only among episodes
    that set it. The line is straight: a variable that hurts at both ends shows in the response
    curve, not here.

    Args:
        scores: (episode,), NaN for an episode without a score.
        values: per variable (episode,) or (episode, component), the values it had; NaN: not set.
        rng: where the bootstrap draws come from (episodes are drawn whole).
        confidence: of the intervals.
        resamples: bootstrap draws.
        alike: (episode,), equal for episodes that are one and the same; all differ by default.

    >>> mass = np.linspace(0.0, 1.0, 50)
    >>> found = effects(1 - 0.5 * mass, {"mass": mass}, rng=np.random.default_rng(0))
    >>> found[0].variable, round(float(found[0].change.estimate), 3)
    ('mass', -0.45)
    """
    target, names, matrix = _components(scores, values)
    if not names:
        return []
    low, high = np.nanquantile(matrix, _RANGE, axis=0)
    scale = np.nanstd(matrix, axis=0)
    given = _flat(scores)
    size = np.unique(_labels(alike, len(given))[~np.isnan(given)]).size
    design = _design((matrix - np.nanmean(matrix, axis=0)) / scale)
    estimate, drawn = _slopes(design, target, rng, resamples, size)
    span = (high - low) / scale * varies(target[:, None])  # equal scores: no more than rounding
    estimate, drawn = estimate[1 : len(names) + 1] * span, drawn[:, 1 : len(names) + 1] * span
    worst = np.mean(np.abs(drawn) >= np.abs(drawn).max(axis=1, keepdims=True), axis=0)
    rows = [
        Effect(
            variable=name,
            change=_around(float(estimate[i]), drawn[:, i], confidence),
            from_value=float(low[i]),
            to_value=float(high[i]),
            worst=float(worst[i]),
        )
        for i, name in enumerate(names)
    ]
    return sorted(rows, key=lambda effect: -abs(float(effect.change.estimate)))


def _components(
    scores: ArrayLike, values: Mapping[str, ArrayLike]
) -> tuple[FloatArray, list[str], FloatArray]:
    """Returns scores, names and values (episode, component) of scored episodes; no constants."""
    target = _flat(scores)
    names, columns = [], []
    for variable, given in values.items():
        parts = np.asarray(given, dtype=np.float64)
        parts = parts[:, None] if parts.ndim == 1 else parts.reshape(len(parts), -1)
        _column(parts[:, :1].ravel(), len(target), f"values[{variable!r}]")
        single = parts.shape[1] == 1
        names += [variable if single else f"{variable}[{i}]" for i in range(parts.shape[1])]
        columns.append(parts)
    known = ~np.isnan(target)
    matrix = np.concatenate(columns, axis=1)[known] if columns else np.zeros((known.sum(), 0))
    filled = np.where(np.isnan(matrix), -np.inf, matrix)
    varies = [np.unique(column[np.isfinite(column)]).size > 1 for column in filled.T]
    return target[known], list(itertools.compress(names, varies)), matrix[:, varies]


def _design(standard: FloatArray) -> FloatArray:
    """Returns columns: 1, the values (0 where not set), and once each who was set when."""
    unset = np.isnan(standard)
    levels = np.unique(unset[:, unset.any(axis=0)], axis=1).astype(np.float64)
    return np.column_stack([np.ones(len(standard)), np.where(unset, 0.0, standard), levels])


def _slopes(
    design: FloatArray,
    target: FloatArray,
    rng: np.random.Generator,
    resamples: int,
    independent: int,
) -> tuple[FloatArray, FloatArray]:
    """Returns least-squares slopes and (resample, slope) bootstrap draws of them.

    A draw takes each episode some number of times. What that does to the slopes is computed to
    first order, with residuals corrected for leverage (HC3): one solve in place of thousands, and
    right for scores whose spread changes with the value.
    """
    episodes, size = design.shape
    if episodes < size + 2:
        raise InvalidValueError(
            explain(
                f"{episodes} episodes cannot tell {size - 1} variables apart",
                allowed=f"at least {size + 2} scored episodes",
                fix="Evaluate more episodes or name fewer variables",
            )
        )
    # The pseudo-inverse splits an effect between variables that always move together.
    inverse = np.linalg.pinv(design.T @ design, rcond=1e-10, hermitian=True)
    slopes = inverse @ (design.T @ target)
    leverage = np.clip(np.sum((design @ inverse) * design, axis=1), 0.0, 0.99)
    pull = design * ((target - design @ slopes) / (1 - leverage))[:, None] @ inverse
    drawn = np.empty((resamples, size))
    chunk = max(1, _NUMBERS_AT_ONCE // episodes)
    for start in range(0, resamples, chunk):
        some = slice(start, min(start + chunk, resamples))
        shares = np.full(episodes, 1 / episodes)
        counts = rng.multinomial(independent, shares, drawn[some].shape[0])
        drawn[some] = slopes + (counts * (episodes / independent) - 1.0) @ pull
    return slopes, drawn


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
            explain(f"confidence must be a share, got {confidence}", allowed="above 0, below 1")
        )
    tail = (1 - confidence) / 2
    low, high = (np.nan, np.nan)
    # Draws that are all one number would claim a certainty nobody has.
    if not np.isnan(drawn).any() and varies(drawn[:, None]):
        low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(estimate=np.asarray(estimate), low=np.asarray(low), high=np.asarray(high))


def _flat(scores: ArrayLike) -> FloatArray:
    return np.asarray(scores, dtype=np.float64).ravel()


def _labels(alike: ArrayLike | None, length: int) -> NDArray[np.generic]:
    return np.arange(length) if alike is None else _column(alike, length, "alike")


def _column(values: ArrayLike, length: int, name: str) -> NDArray[np.generic]:
    column = np.asarray(values)
    if column.shape != (length,):
        raise InvalidValueError(
            explain(f"{name} has shape {column.shape}", allowed=f"one entry per score, ({length},)")
        )
    return column
