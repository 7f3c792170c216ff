"""The TriFinger robot as data, its kinematics in closed form, and its control modes.

Three equal fingers of three hinges hang from a holder. A nine-vector always runs finger by
finger (upper, middle, lower). Heights are measured from the datum, the top of the floor.
Everything is elementwise array code over leading world axes, for NumPy and Torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np

from interverse.core.arrays import Array, like, namespace
from interverse.core.errors import InvalidValueError
from interverse.core.type_checks import named, one_of, validated
from interverse.sim.inertia import ScaledInertia

Mode = Literal[
    "joint_positions",
    "joint_torques",
    "end_effector_positions",
    "delta_joint_positions",
    "delta_joint_torques",
    "delta_end_effector_positions",
]

DATUM = 0.011  # world z of the floor's top, m
HEIGHT = 0.34  # world z of the hinges of joint 0, m
HINGE_RADIUS = 0.0455  # of the circle on which the fingers hang, m
FINGER_YAWS = (-math.pi / 2, -math.pi * 7 / 6, -math.pi * 11 / 6)  # of the finger frames, rad
SUBSTEP = 0.004  # s

KP = (10.0, 10.0, 10.0)  # N m / rad, per joint of a finger
KD = (0.1, 0.3, 0.001)  # N m s / rad, inside the torque limit
SAFETY_DAMPING = (0.08, 0.08, 0.04)  # N m s / rad, subtracted in every mode
TORQUE_LIMIT = 0.36  # N m
REST = (0.0, math.pi / 4, -math.pi / 4) * 3
RAISED = (-1.56, -0.08, -2.7) * 3
TIP_LAG = 0.05  # s; how slowly the servos follow a tip command, see `RobotControl.servo_lag`


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One moving link of a finger: where it hangs, its inertia, its collision capsule."""

    name: str
    origin: tuple[float, float, float]  # in the parent's frame, m
    axis: tuple[float, float, float] | None = None  # hinge axis; None for a fixed link
    limits: tuple[float, float] = (0.0, 0.0)  # of the hinge, rad
    action_limits: tuple[float, float] = (0.0, 0.0)  # of a joint position command, rad
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float]  # principal, about the centre of mass, kg m2
    inertia_quat: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)  # x, y, z, w

    def inertia_at(self, mass: float) -> tuple[float, float, float]:
        """Returns the principal inertia at another mass: it grows in proportion."""
        rule = ScaledInertia(body=self.name, mass=self.mass, inertia=self.inertia)
        return rule.at(mass)


# Inertias are the original's effective ones: those in force after its first reset.
LINKS = (
    Link(
        name="upper",
        origin=(0.0, 0.0, 0.0),
        axis=(-1.0, 0.0, 0.0),
        limits=(-1.5708, 1.5708),
        action_limits=(-1.57, 1.0),
        mass=0.14854,
        com=(-0.079, 0.0, 0.0),
        inertia=(9.430364e-5, 5.744230e-4, 6.043568e-4),
        inertia_quat=(0.0, 0.0, -0.064287, 0.997931),
    ),
    Link(
        name="middle",
        origin=(0.0, -0.014, 0.0),
        axis=(0.0, 1.0, 0.0),
        limits=(-1.5708, 1.5708),
        action_limits=(-1.2, 1.57),
        mass=0.14854,
        com=(0.0, -0.019, -0.079),
        inertia=(5.934850e-4, 5.635802e-4, 9.279074e-5),
        inertia_quat=(0.064287, 0.0, 0.0, 0.997931),
    ),
    Link(
        name="lower",
        origin=(0.0, -0.03745, -0.16),
        axis=(0.0, 1.0, 0.0),
        limits=(-3.1416, 3.1416),
        action_limits=(-3.0, 3.0),
        mass=0.0307,
        com=(0.0, -0.009, -0.089),
        inertia=(9.385363e-5, 9.482211e-5, 4.941089e-6),
    ),
    Link(
        name="tip",
        origin=(0.0, -0.008, -0.16),
        mass=0.01,
        com=(0.0, 0.0, 0.0),
        inertia=(1.666667e-7, 1.666667e-7, 1.666667e-7),
    ),
)
HINGED = LINKS[:3]

