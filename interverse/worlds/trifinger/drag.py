"""The drag of the moving links and blocks, as generalised forces.

On every link and block acts a force `-m v c (1 + |v|)` at its centre of mass and a torque
`-I w c (1 + |w|)`, with c = 0.5 for links and 0.04 for blocks. Seen from the upper link, a
finger's velocities do not depend on its first angle, and its other two hinges are parallel, so the
joint forces have a short closed form: positions and velocities are enough, no derived field of the
simulator is read, and one call serves all worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from array_api_compat import array_namespace, device

from interverse.worlds.trifinger.robot import LINKS
from interverse.worlds.trifinger.rotation import matrix

Array = Any  # a NumPy array or a Torch tensor
Drag = Literal["exact", "joint_damping"]
"""`exact` is the law above, applied in every substep. `joint_damping` is a fast stand-in: constant
joint damping in the model, no block drag, no work between substeps."""

LINK_DRAG = 0.5  # 1/s; also s/m and s/rad through the factor of the speed
BLOCK_DRAG = 0.04
JOINT_DAMPING = (0.004, 0.004, 0.001)  # N m s/rad: the stand-in, fitted to the recorded responses

_UPPER, _MIDDLE, _LOWER, _TIP = LINKS
# The middle, lower and tip centres of mass in the upper link's frame are
# (sin q1 * arm + sin(q1 + q2) * leg, side, cos q1 * arm + cos(q1 + q2) * leg).
_ARM = (_MIDDLE.com[2], _LOWER.origin[2], _LOWER.origin[2])
_LEG = (0.0, _LOWER.com[2], _TIP.origin[2])
_SIDE = (
    _MIDDLE.origin[1] + _MIDDLE.com[1],
    _MIDDLE.origin[1] + _LOWER.origin[1] + _LOWER.com[1],
    _MIDDLE.origin[1] + _LOWER.origin[1] + _TIP.origin[1],
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class DragLaw:
    """The drag coefficients of N worlds: rebuilt when a mass or size changes, read every substep.

    Attributes:
        arm, leg, side: lever arms of middle, lower and tip, (3, 1, 1), m.
        push: c m of middle, lower and tip, (3, N, 3) over fingers, kg/s.
        roll: c I about the upper link's own axis, (N, 3), kg m2/s.
        turn: c I as xx, yy, zz, yz of the middle, and of the lower link with its tip,
            (4, 2, N, 3), kg m2/s.
        block_push, block_turn: c m, (N, B, 1), and c I, (N, B, 3), of the blocks.
    """

    arm: Array
    leg: Array
    side: Array
    push: Array
    roll: Array
    turn: Array
    block_push: Array
    block_turn: Array


def drag_law(link_masses: Array, block_masses: Array, block_inertias: Array) -> DragLaw:
    """Returns the coefficients for the present masses; a link's inertia scales with its mass.

    Args:
        link_masses: upper, middle and lower of each finger, (N, 3, 3), kg.
        block_masses: (N, B), kg.
        block_inertias: principal inertias of the blocks, (N, B, 3), kg m2.
    """
    xp = array_namespace(link_masses)

    def constant(value: Any) -> Array:
        return xp.asarray(
            np.asarray(value, float), dtype=link_masses.dtype, device=device(link_masses)
        )

    upper, middle, lower = (link_masses[..., i] for i in range(3))
    tip = xp.zeros_like(lower) + _TIP.mass
    turn_middle = [middle * i / _MIDDLE.mass for i in _entries(_MIDDLE)]
    lower_tip = zip(_entries(_LOWER), _entries(_TIP), strict=True)
    turn_lower = [lower * i / _LOWER.mass + t for i, t in lower_tip]
    turn = xp.stack([xp.stack(pair) for pair in zip(turn_middle, turn_lower, strict=True)])
    return DragLaw(
        arm=constant(_ARM)[:, None, None],
        leg=constant(_LEG)[:, None, None],
        side=constant(_SIDE)[:, None, None],
        push=LINK_DRAG * xp.stack([middle, lower, tip]),
        roll=LINK_DRAG * upper * _entries(_UPPER)[0] / _UPPER.mass,
        turn=LINK_DRAG * turn,
        block_push=BLOCK_DRAG * block_masses[..., None],
        block_turn=BLOCK_DRAG * block_inertias,
    )


def add_drag(law: DragLaw, qpos: Array, qvel: Array, out: Array) -> None:
    """Writes the drag forces of the joints and blocks into `out`, (N, 9 + 6 B).

    Args:
        law: the coefficients.
        qpos: positions, (N, 9 + 7 B); only the joint angles are read.
        qvel: velocities, (N, 9 + 6 B): joint rates, then per block the linear velocity in the
            world frame and the angular velocity in its own.
        out: where the forces go, in the layout of qvel; overwritten.
    """
    xp = array_namespace(qpos)
    _link_drag(xp, law, (qpos[:, 1:9:3], qpos[:, 2:9:3]), [qvel[:, i:9:3] for i in range(3)], out)
    _block_drag(xp, law, qvel[:, 9:], out[:, 9:])


def _link_drag(
    xp: Any, law: DragLaw, angles: tuple[Array, Array], rates: list[Array], out: Array
) -> None:
    """Writes the joint forces; angles are those of the middle and lower hinges, each (N, 3)."""
    a, b = -rates[0], rates[1]  # the upper frame's rate about its x axis; the middle's about y
    lean = xp.stack([angles[0], angles[0] + angles[1]])
    rate = xp.stack([b, b + rates[2]])
    sin, cos = xp.sin(lean), xp.cos(lean)

    # translation of middle, lower, tip: velocity, force, and its moments on a, b and b + c
    ax, az, bx, bz = sin[0] * law.arm, cos[0] * law.arm, sin[1] * law.leg, cos[1] * law.leg
    depth = az + bz
    vx = rate[0] * az + rate[1] * bz
    vy = -a * depth
    vz = a * law.side - rate[0] * ax - rate[1] * bx
    weight = law.push * (1.0 + xp.sqrt(vx * vx + vy * vy + vz * vz))
    vx, vy, vz = weight * vx, weight * vy, weight * vz
    on_a = vz * law.side - vy * depth
    on_b = vx * az - vz * ax
    on_c = vx * bz - vz * bx

    # rotation of the middle, and of the lower with its tip, in their own frames
    xx, yy, zz, yz = law.turn[0], law.turn[1], law.turn[2], law.turn[3]
    spin = 1.0 + xp.sqrt(a * a + rate * rate)
    about_a = spin * (a * (xx * cos * cos + zz * sin * sin) + yz * rate * sin)
    about_y = spin * (yy * rate + yz * (a * sin))

    total_c = on_c[1] + on_c[2] + about_y[1]  # the middle has no leg
    out[:, 0:9:3] = (
        on_a[0] + on_a[1] + on_a[2] + about_a[0] + about_a[1] + law.roll * a * (1.0 + xp.abs(a))
    )
    out[:, 1:9:3] = -(on_b[0] + on_b[1] + on_b[2] + about_y[0] + total_c)
    out[:, 2:9:3] = -total_c


def _block_drag(xp: Any, law: DragLaw, qvel: Array, out: Array) -> None:
    """Writes the forces (world frame) and torques (block frame) on the blocks."""
    count = law.block_push.shape[-2]
    if count == 0:
        return
    v = xp.reshape(qvel, (qvel.shape[0], count, 2, 3))
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    factor = -1.0 - xp.sqrt(x * x + y * y + z * z)[..., None]
    f = xp.reshape(out, (out.shape[0], count, 2, 3))  # a view: only the last axis is split
    f[..., 0, :] = law.block_push * (factor[..., 0, :] * v[..., 0, :])
    f[..., 1, :] = law.block_turn * (factor[..., 1, :] * v[..., 1, :])


def _entries(link: Any) -> tuple[float, float, float, float]:
    """Returns xx, yy, zz and yz of a link's inertia in its own frame, about its centre of mass."""
    quat = np.array(link.inertia_quat)
    axes = matrix(quat / np.sqrt((quat * quat).sum()))
    full = (axes * np.array(link.inertia)) @ axes.T
    return float(full[0, 0]), float(full[1, 1]), float(full[2, 2]), float(full[1, 2])
