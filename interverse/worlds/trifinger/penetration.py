"""Depths by which boxes, capsules, floor and wall stand in each other, in closed array code.

Boxes meet boxes by separating axes, capsules meet boxes and capsules by distance. Depths are (N, P)
over worlds and pairs, in metres, negative where the two are apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, final

import numpy as np

from interverse.core.arrays import Array, like, matrix, namespace
from interverse.sim.boxes import BoxPoses, box_depths, segment_box_distances, segment_distances
from interverse.worlds.trifinger.rewards import bounds
from interverse.worlds.trifinger.robot import DATUM, FINGER_YAWS, HEIGHT, LINKS, hinge_origins
from interverse.worlds.trifinger.scene import WALL_BOX, WALL_HEIGHT, WALL_RADIUS

Pairs = list[tuple[str, str]]

STAGE_DEPTH = 0.030  # how far blocks may stand in each other, the floor, the wall or an obstacle, m
ROBOT_DEPTH = 0.0095  # how far a finger may stand in anything, m
_WALL_OUTSIDE = WALL_RADIUS + WALL_BOX  # of the boxes that fingers touch, m


@final
@dataclass(frozen=True, slots=True, eq=False)
class Capsules:
    """The links' collision shapes in their own frames, and which may touch what.

    Attributes:
        names: of the four shapes of a finger: upper, middle, lower, tip.
        ends: both ends in the link's frame, (4, 2, 3), m; a sphere has two equal ones.
        radii: (4,), m.
    """

    names: tuple[str, ...]
    ends: Array
    radii: Array


NO_CAPSULES = Capsules((), np.zeros((0, 2, 3)), np.zeros(0))


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoxSet:
    """Boxes of N worlds: centres (N, K, 3), quaternions (N, K, 4), full edges (N, K, 3).

    `present` (N, K) says which ones are there.
    """

    names: tuple[str, ...]
    position: Array
    orientation: Array
    size: Array
    present: Array

    @property
    def boxes(self) -> BoxPoses:
        """Positions, quaternions and edges."""
        return self.position, self.orientation, self.size

    def take(self, index: Array) -> BoxSet:
        """Returns the boxes with these numbers."""
        arrays = (part[:, index] for part in (*self.boxes, self.present))
        return BoxSet(tuple(self.names[k] for k in index), *arrays)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Depths:
    """How deep pairs stand in each other, (N, P), m; negative where they are apart."""

    pairs: tuple[tuple[str, str], ...]
    depth: Array
    limit: Array  # how deep they may, (N, P), m


def penetrations(
    capsules: Capsules, joints: Array, height: Array, blocks: BoxSet, obstacles: BoxSet
) -> Depths:
    """Returns the depth of every pair of things that may touch.

    Args:
        capsules: the links' shapes.
        joints: (N, 9), rad.
        height: of the hinges, (N,), m.
        blocks: what can move.
        obstacles: what cannot.
    """
    xp = namespace(joints)
    parts = [
        *_block_depths(xp, blocks, obstacles),
        *_robot_depths(xp, capsules, link_segments(capsules, joints, height), blocks, obstacles),
    ]
    return Depths(
        pairs=tuple(pair for pairs, _, _ in parts for pair in pairs),
        depth=xp.concat([depth for _, depth, _ in parts], axis=1),
        limit=xp.concat([xp.zeros_like(depth) + limit for _, depth, limit in parts], axis=1),
    )


def box_depth(tried: BoxSet, placed: BoxSet) -> Array:
    """Returns how deep each of some boxes of one world stands in the worst of others, (K,)."""
    if not placed.names:
        return np.full(len(tried.names), -np.inf)
    i, j = _each(len(tried.names), len(placed.names))
    depth = _pair_depths(tried.take(i), placed.take(j))[0]
    return depth.reshape(len(tried.names), -1).max(axis=1)


def robot_depth(capsules: Capsules, joints: Array, height: Array, tried: BoxSet) -> Array:
    """Returns how deep each of some boxes of one world stands in the robot, (K,).

    Args:
        capsules: the links' shapes.
        joints: (9,), rad.
        height: of the hinges, (), m.
        tried: the boxes.
    """
    ends = link_segments(capsules, joints[None], np.asarray(height)[None])
    flat, radii = ends.reshape(1, -1, 2, 3), np.tile(np.asarray(capsules.radii), ends.shape[1])
    i, j = _each(flat.shape[1], len(tried.names))
    depth = radii[i] - segment_box_distances(flat[:, i], tried.take(j).boxes)[0]
    return depth.reshape(flat.shape[1], -1).max(axis=0)


def _each(count: int, others: int) -> tuple[Array, Array]:
    """Returns the numbers of every pair of one and another, (count * others,) each."""
    i, j = (part.ravel() for part in np.indices((count, others)))
    return i, j


# --- blocks --------------------------------------------------------------------------------------


def _block_depths(xp: Any, blocks: BoxSet, obstacles: BoxSet) -> list[tuple[Pairs, Array, Any]]:
    count = len(blocks.names)
    if count == 0:
        return []
    floor, wall = -bounds(*blocks.boxes)[..., 0, 2], _wall_depth(xp, blocks)
    least = xp.minimum(xp.minimum(blocks.size[..., 0], blocks.size[..., 1]), blocks.size[..., 2])
    half = xp.minimum(least / 2, xp.zeros_like(least) + STAGE_DEPTH)  # a small block's middle
    out = [
        ([(name, "floor") for name in blocks.names], _there(xp, floor, blocks.present), half),
        ([(name, "stage") for name in blocks.names], _there(xp, wall, blocks.present), half),
    ]
    pairs = list(combinations(range(count), 2))
    if pairs:
        i, j = (np.array(side) for side in zip(*pairs, strict=True))
        depth = _pair_depths(blocks.take(i), blocks.take(j))
        names = [(blocks.names[a], blocks.names[b]) for a, b in pairs]
        out.append((names, depth, STAGE_DEPTH))
    if obstacles.names:
        i, j = _each(count, len(obstacles.names))
        depth = _pair_depths(blocks.take(i), obstacles.take(j))
        names = [(blocks.names[a], obstacles.names[b]) for a, b in zip(i, j, strict=True)]
        out.append((names, depth, STAGE_DEPTH))
    return out


def _wall_depth(xp: Any, blocks: BoxSet) -> Array:
    """Returns by how much the corner furthest from the middle is beyond the wall, (N, K)."""
    half, axes = blocks.size / 2, matrix(blocks.orientation)
    furthest = xp.zeros_like(half[..., 0])
    for signs in product((-1.0, 1.0), repeat=3):
        x, y = (
            blocks.position[..., i]
            + sum(signs[k] * axes[..., i, k] * half[..., k] for k in range(3))
            for i in range(2)
        )
        furthest = xp.maximum(furthest, xp.sqrt(x * x + y * y))
    return furthest - WALL_RADIUS


def _pair_depths(a: BoxSet, b: BoxSet) -> Array:
    """Returns the depth of pairs of boxes, (N, P)."""
    xp = namespace(a.position)
    return _there(xp, box_depths(a.boxes, b.boxes), a.present & b.present)


def _there(xp: Any, depth: Array, present: Array) -> Array:
    return xp.where(present, depth, -np.inf)


# --- robot ---------------------------------------------------------------------------------------


def link_segments(capsules: Capsules, joints: Array, height: Array | float = HEIGHT) -> Array:
    """Returns both ends of every link's capsule, (N, 3 fingers, 4 links, 2, 3), from the datum."""
    xp = namespace(joints)
    q = xp.reshape(joints, (-1, 3, 3))
    upper, lean, bend = q[..., 0], q[..., 1], q[..., 1] + q[..., 2]
    arm, leg = LINKS[1].origin[1], LINKS[2].origin
    placed = []
    for part in range(len(capsules.names)):
        x, y, z = (like(capsules.ends[part, :, i], joints) for i in range(3))  # (2,) each
        if part == 1:
            x, y, z = _turned(xp, lean, x, y + arm, z)
        elif part > 1:
            x, y, z = _turned(xp, bend, x, y + arm + leg[1], z)
            x = x + (leg[2] * xp.sin(lean))[..., None]
            z = z + (leg[2] * xp.cos(lean))[..., None]
        placed.append(_in_world(xp, upper, (x, y, z), height))
    return xp.stack(placed, axis=2)


