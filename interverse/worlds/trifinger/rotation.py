"""Quaternions (x, y, z, w) as elementwise array code over leading axes, for NumPy and Torch.

MuJoCo stores w first: `to_mujoco` and `from_mujoco` reorder.
"""

from __future__ import annotations

from typing import Any

from interverse.sim.arrays import namespace

Array = Any  # a NumPy array or a Torch tensor


def multiply(a: Array, b: Array) -> Array:
    """Returns the quaternion of the rotation `b` followed by `a`, (..., 4)."""
    xp = namespace(a, b)
    ax, ay, az, aw = (a[..., i] for i in range(4))
    bx, by, bz, bw = (b[..., i] for i in range(4))
    return xp.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def conjugate(q: Array) -> Array:
    """Returns the inverse of a unit quaternion, (..., 4)."""
    xp = namespace(q)
    return xp.concat([-q[..., :3], q[..., 3:]], axis=-1)


def matrix(q: Array) -> Array:
    """Returns the rotation matrix of a unit quaternion, (..., 3, 3); its columns are the axes."""
    xp = namespace(q)
    x, y, z, w = (q[..., i] for i in range(4))
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz, xw, yw, zw = x * y, x * z, y * z, x * w, y * w, z * w
    entries = [
        *(1 - 2 * (yy + zz), 2 * (xy - zw), 2 * (xz + yw)),
        *(2 * (xy + zw), 1 - 2 * (xx + zz), 2 * (yz - xw)),
        *(2 * (xz - yw), 2 * (yz + xw), 1 - 2 * (xx + yy)),
    ]
    return xp.reshape(xp.stack(entries, axis=-1), (*q.shape[:-1], 3, 3))


def rotate(q: Array, vector: Array) -> Array:
    """Returns the vector turned by the quaternion, (..., 3)."""
    xp = namespace(q, vector)
    m = matrix(q)
    turned = [
        m[..., i, 0] * vector[..., 0]
        + m[..., i, 1] * vector[..., 1]
        + m[..., i, 2] * vector[..., 2]
        for i in range(3)
    ]
    return xp.stack(turned, axis=-1)


def from_rotation_vector(vector: Array) -> Array:
    """Returns the quaternion of a rotation vector (axis times angle, rad), (..., 4)."""
    xp = namespace(vector)
    x, y, z = vector[..., 0], vector[..., 1], vector[..., 2]
    angle = xp.sqrt(x * x + y * y + z * z)
    small = angle < 1e-12
    scale = xp.where(small, 0.5, xp.sin(angle / 2) / xp.where(small, 1.0, angle))
    return xp.stack([x * scale, y * scale, z * scale, xp.cos(angle / 2)], axis=-1)


def to_rotation_vector(q: Array) -> Array:
    """Returns the shortest rotation vector (axis times angle, rad) of a quaternion, (..., 3)."""
    xp = namespace(q)
    x, y, z, w = (q[..., i] for i in range(4))
    sine = xp.sqrt(x * x + y * y + z * z)
    flip = xp.where(w < 0, -1.0, 1.0)
    small = sine < 1e-12
    angle = 2 * xp.atan2(sine, xp.abs(w))
    scale = flip * xp.where(small, 2.0, angle / xp.where(small, 1.0, sine))
    return xp.stack([x * scale, y * scale, z * scale], axis=-1)


def from_yaw(angle: Array) -> Array:
    """Returns the quaternion of a turn about the vertical, rad, (..., 4)."""
    xp = namespace(angle)
    zero = xp.zeros_like(angle)
    return xp.stack([zero, zero, xp.sin(angle / 2), xp.cos(angle / 2)], axis=-1)


def to_mujoco(q: Array) -> Array:
    """Returns the quaternion with w first, (..., 4)."""
    return namespace(q).concat([q[..., 3:], q[..., :3]], axis=-1)


def from_mujoco(q: Array) -> Array:
    """Returns a w-first quaternion with w last, (..., 4)."""
    return namespace(q).concat([q[..., 1:], q[..., :1]], axis=-1)
