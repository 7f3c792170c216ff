"""Geometry of turned boxes and of segments in array code: shared volumes, depths, distances.

Boxes are positions (..., 3), quaternions x, y, z, w (..., 4) and full edges (..., 3). Sums run in a
fixed order, so a batch equals single worlds bit for bit.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from interverse.core.arrays import Array, device, inverse, matrix, namespace, rotate, sum_last

BoxPoses = tuple[Array, Array, Array]

_PARALLEL = 1e-9  # sine of an angle below which directions count as parallel
_TOUCHING = 1e-12  # m
_GOLDEN = 0.6180339887498949
_SEARCH_STEPS = 22  # of the golden section: a place on 20 cm is known to a hundredth of a mm


def intersection_volume(one: BoxPoses, other: BoxPoses) -> Array:
    """Returns the volume common to pairs of boxes, (P,), m3; in float64, with unit quaternions.

    Near where faces of both lie in one plane, rounding of float32 decides which count: a box in its
    own place could share all or nothing with it.

    A convex body's volume is a third of the sum of its faces' areas times their distances from a
    point, an area is half the sum of its edges' lengths times their distances: so each line in
    which two of the twelve face planes meet is clipped by the other planes, and its length counted.
    """
    xp = namespace(one[0])
    normal, offset = _half_spaces(xp, one, other)
    first, second, _ = _lines(xp, device(offset))
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


@functools.cache
def _lines(xp: Any, where: Any) -> tuple[Array, Array, Array]:
    """Returns both planes of every line, and which planes lines lie in, kept on their device."""
    first, second = _LINES.T
    return (
        xp.asarray(first, device=where),
        xp.asarray(second, device=where),
        xp.asarray(_ON_LINE, device=where),
    )


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
    count, on_line = offset.shape[-1], _lines(xp, device(offset))[2]
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
        own = on_line[k]
        end = room / xp.where(parallel, 1.0, rise)
        free = parallel | own
        stop = xp.where(~free & (rise > 0), xp.minimum(stop, end), stop)
        start = xp.where(~free & (rise < 0), xp.maximum(start, end), start)
        stop = xp.where(parallel & ~own & ~inside, start, stop)
    return (stop - start).clip(0.0, None)


def box_depths(one: BoxPoses, other: BoxPoses) -> Array:
    """Returns the depth of pairs of boxes, (...,): the least overlap over the separating axes."""
    xp = namespace(one[0])
    ra, rb = matrix(one[1]), matrix(other[1])
    apart = other[0] - one[0]
    ha, hb = one[2] / 2, other[2] / 2
    axes = [ra[..., :, k] for k in range(3)] + [rb[..., :, k] for k in range(3)]
    axes += [_cross(xp, ra[..., :, i], rb[..., :, j]) for i in range(3) for j in range(3)]
    least = None
    for axis in axes:
        length = xp.sqrt(_dot(axis, axis))
        parallel = length < 1e-6  # the cross product of parallel edges is no axis
        unit = axis / xp.where(parallel, 1.0, length)[..., None]
        reach = sum(xp.abs(_dot(unit, ra[..., :, k])) * ha[..., k] for k in range(3))
        reach = reach + sum(xp.abs(_dot(unit, rb[..., :, k])) * hb[..., k] for k in range(3))
        overlap = xp.where(parallel, np.inf, reach - xp.abs(_dot(unit, apart)))
        least = overlap if least is None else xp.minimum(least, overlap)
    return least


def segment_distances(p: Array, q: Array) -> Array:
    """Returns the distances of segments, (..., 2, 3) each."""
    xp = namespace(p)
    d1, d2 = p[..., 1, :] - p[..., 0, :], q[..., 1, :] - q[..., 0, :]
    r = p[..., 0, :] - q[..., 0, :]
    a, e, b = _dot(d1, d1) + 1e-18, _dot(d2, d2) + 1e-18, _dot(d1, d2)
    c, f = _dot(d1, r), _dot(d2, r)
    spread = a * e - b * b
    s = xp.where(spread > 1e-12, (b * f - c * e) / xp.where(spread > 1e-12, spread, 1.0), 0.0)
    s = s.clip(0.0, 1.0)
    t = ((b * s + f) / e).clip(0.0, 1.0)
    s = ((b * t - c) / a).clip(0.0, 1.0)
    gap = r + s[..., None] * d1 - t[..., None] * d2
    return xp.sqrt(_dot(gap, gap))


def segment_box_distances(segments: Array, boxes: BoxPoses) -> Array:
    """Returns the signed distances of segments (..., 2, 3) and boxes: negative inside.

    The signed distance to a box is convex, so along a segment a golden section finds the least.
    """
    xp, (position, orientation, size) = namespace(segments), boxes
    turn = inverse(orientation)
    a = rotate(turn, segments[..., 0, :] - position)
    b = rotate(turn, segments[..., 1, :] - position)
    half, along = size / 2, b - a

    def distance(t: Array) -> Array:
        q = xp.abs(a + t[..., None] * along) - half
        out = q.clip(0.0, None)
        inside = xp.maximum(xp.maximum(q[..., 0], q[..., 1]), q[..., 2]).clip(None, 0.0)
        return xp.sqrt(_dot(out, out)) + inside

    low, high = xp.zeros_like(a[..., 0]), xp.ones_like(a[..., 0])
    left, right = high - _GOLDEN, low + _GOLDEN
    at_left, at_right = distance(left), distance(right)
    least = xp.minimum(distance(low), distance(high))
    for _ in range(_SEARCH_STEPS):
        fall = at_left > at_right
        low, high = xp.where(fall, left, low), xp.where(fall, high, right)
        fresh = xp.where(fall, low + _GOLDEN * (high - low), high - _GOLDEN * (high - low))
        value = distance(fresh)
        left, right = xp.where(fall, right, fresh), xp.where(fall, fresh, left)
        at_left, at_right = xp.where(fall, at_right, value), xp.where(fall, value, at_left)
    return xp.minimum(least, xp.minimum(at_left, at_right))


def _dot(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def _cross(xp: Any, a: Array, b: Array) -> Array:
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return xp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)
