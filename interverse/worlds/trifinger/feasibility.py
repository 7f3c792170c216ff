"""The rules by which an intervention is refused, and what refusals say.

An intervention is refused for what it makes worse: a pair that was as deep before, or a goal that
did not move, is no reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interverse.core.arrays import like, namespace, to_numpy
from interverse.worlds.trifinger.penetration import Depths
from interverse.worlds.trifinger.rewards import bounds

Array = Any  # a NumPy array or a Torch tensor

ARENA = ((-0.15, -0.15, 0.0), (0.15, 0.15, 0.3))  # the box that goals must be in, m
GOAL_SHARE = 0.5  # of a goal's volume that must be in the arena
GOAL_FLOOR = -0.01  # the lowest point a goal may have, m
_WORSE = 1e-9  # m by which a depth must grow to count


def worse(after: Depths, before: Depths) -> dict[int, str]:
    """Returns, by row, the reason for each world that has a pair deeper than allowed and before."""
    deep, was, limit = (to_numpy(a) for a in (after.depth, before.depth, after.limit))
    bad = (deep > limit) & (deep > was + _WORSE)
    excess = np.where(bad, deep - limit, -np.inf)
    reasons = {}
    for row in np.flatnonzero(bad.any(axis=1)).tolist():
        k = int(np.argmax(excess[row]))
        a, b = after.pairs[k]
        reasons[row] = (
            f"{a} would stand {deep[row, k] * 1e3:.1f} mm deep in {b}. "
            f"Allowed: {limit[row, k] * 1e3:.1f} mm."
        )
    return reasons


def goal_place(
    position: Array, orientation: Array, size: Array, *, tall: bool = False
) -> tuple[Array, Array]:
    """Returns the share of each goal in the arena and its lowest point, two arrays (N, G).

    The share compares the part of its bounding box in the arena with its own volume. With `tall`
    the arena has no upper end: what a task builds may be as high as its variables say.
    """
    xp = namespace(position)
    box = bounds(position, orientation, size)
    low, high = box[..., 0, :], box[..., 1, :]
    top = np.inf if tall else ARENA[1][2]
    least, most = like(ARENA[0], position), like((*ARENA[1][:2], top), position)
    edges = (xp.minimum(high, most) - xp.maximum(low, least)).clip(0.0, None)
    inside = edges[..., 0] * edges[..., 1] * edges[..., 2]
    return inside / (size[..., 0] * size[..., 1] * size[..., 2]), low[..., 2]


def goal_reasons(
    names: tuple[str, ...], goals: tuple[Array, Array, Array], moved: Array, *, tall: bool = False
) -> dict[int, str]:
    """Returns, by row, why a goal that moved may not be where it is.

    Args:
        names: of the goals.
        goals: positions (N, G, 3), orientations (N, G, 4) and sizes (N, G, 3).
        moved: (N, G), which ones to look at.
        tall: whether they may reach above the arena.
    """
    share, lowest = goal_place(*goals, tall=tall)
    outside, sunk = moved & (share < GOAL_SHARE), moved & (lowest < GOAL_FLOOR)
    bad = np.flatnonzero(to_numpy((outside | sunk).any(axis=1))).tolist()
    if not bad:
        return {}
    share, lowest, outside, sunk = (to_numpy(a) for a in (share, lowest, outside, sunk))
    reasons = {}
    for row in bad:
        if outside[row].any():
            k = int(np.argmax(outside[row]))
            reasons[row] = (
                f"{names[k]} would be {share[row, k]:.0%} inside the arena. "
                f"Allowed: {GOAL_SHARE:.0%} or more of x, y in [-0.15, 0.15] m, z in [0, 0.3] m."
            )
        else:
            k = int(np.argmax(sunk[row]))
            reasons[row] = (
                f"{names[k]} would reach {-lowest[row, k] * 1e3:.1f} mm below the floor. "
                f"Allowed: {-GOAL_FLOOR * 1e3:.0f} mm."
            )
    return reasons
