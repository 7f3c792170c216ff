"""Scores of episodes from their steps: fractional success, time to success, return.

Every function takes an array whose last axis is time and returns one number per episode. Episodes
of unequal length are padded on the right; `length` then says how many steps of each count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError

FloatArray = NDArray[np.float64]

LAST_STEPS = 20
SOLVED = 0.9  # of the fraction at the end, as the field counts a task as done


def last(success: ArrayLike, length: ArrayLike | None = None) -> FloatArray:
    """Returns the success at each episode's last step (CausalWorld's published score).

    >>> last([[0.1, 0.5, 0.9], [0.2, 0.4, 0.0]], length=[3, 2]).tolist()
    [0.9, 0.4]
    """
    steps, count = _episodes(success, length)
    return np.take_along_axis(steps, count[..., None] - 1, axis=-1)[..., 0]


def solved(success: ArrayLike, length: ArrayLike | None = None) -> FloatArray:
    """Returns whether an episode ends with a fractional success above .9, as 0 or 1.

    >>> solved([[0.1, 0.95, 0.92], [0.2, 1.0, 0.9]]).tolist()
    [1.0, 0.0]
    """
    return (last(success, length) > SOLVED).astype(np.float64)


def mean(success: ArrayLike, length: ArrayLike | None = None) -> FloatArray:
    """Returns the success averaged over all steps of each episode.

    >>> mean([[0.0, 0.5, 1.0]]).tolist()
    [0.5]
    """
    steps, count = _episodes(success, length)
    return _mean_where(steps, _within(steps, count))


def last_20(
    success: ArrayLike, length: ArrayLike | None = None, *, legacy: bool = False
) -> FloatArray:
    """Returns the success averaged over the last 20 steps of each episode (all, if fewer).

    Args:
        success: (..., step).
        length: (...,) steps that count; all by default.
        legacy: the first step and the last 19, as the original benchmark computes by an index
            that runs from -19 to 0. An episode of fewer than 20 steps then counts its first twice.

    >>> ramp = [[0.0] * 10 + [1.0] * 20]
    >>> float(last_20(ramp)[0]), float(last_20(ramp, legacy=True)[0])
    (1.0, 0.95)
    """
    steps, count = _episodes(success, length)
    wanted = LAST_STEPS - legacy
    index = np.arange(steps.shape[-1])
    tail = _within(steps, count) & (index >= count[..., None] - wanted)
    if not legacy:
        return _mean_where(steps, tail)
    total = np.where(tail, steps, 0.0).sum(axis=-1) + steps[..., 0]
    return total / (tail.sum(axis=-1) + 1)


def last_20_legacy(success: ArrayLike, length: ArrayLike | None = None) -> FloatArray:
    """Returns the mean success of the first step and the last 19, as CausalWorld computed it."""
    return last_20(success, length, legacy=True)


def peak(success: ArrayLike, length: ArrayLike | None = None) -> FloatArray:
    """Returns the greatest success at any step of each episode.

    >>> peak([[0.1, 0.5, 0.9]], length=[2]).tolist()
    [0.5]
    """
    steps, count = _episodes(success, length)
    return np.where(_within(steps, count), steps, -np.inf).max(axis=-1)


def time_to_success(
    success: ArrayLike, length: ArrayLike | None = None, *, threshold: float = 0.99, dt: float = 1.0
) -> FloatArray:
    """Returns when success first reached the threshold; infinity where it never did.

    Infinity, not NaN: an episode that never succeeds has a score, the worst one, and a median over
    episodes stays right.

    Args:
        success: (..., step), after each step.
        length: (...,) steps that count; all by default.
        threshold: what counts as solved.
        dt: seconds in a step; with 1 the answer is a number of steps.

    >>> time_to_success([[0.2, 1.0, 0.3], [0.0, 0.1, 0.2]], dt=0.04).tolist()
    [0.08, inf]
    """
    if not dt > 0:
        raise InvalidValueError(f"dt must be > 0 (seconds), got {dt}")
    steps, count = _episodes(success, length)
    solved = (steps >= threshold) & _within(steps, count)
    return np.where(solved.any(axis=-1), (solved.argmax(axis=-1) + 1) * dt, np.inf)


def episode_return(rewards: ArrayLike, length: ArrayLike | None = None) -> FloatArray:
    """Returns the sum of each episode's rewards.

    >>> episode_return([[1.0, 2.0, 4.0]], length=[2]).tolist()
    [3.0]
    """
    steps, count = _episodes(rewards, length)
    return np.where(_within(steps, count), steps, 0.0).sum(axis=-1)


def _episodes(values: ArrayLike, length: ArrayLike | None) -> tuple[FloatArray, NDArray[np.int64]]:
    """Returns (..., step) floats and the number of steps of each episode, both checked."""
    steps = np.asarray(values, dtype=np.float64)
    if steps.ndim == 0 or steps.shape[-1] == 0:
        raise InvalidValueError(
            f"an episode needs at least one step, got an array of shape {steps.shape}",
            allowed="(..., step) with step >= 1",
        )
    lengths = np.asarray(steps.shape[-1] if length is None else length)
    whole = np.issubdtype(lengths.dtype, np.integer)
    if not whole or np.any(lengths < 1) or np.any(lengths > steps.shape[-1]):
        shown = np.array2string(np.asarray(length), threshold=6).replace("\n", " ")
        raise InvalidValueError(
            f"length must count steps of the episode, got {shown}",
            allowed=f"whole numbers from 1 to {steps.shape[-1]}",
        )
    try:
        count = np.broadcast_to(lengths, steps.shape[:-1])
    except ValueError:
        raise InvalidValueError(
            f"length has shape {lengths.shape}",
            allowed=f"one length per episode, {steps.shape[:-1]}",
        ) from None
    return steps, count.astype(np.int64)


def _within(steps: FloatArray, count: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.arange(steps.shape[-1]) < count[..., None]


def _mean_where(steps: FloatArray, mask: NDArray[np.bool_]) -> FloatArray:
    return np.where(mask, steps, 0.0).sum(axis=-1) / mask.sum(axis=-1)
