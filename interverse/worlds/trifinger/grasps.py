"""Observations as a scripted policy reads them, and grasps of a block by three tips.

A grasp has one tip on a face and two side by side on the face across. It is one of 24: which face,
which finger is alone, and in which order the two others stand. The cheapest is taken: within reach
at the block and at the goal, legs leaning away from the block, clear of other objects, near to
where the fingers are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import matrix
from interverse.worlds.trifinger.observation import ObservationLayout
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.robot import (
    DATUM,
    FINGER_YAWS,
    HEIGHT,
    HINGED,
    action_bounds,
    denormalise,
    hinge_origins,
    inverse_kinematics,
    normalise,
    tip_positions,
)

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Objects of N worlds, (N, K, ...), as they stand.

    Attributes:
        position: of the middle, m above the datum.
        size: along a lying edge, the other lying edge, the upright edge, m.
        yaw: of the first lying edge, rad.
        lean: x and y of the upright edge's direction: (0, 0) for a box that stands straight.
    """

    position: Floats
    size: Floats
    yaw: Floats
    lean: Floats

    def of(self, index: NDArray[np.int64]) -> Boxes:
        """Returns one object of every world, without the object axis."""
        rows = np.arange(len(index))
        return Boxes(*(part[rows, index] for part in self.parts))

    def at(self, worlds: Any) -> Boxes:
        """Returns the objects of some worlds."""
        return Boxes(*(part[worlds] for part in self.parts))

    @property
    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The four arrays."""
        return self.position, self.size, self.yaw, self.lean


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArenaState:
    """What N worlds look like: joints (N, 9), tips (N, 3, 3), height (N,), and the objects."""

    joints: Floats
    tips: Floats
    height: Floats
    blocks: Boxes
    goals: Boxes
    obstacles: Boxes


@final
class ObservationReader:
    """Reads observations and writes actions of one world's options."""

    def __init__(self, layout: ObservationLayout, options: TriFingerOptions) -> None:
        self.layout = layout
        self.step_time = options.step_time
        self._normal_observations = options.normalize_observations
        self._normal_actions = options.normalize_actions
        self._mode = options.action_mode
        names = dict.fromkeys(key.partition("/")[0] for key in layout.slices if "/" in key)
        self._names = {
            kind: [name for name in names if name.startswith(kind)]
            for kind in ("block", "goal", "obstacle")
        }

    def read(self, observations: Any) -> ArenaState:
        """Returns what the observations of N worlds show."""
        if isinstance(observations, dict):
            observations = observations["structured"]
        seen = np.asarray(observations, dtype=np.float64)
        layout = self.layout
        if self._normal_observations:
            seen = denormalise(seen, layout.low, layout.high)
        joints = seen[:, layout.slices["joint_positions"]]
        tips = seen[:, layout.slices["end_effector_positions"]].reshape(-1, 3, 3)
        nominal = tip_positions(joints).reshape(-1, 3, 3)
        # the hinges' height is a hidden variable, but joints and tips together show it
        height = HEIGHT + (tips - nominal)[..., 2].mean(axis=1)
        kinds = (self._boxes(seen, kind) for kind in ("block", "goal", "obstacle"))
        return ArenaState(joints, tips, height, *kinds)

    def _boxes(self, seen: Floats, kind: str) -> Boxes:
        names = self._names[kind]
        position = self._stack(seen, names, "cartesian_position", (0.0, 0.0, 0.0))
        size = self._stack(seen, names, "size", (0.0, 0.0, 0.0))
        quaternion = self._stack(seen, names, "orientation", (0.0, 0.0, 0.0, 1.0))
        return _standing(position, size, quaternion)

    def _stack(self, seen: Floats, names: list[str], key: str, default: Any) -> Floats:
        """Returns one key of some objects, (N, K, k); what is not observed has a default."""
        n, slices = len(seen), self.layout.slices
        if not names:
            return np.zeros((n, 0, len(default)))
        rows = [
            seen[:, slices[f"{name}/{key}"]]
            if f"{name}/{key}" in slices
            else np.broadcast_to(np.array(default), (n, len(default)))
            for name in names
        ]
        return np.stack(rows, axis=1)

    def action(self, tips: Floats, sight: ArenaState) -> NDArray[np.float32]:
        """Returns the command that brings the tips there, (N, 9): of joints, or of the tips."""
        low, high = action_bounds(self._mode)
        wanted = tips.reshape(-1, 9)
        if self._mode == "joint_positions":
            wanted = inverse_kinematics(wanted, sight.joints, sight.height)
        wanted = np.clip(wanted, low, high)
        return (normalise(wanted, low, high) if self._normal_actions else wanted).astype(np.float32)