_LENGTH = 0.16  # of the middle and of the lower link, m
_LIMITS = tuple(zip(*(link.limits for link in HINGED), strict=True))
_SIDE = -0.05945  # of the tip from the finger's plane of symmetry: the links' y offsets summed, m


def hinge_origins() -> np.ndarray:
    """Returns the world x, y of the three finger bases, (3, 2), m."""
    return np.array(
        [(-HINGE_RADIUS * math.cos(a), -HINGE_RADIUS * math.sin(a)) for a in FINGER_YAWS]
    )


_FRAMES = tuple(  # cos yaw, sin yaw, base x, base y of the finger frames
    tuple(row.tolist()) for row in (np.cos(FINGER_YAWS), np.sin(FINGER_YAWS), *hinge_origins().T)
)


def tip_positions(joints: Array, height: Array | float = HEIGHT) -> Array:
    """Returns the fingertips' x, y, z for joint angles (..., 9), finger by finger, (..., 9).

    Args:
        joints: angles, rad.
        height: world z of the hinges, m; a number or an array of shape (...).
    """
    xp = namespace(joints)
    q0, q1, q2 = joints[..., 0::3], joints[..., 1::3], joints[..., 2::3]
    cos, sin, base_x, base_y = like(_FRAMES, joints)
    out = -_LENGTH * (xp.sin(q1) + xp.sin(q1 + q2))
    down = -_LENGTH * (xp.cos(q1) + xp.cos(q1 + q2))
    cos0, sin0 = xp.cos(q0), xp.sin(q0)
    side, rise = cos0 * _SIDE + sin0 * down, cos0 * down - sin0 * _SIDE
    level = height if isinstance(height, float) else height[..., None]
    x, y = cos * out - sin * side + base_x, sin * out + cos * side + base_y
    return xp.stack([x, y, rise + level - DATUM], axis=-1).reshape(joints.shape)


def inverse_kinematics(tips: Array, near: Array, height: Array | float = HEIGHT) -> Array:
    """Returns joint angles (..., 9) that put the tips at `tips`, nearest to the angles `near`.

    Of the four solutions of each finger (two sides of the hinge axis, two bends of the knee), the
    one within the joint limits that needs the least motion is taken. A point out of reach is
    replaced by the reachable one in its direction.

    Args:
        tips: wanted x, y, z of the tips, (..., 9), m above the datum.
        near: present angles, (..., 9), rad; they choose among the solutions.
        height: world z of the hinges, m; a number or an array of shape (...).
    """
    xp = namespace(tips, near)
    x, y, z = _by_finger(tips)
    cos, sin, base_x, base_y = like(_FRAMES, tips)
    x, y = x - base_x, y - base_y
    out, side = cos * x + sin * y, cos * y - sin * x
    rise = z + DATUM - (height if isinstance(height, float) else height[..., None])
    down = xp.sqrt((side * side + rise * rise - _SIDE * _SIDE).clip(0.0, None))
    azimuth = xp.atan2(rise, side)
    # the bend's cosine; beyond full stretch the leg points straight at the target
    cosine = (out * out + down * down) / (2 * _LENGTH * _LENGTH) - 1.0
    bend = xp.acos(cosine.clip(-1.0, 1.0))
    triples = []
    for sign in (-1.0, 1.0):
        turn = xp.atan2(sign * down, xp.zeros_like(down) + _SIDE) - azimuth
        lean = xp.atan2(-out, -sign * down)
        triples += [xp.stack([turn, lean - b / 2, b]) for b in (bend, -bend)]
    found = _nearest(xp, triples, xp.stack(_by_finger(near)))
    return xp.reshape(xp.stack([found[0], found[1], found[2]], axis=-1), tips.shape)


def _nearest(xp: Any, triples: list[Array], near: Array) -> Array:
    """Returns of each finger the triple within limits that is closest to `near`, (3, ...)."""
    shape = (3,) + (1,) * (near.ndim - 1)
    low, high = (like(bound, near).reshape(shape) for bound in _LIMITS)
    best = best_cost = None
    for triple in triples:
        wrapped = triple - 2 * math.pi * xp.floor(triple / (2 * math.pi) + 0.5)  # in [-pi, pi)
        inside = xp.minimum(xp.maximum(wrapped, low), high)
        # any excess over a limit outweighs every possible motion
        each = xp.abs(inside - near) + 100.0 * xp.abs(wrapped - inside)
        cost = each[0] + each[1] + each[2]
        if best is None:
            best, best_cost = inside, cost
            continue
        better = cost < best_cost
        best, best_cost = xp.where(better, inside, best), xp.where(better, cost, best_cost)
    return best


