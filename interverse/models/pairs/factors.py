"""True factors of pairs: camera, light, and the object acted on, one column each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.metrics.representation import Kind

Values = Mapping[str, NDArray[Any]]
_PROPERTIES = ("open", "on", "dirty", "broken")
_FORM = ("width", "depth", "height", "hue", "saturation", "lightness", "gloss", "wear")
_FIELDS = ("position", "yaw", "class", *_FORM)
_PARTS = {"position": "xyz", "color": "rgb"}


def pair_factors(before: Values, after: Values) -> dict[str, NDArray[np.float64]]:
    """Returns every factor of the pairs by name, (N, 2) before and after.

    Vectors become columns, such as camera/position/x. Of objects, the one acted on counts: its
    state (open, on, dirty, broken), position, yaw and class, and its form where that is open.

    Args:
        before: the world's variables before the action, (N, ...) each.
        after: the same after it.
    """
    out: dict[str, NDArray[np.float64]] = {}
    for name in before:
        if name.startswith(("camera/", "light/")):
            out |= _columns(name, before[name], after[name])
    if "object/state" not in before:
        return out
    both = [_acted_on(values, after) for values in (before, after)]
    for place, name in enumerate(_PROPERTIES):
        out[name] = np.stack([values["state"][:, place] for values in both], axis=1)
    for field in _FIELDS:
        if field in both[0]:
            out |= _columns(f"object/{field}", *(values[field] for values in both))
    return out


def factor_kinds(names: Sequence[str]) -> list[Kind]:
    """Returns what each factor is: a number, an angle or a class."""
    kinds: dict[str, Kind] = {"yaw": "angle", "class": "categorical"}
    return [kinds.get(name.rpartition("/")[2], "continuous") for name in names]


def _columns(name: str, *moments: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    values = np.stack(moments, axis=1).astype(np.float64)
    if values.ndim == 2:
        return {name: values}
    letters = _PARTS.get(name.rpartition("/")[2], "".join(map(str, range(values.shape[2]))))
    return {f"{name}/{letter}": values[..., at] for at, letter in enumerate(letters)}


def _acted_on(values: Values, after: Values) -> dict[str, NDArray[np.float64]]:
    """Returns the variables of the object that the action was done to."""
    count = len(values["object/state"])
    slot = np.asarray(after.get("action/object", np.zeros(count))).ravel().astype(int)
    out = {}
    for field in ("state", *_FIELDS):
        if f"object/{field}" not in values:
            continue
        found = np.array(values[f"object/{field}"], dtype=np.float64)
        for other in np.unique(slot[slot > 0]):
            found[slot == other] = values[f"object_{other}/{field}"][slot == other]
        out[field] = found
    return out
