"""A world's solids in the browser's 3-D scene: made once, then moved, recoloured or remade."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from typing import Any, final

import numpy as np
import trimesh
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial.transform import Rotation

from interverse.sim.shapes import Shape, Texture

_ROOT = "/world"
_XYZW = [1, 2, 3, 0]
_SMOOTH = ("sphere", "ellipsoid", "capsule")
_TEXTURE = 256  # pixels a side, at most, of a picture that is sent
_VIEW = np.array([0.5, -1.0, 1.35])  # from where a scene is first seen
_DISTANCE = 1.55  # in radii of the scene
_AMBIENT, _SUN = 1.6, 2.0  # with these a colour looks about as it is named


@final
class Solids:
    """The handles of the shapes now in the scene."""

    def __init__(self, server: Any, shapes: Sequence[Shape]) -> None:
        self._scene = server.scene
        self._root = server.scene.add_frame(_ROOT, show_axes=False)
        self._handles: dict[str, tuple[Hashable, Any]] = {}
        self.following = True
        self._start, radius = _bounds(shapes)
        server.scene.configure_default_lights(enabled=False)
        server.scene.configure_environment_map(None)
        server.scene.add_light_ambient("/ambient", intensity=_AMBIENT)
        server.scene.add_light_directional("/sun", intensity=_SUN, position=(1.0, -1.5, 3.0))
        server.initial_camera.up = (0.0, 0.0, 1.0)
        server.initial_camera.look_at = tuple(self._start)
        away = _VIEW / np.linalg.norm(_VIEW) * radius * _DISTANCE
        server.initial_camera.position = tuple(self._start + away)
        server.initial_camera.near = radius / 100.0
        self.show(shapes)

    def show(self, shapes: Sequence[Shape]) -> None:
        """Brings the scene up to date."""
        for shape in shapes:
            made, look = self._handles.get(shape.name, (None, None)), _look(shape)
            if made[0] != look:
                made = look, self._made(shape)
                self._handles[shape.name] = made
            made[1].position, made[1].wxyz = shape.position, shape.rotation
        for name in self._handles.keys() - {shape.name for shape in shapes}:
            self._handles.pop(name)[1].remove()
        centre, _ = _bounds(shapes)
        moved = (centre - self._start) * (1.0, 1.0, 0.0)
        self._root.position = -moved if self.following else np.zeros(3)

    def _made(self, shape: Shape) -> Any:
        name = f"{_ROOT}/{shape.name}"
        if shape.texture is not None:
            mesh = _textured(shape.size, shape.texture, shape.rgba)
            return self._scene.add_mesh_trimesh(name, mesh, receive_shadow=True)
        vertices, faces = _triangles(shape)
        alpha = float(shape.rgba[3])
        return self._scene.add_mesh_simple(
            name,
            vertices,
            faces,
            color=tuple(int(x) for x in np.round(255 * np.clip(shape.rgba[:3], 0, 1))),
            opacity=None if alpha >= 1.0 else alpha,
            flat_shading=shape.kind not in _SMOOTH,
            side="double" if shape.kind == "plane" else "front",
            cast_shadow=alpha >= 1.0,
        )


def _look(shape: Shape) -> Hashable:
    """Returns what a handle is made of; another look needs another handle."""
    mesh = None if shape.mesh is None else shape.mesh.number
    texture = shape.texture
    picture = None if texture is None else (zlib.crc32(_small(texture).tobytes()), texture.repeat)
    return shape.kind, tuple(shape.size), tuple(shape.rgba), mesh, picture


def _bounds(shapes: Sequence[Shape]) -> tuple[NDArray[np.float64], float]:
    """Returns the middle and the radius of all but the floor."""
    solid = [shape for shape in shapes if shape.kind != "plane"]
    if not solid:
        return np.zeros(3), 1.0
    low = np.min([shape.position - _reach(shape) for shape in solid], axis=0)
    high = np.max([shape.position + _reach(shape) for shape in solid], axis=0)
    return (low + high) / 2.0, float(np.linalg.norm(high - low) / 2.0)


def _reach(shape: Shape) -> NDArray[np.float64]:
    """Returns how far a shape reaches along the world's axes, or a little more."""
    turn = Rotation.from_quat(shape.rotation[_XYZW]).as_matrix()
    caps = shape.size[0] if shape.kind == "capsule" else 0.0
    return np.abs(turn) @ (shape.size + np.array([0.0, 0.0, caps]))


def _triangles(shape: Shape) -> tuple[NDArray[Any], NDArray[Any]]:
    size = shape.size
    if shape.mesh is not None:
        return shape.mesh.vertices, shape.mesh.faces
    if shape.kind == "plane":
        corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * size
        return corners, np.array([[0, 1, 2], [0, 2, 3]])
    create = trimesh.creation
    if shape.kind == "box":
        made = create.box(extents=2.0 * size)
    elif shape.kind == "cylinder":
        made = create.cylinder(radius=size[0], height=2.0 * size[2], sections=48)
    elif shape.kind == "capsule":
        made = create.capsule(radius=size[0], height=2.0 * size[2])
    else:
        made = create.icosphere(subdivisions=3, radius=1.0)
        made.apply_scale(size)
    return np.asarray(made.vertices), np.asarray(made.faces)


def _small(texture: Texture) -> NDArray[np.uint8]:
    every = max(1, -(-max(texture.pixels.shape[:2]) // _TEXTURE))
    return np.ascontiguousarray(texture.pixels[::every, ::every])


def _textured(size: NDArray[Any], texture: Texture, rgba: NDArray[Any]) -> Any:
    """Returns a plane with a repeated picture on it."""
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * size
    across = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * texture.repeat
    visuals: Any = trimesh.visual  # its classes have no types
    material = visuals.material.PBRMaterial(
        baseColorTexture=Image.fromarray(_small(texture)),
        baseColorFactor=rgba,
        metallicFactor=0.0,
        roughnessFactor=1.0,
        doubleSided=True,
    )
    visual = visuals.TextureVisuals(uv=across, material=material)
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    return trimesh.Trimesh(corners, faces, visual=visual, process=False)
