"""Solids that can be seen of one MuJoCo world: for viewers that draw without our GL."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, final

import mujoco
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_KINDS = {
    int(mujoco.mjtGeom.mjGEOM_PLANE): "plane",
    int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): "ellipsoid",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
    int(mujoco.mjtGeom.mjGEOM_MESH): "mesh",
}
_FLAT = int(mujoco.mjtTexture.mjTEXTURE_2D)
_RGB = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
_SPARE = 200  # for what MuJoCo itself adds to a scene: tendons, skins
_SKY = 60.0  # metres from the middle to a side of the sky
_PLANE = 10.0  # half the side that is shown of a plane without end, metres


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShapeMesh:
    """Triangles in a shape's own frame; `number` is the same for the same mesh of a model."""

    number: int
    vertices: FloatArray  # (V, 3), metres
    faces: NDArray[np.int32]  # (F, 3)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Texture:
    """A picture on a plane, upright, and how often it repeats along the plane's x and y."""

    pixels: NDArray[np.uint8]  # (rows, columns, 3)
    repeat: tuple[float, float]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """One solid.

    Attributes:
        name: unique in its world, the same from step to step.
        kind: plane, sphere, capsule, ellipsoid, cylinder, box, mesh, or sky: a picture far away
            on all sides.
        size: (3,) half sizes along its axes; a capsule's third is without its caps. metres.
        position: (3,). rotation: (4,) w, x, y, z. Both in the world's frame.
        rgba: (4,) in 0..1.
    """

    name: str
    kind: str
    size: FloatArray
    position: FloatArray
    rotation: FloatArray
    rgba: FloatArray
    mesh: ShapeMesh | None = None
    texture: Texture | None = None


def sky_shape(side: NDArray[np.uint8]) -> Shape:
    """Returns a sky that has the same picture (rows, columns, 3) on every side."""
    return Shape(
        name="sky",
        kind="sky",
        size=np.full(3, _SKY),
        position=np.zeros(3),
        rotation=np.array([1.0, 0.0, 0.0, 0.0]),
        rgba=np.ones(4),
        texture=Texture(side, (1.0, 1.0)),
    )


@final
class Shapes:
    """Reads the shapes of a model and its data, as MuJoCo's own viewer would show them."""

    def __init__(self, model: Any) -> None:
        self._scene = mujoco.MjvScene(model, model.ngeom + model.nsite + _SPARE)
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()

    def read(self, model: Any, data: Any) -> tuple[Shape, ...]:
        """Returns what is visible; the data's places must be up to date."""
        every = int(mujoco.mjtCatBit.mjCAT_ALL)
        mujoco.mjv_updateScene(model, data, self._option, None, self._camera, every, self._scene)
        seen: Counter[str] = Counter()
        out = []
        for geom in self._scene.geoms[: self._scene.ngeom]:
            kind = _KINDS.get(int(geom.type))
            if kind is None or geom.rgba[3] <= 0.0:
                continue
            owner = mujoco.mjtObj(geom.objtype)
            given = mujoco.mj_id2name(model, int(owner), geom.objid) if geom.objid >= 0 else None
            name = f"{owner.name.removeprefix('mjOBJ_').lower()}/{given or geom.objid}"
            seen[name] += 1
            rotation, size = np.empty(4), np.array(geom.size, dtype=np.float64)
            mujoco.mju_mat2Quat(rotation, np.asarray(geom.mat, dtype=np.float64).ravel())
            if kind == "plane":
                size[:2] = np.where(size[:2] > 0.0, size[:2], _PLANE)
            out.append(
                Shape(
                    name=name + (f"_{seen[name]}" if seen[name] > 1 else ""),
                    kind=kind,
                    size=size,
                    position=np.array(geom.pos, dtype=np.float64),
                    rotation=rotation,
                    rgba=np.array(geom.rgba, dtype=np.float64),
                    mesh=_mesh(model, int(geom.dataid) // 2) if kind == "mesh" else None,
                    texture=_texture(model, int(geom.matid), size) if kind == "plane" else None,
                )
            )
        return tuple(out)


def _mesh(model: Any, number: int) -> ShapeMesh:
    first, count = model.mesh_vertadr[number], model.mesh_vertnum[number]
    start, faces = model.mesh_faceadr[number], model.mesh_facenum[number]
    return ShapeMesh(
        number,
        np.array(model.mesh_vert[first : first + count], dtype=np.float64),
        np.array(model.mesh_face[start : start + faces]),
    )


def _texture(model: Any, material: int, size: FloatArray) -> Texture | None:
    number = int(model.mat_texid[material, _RGB]) if material >= 0 else -1
    if number < 0 or int(model.tex_type[number]) != _FLAT:
        return None
    rows, columns = int(model.tex_height[number]), int(model.tex_width[number])
    channels, start = int(model.tex_nchannel[number]), int(model.tex_adr[number])
    flat = model.tex_data[start : start + rows * columns * channels]
    pixels = np.array(flat, dtype=np.uint8).reshape(rows, columns, channels)[::-1, :, :3]
    repeat = np.array(model.mat_texrepeat[material], dtype=np.float64)
    if model.mat_texuniform[material]:  # repetitions per metre, not per plane
        repeat = repeat * 2.0 * size[:2]
    return Texture(pixels, (float(repeat[0]), float(repeat[1])))
