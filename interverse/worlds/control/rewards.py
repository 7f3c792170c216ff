"""The suite's reward curve for single numbers, bit for bit, without the cost of small arrays.

Tasks of the suite call `rewards.tolerance` up to five times a step, each time on one number, and
arrays of one number cost more than the physics.
"""

from __future__ import annotations

import functools
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.control.compat import rewards

_VALUE_AT_MARGIN = 0.1  # the suite's default


def tolerance(
    x: Any,
    bounds: tuple[float, float] = (0.0, 0.0),
    margin: float = 0.0,
    sigmoid: str = "gaussian",
    value_at_margin: float = _VALUE_AT_MARGIN,
) -> Any:
    """Returns 1 inside the bounds and less outside, as dm_control's function of that name does."""
    single = isinstance(x, float)
    lower, upper = bounds
    about_zero = type(x) is np.ndarray and x.size > 1 and lower == upper == 0.0 and margin > 0
    if about_zero and sigmoid in ("gaussian", "quadratic"):
        return _fallen_all(x / margin * _scale(sigmoid, value_at_margin), sigmoid)
    if not (single or (type(x) is np.ndarray and x.shape == (1,))) or not lower <= upper:
        return rewards.tolerance(x, bounds, margin, sigmoid, value_at_margin)
    number = float(x) if single else x.item()
    if lower <= number <= upper and margin >= 0:
        value = 1.0
    elif margin == 0:
        value = 0.0
    elif sigmoid in ("gaussian", "linear", "quadratic") and margin > 0:
        away = (lower - number if number < lower else number - upper) / margin
        value = _fallen(away, sigmoid, value_at_margin, single=single)
    else:
        return rewards.tolerance(x, bounds, margin, sigmoid, value_at_margin)
    return float(value) if single else np.array([value])


def _fallen(away: float, sigmoid: str, value_at_margin: float, *, single: bool) -> float:
    """Returns the value at a distance, in margins."""
    scaled = away * _scale(sigmoid, value_at_margin)
    if sigmoid == "linear":
        return 1 - scaled if abs(scaled) < 1 else 0.0
    square = float(np.float64(scaled) ** 2) if single else scaled * scaled  # as NumPy has each
    if sigmoid == "quadratic":
        return 1 - square if abs(scaled) < 1 else 0.0
    return float(np.exp(-0.5 * square))


def _fallen_all(scaled: NDArray[np.float64], sigmoid: str) -> NDArray[np.float64]:
    """Returns the values of several numbers about zero."""
    square = scaled * scaled
    if sigmoid == "quadratic":
        return np.where(square < 1, 1 - square, 0.0)
    return np.exp(-0.5 * square)


@functools.cache
def _scale(sigmoid: str, value_at_margin: float) -> float:
    if sigmoid == "linear":
        return 1 - value_at_margin
    if sigmoid == "quadratic":
        return float(np.sqrt(1 - value_at_margin))
    return float(np.sqrt(-2 * np.log(value_at_margin)))


def with_fast_rewards(task: Any) -> Any:
    """Returns a task of the suite whose methods call `tolerance` of this module."""
    ours = SimpleNamespace(**{**vars(rewards), "tolerance": tolerance})
    kind = type(task)
    methods = {
        name: _rebound(method, ours)
        for parent in reversed(kind.__mro__)
        for name, method in vars(parent).items()
        if isinstance(method, FunctionType) and "rewards" in method.__code__.co_names
    }
    task.__class__ = type(kind.__name__, (kind,), methods)
    return task


def _rebound(method: FunctionType, ours: SimpleNamespace) -> FunctionType:
    """Returns a method that finds our functions under the name `rewards`."""
    names = {**method.__globals__, "rewards": ours}
    parts = method.__code__, names, method.__name__, method.__defaults__, method.__closure__
    return FunctionType(*parts)