def _standing(position: Floats, size: Floats, quaternion: Floats) -> Boxes:
    """Returns boxes as they stand: a block that rolled over has a new yaw and new edges."""
    edges = np.swapaxes(matrix(quaternion), -1, -2)  # directions in the world
    rise = np.abs(edges[..., 2])
    upright = np.argmax(rise, axis=-1)
    lying = np.where(upright == 0, 1, 0)
    order = np.stack([lying, 3 - upright - lying, upright], axis=-1)
    along = np.take_along_axis(edges, lying[..., None, None], axis=-2)[..., 0, :]
    up = np.take_along_axis(edges, upright[..., None, None], axis=-2)[..., 0, :]
    lean = up[..., :2] * np.sign(up[..., 2:])
    yaw = np.arctan2(along[..., 1], along[..., 0])
    return Boxes(position, np.take_along_axis(size, order, axis=-1), yaw, lean)


_GRIP_GAP = 0.00175  # between a face and the centre of a tip that grips there, m


def grip_locations(position: Any, orientation: Any, size: Any) -> Floats:
    """Returns where two tips grip a box: at the face turned most to +y, and across from it, (2, 3).

    Args:
        position: of its middle, (3,), m.
        orientation: its quaternion x, y, z, w.
        size: its edges, (3,), m.

    >>> grip_locations((0, 0, 0.03), (0, 0, 0, 1), (0.06, 0.06, 0.06)).tolist()
    [[0.0, 0.03175, 0.03], [0.0, -0.03175, 0.03]]
    """
    axes = np.asarray(matrix(np.asarray(orientation, dtype=np.float64)))  # columns: the box's
    face = int(np.argmax(np.abs(axes[1])))
    reach = np.sign(axes[1, face]) * (np.asarray(size)[face] / 2 + _GRIP_GAP) * axes[:, face]
    return np.asarray(position, dtype=np.float64) + np.stack([reach, -reach])


TIP = 0.0105  # m from a tip's centre to what it touches
GRIP = 0.008  # m above the block's centre at which it is held: a held block hangs, not topples
_SPREAD = 0.37  # share of a face's width from its middle to each of two tips on it
_CLEARANCE = 0.004  # m kept free between a tip and what it must not touch
_LEAN = 0.02  # m by which a leg should lean away from the block
_ALONG_LEG = (0.0, 0.15, 0.3, 0.45)  # shares of the lower link where it is looked for touch
_BEND = 0.5  # rad by which a knee should be bent: a straight leg cannot press outwards
_COSTS = {"reach": 200.0, "bend": 1.0, "lean": 5.0, "touch": 100.0, "motion": 0.05}


def _grasps() -> tuple[Floats, Floats, NDArray[np.bool_]]:
    normals, sides, alone = [], [], []
    for axis, sign, lone, flip in product((0, 1), (1.0, -1.0), range(3), (1.0, -1.0)):
        normal, side = np.zeros((2, 3, 2))
        normal[:, axis] = -sign
        normal[lone, axis] = sign
        pair = [f for f in range(3) if f != lone]
        side[pair, 1 - axis] = flip, -flip
        normals.append(normal)
        sides.append(side)
        alone.append(np.arange(3) == lone)
    return np.array(normals), np.array(sides), np.array(alone)


NORMALS, SIDES, ALONE = _grasps()  # of every grasp: (24, 3, 2), (24, 3, 2), (24, 3)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grasp:
    """One grasp per world: outward normals and places on the faces, block frame, (N, 3, 2)."""

    normals: Floats
    sides: Floats
    alone: NDArray[np.bool_]  # (N, 3): the finger that has a face to itself

    @classmethod
    def of(cls, index: NDArray[np.int64]) -> Grasp:
        """Returns the grasps with these numbers."""
        return cls(NORMALS[index], SIDES[index], ALONE[index])

    def ring(self, centre: Floats, yaw: Floats, size: Floats, gap: Floats | float) -> Floats:
        """Returns where the tips are, x and y, (N, 3, 2), with a gap between tip and face."""
        flat = size[:, None, :2]
        half = np.abs(self.normals * flat).sum(axis=-1) / 2
        away = self.normals * (half + TIP + gap)[..., None] + self.sides * flat * _SPREAD
        return centre[:, None, :2] + turn(away, yaw[:, None])


