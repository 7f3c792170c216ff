"""Views of a camera: free places of the floor from which an object is seen well."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.rooms.placing import Bounds, clear_share, corners_of
from interverse.worlds.rooms.room import Room

Floats = NDArray[np.float64]
TRIES = 10
NUMBERS = 6  # uniform numbers a try takes
_EYE = (1.2, 1.65)  # heights of the camera, m
_GRID = 0.2  # between places to stand, m
_BODY = 0.18  # nothing stands nearer to the camera's foot, m
_HIP = 1.1  # what is lower than this keeps a camera away, m
_LARGEST, _SMALLEST = 0.5, 0.12  # of the picture's side that the object looked at spans
_CLEAR = 0.7  # share of an object's corners that must be in sight
_FOV = (np.radians(60.0), np.radians(85.0))
_CLOSE_UP = 1.25  # how much wider than the object a close-up is


class RoomView(NamedTuple):
    """A camera: its place (3,), and yaw, pitch and angle of view in radians."""

    position: Floats
    yaw: float
    pitch: float
    fov: float

    @property
    def quaternion(self) -> Floats:
        """The camera's turn as w, x, y, z: it looks along its own -z."""
        half, tilt = self.yaw / 2, (np.pi / 2 + self.pitch) / 2
        a, b, c, d = np.cos(half), np.sin(half), np.cos(tilt), np.sin(tilt)
        return np.array([a * c, a * d, b * d, b * c])


def wrap(angle: float) -> float:
    """Returns the angle in [-pi, pi]."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def stands_free(room: Room, place: Floats) -> bool:
    """Returns whether a camera can be at a place: between the walls and in no furniture."""
    half = np.array(room.size[:2]) / 2 - 0.05
    if np.any(np.abs(place[:2]) > half) or not 0.05 <= place[2] <= room.size[2] - 0.05:
        return False
    lows, highs = np.array(room.taken.lows), np.array(room.taken.highs)
    return not bool(np.any(np.all((place > lows) & (place < highs), axis=1)))


def is_possible(room: Room, place: Floats) -> bool:
    """Returns whether a camera may be set to a place: it is free, or one that views are drawn from.

    Views are drawn from where a person can stand: the box of a high cupboard may reach there.
    """
    if stands_free(room, place):
        return True
    on_grid = np.any(np.all(_places(room) == place[:2], axis=1))
    return bool(on_grid and _EYE[0] <= place[2] <= _EYE[1])


def choose_view(
    room: Room,
    boxes: Sequence[Bounds],
    target: int,
    numbers: Floats,
    *,
    close: bool,
    side: int | None = None,
) -> RoomView:
    """Returns a camera that sees one of the boxes in clear sight, and another if it can.

    `boxes` are of the items, closed; `target` is the one looked at, which fills the picture if
    `close`. Side 0 stands in the nearer half of the places, 1 in the farther, None anywhere.
    `numbers` are (TRIES, NUMBERS) uniform ones.
    """
    floor = _places(room)
    box = boxes[target]
    others = [b for i, b in enumerate(boxes) if i != target]
    # The boxes that can hide the target: those it does not itself lie in.
    lows = np.array([*room.taken.lows, *(low for low, _ in others)]).reshape(-1, 3)
    highs = np.array([*room.taken.highs, *(high for _, high in others)]).reshape(-1, 3)
    middle = (box[0] + box[1]) / 2
    apart = ~np.all((middle > lows) & (middle < highs), axis=1)
    blind = lows[apart] + 1e-3, highs[apart] - 1e-3
    points = 0.8 * corners_of(box) + 0.2 * (box[0] + box[1]) / 2
    views, scores = [], []
    for row in numbers:
        view = _try(floor, box, row, close=close, side=side)
        clear = clear_share(view.position, points, *blind)
        company = close or any(_shows(view, other) for other in others)
        if clear >= _CLEAR and company:
            return view
        views.append(view)
        scores.append(clear + 0.3 * company)
    return views[int(np.argmax(scores))]


def _shows(view: RoomView, box: Bounds) -> bool:
    """Returns whether a box is in the picture, whole and large enough to act on."""
    w, x, y, z = view.quaternion
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    seen = (corners_of(box) - view.position) @ turn
    if np.any(seen[:, 2] > -0.1):
        return False
    flat = seen[:, :2] / (-seen[:, 2:] * np.tan(view.fov / 2))
    low, high = flat.min(axis=0), flat.max(axis=0)
    return bool(np.all(low > -0.9) and np.all(high < 0.9) and np.all(high - low > 0.2))


def aim(place: Floats, at: Floats) -> tuple[float, float]:
    """Returns the yaw and pitch with which a camera at a place looks at a point."""
    x, y, z = at - place
    return wrap(np.arctan2(-x, y)), float(np.arctan2(z, np.hypot(x, y)))


def _try(floor: Floats, box: Bounds, u: Floats, *, close: bool, side: int | None) -> RoomView:
    middle, extent = (box[0] + box[1]) / 2, box[1] - box[0]
    width = float(np.sort(extent)[1:].mean())  # how large it looks from a side that shows it
    fov = _FOV[0] + u[0] * (_FOV[1] - _FOV[0])
    height = _EYE[0] + u[1] * (_EYE[1] - _EYE[0])
    places = np.column_stack([floor, np.full(len(floor), height)])
    distance = np.linalg.norm(places - middle, axis=1)
    looks = width / (2 * distance * np.tan(fov / 2))
    good = np.flatnonzero((looks > _SMALLEST) & (looks < _LARGEST) & (distance > 0.45))
    if len(good) == 0:  # small things are looked at from as near as one can
        good = np.argsort(np.abs(looks - _SMALLEST))[:6]
    if side is not None:
        good = good[np.argsort(distance[good], kind="stable")]
        count = max(1, len(good) // 2)
        good = good[-count:] if side else good[:count]
    place = places[good[int(u[2] * len(good))]]
    yaw, pitch = aim(place, middle)
    if close:
        half = np.linalg.norm(extent) / 2
        wide = 2 * np.arctan(min(float(_CLOSE_UP * half / np.linalg.norm(middle - place)), 1.5))
        return RoomView(place, yaw, pitch, float(wide))
    yaw = wrap(yaw + (u[3] - 0.5) * 0.5 * fov)
    pitch = float(np.clip(0.9 * pitch + (u[4] - 0.5) * 0.3 * fov, -1.0, 0.4))
    return RoomView(place, yaw, pitch, float(fov))


@functools.lru_cache(maxsize=64)
def _places(room: Room) -> Floats:
    """Returns places (P, 2) on the floor where one can stand."""
    wide, deep = room.size[0] / 2, room.size[1] / 2
    x = np.arange(-wide + 0.25, wide - 0.24, _GRID)
    y = np.arange(-deep + 0.25, deep - 0.24, _GRID)
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    keep = np.ones(len(places), dtype=bool)
    for low, high in zip(room.taken.lows, room.taken.highs, strict=True):
        if low[2] < _HIP and high[2] > 0.05:
            near = (places > low[:2] - _BODY) & (places < high[:2] + _BODY)
            keep &= ~np.all(near, axis=1)
    return places[keep] if keep.any() else np.zeros((1, 2))
