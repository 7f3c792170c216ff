"""The MuJoCo model of an `ArenaScene`: the fingers with their motors, and the whole.

Every element has a stable name, so a variable can say where it lives:

| element | name |
|---|---|
| bodies of finger 0 | `finger_0` (base), `finger_0_upper`, `_middle`, `_lower`, `_tip` |
| hinges, collision geoms | as the bodies; the geom of the tip belongs to the lower body |
| actuators | `finger_0_upper` ... (9), then the safety dampers `finger_0_upper_damper` ... (9) |
| block i: body, free joint, geom, material | `block_i` |
| goal i, obstacles: mocap body, geom, material | `goal_i`, the obstacle's name |
| materials of the rest | `floor`, `stage`, `finger_0_base`, `finger_0_upper`, ... |
| contact pairs | `floor:block_0`, `stage_12:block_0`, `finger_0_tip:block_0`, ... |

Positions: nine joint angles, then seven numbers a block; velocities: nine, then six a block.
Geom groups: 0 arena and robot, 1 blocks and obstacles, 2 goals, 3 unseen collision shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco
import numpy as np

from interverse.sim import coulomb
from interverse.worlds.trifinger.arena import (
    GOALS,
    HIDDEN,
    SOLIDS,
    add_arena,
    add_geom,
    add_material,
    add_mesh,
    cover,
)
from interverse.worlds.trifinger.contacts import (
    FINGERS,
    SOLIMP,
    SOLREF,
    TORSION,
    WALL_GEOMS,
    contacts,
    impedance,
    solving,
    surface_frictions,
    touch_sensors,
)
from interverse.worlds.trifinger.robot import (
    DATUM,
    FINGER_YAWS,
    HINGED,
    KD,
    KP,
    LINKS,
    SAFETY_DAMPING,
    SUBSTEP,
    TORQUE_LIMIT,
    Link,
    hinge_origins,
)
from interverse.worlds.trifinger.scene import (
    AMBIENT,
    FINGER_FRICTION,
    METAL,
    ArenaScene,
    Block,
    BlockMesh,
    Goal,
    box_inertia,
    parking_position,
)

_CAPSULES = {  # ends and radius, with the original's 1 mm collision margin added
    "upper": ((-0.1545, 0.0075, 0.0), (0.0015, -0.0016, 0.0), 0.0213),
    "middle": ((0.0, -0.0295, -0.1585), (0.0, -0.0120, -0.0134), 0.0216),
    "lower": ((0.0, -0.0080, -0.1470), (0.0, -0.0059, 0.0029), 0.0119),
}
_TIP_RADIUS = 0.0105
_HOUSING = {  # of a finger's first motor, only seen: half sizes and centres in the base's frame
    "base": ((0.1147, 0.020, 0.005), (-0.0892, 0.0, 0.075)),
    "base_side": ((0.1147, 0.00625, 0.025), (-0.0892, 0.02475, 0.055)),
    "base_front": ((0.003, 0.020, 0.043), (0.0225, 0.0, 0.027)),
    "base_back": ((0.012, 0.0185, 0.046), (-0.192, 0.0, 0.024)),
}


def add_robot(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    """Adds the holder and the fingers; the body `robot` carries them all."""
    robot = spec.worldbody.add_body(name="robot", pos=(0, 0, scene.robot_height))
    real = scene.look == "realistic"
    add_material(spec, "hub", (0.16, 0.16, 0.18), specular=0.4)
    add_material(spec, "tip", (0.10, 0.10, 0.11), specular=0.1)
    links = (METAL,) * 3 if real else scene.link_colors
    for finger, colors in zip(FINGERS, links, strict=True):
        for part, color in zip(("base", "upper", "middle", "lower"), colors, strict=True):
            add_material(spec, f"{finger}_{part}", color, specular=0.6 if real else 0.35)
    for part in ("upper", "middle", "lower", "tip"):
        add_mesh(spec, part, *cover(part))
    add_geom(robot, "hub", "cylinder", (0.034, 0.009), pos=(0, 0, 0.031), material="hub")
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
        geom.friction = (FINGER_FRICTION * scene.stage_friction, TORSION[scene.contact], 0)
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
            motor = spec.actuator(name)
            if scene.servo_lag > 0 and not scene.torques:  # targets follow with a time constant
                motor.dyntype, motor.actearly = mujoco.mjtDyn.mjDYN_FILTEREXACT, True
                motor.dynprm = [scene.servo_lag] + [0.0] * 9
            motor.forcelimited, motor.forcerange = True, (-TORQUE_LIMIT, TORQUE_LIMIT)
    for finger in FINGERS:
        for link, ks in zip(HINGED, SAFETY_DAMPING, strict=True):
            joint = f"{finger}_{link.name}"
            _actuator(spec, f"{joint}_damper", joint, gain=0.0, bias=(0.0, 0.0, -ks))


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


def _add_finger(base: mujoco.MjsBody, scene: ArenaScene, f: int) -> None:
    finger, tip = FINGERS[f], LINKS[3]
    for part, (half, centre) in _HOUSING.items():
        add_geom(base, f"{finger}_{part}", "box", half, pos=centre, material=f"{finger}_base")
    body = base
    for j, link in enumerate(HINGED):
        damping = scene.joint_damping + scene.drag_damping[j]
        body = _add_link(body, finger, link, scene.link_masses[f][j], damping)
    end = body.add_body(name=f"{finger}_tip", pos=tip.origin)
    _set_inertia(end, tip, tip.mass)
    # the tip's shape belongs to the lower link: one body less to test against the wall
    add_geom(body, f"{finger}_tip", "sphere", (_TIP_RADIUS,), pos=tip.origin, group=HIDDEN)
    add_geom(body, f"{finger}_tip_cover", "mesh", material="tip", meshname="tip")


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
    add_geom(body, name, "capsule", (radius,), group=HIDDEN, fromto=(*start, *end))
    add_geom(body, f"{name}_cover", "mesh", material=name, meshname=link.name)
    return body


def _set_inertia(body: mujoco.MjsBody, link: Link, mass: float) -> None:
    x, y, z, w = link.inertia_quat
    body.mass = mass
    body.ipos = link.com
    body.iquat = (w, x, y, z)
    body.inertia = link.inertia_at(mass)
    body.explicitinertial = True


_MINIMAL_DISTANCE, _NET_FORCE = 1, 3  # MuJoCo's numbers for a contact sensor's reductions
_DATA = mujoco.mjtConDataField
_FOUND_DIST = 1 << int(_DATA.mjCONDATA_FOUND) | 1 << int(_DATA.mjCONDATA_DIST)
_FORCE = 1 << int(_DATA.mjCONDATA_FORCE)


def build(scene: ArenaScene) -> mujoco.MjSpec:
    """Returns the editable MuJoCo description of a scene."""
    spec = mujoco.MjSpec()
    spec.modelname = "trifinger"
    spec.compiler.degree = False
    _add_options(spec, scene)
    add_arena(spec, scene)
    add_robot(spec, scene)
    for i in range(scene.block_count):
        _add_block(spec, scene, i)
    for i in range(scene.goal_count):
        _add_goal(spec, scene, i)
    for obstacle in scene.obstacles:
        add_material(spec, obstacle.name, obstacle.color, specular=0.2)
        body = _fixed_body(spec, obstacle.name, obstacle.position, obstacle.orientation)
        _add_box(body, obstacle.name, obstacle.size, SOLIDS)
    frictions = surface_frictions(scene)
    for contact in contacts(scene):
        slide = frictions[contact.surfaces[0]] * frictions[contact.surfaces[1]]
        spec.add_pair(
            name=contact.name,
            geomname1=contact.geoms[0],
            geomname2=contact.geoms[1],
            condim=contact.condim,
            friction=(slide, slide, TORSION[scene.contact], 0, 0),
            solref=SOLREF,
            solimp=(*impedance(scene, contact), 0.5, 2),
        )
    add_actuators(spec, scene)
    for pair in touch_sensors(scene) if scene.sensors else ():
        _contact_sensor(spec, "touch", pair, (_FOUND_DIST, _MINIMAL_DISTANCE, 1))
        _contact_sensor(spec, "force", pair, (_FORCE, _NET_FORCE, 1))
    if scene.contact == "exact":
        coulomb.attach(spec)
    return spec


def compile_scene(scene: ArenaScene) -> mujoco.MjModel:
    """Returns the compiled model of a scene."""
    return build(scene).compile()


def _add_options(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    spec.option.timestep = SUBSTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    how = solving(scene)
    spec.option.impratio = how.impratio
    spec.option.iterations, spec.option.tolerance = how.iterations, how.tolerance
    spec.option.gravity = (0.0, 0.0, scene.gravity)
    spec.stat.center = (0.0, 0.0, 0.12)
    spec.stat.extent = 0.45
    visual = spec.visual
    visual.map.znear = 0.02
    visual.map.zfar = 30.0
    visual.map.shadowclip = 1.8
    visual.quality.shadowsize = scene.shadow_size
    visual.quality.offsamples = scene.samples
    visual.headlight.ambient = (AMBIENT,) * 3
    visual.headlight.diffuse = (0.12, 0.12, 0.12)
    visual.headlight.specular = (0.0, 0.0, 0.0)
    visual.global_.offwidth = 1920
    visual.global_.offheight = 1440


def _add_block(spec: mujoco.MjSpec, scene: ArenaScene, index: int) -> None:
    used = index < len(scene.blocks)
    block = scene.blocks[index] if used else Block(position=parking_position(index))
    name = f"block_{index}"
    add_material(spec, name, block.color, specular=0.15, alpha=1.0 if used else 0.0)
    x, y, z, w = block.orientation
    body = spec.worldbody.add_body(
        name=name,
        pos=(*block.position[:2], block.position[2] + DATUM),
        quat=(w, x, y, z),
        gravcomp=0.0 if used else 1.0,
    )
    body.add_freejoint(name=name)
    body.mass = block.mass
    centre = (0.0, 0.0, 0.0) if block.mesh is None else block.mesh.centroid
    body.ipos, body.iquat = np.array(centre) * np.array(block.size), (1, 0, 0, 0)
    body.inertia = box_inertia(np.array(block.mass), np.array(block.size))
    body.explicitinertial = True
    if block.mesh is None:
        _add_box(body, name, block.size, SOLIDS)
    else:
        _add_solid(spec, body, name, block.mesh, block.size, SOLIDS)


def _add_goal(spec: mujoco.MjSpec, scene: ArenaScene, index: int) -> None:
    goal = scene.goals[index] if index < len(scene.goals) else Goal(alpha=0.0)
    name = f"goal_{index}"
    add_material(spec, name, goal.color, specular=0.0, alpha=goal.alpha)
    body = _fixed_body(spec, name, goal.position, goal.orientation)
    if goal.mesh is not None:
        _add_solid(spec, body, name, goal.mesh, goal.size, GOALS)
    elif goal.shape == "sphere":
        half = [s / 2 for s in goal.size]
        add_geom(body, name, "ellipsoid", half, group=GOALS, material=name)
    else:
        _add_box(body, name, goal.size, GOALS)
    spec.geom(name).castshadow = False


def _fixed_body(
    spec: mujoco.MjSpec, name: str, position: Sequence[float], orientation: Sequence[float]
) -> mujoco.MjsBody:
    """Adds a mocap body: its pose is part of the state, so it can differ between worlds."""
    x, y, z, w = orientation
    return spec.worldbody.add_body(
        name=name, pos=(*position[:2], position[2] + DATUM), quat=(w, x, y, z), mocap=True
    )


def _add_box(body: mujoco.MjsBody, name: str, size: Sequence[float], group: int) -> None:
    add_geom(body, name, "box", [s / 2 for s in size], group=group, material=name)


def _add_solid(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    name: str,
    mesh: BlockMesh,
    size: Sequence[float],
    group: int,
) -> None:
    add_mesh(spec, name, np.array(mesh.vertices) * np.array(size), np.array(mesh.faces))
    add_geom(body, name, "mesh", group=group, material=name, meshname=name)


def _contact_sensor(
    spec: mujoco.MjSpec, kind: str, pair: tuple[str, str], prm: tuple[int, int, int]
) -> None:
    """Adds one sensor; prm is the data wanted (bits), the reduction, and the number of contacts."""
    # the floor is a geom of the world; a finger is a whole subtree; all else is one body
    kinds = {"floor": mujoco.mjtObj.mjOBJ_GEOM} | dict.fromkeys(FINGERS, mujoco.mjtObj.mjOBJ_XBODY)
    sensor = spec.add_sensor(
        name=f"{kind}:{pair[0]}:{pair[1]}", type=mujoco.mjtSensor.mjSENS_CONTACT
    )
    sensor.objtype, sensor.objname = kinds.get(pair[0], mujoco.mjtObj.mjOBJ_BODY), pair[0]
    sensor.reftype, sensor.refname = kinds.get(pair[1], mujoco.mjtObj.mjOBJ_BODY), pair[1]
    sensor.intprm = prm
