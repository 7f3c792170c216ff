"""The world on the page: solids that can be turned, or its picture, and the ghost in the same.

Solids are made once, then moved, recoloured or remade.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import trimesh
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial.transform import Rotation

from interverse.sim.shapes import Shape, Texture
from interverse.viewer.desk import Desk
from interverse.viewer.ghost import MOST_FRAMES, Ghost
from interverse.viewer.ghost import Frame as GhostFrame

_FEW_COLORS, _QUALITY = 256, 92
_LONGER = 900  # pixels along the longer side that are sent, about
_GHOST_COLOR, _GHOST_TINT = np.array([109.0, 63.0, 209.0]), 0.5  # the palette's TWIN
_MOST_HATCHED, _GHOST_SHARE = 0.4, 0.6  # of a picture; and of the ghost in a mixed one
_HATCH, _LINE = 6, 3  # pixels from one line of the ghost to the next, and of a line
_BLUR = 48  # how far two sizes of one picture differ at its edges
_FIELD = math.radians(40.0)
_ROOM = 1.06  # of the picture's size, in view
_WIDE = 0.75  # width of a scene, in its heights, until the browser tells its own
_FLAT = np.array([1.0, 1.0, 0.0])  # a followed world moves along the floor
_XYZW = [1, 2, 3, 0]
_ENDLESS = ("plane", "sky")
_SMOOTH = ("sphere", "ellipsoid", "capsule")
_TEXTURE = 256  # pixels a side, at most, of a picture that is sent
_VIEW = np.array([0.5, -1.0, 1.35])  # from where a scene is first seen
_DISTANCE = 1.75  # in radii of the scene
# A bowl is looked into: from lower, through its near wall.
_BOWL_VIEW, _BOWL_DISTANCE, _NEAR_WALL, _HOLLOW = np.array([0.3, -1.0, 0.8]), 1.3, 0.25, 0.3
_PHONE, _PHONE_AWAY, _PHONE_UP = 0.6, 1.5, 0.55  # aspect below it; in views, half windows
_AMBIENT, _SUN = 1.6, 2.0  # with these a colour looks about as it is named
_GHOST_RGB = np.array([0.43, 0.25, 0.82])
_SOLID_TINT, _GHOST_OPACITY = 0.75, 0.5  # of a ghost's solids


@final
class ViewerCanvas:
    """The picture's handle."""

    def __init__(self, server: Any, picture: NDArray[np.uint8]) -> None:
        rows, columns = picture.shape[:2]
        height = rows / columns
        camera = server.initial_camera
        camera.up, camera.look_at, camera.fov = (0.0, -1.0, 0.0), (0.0, 0.0, 0.0), _FIELD
        camera.position = (0.0, 0.0, -distance(height, _WIDE))
        server.on_client_connect(lambda client: _fit(client.camera, height))
        # Few colours: drawn pixel by pixel, and kept so. Many: a photograph, much cheaper as JPEG.
        self._drawn = len(np.unique(picture.reshape(-1, 3), axis=0)) <= _FEW_COLORS
        self._shown, kind = picture, "png" if self._drawn else "jpeg"
        self._handle = server.scene.add_image(
            "/picture", self._sent(picture), 1.0, height, format=kind, jpeg_quality=_QUALITY
        )

    def _sent(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return large(picture) if self._drawn else picture

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Shows another picture of the same size."""
        if not np.array_equal(picture, self._shown):  # a picture is the largest thing to send
            self._handle.image, self._shown = self._sent(picture), picture


def _fit(camera: Any, height: float) -> None:
    """Keeps the whole picture in one browser's scene, whatever shape that gets."""
    fitted = 0.0

    def fit(camera: Any) -> None:
        nonlocal fitted
        if camera.aspect != fitted:  # not where a person moves the camera
            fitted = camera.aspect
            camera.position = (0.0, 0.0, -distance(height, fitted))
            camera.look_at = (0.0, 0.0, 0.0)  # it moved along with the position

    fit(camera)
    camera.on_update(fit)


def distance(height: float, aspect: float) -> float:
    """Returns how far a camera is from a picture of width 1 that just fits its scene.

    >>> distance(1.0, 0.5) == 2 * distance(1.0, 1.0) == 2 * distance(1.0, 1.6)
    True
    """
    return _ROOM * max(1.0 / aspect, height) / 2.0 / math.tan(_FIELD / 2.0)


def blended(fact: NDArray[np.uint8], ghost: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns the fact's picture, hatched with the counterfactual's where the two differ.

    Where nearly everything does, as after a turn of the camera, one shines through the other.
    """
    if fact.shape != ghost.shape:  # one of them is larger; blurred edges are no difference
        near = [np.arange(n) * m // n for n, m in zip(fact.shape, ghost.shape, strict=True)]
        ghost = ghost[near[0]][:, near[1]]
        differs = (np.abs(fact.astype(int) - ghost) > _BLUR).any(axis=-1)
    else:
        differs = (fact != ghost).any(axis=-1)
    tinted = (1.0 - _GHOST_TINT) * ghost + _GHOST_TINT * _GHOST_COLOR
    rows, columns = np.indices(differs.shape)
    share = np.where((rows + columns) % _HATCH < _LINE, 1.0, 0.0)
    if differs.mean() > _MOST_HATCHED:
        share = np.full(differs.shape, _GHOST_SHARE)
    share = np.where(differs, share, 0.0)[..., None]
    return ((1.0 - share) * fact + share * tinted).astype(np.uint8)


def large(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns the picture with every pixel as a square of several: small ones stay crisp.

    >>> large(np.zeros((50, 100, 3), dtype=np.uint8)).shape
    (450, 900, 3)
    """
    times = max(1, _LONGER // max(picture.shape[:2]))
    return picture.repeat(times, axis=0).repeat(times, axis=1)


@final
class ViewerScene:
    """Shows a session, and its ghost, at one step."""

    def __init__(self, server: Any, desk: Desk) -> None:
        self._session = desk.session
        self._frames: dict[int, GhostFrame] = {}  # of this episode, by step
        self._start = self._session.history.start
        first = self._session.shapes()
        self._canvas = None if first else ViewerCanvas(server, self._session.picture())
        if first:
            self._middle = light_up(server, first)
            self._fact, self._ghost = (Solids(server.scene, r) for r in ("/world", "/ghost"))
            with desk.gui.add_folder("View", expand_by_default=False):
                self._follow = desk.gui.add_checkbox("Follow", True, hint="Keep it in the middle")
                hint = "The picture of the world's own camera, textures and all"
                self._camera = desk.gui.add_checkbox("Camera", False, hint=hint)
                white = np.full((8, 8, 3), 255, np.uint8)
                self._photo = desk.gui.add_image(white, visible=False)
            for handle in (self._follow, self._camera):
                handle.on_update(lambda _: desk.order("view", lambda: ""))

    def show(self, step: int, ghost: Ghost | None) -> None:
        """Shows the session at a step: now, or one that was seen before."""
        session, now = self._session, self._session.steps
        if session.history.start is not self._start:
            self._start, self._frames = session.history.start, {}
        # What was undone is forgotten, and what is long ago.
        self._frames = {s: f for s, f in self._frames.items() if now - MOST_FRAMES < s < now}
        self._frames[now] = session.picture() if self._canvas is not None else session.shapes()
        seen = max((s for s in self._frames if s <= step), default=min(self._frames))
        fact, other = self._frames[seen], None
        if ghost is not None:
            other = ghost.frames.get(seen, ghost.frames[max(ghost.frames)])
        if isinstance(fact, tuple):
            self._show_solids(fact, other if isinstance(other, tuple) else ())
        elif self._canvas is not None:
            both = isinstance(other, np.ndarray)
            self._canvas.show(blended(fact, np.asarray(other)) if both else fact)

    def _show_solids(self, fact: tuple[Any, ...], other: tuple[Any, ...]) -> None:
        middle, _ = bounds(fact)
        moved: NDArray[np.float64] = (middle - self._middle) * _FLAT
        moved = moved if self._follow.value else np.zeros(3)
        self._fact.show(fact, moved)
        self._ghost.show(ghosts(other, fact) if other else (), moved)
        self._photo.visible = self._camera.value
        if self._camera.value:
            self._photo.image = self._session.picture()


# ------------------------------------------------------------------------------------------- solids


@final
class Solids:
    """The handles of the shapes now in the scene; all stand in the frame of a name, `root`."""

    def __init__(self, scene: Any, root: str) -> None:
        self._scene, self._root = scene, root
        self._frame = scene.add_frame(root, show_axes=False)
        self._handles: dict[str, tuple[Hashable, Any]] = {}

    def show(self, shapes: Sequence[Shape], moved: NDArray[np.float64]) -> None:
        """Brings the scene up to date, all of it moved back by a vector (3,)."""
        for shape in shapes:
            made, look = self._handles.get(shape.name, (None, None)), _look(shape)
            if made[0] != look:
                made = look, self._made(shape)
                self._handles[shape.name] = made
            made[1].position, made[1].wxyz = shape.position, shape.rotation
        for name in self._handles.keys() - {shape.name for shape in shapes}:
            self._handles.pop(name)[1].remove()
        self._frame.position = -moved

    def _made(self, shape: Shape) -> Any:
        name = f"{self._root}/{shape.name}"
        if shape.texture is not None:
            return self._scene.add_mesh_trimesh(name, _textured(shape), receive_shadow=True)
        vertices, faces = _triangles(shape)
        alpha = float(shape.rgba[3])
        color = tuple(int(x) for x in np.round(255 * np.clip(shape.rgba[:3], 0, 1)))
        outside = _outside(vertices, faces) if shape.mesh is not None and alpha >= 1.0 else None
        look = {
            "color": color,
            "flat_shading": shape.kind not in _SMOOTH,
            "side": "double" if shape.kind == "plane" else "front",
        }
        see_through = {"opacity": None if alpha >= 1.0 else alpha, "cast_shadow": alpha >= 1.0}
        inside = faces if outside is None else faces[~outside]
        made = self._scene.add_mesh_simple(name, vertices, inside, **look, **see_through)
        if outside is not None:  # moves and goes with the inside
            wall = {"opacity": _NEAR_WALL, "cast_shadow": False}
            self._scene.add_mesh_simple(f"{name}/outside", vertices, faces[outside], **look, **wall)
        return made


def _outside(vertices: NDArray[Any], faces: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Returns which faces of a hollow thing look outwards; None for one that holds nothing.

    Drawn from the front alone, the wall that is near is seen from outside, the far one from within.
    """
    corners = np.asarray(vertices)[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    outside = np.sum(normals * (corners.mean(axis=1) - corners.mean(axis=(0, 1))), axis=1) >= 0
    hollow = areas[~outside].sum() > _HOLLOW * areas.sum()
    return outside if hollow else None


def light_up(server: Any, shapes: Sequence[Shape]) -> NDArray[np.float64]:
    """Sets lights and the first view for some shapes; returns their middle."""
    middle, radius = bounds(shapes)
    scene, camera = server.scene, server.initial_camera
    scene.configure_default_lights(enabled=False)
    scene.configure_environment_map(None)
    scene.add_light_ambient("/ambient", intensity=_AMBIENT)
    scene.add_light_directional("/sun", intensity=_SUN, position=(1.0, -1.5, 3.0))
    camera.up, camera.look_at, camera.near = (0.0, 0.0, 1.0), tuple(middle), radius / 100.0
    meshes = [_triangles(shape) for shape in shapes if shape.mesh is not None]
    is_bowl = any(_outside(*mesh) is not None for mesh in meshes)
    view, away = (_BOWL_VIEW, _BOWL_DISTANCE) if is_bowl else (_VIEW, _DISTANCE)
    view = view / np.linalg.norm(view) * radius * away
    camera.position = tuple(middle + view)

    def make_room(client: Any) -> None:
        """Moves the scene away and up in a phone's window, whose lower part is the panel's."""
        if (seen := client.camera).aspect < _PHONE:
            back = _PHONE_AWAY * view
            up = np.array([0.0, 0.0, 1.0]) - back * back[2] / (back @ back)
            high = np.linalg.norm(back) * math.tan(seen.fov / 2.0) / np.linalg.norm(up)
            target = middle - _PHONE_UP * high * up
            seen.position, seen.look_at = target + back, target  # in this order: it moves along

    server.on_client_connect(make_room)
    return middle


def ghosts(shapes: Sequence[Shape], fact: Sequence[Shape]) -> list[Shape]:
    """Returns the shapes that are not where the fact has them, or not as they are: translucent."""
    there = {shape.name: shape for shape in fact}
    found = []
    for shape in (shape for shape in shapes if shape.kind not in _ENDLESS):
        other = there.get(shape.name)
        if other is not None and _look(shape) == _look(other):
            near = np.abs(shape.position - other.position).max() < 1e-5
            if near and abs(float(shape.rotation @ other.rotation)) > 1.0 - 1e-8:
                continue
        rgb = (1.0 - _SOLID_TINT) * np.clip(shape.rgba[:3], 0.0, 1.0) + _SOLID_TINT * _GHOST_RGB
        rgba = np.array([*rgb, _GHOST_OPACITY * shape.rgba[3]])
        found.append(replace(shape, rgba=rgba, texture=None))
    return found


def _look(shape: Shape) -> Hashable:
    """Returns what a handle is made of; another look needs another handle."""
    mesh = None if shape.mesh is None else shape.mesh.number
    texture = shape.texture
    picture = None if texture is None else (zlib.crc32(_small(texture).tobytes()), texture.repeat)
    return shape.kind, tuple(shape.size), tuple(shape.rgba), mesh, picture


def bounds(shapes: Sequence[Shape]) -> tuple[NDArray[np.float64], float]:
    """Returns the middle and the radius of all but floor and sky."""
    solid = [shape for shape in shapes if shape.kind not in _ENDLESS]
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


def _textured(shape: Shape) -> Any:
    """Returns a plane with a repeated picture on it, or the sides and the top of a sky."""
    assert shape.texture is not None, "asked for shapes that have one"
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    across = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    corners, places = [square], [across * shape.texture.repeat]
    if shape.kind == "sky":
        upright = square[:, [0, 2, 1]] + np.array([0, 1, 0])
        turns = [Rotation.from_euler("z", angle, degrees=True) for angle in (0, 90, 180, 270)]
        corners = [*(turn.apply(upright) for turn in turns), square + np.array([0, 0, 1])]
        places = [*([across] * 4), np.full((4, 2), 1.0 - 1e-3)]  # the top has its upper edge's
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    visuals: Any = trimesh.visual  # its classes have no types
    material = visuals.material.PBRMaterial(
        baseColorTexture=Image.fromarray(_small(shape.texture)),
        baseColorFactor=shape.rgba,
        metallicFactor=0.0,
        roughnessFactor=1.0,
        doubleSided=True,
    )
    return trimesh.Trimesh(
        np.concatenate(corners) * shape.size,
        np.concatenate([faces + 4 * n for n in range(len(corners))]),
        visual=visuals.TextureVisuals(uv=np.concatenate(places), material=material),
        process=False,
    )
