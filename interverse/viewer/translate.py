"""Between a variable's value and the numbers that its control shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.core.errors import InvalidValueError, explain
from interverse.core.files.json_text import parse_json
from interverse.viewer.widgets import Widget

Shown = Any  # bool, int, float, text, or a tuple of numbers, as the control holds it
_DIGITS = 6
_SAME = 1e-9


def shown(widget: Widget, value: NDArray[Any]) -> Shown:
    """Returns what a control shows for a value.

    >>> from interverse.envs import make
    >>> from interverse.viewer.widgets import widget_of
    >>> variable = make("tutorial/slider-v1").variables["box/color"]
    >>> shown(widget_of(variable, variable.default), variable.default)
    (217, 140, 128)
    """
    array = np.asarray(value)
    if widget.kind == "text":
        return json.dumps(_rounded(array).tolist())
    if widget.kind == "switch":
        return bool(array)
    if widget.kind == "choice":
        return widget.labels[int(array) - widget.first]
    if widget.kind == "color":
        return tuple(int(x) for x in np.round(255.0 * np.clip(array, 0.0, 1.0)))
    if widget.kind == "rotation":
        array = _angles(array)
    numbers = tuple(_tidy(x) for x in array.ravel().tolist())
    return numbers if array.ndim else numbers[0]


def value_from(widget: Widget, present: NDArray[Any], given: Shown) -> NDArray[Any]:
    """Returns the value that a changed control means.

    A number that the person left alone keeps every digit that it has in the world.

    Args:
        widget: the control's.
        present: the variable's value now.
        given: what the control shows now.
    """
    if widget.kind == "text":
        new = _parsed(widget, given)
        if new.shape != np.shape(present):
            return new  # the world says what shape it wants
        return np.where(_alike(_rounded(present), new), present, new)
    if widget.kind == "switch":
        return np.array(int(given))
    if widget.kind == "choice":
        if given not in widget.labels:
            raise InvalidValueError(
                explain(f"{widget.name} is {str(given)[:60]!r}", allowed=", ".join(widget.labels))
            )
        return np.array(widget.labels.index(given) + widget.first)
    was = np.asarray(shown(widget, present), dtype=np.float64)
    new = np.asarray(given, dtype=np.float64)
    if widget.kind == "rotation":
        same = _alike(was, new)
        angles = np.where(same, _angles(present), new)
        return np.array(present) if same.all() else _quaternion(angles)
    scaled = new / 255.0 if widget.kind == "color" else new
    mixed = np.where(_alike(was, new), np.asarray(present, dtype=np.float64), scaled)
    return np.round(mixed).astype(np.int64) if widget.whole else mixed


def _alike(was: NDArray[Any], new: NDArray[Any]) -> NDArray[np.bool_]:
    return np.abs(was - new) <= _SAME * np.maximum(1.0, np.abs(was))


def _tidy(number: float | int) -> float | int:
    return number if isinstance(number, int) else float(f"{number:.{_DIGITS}g}")


def _rounded(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype.kind in "biu" else np.vectorize(_tidy, otypes=[float])(array)


def _angles(quaternion: NDArray[Any]) -> NDArray[np.float64]:
    """Returns roll, pitch and yaw in degrees."""
    return Rotation.from_quat(quaternion).as_euler("xyz", degrees=True) + 0.0  # no minus zero


def _quaternion(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns x, y, z, w, with w >= 0."""
    return Rotation.from_euler("xyz", angles, degrees=True).as_quat(canonical=True)


def _parsed(widget: Widget, text: str) -> NDArray[Any]:
    try:
        return np.array(parse_json(text, widget.name))
    except (ValueError, OverflowError) as error:
        raise InvalidValueError(
            explain(
                f"{widget.name} is {text[:60]!r}, which is no JSON: {error}",
                allowed=f"nested lists of shape {list(widget.shape)}",
            )
        ) from error
