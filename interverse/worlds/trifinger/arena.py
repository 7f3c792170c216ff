"""Floor, wall, cameras and lights of the MuJoCo model."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from interverse.worlds.trifinger import looks
from interverse.worlds.trifinger.contacts import WALL_SIDES
from interverse.worlds.trifinger.elements import HIDDEN, add_geom, add_material, add_mesh
from interverse.worlds.trifinger.robot import DATUM
from interverse.worlds.trifinger.scene import (
    FLOOR_EDGES,
    FLOOR_TEXTURES,
    WALL_BOX,
    WALL_HEIGHT,
    WALL_RADIUS,
    ArenaScene,
)


def add_arena(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    """Adds everything that neither moves nor belongs to a task."""
    add_material(spec, "floor", scene.floor_color, specular=0.08)
    add_material(spec, "stage", scene.stage_color, specular=0.12)
    _add_textures(spec, scene)
    world = spec.worldbody
    half_x, half_y = FLOOR_EDGES[0] / 2, FLOOR_EDGES[1] / 2
    add_geom(
        world,
        "floor",
        mujoco.mjtGeom.mjGEOM_PLANE,
        (half_x, half_y, 0.05),
        pos=(0, 0, DATUM),
        material="floor",
    )
    add_geom(
        world,
        "table",
        mujoco.mjtGeom.mjGEOM_BOX,
        (half_x, half_y, 0.0148),
        pos=(0, 0, DATUM - 0.0155),
        material="floor",
    )
    _add_wall(spec)
    _add_views(spec, scene)


def _add_views(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    world = spec.worldbody
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
    add_mesh(spec, "stage", *looks.tube())
    add_geom(
        stage,
        "stage",
        mujoco.mjtGeom.mjGEOM_MESH,
        (),
        pos=(0, 0, DATUM - 0.002),
        material="stage",
        meshname="stage",
        castshadow=False,
    )
    half = WALL_RADIUS * math.tan(math.pi / WALL_SIDES) + 0.001
    middle = WALL_RADIUS + WALL_BOX / 2
    for k in range(WALL_SIDES):
        turn = 2 * math.pi * k / WALL_SIDES
        cos, sin = math.cos(turn), math.sin(turn)
        add_geom(
            stage,
            f"stage_{k}",
            mujoco.mjtGeom.mjGEOM_PLANE,
            (half, WALL_HEIGHT / 2, 0.05),
            pos=(WALL_RADIUS * cos, WALL_RADIUS * sin, DATUM + WALL_HEIGHT / 2),
            group=HIDDEN,
            zaxis=(-cos, -sin, 0),
        )
        box = add_geom(
            stage,
            f"stage_box_{k}",
            mujoco.mjtGeom.mjGEOM_BOX,
            (WALL_BOX / 2, half, WALL_HEIGHT / 2),
            pos=(middle * cos, middle * sin, DATUM + WALL_HEIGHT / 2),
            group=HIDDEN,
            quat=(math.cos(turn / 2), 0, 0, math.sin(turn / 2)),
        )
        box.conaffinity = 1


def _add_textures(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
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