def choose(
    joints: Floats,
    height: Floats,
    block: Boxes,
    goal: Boxes,
    others: Boxes,
    *,
    rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Returns the number of the best grasp of every world, or of the rank-th best, (N,)."""
    count, n = len(NORMALS), len(block.position)
    both, index = np.tile(np.arange(n), count), np.repeat(np.arange(count), n)
    grasp = Grasp.of(index)
    cost = np.zeros(count * n)
    for place in (block, goal):
        near = Boxes(place.position, block.size, place.yaw, place.lean).at(both)
        cost += _cost(joints[both], height[both], grasp, near, others.at(both))
    order = np.argsort(cost.reshape(count, n), axis=0, kind="stable")
    return order[rank % count, np.arange(n)]


def _cost(joints: Floats, height: Floats, grasp: Grasp, block: Boxes, others: Boxes) -> Floats:
    at = grasp.ring(block.position, block.yaw, block.size, 0.0)
    z = np.broadcast_to((block.position[:, 2] + GRIP)[:, None, None], (*at.shape[:2], 1))
    tips = np.concatenate([at, z], axis=-1)
    low, high = action_bounds("joint_positions")
    angles = np.clip(inverse_kinematics(tips.reshape(-1, 9), joints, height), low, high)
    missed = tip_positions(angles, height).reshape(tips.shape) - tips
    outward = turn(grasp.normals, block.yaw[:, None])
    above = knees(angles, height)
    lean = ((above - tips)[..., :2] * outward).sum(axis=-1)
    room = np.full(tips.shape[:2], np.inf)  # around each lower link, negative if it touches
    for share in _ALONG_LEG:
        points = tips + share * (above - tips)
        free = clearance(points[..., :2], points[..., 2] - TIP, others) - TIP - _CLEARANCE
        room = np.minimum(room, free)
    return (
        _COSTS["reach"] * np.sqrt((missed * missed).sum(axis=-1)).sum(axis=-1)
        + _COSTS["bend"] * np.clip(_BEND - np.abs(angles[:, 2::3]), 0.0, None).sum(axis=-1)
        + _COSTS["lean"] * np.clip(_LEAN - lean, 0.0, None).sum(axis=-1)
        + _COSTS["touch"] * np.clip(-room, 0.0, None).sum(axis=-1)
        + _COSTS["motion"] * np.abs(angles - joints).sum(axis=-1)
    )


def clearance(points: Floats, heights: Floats, boxes: Boxes) -> Floats:
    """Returns the distance of points (N, P, 2) to the boxes' outlines, negative inside, (N, P).

    Boxes that end below a point's height are no obstacle to it.
    """
    if not boxes.yaw.shape[1]:
        return np.full(points.shape[:2], np.inf)
    away = points[:, :, None] - boxes.position[:, None, :, :2]  # (N, P, K, 2)
    beyond = np.abs(turn(away, -boxes.yaw[:, None])) - boxes.size[:, None, :, :2] / 2
    outside = np.sqrt((np.clip(beyond, 0.0, None) ** 2).sum(axis=-1))
    distance = np.where(outside > 0.0, outside, beyond.max(axis=-1))
    top = boxes.position[..., 2] + boxes.size[..., 2] / 2
    return np.where(heights[..., None] < top[:, None], distance, np.inf).min(axis=-1)


def knees(joints: Floats, height: Floats) -> Floats:
    """Returns the places of the three knees for joint angles (N, 9), (N, 3, 3), m."""
    angles = joints.reshape(-1, 3, 3)
    cos, sin = np.cos(angles), np.sin(angles)
    _, offset, drop = HINGED[2].origin
    aside = HINGED[1].origin[1] + offset
    out, down = drop * sin[..., 1], drop * cos[..., 1]
    side = cos[..., 0] * aside + sin[..., 0] * down
    rise = cos[..., 0] * down - sin[..., 0] * aside + height[:, None] - DATUM
    flat = turn(np.stack([out, side], axis=-1), np.array(FINGER_YAWS)) + hinge_origins()
    return np.concatenate([flat, rise[..., None]], axis=-1)


def turn(vector: Floats, angle: Floats) -> Floats:
    """Returns vectors (..., 2) turned by angles that broadcast with (...)."""
    cos, sin = np.cos(angle), np.sin(angle)
    x, y = vector[..., 0], vector[..., 1]
    return np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)
