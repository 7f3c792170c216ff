"""Floor, wall, cameras, lights and visible covers of the MuJoCo model.

Covers and patterns are seen and cannot be touched. The first functions make single MuJoCo elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.contacts import WALL_SIDES
from interverse.worlds.trifinger.robot import DATUM
from interverse.worlds.trifinger.scene import (
    FLOOR_EDGES,
    FLOOR_TEXTURES,
    WALL_BOX,
    WALL_HEIGHT,
    WALL_RADIUS,
    WALL_THICKNESS,
    ArenaScene,
)

ARENA, SOLIDS, GOALS, HIDDEN = 0, 1, 2, 3  # geom groups


def add_geom(
    body: mujoco.MjsBody, name: str, kind: str, size: Sequence[float] = (), **more: Any
) -> mujoco.MjsGeom:
    """Adds a geom ("box", "mesh", ...) that touches only what a pair names, and returns it."""
    if size:
        more["size"] = [*size] + [0.0] * (3 - len(size))
    shape = getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}")
    return body.add_geom(name=name, type=shape, contype=0, conaffinity=0, **more)


def add_mesh(spec: mujoco.MjSpec, name: str, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Adds a triangle mesh: vertices (n, 3), triangles (m, 3)."""
    spec.add_mesh(
        name=name,
        uservert=vertices.astype(np.float32).ravel(),
        userface=faces.astype(np.int32).ravel(),
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX,
    )


def add_material(
    spec: mujoco.MjSpec,
    name: str,
    color: Sequence[float],
    *,
    specular: float,
    alpha: float = 1.0,
) -> None:
    """Adds a material; an object's colour is that of the material of its name."""
    spec.add_material(
        name=name, rgba=(*color, alpha), specular=specular, shininess=0.4, reflectance=0.0
    )


Surface = tuple[NDArray[np.float64], NDArray[np.int64]]  # vertices (n, 3), triangles (m, 3)

_SIDES = 20  # corners of a cover's cross section
_WALL_SIDES = 72


@dataclass(frozen=True, slots=True)
class CoverSection:
    """A cross section of a cover: a rounded rectangle across the cover's axis."""

    at: float  # along the axis, m
    half: tuple[float, float]  # half widths, m
    centre: tuple[float, float] = (0.0, 0.0)
    roundness: float = 2.0  # 2 is an ellipse, larger is boxier


def loft(sections: Sequence[CoverSection], axis: int) -> Surface:
    """Returns the closed surface through the sections, along x (0), y (1) or z (2)."""
    turn = np.linspace(0, 2 * math.pi, _SIDES, endpoint=False)
    rings = []
    for s in sections:
        cos, sin = np.cos(turn), np.sin(turn)
        u = s.centre[0] + s.half[0] * np.sign(cos) * np.abs(cos) ** (2 / s.roundness)
        v = s.centre[1] + s.half[1] * np.sign(sin) * np.abs(sin) ** (2 / s.roundness)
        rings.append(_place(axis, s.at, u, v))
    ends = [
        _place(axis, s.at, np.array([s.centre[0]]), np.array([s.centre[1]]))
        for s in (sections[0], sections[-1])
    ]
    vertices = np.concatenate([*rings, *ends])
    first, last = len(sections) * _SIDES, len(sections) * _SIDES + 1
    top, faces = first - _SIDES, []
    for k in range(0, top, _SIDES):  # the band between two rings
        for i in range(_SIDES):
            j = (i + 1) % _SIDES
            a, b = k, k + _SIDES
            faces += [(a + i, a + j, b + j), (a + i, b + j, b + i)]
    for i in range(_SIDES):
        j = (i + 1) % _SIDES
        faces += [(first, j, i), (last, top + i, top + j)]
    triangles = np.array(faces)
    a, b, c = (vertices[triangles[:, i]] for i in range(3))
    outward = np.einsum("ij,ij->", a, np.cross(b, c)) > 0  # the volume that they enclose
    return vertices, triangles if outward else triangles[:, ::-1]