def _by_finger(vector: Array) -> tuple[Array, Array, Array]:
    """Returns the three components of a (..., 9) vector, each (..., 3) over fingers."""
    return vector[..., 0::3], vector[..., 1::3], vector[..., 2::3]


# --- control -------------------------------------------------------------------------------------

_TIP_BOUNDS = ((-0.5, -0.5, 0.0), (0.5, 0.5, 0.5))


def action_bounds(mode: Mode) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lowest and highest raw command of a mode, each (9,) float64."""
    quantity = mode.removeprefix("delta_")
    if quantity == "joint_positions":
        low, high = zip(*(link.action_limits for link in HINGED), strict=True)
    elif quantity == "joint_torques":
        low, high = (-TORQUE_LIMIT,) * 3, (TORQUE_LIMIT,) * 3
    else:
        low, high = _TIP_BOUNDS
    return np.array(low * 3), np.array(high * 3)


_ACTION_BOUNDS = {
    mode: tuple(tuple(bound.tolist()) for bound in action_bounds(mode)) for mode in get_args(Mode)
}


def normalise(value: Array, low: Array, high: Array) -> Array:
    """Returns the affine image of `value` that takes [low, high] to [-1, 1], not clipped."""
    return 2.0 * (value - low) / (high - low) - 1.0


def denormalise(value: Array, low: Array, high: Array) -> Array:
    """Returns the affine image of `value` that takes [-1, 1] to [low, high], not clipped."""
    return low + (value + 1.0) * (high - low) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class RobotControl:
    """How an action becomes the actuators' command, for a batch of worlds."""

    mode: Annotated[Mode, named("action mode", one_of(get_args(Mode)))] = "joint_positions"
    normalized: bool = True
    """Whether actions live in [-1, 1] or in the mode's own units."""

    @property
    def torques(self) -> bool:
        """Whether the command is a torque, which needs motors in place of servos."""
        return self.mode.endswith("joint_torques")

    @property
    def servo_lag(self) -> float:
        """Time constant with which the servos' targets follow the command, s.

        Joint commands act at once. Tip commands are approached with `TIP_LAG`: the original's
        inverse kinematics stops after a fixed number of iterations, so its targets creep up on the
        solution, and its recorded pinch lifts show this lag. Without it, every new target jerks a
        held block out of the grip.
        """
        return TIP_LAG if "end_effector" in self.mode else 0.0

    def command(
        self, action: Array, joints: Array, last: Array, height: Array | float = HEIGHT
    ) -> Array:
        """Returns the joint targets (rad) or torques (N m) of this step, (..., 9).

        Args:
            action: the action, (..., 9); it is clipped to the action space.
            joints: present joint angles, (..., 9), rad.
            last: the previous command, (..., 9): joint targets or torques. A delta adds to it.
            height: world z of the hinges, m; a number or an array of shape (...).
        """
        if action.shape[-1] != 9:
            raise InvalidValueError(
                f"an action has 9 entries, got shape {action.shape}", allowed="(..., 9)"
            )
        xp, mode = namespace(action, joints), self.mode
        low, high = like(_ACTION_BOUNDS[mode], joints)
        wanted = xp.astype(action, joints.dtype)
        present = tip_positions(joints, height) if "end_effector" in mode else last
        if mode.startswith("delta_"):
            wanted = wanted + (normalise(present, low, high) if self.normalized else present)
        bounded = wanted.clip(-1.0, 1.0) if self.normalized else wanted.clip(low, high)
        wanted = denormalise(bounded, low, high) if self.normalized else bounded
        if "end_effector" not in mode:
            return wanted
        angles = inverse_kinematics(wanted, joints, height)
        # a tip told to stay where it is keeps its last target, or it would sag step by step
        close = xp.abs(wanted - present) <= 1e-8 + 1e-5 * xp.abs(present)
        return xp.where(xp.all(close, axis=-1, keepdims=True), last, angles)
