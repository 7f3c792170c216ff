"""The structured observation: which number stands where, and what range it is mapped from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.robot import action_bounds

Array = Any  # a NumPy array or a Torch tensor
FloatArray = NDArray[np.float64]

# Type numbers of objects, as the original observes them.
CUBE, MESH, FIXED, GOAL_CUBE, GOAL_SPHERE, GOAL_MESH = 1, 2, 10, 20, 21, 23

_TIPS = ((-0.5, -0.5, 0.0), (0.5, 0.5, 0.5))
_BOUNDS: Mapping[str, tuple[Any, Any]] = {  # what becomes -1 and 1
    "type": (-1.0, 1.0),  # never mapped
    "size": (0.03, 0.1),
    "cartesian_position": _TIPS,
    "orientation": (-10.0, 10.0),
    "linear_velocity": (-0.5, 0.5),
    "angular_velocity": (-np.pi, np.pi),
}
ROBOT = (
    "time_left_for_task",
    "joint_positions",
    "joint_velocities",
    "end_effector_positions",
)
_WIDTHS = {"type": 1, "orientation": 4}
STILL = ("type", "size", "cartesian_position", "orientation")
MOVING = (*STILL, "linear_velocity", "angular_velocity")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where everything stands in the flat observation.

    Attributes:
        slices: key -> slice, in order.
        low, high: the raw numbers that become -1 and 1, (width,).
        columns: for each place, its column in the parts laid side by side (blocks, then goals).
    """

    slices: Mapping[str, slice]
    low: FloatArray
    high: FloatArray
    columns: NDArray[np.int64]

    @property
    def width(self) -> int:
        """How many numbers an observation has."""
        return len(self.low)

    def normalise(self, raw: Array) -> Array:
        """Returns raw observations mapped so that [low, high] becomes [-1, 1], not clipped."""
        return 2.0 * (raw - self.low) / (self.high - self.low) - 1.0

    def sensed(self) -> FloatArray:
        """Returns what one unit of sensor noise means: half a number's range, 0 for what is known.

        Joints, fingertips and blocks are sensed; time, goals, types, sizes and flags are known.
        """
        scale = (self.high - self.low) / 2.0
        for name, part in self.slices.items():
            owner, _, key = name.partition("/")
            robot = name in ROBOT[1:]
            block = owner.startswith("block_") and key not in ("type", "size")
            if not (robot or block):
                scale[part] = 0.0
        return scale


@final
@dataclass(frozen=True, slots=True)
class Group:
    """One object of the observation: its name and the keys it shows."""

    name: str
    keys: tuple[str, ...] = STILL


def layout(
    groups: Sequence[Group],
    stored: Sequence[str],
    *,
    seconds: float,
    more: Mapping[str, int] = MappingProxyType({}),
) -> Layout:
    """Returns the layout of robot, objects and what follows them.

    Args:
        groups: the objects in the order they are observed.
        stored: their names in the order their numbers are laid side by side.
        seconds: length of an episode.
        more: what follows as it is, by name: a mask of the blocks in use, keys of one's own.
    """
    low_joints, high_joints = action_bounds("joint_positions")
    parts: list[tuple[str, Any, Any, int]] = [
        ("time_left_for_task", 0.0, seconds, 1),
        ("joint_positions", low_joints, high_joints, 9),
        ("joint_velocities", -50.0, 50.0, 9),
        ("end_effector_positions", _TIPS[0] * 3, _TIPS[1] * 3, 9),
    ]
    robot = sum(width for *_, width in parts)
    widths = {g.name: sum(_WIDTHS.get(key, 3) for key in g.keys) for g in groups}
    starts = dict(zip(stored, robot + np.cumsum([0, *(widths[n] for n in stored)]), strict=False))
    columns = [np.arange(robot)]
    for group in groups:
        columns.append(starts[group.name] + np.arange(widths[group.name]))
        for key in group.keys:
            parts.append((f"{group.name}/{key}", *_BOUNDS[key], _WIDTHS.get(key, 3)))
    start = robot + sum(widths.values())
    for name, width in more.items():
        parts.append((name, -1.0, 1.0, width))
        columns.append(start + np.arange(width))
        start += width
    return _assemble(parts, np.concatenate(columns))


def _assemble(parts: Sequence[tuple[str, Any, Any, int]], columns: NDArray[np.int64]) -> Layout:
    slices, lows, highs, start = {}, [], [], 0
    for name, low, high, width in parts:
        slices[name] = slice(start, start + width)
        lows.append(np.broadcast_to(np.asarray(low, dtype=np.float64), (width,)))
        highs.append(np.broadcast_to(np.asarray(high, dtype=np.float64), (width,)))
        start += width
    return Layout(MappingProxyType(slices), np.concatenate(lows), np.concatenate(highs), columns)
