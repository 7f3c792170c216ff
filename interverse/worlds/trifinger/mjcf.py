"""Turns a `Scene` into a MuJoCo model.

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
from typing import Any

import mujoco
import numpy as np

from interverse.worlds.trifinger import looks
from interverse.worlds.trifinger.contacts import (
    FINGERS,
    IMPRATIO,
    SOLIMP,
    SOLREF,
    TORSION,
    WALL_GEOMS,
    WALL_SIDES,
    contacts,
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
    FLOOR_EDGES,
    FLOOR_TEXTURES,
    WALL_HEIGHT,
    WALL_RADIUS,
    Block,
    Goal,
    Mesh,
    Scene,
    box_inertia,
    parking_position,
)

_GEOM = mujoco.mjtGeom
_ARENA, _SOLIDS, _GOALS, _HIDDEN = 0, 1, 2, 3
_CAPSULES = {  # ends and radius, with the original's 1 mm collision margin added
    "upper": ((-0.1545, 0.0075, 0.0), (0.0015, -0.0016, 0.0), 0.0213),
    "middle": ((0.0, -0.0295, -0.1585), (0.0, -0.0120, -0.0134), 0.0216),
    "lower": ((0.0, -0.0080, -0.1470), (0.0, -0.0059, 0.0029), 0.0119),
}
_TIP_RADIUS = 0.0105
_HUB_COLOR = (0.16, 0.16, 0.18)
_MINIMAL_DISTANCE, _NET_FORCE = 1, 3  # MuJoCo's numbers for a contact sensor's reductions


def build(scene: Scene) -> mujoco.MjSpec:
    """Returns the editable MuJoCo description of a scene."""
    spec = mujoco.MjSpec()
    spec.modelname = "trifinger"
    spec.compiler.degree = False
    _add_options(spec, scene)
    _add_materials(spec, scene)
    _add_arena(spec, scene)
    _add_robot(spec, scene)
    for i in range(scene.block_count):
        _add_block(spec, scene, i)
    for i in range(scene.goal_count):
        _add_goal(spec, scene, i)
    for obstacle in scene.obstacles:
        body = _fixed_body(spec, obstacle.name, obstacle.position, obstacle.orientation)
        _add_box(body, obstacle.name, obstacle.size, _SOLIDS)
    _add_pairs(spec, scene)
    _add_actuators(spec, scene)
    if scene.sensors:
        _add_sensors(spec, scene)
    return spec


def compile_scene(scene: Scene) -> mujoco.MjModel:
    """Returns the compiled model of a scene."""
    return build(scene).compile()


# --- what is common to the whole model -----------------------------------------------------------


def _add_options(spec: mujoco.MjSpec, scene: Scene) -> None:
    spec.option.timestep = SUBSTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = IMPRATIO
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


def _add_materials(spec: mujoco.MjSpec, scene: Scene) -> None:
    real = scene.look == "realistic"
    shine = 0.15 if real else 0.35
    _material(spec, "floor", scene.floor_color, specular=0.08)
    _material(spec, "stage", scene.stage_color, specular=0.12)
    _material(spec, "hub", _HUB_COLOR, specular=0.4)
    _material(spec, "tip", (0.10, 0.10, 0.11), specular=0.1)
    for finger, colors in zip(FINGERS, scene.link_colors, strict=True):
        for part, color in zip(("base", "upper", "middle", "lower"), colors, strict=True):
            _material(spec, f"{finger}_{part}", (0.2, 0.2, 0.2) if real else color, specular=shine)
    for i in range(scene.block_count):
        used = i < len(scene.blocks)
        color = scene.blocks[i].color if used else (1.0, 0.0, 0.0)
        _material(spec, f"block_{i}", color, specular=0.15, alpha=1.0 if used else 0.0)
    for i in range(scene.goal_count):
        goal = scene.goals[i] if i < len(scene.goals) else Goal(alpha=0.0)
        _material(spec, f"goal_{i}", goal.color, specular=0.0, alpha=goal.alpha)
    for obstacle in scene.obstacles:
        _material(spec, obstacle.name, obstacle.color, specular=0.2)
    _add_textures(spec, scene)


def _material(
    spec: mujoco.MjSpec,
    name: str,
    color: Sequence[float],
    *,
    specular: float,
    alpha: float = 1.0,
) -> None:
    spec.add_material(
        name=name, rgba=(*color, alpha), specular=specular, shininess=0.4, reflectance=0.0
    )


def _add_textures(spec: mujoco.MjSpec, scene: Scene) -> None:
    """Adds all floor textures, so that `mat_texid` of the floor can choose one per world."""
    role = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
    for name in FLOOR_TEXTURES[1:]:
        image = looks.texture(name)
        rows, columns, channels = image.shape
        texture = spec.add_texture(name=f"floor_{name}", type=mujoco.mjtTexture.mjTEXTURE_2D)
        texture.height, texture.width, texture.nchannel = rows, columns, channels
        texture.data = image.tobytes()
    floor = spec.material("floor")
    floor.texrepeat = (1.0, 1.0)
    if scene.floor_texture != "plain":
        textures = list(floor.textures)
        textures[role] = f"floor_{scene.floor_texture}"
        floor.textures = textures
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(0.93, 0.94, 0.96),
        rgb2=(0.72, 0.75, 0.80),
        width=128,
        height=128,
    )


# --- arena ---------------------------------------------------------------------------------------


def _add_arena(spec: mujoco.MjSpec, scene: Scene) -> None:
    world = spec.worldbody
    half_x, half_y = FLOOR_EDGES[0] / 2, FLOOR_EDGES[1] / 2
    _geom(
        world,
        "floor",
        _GEOM.mjGEOM_PLANE,
        (half_x, half_y, 0.05),
        pos=(0, 0, DATUM),
        material="floor",
    )
    _geom(
        world,
        "table",
        _GEOM.mjGEOM_BOX,
        (half_x, half_y, 0.0148),
        pos=(0, 0, DATUM - 0.0155),
        material="floor",
    )
    _add_wall(spec)
    for camera in scene.cameras:
        right = np.cross(camera.forward, camera.up)
        world.add_camera(
            name=camera.name, pos=camera.eye, xyaxes=[*right, *camera.up], fovy=camera.fovy
        )
    for light in scene.lights:
        world.add_light(
            name=light.name,
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            pos=[-1.2 * d for d in light.direction],
            dir=light.direction,
            diffuse=light.color,
            specular=[0.5 * c for c in light.color],
            ambient=(0, 0, 0),
            castshadow=light.shadow,
        )


def _add_wall(spec: mujoco.MjSpec) -> None:
    """Adds the wall thrice: a mesh to see, planes for the blocks, boxes for the fingers.

    Planes have no top, so no block can leave; boxes end at the wall's height, so a finger can
    reach over it. The boxes are thicker than the wall, outwards, so that a fast tip cannot tunnel.
    """
    stage = spec.worldbody.add_body(name="stage")
    _add_mesh(spec, "stage", *looks.tube())
    _geom(
        stage,
        "stage",
        _GEOM.mjGEOM_MESH,
        (),
        pos=(0, 0, DATUM - 0.002),
        material="stage",
        meshname="stage",
        castshadow=False,
    )
    half = WALL_RADIUS * math.tan(math.pi / WALL_SIDES) + 0.001
    for k in range(WALL_SIDES):
        turn = 2 * math.pi * k / WALL_SIDES
        cos, sin = math.cos(turn), math.sin(turn)
        _geom(
            stage,
            f"stage_{k}",
            _GEOM.mjGEOM_PLANE,
            (half, WALL_HEIGHT / 2, 0.05),
            pos=(WALL_RADIUS * cos, WALL_RADIUS * sin, DATUM + WALL_HEIGHT / 2),
            group=_HIDDEN,
            zaxis=(-cos, -sin, 0),
        )
        box = _geom(
            stage,
            f"stage_box_{k}",
            _GEOM.mjGEOM_BOX,
            (0.01, half, WALL_HEIGHT / 2),
            pos=((WALL_RADIUS + 0.01) * cos, (WALL_RADIUS + 0.01) * sin, DATUM + WALL_HEIGHT / 2),
            group=_HIDDEN,
            quat=(math.cos(turn / 2), 0, 0, math.sin(turn / 2)),
        )
        box.conaffinity = 1


# --- robot ---------------------------------------------------------------------------------------


def _add_robot(spec: mujoco.MjSpec, scene: Scene) -> None:
    robot = spec.worldbody.add_body(name="robot", pos=(0, 0, scene.robot_height))
    _geom(robot, "hub", _GEOM.mjGEOM_CYLINDER, (0.034, 0.009), pos=(0, 0, 0.031), material="hub")
    for part in ("upper", "middle", "lower", "tip"):
        _add_mesh(spec, part, *looks.cover(part))
    for f, (finger, yaw, origin) in enumerate(
        zip(FINGERS, FINGER_YAWS, hinge_origins(), strict=True)
    ):
        base = robot.add_body(
            name=finger, pos=(*origin, 0), quat=(math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))
        )
        _geom(
            base,
            f"{finger}_base",
            _GEOM.mjGEOM_BOX,
            (0.028, 0.012, 0.006),
            pos=(0.0, 0.004, 0.030),
            material=f"{finger}_base",
        )
        body = base
        for j, link in enumerate(HINGED):
            body = _add_link(body, finger, j, link, scene.link_masses[f][j], scene)
        tip = LINKS[3]
        end = body.add_body(name=f"{finger}_tip", pos=tip.origin)
        _set_inertia(end, tip, tip.mass)
        _geom(
            body,
            f"{finger}_tip",
            _GEOM.mjGEOM_SPHERE,
            (_TIP_RADIUS,),
            pos=tip.origin,
            group=_HIDDEN,
        )
        _geom(body, f"{finger}_tip_cover", _GEOM.mjGEOM_MESH, (), material="tip", meshname="tip")
    for name in WALL_GEOMS:
        geom = spec.geom(name)
        geom.contype, geom.priority = 1, 1
        geom.friction = (FINGER_FRICTION * scene.stage_friction, TORSION, 0)
        geom.solref, geom.solimp = SOLREF, (*SOLIMP, 0.5, 2)


def _add_link(
    parent: mujoco.MjsBody, finger: str, joint: int, link: Link, mass: float, scene: Scene
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
        damping=scene.damping[joint],
        actfrclimited=True,
        actfrcrange=(-TORQUE_LIMIT, TORQUE_LIMIT),
    )
    start, end, radius = _CAPSULES[link.name]
    _geom(body, name, _GEOM.mjGEOM_CAPSULE, (radius,), group=_HIDDEN, fromto=(*start, *end))
    _geom(body, f"{name}_cover", _GEOM.mjGEOM_MESH, (), material=name, meshname=link.name)
    return body


def _set_inertia(body: mujoco.MjsBody, link: Link, mass: float) -> None:
    x, y, z, w = link.inertia_quat
    body.mass = mass
    body.ipos = link.com
    body.iquat = (w, x, y, z)
    body.inertia = [i * mass / link.mass for i in link.inertia]
    body.explicitinertial = True


# --- objects -------------------------------------------------------------------------------------


def _add_block(spec: mujoco.MjSpec, scene: Scene, index: int) -> None:
    used = index < len(scene.blocks)
    block = scene.blocks[index] if used else Block(position=parking_position(index))
    name = f"block_{index}"
    x, y, z, w = block.orientation
    body = spec.worldbody.add_body(
        name=name,
        pos=(*block.position[:2], block.position[2] + DATUM),
        quat=(w, x, y, z),
        gravcomp=0.0 if used else 1.0,
    )
    body.add_freejoint(name=name)
    body.mass = block.mass
    body.ipos, body.iquat = (0, 0, 0), (1, 0, 0, 0)
    body.inertia = box_inertia(np.array(block.mass), np.array(block.size))
    body.explicitinertial = True
    if block.mesh is None:
        _add_box(body, name, block.size, _SOLIDS)
    else:
        _add_solid(spec, body, name, block.mesh, block.size, _SOLIDS)


def _add_goal(spec: mujoco.MjSpec, scene: Scene, index: int) -> None:
    goal = scene.goals[index] if index < len(scene.goals) else Goal()
    name = f"goal_{index}"
    body = _fixed_body(spec, name, goal.position, goal.orientation)
    if goal.mesh is not None:
        _add_solid(spec, body, name, goal.mesh, goal.size, _GOALS)
    elif goal.shape == "sphere":
        _geom(
            body,
            name,
            _GEOM.mjGEOM_ELLIPSOID,
            [s / 2 for s in goal.size],
            group=_GOALS,
            material=name,
        )
    else:
        _add_box(body, name, goal.size, _GOALS)
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
    _geom(body, name, _GEOM.mjGEOM_BOX, [s / 2 for s in size], group=group, material=name)


def _add_solid(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    name: str,
    mesh: Mesh,
    size: Sequence[float],
    group: int,
) -> None:
    _add_mesh(spec, name, np.array(mesh.vertices) * np.array(size), np.array(mesh.faces))
    _geom(body, name, _GEOM.mjGEOM_MESH, (), group=group, material=name, meshname=name)


# --- contacts, actuators, sensors ----------------------------------------------------------------


def _add_pairs(spec: mujoco.MjSpec, scene: Scene) -> None:
    frictions = surface_frictions(scene)
    for contact in contacts(scene):
        slide = frictions[contact.surfaces[0]] * frictions[contact.surfaces[1]]
        spec.add_pair(
            name=contact.name,
            geomname1=contact.geoms[0],
            geomname2=contact.geoms[1],
            condim=contact.condim,
            friction=(slide, slide, TORSION, 0, 0),
            solref=SOLREF,
            solimp=(*SOLIMP, 0.5, 2),
        )


def _add_actuators(spec: mujoco.MjSpec, scene: Scene) -> None:
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


def _add_sensors(spec: mujoco.MjSpec, scene: Scene) -> None:
    field = mujoco.mjtConDataField
    found_dist = 1 << int(field.mjCONDATA_FOUND) | 1 << int(field.mjCONDATA_DIST)
    for pair in touch_sensors(scene):
        _contact_sensor(spec, "touch", pair, (found_dist, _MINIMAL_DISTANCE, 1))
        _contact_sensor(spec, "force", pair, (1 << int(field.mjCONDATA_FORCE), _NET_FORCE, 1))


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


# --- elements ------------------------------------------------------------------------------------


def _geom(
    body: mujoco.MjsBody, name: str, kind: mujoco.mjtGeom, size: Sequence[float], **more: Any
) -> mujoco.MjsGeom:
    """Adds a geom that touches only what a pair names."""
    if size:
        more["size"] = [*size] + [0.0] * (3 - len(size))
    return body.add_geom(name=name, type=kind, contype=0, conaffinity=0, **more)


def _add_mesh(spec: mujoco.MjSpec, name: str, vertices: np.ndarray, faces: np.ndarray) -> None:
    spec.add_mesh(
        name=name,
        uservert=vertices.astype(np.float32).ravel(),
        userface=faces.astype(np.int32).ravel(),
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX,
    )