def tube() -> Surface:
    """Returns the wall of the stage as one closed surface, standing on z = 0."""
    turn = np.linspace(0, 2 * math.pi, _WALL_SIDES, endpoint=False)
    rings = []
    for radius in (WALL_RADIUS, WALL_RADIUS + WALL_THICKNESS):
        for z in (0.0, WALL_HEIGHT):
            rings.append(
                np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full_like(turn, z)], 1)
            )
    n = _WALL_SIDES
    low_in, high_in, low_out, high_out = 0, n, 2 * n, 3 * n
    faces = []
    for i in range(n):
        j = (i + 1) % n
        for a, b in (
            (high_in, low_in),
            (low_out, high_out),
            (high_out, high_in),
            (low_in, low_out),
        ):
            faces += [(a + i, b + i, b + j), (a + i, b + j, a + j)]
    return np.concatenate(rings), np.array(faces)


def _place(
    axis: int, along: float, u: NDArray[np.float64], v: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns points with the given coordinate along an axis and u, v across it, (n, 3)."""
    columns = [u, v]
    columns.insert(axis, np.full_like(u, along))
    return np.stack(columns, axis=1)


# Along its axis each cover swells and narrows: (place, scale) or (place, half widths), m.
_UPPER = (
    *((-0.180, 0.60), (-0.176, 0.86), (-0.166, 0.97), (-0.150, 1.0), (-0.112, 1.0), (-0.104, 0.86)),
    *((-0.030, 0.86), (-0.022, 0.96), (0.010, 0.96), (0.0175, 0.84), (0.0195, 0.60)),
)
_MIDDLE = (
    *((0.0155, 0.60), (0.012, 0.85), (0.004, 1.0), (-0.018, 1.0), (-0.034, 0.80), (-0.126, 0.74)),
    *((-0.142, 0.98), (-0.170, 1.0), (-0.178, 0.88), (-0.182, 0.62)),
)
_LOWER = (
    *((0.014, 0.0040, 0.0045), (0.012, 0.0078, 0.0060), (0.007, 0.0124, 0.0066)),
    *((0.0, 0.0140, 0.0068), (-0.008, 0.0136, 0.0066), (-0.020, 0.0124, 0.0060)),
    *((-0.070, 0.0092, 0.0052), (-0.130, 0.0060, 0.0045), (-0.142, 0.0058, 0.0044)),
)
_TIP = (
    *((-0.1372, 0.0052), (-0.1385, 0.0072), (-0.1400, 0.0088), (-0.1425, 0.0102)),
    *((-0.1450, 0.0109), (-0.1500, 0.0105), (-0.1560, 0.0099)),
)


def cover(part: str) -> Surface:
    """Returns the cover of a link: upper, middle, lower or tip, in that link's frame."""
    if part == "upper":
        wide = [CoverSection(x, (0.0185 * s, 0.0205 * s), (0.0040, 0.0), 4.0) for x, s in _UPPER]
        return loft(wide, axis=0)
    if part == "middle":
        deep = [
            CoverSection(z, (0.0205 * s, 0.0165 * (0.35 + 0.65 * s)), (0.0, -0.0185), 3.4)
            for z, s in _MIDDLE
        ]
        return loft(deep, axis=2)
    if part == "lower":
        bent = [
            CoverSection(z, (a, b), (0.0, -0.0062 - 0.0018 * min(1.0, max(0.0, -z / 0.13))), 2.3)
            for z, a, b in _LOWER
        ]
        return loft(bent, axis=2)
    bulb = [CoverSection(z, (r, r), (0.0, -0.008)) for z, r in _TIP]
    for t in np.linspace(0.15, math.pi / 2 - 0.02, 7):  # a half sphere from its rim to its pole
        at, radius = -0.160 - 0.0095 * math.sin(t), 0.0095 * math.cos(t)
        bulb.append(CoverSection(at, (radius, radius), (0.0, -0.008)))
    return loft(bulb, axis=2)


def texture(name: str, edge: int = 256) -> NDArray[np.uint8]:
    """Returns a floor texture to be tinted by the floor's colour, (edge, edge, 3)."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:edge, 0:edge] / edge
    if name == "checker":
        shade = np.where((np.floor(x * 8) + np.floor(y * 8)) % 2 == 0, 1.0, 0.72)
    elif name == "wood":
        plank = np.floor(y * 6)
        grain = np.sin(
            2 * math.pi * (9 * (y * 6 - plank) + 0.6 * np.sin(6 * x + 2.1 * plank) + 1.7 * plank)
        )
        seam = np.where((y * 6) % 1 < 0.03, 0.25, 0.0)
        shade = 0.86 + 0.07 * grain + 0.06 * np.sin(12.9 * plank) - seam
    elif name == "felt":
        shade = 0.86 + 0.12 * rng.standard_normal((edge, edge))
    else:
        gap = np.minimum((x * 5) % 1, (y * 5) % 1)
        shade = np.where(
            gap < 0.04, 0.6, 0.95 + 0.03 * np.sin(40 * np.floor(x * 5) + 17 * np.floor(y * 5))
        )
    return np.repeat((np.clip(shade, 0, 1) * 255).astype(np.uint8)[..., None], 3, axis=2)


def add_arena(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    """Adds everything that neither moves nor belongs to a task."""
    add_material(spec, "floor", scene.floor_color, specular=0.08)
    add_material(spec, "stage", scene.stage_color, specular=0.12)
    _add_textures(spec, scene)
    world = spec.worldbody
    half_x, half_y = FLOOR_EDGES[0] / 2, FLOOR_EDGES[1] / 2
    at, below = (0, 0, DATUM), (0, 0, DATUM - 0.0155)
    add_geom(world, "floor", "plane", (half_x, half_y, 0.05), pos=at, material="floor")
    add_geom(world, "table", "box", (half_x, half_y, 0.0148), pos=below, material="floor")
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
    add_mesh(spec, "stage", *tube())
    seen = add_geom(stage, "stage", "mesh", material="stage", meshname="stage", castshadow=False)
    seen.pos = (0, 0, DATUM - 0.002)
    half = WALL_RADIUS * math.tan(math.pi / WALL_SIDES) + 0.001
    middle, height = WALL_RADIUS + WALL_BOX / 2, DATUM + WALL_HEIGHT / 2
    plane_size, box_size = (half, WALL_HEIGHT / 2, 0.05), (WALL_BOX / 2, half, WALL_HEIGHT / 2)
    for k in range(WALL_SIDES):
        turn = 2 * math.pi * k / WALL_SIDES
        cos, sin = math.cos(turn), math.sin(turn)
        plane = add_geom(stage, f"stage_{k}", "plane", plane_size, zaxis=(-cos, -sin, 0))
        plane.pos = (WALL_RADIUS * cos, WALL_RADIUS * sin, height)
        box = add_geom(
            stage, f"stage_box_{k}", "box", box_size, pos=(middle * cos, middle * sin, height)
        )
        box.quat, box.conaffinity = (math.cos(turn / 2), 0, 0, math.sin(turn / 2)), 1
        plane.group = box.group = HIDDEN


def _add_textures(spec: mujoco.MjSpec, scene: ArenaScene) -> None:
    """Adds all floor textures, so that `mat_texid` of the floor can choose one per world."""
    role = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
    for name in FLOOR_TEXTURES[1:]:
        image = texture(name)
        rows, columns, channels = image.shape
        added = spec.add_texture(name=f"floor_{name}", type=mujoco.mjtTexture.mjTEXTURE_2D)
        added.height, added.width, added.nchannel = rows, columns, channels
        added.data = image.tobytes()
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