def _turned(xp: Any, angle: Array, x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Returns points turned about the y axis by angles (N, 3), each (N, 3, 2)."""
    cos, sin = xp.cos(angle)[..., None], xp.sin(angle)[..., None]
    return x * cos + z * sin, y + 0.0 * cos, z * cos - x * sin


def _in_world(
    xp: Any, upper: Array, point: tuple[Array, Array, Array], height: Array | float
) -> Array:
    """Returns points of the upper links' frames in the world, (N, 3, 2, 3)."""
    x, y, z = point
    cos, sin = xp.cos(upper)[..., None], xp.sin(upper)[..., None]
    x, side, rise = x + 0.0 * cos, cos * y + sin * z, cos * z - sin * y
    yaw_cos, yaw_sin = (like(f(FINGER_YAWS), upper)[:, None] for f in (np.cos, np.sin))
    base = like(hinge_origins(), upper)
    level = height - DATUM if isinstance(height, float) else (height - DATUM)[:, None, None]
    return xp.stack(
        [
            yaw_cos * x - yaw_sin * side + base[:, 0, None],
            yaw_sin * x + yaw_cos * side + base[:, 1, None],
            rise + level,
        ],
        axis=-1,
    )


def _robot_depths(
    xp: Any, capsules: Capsules, segments: Array, blocks: BoxSet, obstacles: BoxSet
) -> list[tuple[Pairs, Array, Any]]:
    fingers, links = segments.shape[1:3]
    names = [f"finger_{f}/{link}" for f in range(fingers) for link in capsules.names]
    flat = xp.reshape(segments, (segments.shape[0], fingers * links, 2, 3))
    radii = like(np.tile(capsules.radii, fingers), flat)
    low = np.array([k for k in range(len(names)) if k % links])  # all but the upper links
    floor = radii[low] - xp.minimum(flat[:, low, 0, 2], flat[:, low, 1, 2])
    wall = _wall_reach(xp, flat[:, low], radii[low])
    two = [(a, b) for a, b in combinations(low.tolist(), 2) if a // links != b // links]
    i, j = (np.array(side) for side in zip(*two, strict=True))  # of different fingers
    apart = segment_distances(flat[:, i], flat[:, j])
    out = [
        ([(names[k], "floor") for k in low], floor, ROBOT_DEPTH),
        ([(names[k], "stage") for k in low], wall, ROBOT_DEPTH),
        ([(names[a], names[b]) for a, b in two], radii[i] + radii[j] - apart, ROBOT_DEPTH),
    ]
    for solids, who in ((blocks, np.arange(len(names))), (obstacles, low)):
        if solids.names:
            i, j = _each(len(who), len(solids.names))
            depth = radii[who[i]] - segment_box_distances(flat[:, who[i]], solids.take(j).boxes)
            depth = _there(xp, depth, solids.present[:, j])
            pairs = [(names[who[a]], solids.names[b]) for a, b in zip(i, j, strict=True)]
            out.append((pairs, depth, ROBOT_DEPTH))
    return out


def _wall_reach(xp: Any, segments: Array, radii: Array) -> Array:
    """Returns how deep links stand in the wall: their part below its top, (N, L).

    The wall is a shell: a link that hangs over it and is beyond it altogether does not touch it.
    """
    a, b = segments[..., 0, :], segments[..., 1, :]
    along = b - a
    level = xp.where(xp.abs(along[..., 2]) < 1e-9, 1e-9, along[..., 2])
    flat = along[..., 0] ** 2 + along[..., 1] ** 2 + 1e-18
    foot = -(a[..., 0] * along[..., 0] + a[..., 1] * along[..., 1]) / flat  # nearest to the middle
    cuts = [((WALL_HEIGHT - a[..., 2]) / level).clip(0.0, 1.0), foot.clip(0.0, 1.0)]
    most = least = None
    for point in (a, b, *(a + cut[..., None] * along for cut in cuts)):
        radius = xp.sqrt(point[..., 0] ** 2 + point[..., 1] ** 2)
        below = point[..., 2] <= WALL_HEIGHT + 1e-6
        far, near = xp.where(below, radius, -np.inf), xp.where(below, radius, np.inf)
        most = far if most is None else xp.maximum(most, far)
        least = near if least is None else xp.minimum(least, near)
    return xp.minimum(most + radii - WALL_RADIUS, _WALL_OUTSIDE + radii - least)
