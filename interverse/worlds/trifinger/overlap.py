"""The score of boxes as they stand: exact volumes that blocks and goals share.

The published score (`rewards.aabb_score`) replaces boxes by their axis-aligned bounding boxes, so
an error of yaw costs nothing; here it costs what it should. Sums run in a fixed order, so a batch
equals single worlds bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device

from interverse.core.arrays import Array, matrix, namespace
from interverse.worlds.trifinger.rewards import bounds, filled_share, product, sum_last

_PARALLEL = 1e-9  # sine of an angle below which directions count as parallel
_TOUCHING = 1e-12  # m
_CHUNK = 128  # pairs of boxes at a time, so that the work fits the processor's cache


def oriented_score(
    block_pose: tuple[Array, Array, Array], goal_pose: tuple[Array, Array, Array]
) -> Array:
    """Returns the filled fraction of the goals, at most 1, (N,); 1 where there is no goal.

    Args:
        block_pose: position (N, B, 3), orientation (N, B, 4) and size (N, B, 3) of the blocks.
        goal_pose: the same of the goals, (N, G, ...).
    """
    xp = namespace(block_pose[0], goal_pose[0])
    near = _may_touch(xp, bounds(*block_pose), bounds(*goal_pose))
    world, block, goal = xp.nonzero(near)
    shared = xp.zeros(near.shape, dtype=block_pose[0].dtype, device=device(block_pose[0]))
    for start in range(0, world.shape[0], _CHUNK):
        w, b, g = (i[start : start + _CHUNK] for i in (world, block, goal))
        shared[w, b, g] = intersection_volume(
            tuple(part[w, g] for part in goal_pose), tuple(part[w, b] for part in block_pose)
        )
    score = filled_share(shared, product(goal_pose[2]))
    return score.clip(None, 1.0)


def intersection_volume(
    one: tuple[Array, Array, Array], other: tuple[Array, Array, Array]
) -> Array:
    """Returns the volume common to pairs of boxes, (P,), m3.

    A convex body's volume is a third of the sum of its faces' areas times their distances from a
    point, an area is half the sum of its edges' lengths times their distances: so each line in
    which two of the twelve face planes meet is clipped by the other planes, and its length counted.

    Args:
        one: position (P, 3), orientation (P, 4) and size (P, 3) of the first boxes.
        other: the same of the second.
    """
    xp = namespace(one[0])
    normal, offset = _half_spaces(xp, one, other)
    first, second = (xp.asarray(i, device=device(offset)) for i in _LINES.T)
    n1, n2, o1, o2 = normal[:, first], normal[:, second], offset[:, first], offset[:, second]
    cosine = _dot(n1, n2)
    along = _cross(xp, n1, n2)
    square = _dot(along, along)
    meets = square > _PARALLEL**2
    square = xp.where(meets, square, 1.0)
    point = o1[..., None] * _cross(xp, n2, along) + o2[..., None] * _cross(xp, along, n1)
    length = _clipped(xp, point / square[..., None], along, (normal, offset))
    # of each plane, the line's distance from the foot of the origin, times the plane's own
    lever = o1 * (o2 - o1 * cosine) + o2 * (o1 - o2 * cosine)
    # the sine in the distances cancels, as lengths are in units of |along|
    volume = sum_last(xp.where(meets, lever * length, 0.0)) / 6
    return xp.where(_apart(xp, one, other), 0.0, volume)


# the pairs of planes that can meet, by number: 0-5 of the first box, 6-11 of the second
_LINES = np.array([(i, j) for i in range(12) for j in range(i) if i // 2 != j // 2])
_ON_LINE = np.equal(_LINES[None], np.arange(12)[:, None, None]).any(axis=-1)  # (planes, lines)


def _half_spaces(xp: Any, one: Any, other: Any) -> tuple[Array, Array]:
    """Returns outward normals (P, 12, 3) and offsets (P, 12) of both boxes, from one's centre."""
    normals, offsets = [], []
    shift = other[0] - one[0]
    for (_, orientation, size), centre in ((one, None), (other, shift)):
        axes = matrix(orientation)
        for i in range(3):
            axis = axes[..., i]
            middle = 0.0 if centre is None else _dot(axis, centre)
            for sign in (1.0, -1.0):
                normals.append(sign * axis)
                offsets.append(size[..., i] / 2 + sign * middle)
    return xp.stack(normals, axis=-2), xp.stack(offsets, axis=-1)


def _apart(xp: Any, one: Any, other: Any) -> Array:
    """Returns whether a face plane of one of two boxes has the other box beyond it, (P,)."""
    shift = other[0] - one[0]
    axes = [(matrix(turn), size / 2) for _, turn, size in (one, other)]
    apart = shift[..., 0] != shift[..., 0]  # all False
    for (own, half), (others, reach) in (axes, axes[::-1]):
        for i in range(3):
            axis = own[..., i]
            room = half[..., i] - xp.abs(_dot(axis, shift))
            for j in range(3):
                room = room + xp.abs(_dot(axis, others[..., j])) * reach[..., j]
            apart = apart | (room <= _TOUCHING)
    return apart


def _clipped(xp: Any, point: Array, along: Array, spaces: tuple[Array, Array]) -> Array:
    """Returns the lines' lengths inside all half spaces, in units of |along|, (P, lines)."""
    normal, offset = spaces
    count = offset.shape[-1]
    start = xp.zeros_like(point[..., 0]) - 1e9
    stop = xp.zeros_like(start) + 1e9
    size = xp.sqrt(_dot(along, along))
    for k in range(count):
        n = normal[:, k, None]
        rise = _dot(n, along)
        room = offset[:, k, None] - _dot(n, point)
        parallel = xp.abs(rise) <= _PARALLEL * size
        # of two faces in one plane only the first box's counts, or the area would enter twice
        inside = room >= (_TOUCHING if k < count // 2 else -_TOUCHING)
        own = xp.asarray(_ON_LINE[k], device=device(offset))
        end = room / xp.where(parallel, 1.0, rise)
        free = parallel | own
        stop = xp.where(~free & (rise > 0), xp.minimum(stop, end), stop)
        start = xp.where(~free & (rise < 0), xp.maximum(start, end), start)
        stop = xp.where(parallel & ~own & ~inside, start, stop)
    return (stop - start).clip(0.0, None)


def _may_touch(xp: Any, blocks: Array, goals: Array) -> Array:
    """Returns which blocks' and goals' bounding boxes overlap, (N, B, G)."""
    low = xp.maximum(blocks[:, :, None, 0], goals[:, None, :, 0])
    high = xp.minimum(blocks[:, :, None, 1], goals[:, None, :, 1])
    gap = high - low
    return (gap[..., 0] > 0) & (gap[..., 1] > 0) & (gap[..., 2] > 0)


def _dot(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def _cross(xp: Any, a: Array, b: Array) -> Array:
    return xp.stack(
        [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))],
        axis=-1,
    )
