"""Places of things: boxes that must not meet, walls to stand along, tops to stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.art.rooms.kit import Top

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]  # lowest and highest corner, metres
QUARTER = np.pi / 2
_TOUCH = 1e-4  # things that share a face do not meet, m


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Where a thing stands: its origin, and its turn about the vertical (0 faces -y), radians."""

    position: Floats
    yaw: float

    def apply(self, points: ArrayLike) -> Floats:
        """Returns points (..., 3) of the thing's own frame in the room."""
        local = np.asarray(points, dtype=float)
        cos, sin = np.cos(self.yaw), np.sin(self.yaw)
        x, y = local[..., 0], local[..., 1]
        turned = np.stack([cos * x - sin * y, sin * x + cos * y, local[..., 2]], axis=-1)
        return turned + self.position

    def bounds(self, own: Bounds) -> Bounds:
        """Returns the box around a box of the thing's own frame."""
        corners = self.apply(corners_of(own))
        return corners.min(axis=0), corners.max(axis=0)

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """The turn as w, x, y, z, as MuJoCo has it."""
        return float(np.cos(self.yaw / 2)), 0.0, 0.0, float(np.sin(self.yaw / 2))


class PlacedTop(NamedTuple):
    """A top in the room: the pose of what it belongs to."""

    top: Top
    pose: Pose


@final
@dataclass(slots=True)
class Occupancy:
    """The boxes of a room that are taken."""

    size: tuple[float, float, float]
    lows: list[Floats] = field(default_factory=list)
    highs: list[Floats] = field(default_factory=list)

    def copy(self) -> Occupancy:
        """Returns an occupancy that can be filled further by itself."""
        return Occupancy(self.size, list(self.lows), list(self.highs))

    def without(self, boxes: Sequence[Bounds]) -> Occupancy:
        """Returns an occupancy in which these boxes are free again."""
        rest = Occupancy(self.size)
        for low, high in zip(self.lows, self.highs, strict=True):
            if not any(np.array_equal(low, b[0]) and np.array_equal(high, b[1]) for b in boxes):
                rest.add((low, high))
        return rest

    def add(self, box: Bounds) -> None:
        """Takes a box."""
        self.lows.append(box[0])
        self.highs.append(box[1])

    def inside(self, box: Bounds) -> bool:
        """Returns whether a box lies between the walls."""
        half = np.array([self.size[0] / 2, self.size[1] / 2])
        low, high = box
        flat = bool(np.all(low[:2] >= -half - _TOUCH) and np.all(high[:2] <= half + _TOUCH))
        return flat and bool(low[2] >= -_TOUCH and high[2] <= self.size[2] + _TOUCH)

    def meets(self, box: Bounds) -> bool:
        """Returns whether a box meets one that is taken."""
        if not self.lows:
            return False
        low, high = box
        apart = (np.array(self.lows) >= high - _TOUCH) | (np.array(self.highs) <= low + _TOUCH)
        return not bool(np.all(np.any(apart, axis=1)))

    def free(self, box: Bounds) -> bool:
        """Returns whether a box lies in the room and meets nothing."""
        return self.inside(box) and not self.meets(box)


def corners_of(box: Bounds) -> Floats:
    """Returns the eight corners (8, 3) of a box."""
    low, high = box
    pick = np.indices((2, 2, 2)).reshape(3, 8).T
    return np.where(pick == 0, low, high)


def union(*boxes: Bounds) -> Bounds:
    """Returns the box around boxes."""
    return np.min([b[0] for b in boxes], axis=0), np.max([b[1] for b in boxes], axis=0)


def wall_pose(
    size: tuple[float, float, float], wall: int, along: float, *, back: float, height: float = 0.0
) -> Pose:
    """Returns the pose of a thing whose back, so far behind its origin, is against a wall.

    Wall 0 is +y, then against the clock: -x, -y, +x. `along` is its place from the wall's middle.
    """
    yaw = wall * QUARTER
    away = size[1 - wall % 2] / 2 - back
    turn = Pose(np.zeros(3), yaw)
    return Pose(turn.apply((along, away, height)), yaw)


def wall_length(size: tuple[float, float, float], wall: int) -> float:
    """Returns how long a wall is."""
    return size[wall % 2]


def against_wall(
    rng: np.random.Generator,
    taken: Occupancy,
    own: Bounds,
    *,
    heights: tuple[float, float] = (0.0, 0.0),
    gap: float = 0.01,
    tries: int = 40,
) -> Pose | None:
    """Returns a free pose against a wall, or None after so many tries.

    `own` is the box in the thing's own frame, with all the room that its parts need.
    """
    low, high = own
    for _ in range(tries):
        wall = int(rng.integers(4))
        room = wall_length(taken.size, wall) / 2
        first, last = -room - low[0] + 0.02, room - high[0] - 0.02
        height = rng.uniform(*heights)
        if last <= first:
            continue
        along = rng.uniform(first, last)
        if rng.random() < 0.4:  # corners are where people put things
            along = first if rng.random() < 0.5 else last
        pose = wall_pose(taken.size, wall, along, back=high[1] + gap, height=height)
        if taken.free(pose.bounds(own)):
            return pose
    return None


def on_floor(
    rng: np.random.Generator, taken: Occupancy, own: Bounds, *, tries: int = 40
) -> Pose | None:
    """Returns a free pose away from the walls, or None after so many tries."""
    half = np.array(taken.size[:2]) / 2 - 0.5
    for _ in range(tries):
        x, y = rng.uniform(-half, half)
        pose = Pose(np.array([x, y, 0.0]), QUARTER * int(rng.integers(4)))
        if taken.free(pose.bounds(own)):
            return pose
    return None


def on_top(
    rng: np.random.Generator,
    taken: Occupancy,
    place: PlacedTop,
    foot: Bounds,
    own: Bounds,
    *,
    tries: int = 25,
) -> Pose | None:
    """Returns a free pose on a top, or None; the foot stays on it, the rest may overhang."""
    low, high = np.array(place.top.low), np.array(place.top.high)
    back = place.top.counter and own[1][1] - own[0][1] > 0.3  # what is deep stands at the wall
    for _ in range(tries):
        turn = 0.0 if back else float(rng.uniform(-0.5, 0.5))
        still = Pose(np.zeros(3), turn).bounds(foot)
        first, last = low - still[0][:2], high - still[1][:2]
        if np.any(last <= first):
            continue
        x, y = rng.uniform(first, last)
        if back:
            y = last[1]
        origin = place.pose.apply((x, y, place.top.height))
        pose = Pose(origin, place.pose.yaw + turn)
        if taken.free(pose.bounds(own)):
            return pose
    return None


def clear_share(eye: Floats, points: Floats, lows: Floats, highs: Floats) -> float:
    """Returns the share of points (P, 3) that a straight line from the eye reaches past boxes."""
    if len(lows) == 0:
        return 1.0
    way = points - eye
    way = np.where(np.abs(way) < 1e-9, 1e-9, way)
    first = (lows[None] - eye) / way[:, None]
    second = (highs[None] - eye) / way[:, None]
    enter = np.minimum(first, second).max(axis=2)
    leave = np.maximum(first, second).min(axis=2)
    blocked = (enter < leave) & (leave > 0) & (enter < 1)
    return float(1.0 - blocked.any(axis=1).mean())
