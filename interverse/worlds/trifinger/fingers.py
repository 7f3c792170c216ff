"""The three fingers and their motors in the MuJoCo model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco

from interverse.worlds.trifinger import looks
from interverse.worlds.trifinger.contacts import FINGERS, SOLIMP, SOLREF, TORSION, WALL_GEOMS
from interverse.worlds.trifinger.elements import HIDDEN, add_geom, add_material, add_mesh
from interverse.worlds.trifinger.robot import (
    FINGER_YAWS,
    HINGED,
    KD,
    KP,
    LINKS,
    SAFETY_DAMPING,
    TORQUE_LIMIT,
    Link,
    hinge_origins,
)
from interverse.worlds.trifinger.scene import FINGER_FRICTION, ArenaScene

_CAPSULES = {  # ends and radius, with the original's 1 mm collision margin added
    "upper": ((-0.1545, 0.0075, 0.0), (0.0015, -0.0016, 0.0), 0.0213),
    "middle": ((0.0, -0.0295, -0.1585), (0.0, -0.0120, -0.0134), 0.0216),
    "lower": ((0.0, -0.0080, -0.1470), (0.0, -0.0059, 0.0029), 0.0119),
}
_TIP_RADIUS = 0.0105


def add_robot(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    """Adds the holder and the fingers; the body `robot` carries them all."""
    robot = spec.worldbody.add_body(name="robot", pos=(0, 0, scene.robot_height))
    _add_looks(spec, scene)
    add_geom(
        robot,
        "hub",
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        (0.034, 0.009),
        pos=(0, 0, 0.031),
        material="hub",
    )
    for f, yaw in enumerate(FINGER_YAWS):
        base = robot.add_body(
            name=FINGERS[f],
            pos=(*hinge_origins()[f], 0),
            quat=(math.cos(yaw / 2), 0, 0, math.sin(yaw / 2)),
        )
        _add_finger(base, scene, f)
    for name in WALL_GEOMS:
        geom = spec.geom(name)
        geom.contype, geom.priority = 1, 1
        geom.friction = (FINGER_FRICTION * scene.stage_friction, TORSION, 0)
        geom.solref, geom.solimp = SOLREF, (*SOLIMP, 0.5, 2)


def add_actuators(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    """Adds servos or motors, then dampers; each joint clips the sum of its two forces."""
    for finger in FINGERS:
        for link, kp, kd in zip(HINGED, KP, KD, strict=True):
            name = f"{finger}_{link.name}"
            if scene.torques:
                _actuator(spec, name, name, gain=1.0, bias=(0.0, 0.0, 0.0))
            else:
                _actuator(spec, name, name, gain=kp, bias=(0.0, -kp, -kd))
                _set_lag(spec.actuator(name), scene.servo_lag)
            spec.actuator(name).forcelimited = True
            spec.actuator(name).forcerange = (-TORQUE_LIMIT, TORQUE_LIMIT)
    for finger in FINGERS:
        for link, ks in zip(HINGED, SAFETY_DAMPING, strict=True):
            joint = f"{finger}_{link.name}"
            _actuator(spec, f"{joint}_damper", joint, gain=0.0, bias=(0.0, 0.0, -ks))


def _set_lag(servo: mujoco.MjsActuator, seconds: float) -> None:
    """Makes a servo's target follow its control with a time constant; 0 is at once."""
    if seconds > 0:
        servo.dyntype = mujoco.mjtDyn.mjDYN_FILTEREXACT
        servo.dynprm = [seconds] + [0.0] * 9
        servo.actearly = True


def _actuator(
    spec: mujoco.MjSpec, name: str, joint: str, *, gain: float, bias: Sequence[float]
) -> None:
    spec.add_actuator(
        name=name,
        target=joint,
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED,
        gainprm=[gain] + [0.0] * 9,
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        biasprm=[*bias] + [0.0] * 7,
    )


def _add_looks(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    real = scene.look == "realistic"
    add_material(spec, "hub", (0.16, 0.16, 0.18), specular=0.4)
    add_material(spec, "tip", (0.10, 0.10, 0.11), specular=0.1)
    for finger, colors in zip(FINGERS, scene.link_colors, strict=True):
        for part, color in zip(("base", "upper", "middle", "lower"), colors, strict=True):
            shown, shine = ((0.2, 0.2, 0.2), 0.15) if real else (color, 0.35)
            add_material(spec, f"{finger}_{part}", shown, specular=shine)
    for part in ("upper", "middle", "lower", "tip"):
        add_mesh(spec, part, *looks.cover(part))


def _add_finger(base: mujoco.MjsBody, scene: ArenaScene, f: int) -> None:
    finger, tip = FINGERS[f], LINKS[3]
    box, sphere, mesh = (
        mujoco.mjtGeom.mjGEOM_BOX,
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_MESH,
    )
    shown = f"{finger}_base"
    add_geom(base, shown, box, (0.028, 0.012, 0.006), pos=(0.0, 0.004, 0.030), material=shown)
    body = base
    for j, link in enumerate(HINGED):
        body = _add_link(body, finger, link, scene.link_masses[f][j], scene.damping[j])
    end = body.add_body(name=f"{finger}_tip", pos=tip.origin)
    _set_inertia(end, tip, tip.mass)
    # the tip's shape belongs to the lower link: one body less to test against the wall
    add_geom(body, f"{finger}_tip", sphere, (_TIP_RADIUS,), pos=tip.origin, group=HIDDEN)
    add_geom(body, f"{finger}_tip_cover", mesh, (), material="tip", meshname="tip")


def _add_link(
    parent: mujoco.MjsBody, finger: str, link: Link, mass: float, damping: float
) -> mujoco.MjsBody:
    name = f"{finger}_{link.name}"
    body = parent.add_body(name=name, pos=link.origin)
    _set_inertia(body, link, mass)
    body.add_joint(
        name=name,
        type=mujoco.mjtJoint.mjJNT_HINGE,
        axis=link.axis,
        range=link.limits,
        limited=True,
        solref_limit=SOLREF,
        damping=damping,
        actfrclimited=True,
        actfrcrange=(-TORQUE_LIMIT, TORQUE_LIMIT),
    )
    start, end, radius = _CAPSULES[link.name]
    add_geom(
        body, name, mujoco.mjtGeom.mjGEOM_CAPSULE, (radius,), group=HIDDEN, fromto=(*start, *end)
    )
    add_geom(
        body, f"{name}_cover", mujoco.mjtGeom.mjGEOM_MESH, (), material=name, meshname=link.name
    )
    return body


def _set_inertia(body: mujoco.MjsBody, link: Link, mass: float) -> None:
    x, y, z, w = link.inertia_quat
    body.mass = mass
    body.ipos = link.com
    body.iquat = (w, x, y, z)
    body.inertia = link.inertia_at(mass)
    body.explicitinertial = True
