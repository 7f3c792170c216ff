"""Rotations as unit quaternions x, y, z, w: elementwise array functions for NumPy and Torch."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

Array = Any  # a NumPy array or a Torch tensor
_NEAR = 1e-12  # a squared length this near to one is left as it is


def unit(quaternions: Array) -> Array:
    """Returns quaternions (..., 4) of length one; those that have it keep every bit."""
    xp = array_namespace(quaternions)
    x, y, z, w = (quaternions[..., i] for i in range(4))
    square = x * x + y * y + z * z + w * w
    length = xp.where(xp.abs(square - 1.0) <= _NEAR, xp.ones_like(square), xp.sqrt(square))
    return quaternions / length[..., None]


def inverse(quaternions: Array) -> Array:
    """Returns the opposite rotations (..., 4)."""
    xp = array_namespace(quaternions)
    return xp.concat([-quaternions[..., :3], quaternions[..., 3:]], axis=-1)


def rotate(quaternions: Array, vectors: Array) -> Array:
    """Returns vectors (..., 3) turned by quaternions (..., 4)."""
    axis, w = quaternions[..., :3], quaternions[..., 3:]
    twice = 2.0 * cross(axis, vectors)
    return vectors + w * twice + cross(axis, twice)


def cross(a: Array, b: Array) -> Array:
    """Returns vector products (..., 3)."""
    (ax, ay, az), (bx, by, bz) = ((v[..., 0], v[..., 1], v[..., 2]) for v in (a, b))
    parts = [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]
    return array_namespace(a, b).stack(parts, axis=-1)
