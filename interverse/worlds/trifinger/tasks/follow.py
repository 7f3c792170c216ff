"""The consequences of a size: block and goal share it, and stand on the floor again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from interverse.core.arrays import to_numpy
from interverse.core.errors import explain
from interverse.scm.store import Rows

Array = Any
Edge = tuple[str, str]


def same_size(rows: Rows, given: Collection[str], *, seated: Collection[str]) -> dict[int, str]:
    """Copies the size of block 0 to goal 0 or back, and seats what has no given position.

    Args:
        rows: of the store; changed in place.
        given: the variables that an intervention names.
        seated: which of "block" and "goal" stand on the floor.

    Returns:
        By row, why two given sizes cannot be.
    """
    refused: dict[int, str] = {}
    both = "goal_0/size" in given, "block_0/size" in given
    if all(both):
        differ = to_numpy((rows["block/size"][:, 0] != rows["goal/size"][:, 0]).any(axis=-1))
        refused = dict.fromkeys(np.flatnonzero(differ).tolist(), _CONTRADICTION)
    if both[0]:
        rows["block/size"][:, 0] = rows["goal/size"][:, 0]
    elif both[1]:
        rows["goal/size"][:, 0] = rows["block/size"][:, 0]
    else:
        return refused
    for kind in seated:
        if not position_given(f"{kind}_0", given):
            rows[f"{kind}/position"][:, 0, 2] = rows[f"{kind}/size"][:, 0, 2] / 2
    return refused


_CONTRADICTION = explain(
    "block_0/size and goal_0/size describe one thing and disagree",
    fix="Set one of them, or give values that agree",
)


def position_given(name: str, given: Collection[str]) -> bool:
    """Returns whether an intervention places an object."""
    return f"{name}/cartesian_position" in given or f"{name}/cylindrical_position" in given


def size_edges(objects: Collection[str]) -> Sequence[Edge]:
    """Returns the edges from a size to the place of its object."""
    return [(f"{name}/size", f"{name}/cartesian_position") for name in objects]


def size_constraints() -> Sequence[Edge]:
    """Returns that block 0 and goal 0 have one size."""
    return [("block_0/size", "goal_0/size")]
