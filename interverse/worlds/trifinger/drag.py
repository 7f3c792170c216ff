"""The drag of the moving links and blocks, as generalised forces.

On every link and block acts a force `-m v c (1 + |v|)` at its centre of mass and a torque
`-I w c (1 + |w|)`, with c = 0.5 for links and 0.04 for blocks. Seen from the upper link, a
finger's velocities do not depend on its first angle, and its other two hinges are parallel, so the
joint forces have a short closed form: positions and velocities are enough, no derived field of the
simulator is read, and one call serves all worlds.

The formulas hold plain arithmetic only, so the same lines run on arrays of many worlds and, for a
world or two, on Python numbers, where array calls would cost ten times as much; both give the same
bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from array_api_compat import is_numpy_array

from interverse.core.arrays import Array, matrix, namespace
from interverse.worlds.trifinger.robot import LINKS, Link

Number = Any  # a Python number or an array
Drag = Literal["exact", "joint_damping"]
"""`exact` is the law above, applied in every substep. `joint_damping` is a fast stand-in: constant
joint damping in the model, no block drag, no work between substeps."""

LINK_DRAG = 0.5  # 1/s; also s/m and s/rad through the factor of the speed
BLOCK_DRAG = 0.04
JOINT_DAMPING = (0.0029, 0.0037, 0.0008)  # N m s/rad; follows the recorded responses to 5.5 mrad

_UPPER, _MIDDLE, _LOWER, _TIP = LINKS
_ARM = _LOWER.origin[2]  # length of the middle link, downwards; the lower's is the same, m
_SIDES = (  # y of the centres of mass of middle, lower and tip in the upper's frame, m
    _MIDDLE.origin[1] + _MIDDLE.com[1],
    _MIDDLE.origin[1] + _LOWER.origin[1] + _LOWER.com[1],
    _MIDDLE.origin[1] + _LOWER.origin[1] + _TIP.origin[1],
)
_FEW = 2  # worlds that are cheaper as Python numbers than as arrays


@final
@dataclass(frozen=True, slots=True, eq=False)
class DragLaw:
    """The drag coefficients of N worlds: rebuilt when a mass or size changes, read every substep.

    Attributes:
        links: c m and c I of the links, (11, N, 3) over fingers: the masses of middle, lower and
            tip; the upper's inertia about its axis; xx, yy, zz, yz of the middle's inertia; xx,
            yy, zz of the lower's with its tip.
        blocks: c m, and c I about the three axes, of the blocks, (4, N, B).
        link_rows: `links` as nested lists, (N, 3, 11), where there are few worlds; else empty.
        block_rows: `blocks` likewise, (N, B, 4).
    """

    links: Array
    blocks: Array
    link_rows: list[list[list[float]]]
    block_rows: list[list[list[float]]]


def drag_law(link_masses: Array, block_masses: Array, block_inertias: Array) -> DragLaw:
    """Returns the coefficients for the present masses; a link's inertia scales with its mass.

    Args:
        link_masses: upper, middle and lower of each finger, (N, 3, 3), kg.
        block_masses: (N, B), kg.
        block_inertias: principal inertias of the blocks, (N, B, 3), kg m2.
    """
    xp = namespace(link_masses)
    upper, middle, lower = (link_masses[..., i] for i in range(3))
    mass = [middle, lower, xp.zeros_like(lower) + _TIP.mass]
    roll = upper * (_entries(_UPPER)[0] / _UPPER.mass)
    inertia = [middle * (i / _MIDDLE.mass) for i in _entries(_MIDDLE)]
    inertia += [
        lower * (i / _LOWER.mass) + t
        for i, t in zip(_entries(_LOWER)[:3], _entries(_TIP)[:3], strict=True)
    ]
    links = LINK_DRAG * xp.stack([*mass, roll, *inertia])
    blocks = BLOCK_DRAG * xp.stack([block_masses, *(block_inertias[..., i] for i in range(3))])
    few = is_numpy_array(links) and links.shape[1] <= _FEW
    return DragLaw(
        links=links,
        blocks=blocks,
        link_rows=np.moveaxis(links, 0, -1).tolist() if few else [],
        block_rows=np.moveaxis(blocks, 0, -1).tolist() if few else [],
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
    xp = namespace(qpos)
    lean = xp.stack([qpos[:, 1:9:3], qpos[:, 1:9:3] + qpos[:, 2:9:3]])
    sin, cos = xp.sin(lean), xp.cos(lean)
    if law.link_rows:
        _add_to_few(law, (sin.tolist(), cos.tolist()), qvel.tolist(), out)
    else:
        pose, rates = (sin[0], cos[0], sin[1], cos[1]), [qvel[:, i:9:3] for i in range(3)]
        out[:, 0:9:3], out[:, 1:9:3], out[:, 2:9:3] = _finger_drag(pose, rates, law.links, xp.sqrt)
        if law.blocks.shape[-1]:
            v = [qvel[:, 9 + i :: 6] for i in range(6)]
            for i, force in enumerate(_block_drag(v, law.blocks, xp.sqrt)):
                out[:, 9 + i :: 6] = force


@final
class RecordedDrag:
    """The drag on every world of a GPU engine, before each substep, in one recorded launch.

    Its formulas are 150 small kernels; launched one by one, ten substeps of them take a third as
    long as the physics.
    """

    def __init__(self, qpos: Array, qvel: Array, out: Array) -> None:
        """Takes the engine's own arrays, as for `add_drag`."""
        from interverse.sim.recorded import Recorded

        self._moving = qpos, qvel, out
        self._law: DragLaw | None = None  # what is acted by
        self._given: DragLaw | None = None
        self._act = Recorded(self._add, qpos.device)

    def follow(self, law: DragLaw) -> Callable[[], None]:
        """Returns what writes the forces, by the coefficients of the present masses.

        A recorded launch reads the same tensors ever after, so those of the first law are
        overwritten.
        """
        if self._law is None:
            self._law = law
        elif law is not self._given:
            self._law.links[:], self._law.blocks[:] = law.links, law.blocks
        self._given = law
        return self._act

    def _add(self) -> None:
        assert self._law is not None
        add_drag(self._law, *self._moving)


def _add_to_few(law: DragLaw, lean: Any, qvel: list[list[float]], out: Array) -> None:
    """Writes all forces of a world or two, worked out with Python numbers."""
    for i, v in enumerate(qvel):
        poses = zip(*(part[i] for pair in zip(*lean, strict=True) for part in pair), strict=True)
        fingers = zip(poses, (v[0:3], v[3:6], v[6:9]), law.link_rows[i], strict=True)
        row = [force for finger in fingers for force in _finger_drag(*finger, math.sqrt)]
        for b, block in enumerate(law.block_rows[i]):
            row += _block_drag(v[9 + 6 * b : 15 + 6 * b], block, math.sqrt)
        out[i] = row


def _finger_drag(pose: Any, rates: Any, links: Any, sqrt: Callable[[Number], Number]) -> Any:
    """Returns the drag on a finger's three joints.

    In the upper link's frame the centres of mass lie at (sin1 arm + sin2 leg, side, cos1 arm + cos2
    leg), where 1 is the middle's lean and 2 the lower's. With a, b, e the rates of the frame about
    x, of the middle and of the lower about y, every velocity is linear in a, b, e, and the force on
    each is the transpose.

    Args:
        pose: sine and cosine of the middle's and of the lower's lean.
        rates: of the three joints, rad/s.
        links: the coefficients, as in `DragLaw.links`.
        sqrt: square root for these numbers.
    """
    sin1, cos1, sin2, cos2 = pose
    a, b, e = -rates[0], rates[1], rates[1] + rates[2]
    middle, lower, tip, roll, mxx, myy, mzz, myz, lxx, lyy, lzz = links

    # the middle's translation
    x, z = sin1 * _MIDDLE.com[2], cos1 * _MIDDLE.com[2]
    vx, vy, vz = b * z, -a * z, a * _SIDES[0] - b * x
    weight = middle * (1.0 + sqrt(vx * vx + vy * vy + vz * vz))
    on_a, on_b, on_e = weight * (vz * _SIDES[0] - vy * z), weight * (vx * z - vz * x), 0.0

    # the lower's and the tip's
    x, z = sin1 * _ARM, cos1 * _ARM
    for mass, leg, side in ((lower, _LOWER.com[2], _SIDES[1]), (tip, _TIP.origin[2], _SIDES[2])):
        x2, z2, depth = sin2 * leg, cos2 * leg, z + cos2 * leg
        vx, vy, vz = b * z + e * z2, -a * depth, a * side - b * x - e * x2
        weight = mass * (1.0 + sqrt(vx * vx + vy * vy + vz * vz))
        on_a, on_b = on_a + weight * (vz * side - vy * depth), on_b + weight * (vx * z - vz * x)
        on_e = on_e + weight * (vx * z2 - vz * x2)

    # rotations, in the links' own frames
    spin, whirl = 1.0 + sqrt(a * a + b * b), 1.0 + sqrt(a * a + e * e)
    on_a = on_a + spin * (a * (mxx * cos1 * cos1 + mzz * sin1 * sin1) + myz * b * sin1)
    on_a = on_a + whirl * a * (lxx * cos2 * cos2 + lzz * sin2 * sin2) + roll * a * (1.0 + abs(a))
    on_b, on_e = on_b + spin * (myy * b + myz * a * sin1), on_e + whirl * lyy * e
    return on_a, -(on_b + on_e), -on_e  # a is minus the first rate; the second joint turns both


def _block_drag(v: Any, block: Any, sqrt: Callable[[Number], Number]) -> Any:
    """Returns the force (world frame) and torque (block frame) on a block moving with v, six."""
    (mass, xx, yy, zz), (a, b, c, d, e, f) = block, v
    slide = -mass * (1.0 + sqrt(a * a + b * b + c * c))
    spin = -1.0 - sqrt(d * d + e * e + f * f)
    return slide * a, slide * b, slide * c, spin * xx * d, spin * yy * e, spin * zz * f


def _entries(link: Link) -> tuple[float, float, float, float]:
    """Returns xx, yy, zz and yz of a link's inertia in its own frame, about its centre of mass."""
    quat = np.array(link.inertia_quat)
    axes = matrix(quat / np.sqrt((quat * quat).sum()))
    full = (axes * np.array(link.inertia)) @ axes.T
    return float(full[0, 0]), float(full[1, 1]), float(full[2, 2]), float(full[1, 2])
