"""A look written into a compiled model: pixel for pixel what a model built with it shows."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.art.pictures import Videos
from interverse.sim.drawing import Drawing
from interverse.worlds.control.distraction import (
    CAMERA,
    COLOR,
    FRAME,
    MATERIALS,
    OPACITY,
    VIDEO,
    Distraction,
    moved_camera,
)
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import Gallery
from interverse.worlds.control.looks import BACKGROUND, FLOOR, NO_PICTURE, Look, factors
from interverse.worlds.control.scene import FLOOR as FLOOR_TEXTURE
from interverse.worlds.control.scene import (
    FLOOR_PICTURE,
    PICTURE_SIZE,
    SKY,
    SKY_PICTURE,
    checker_parts,
    sky_stars,
)

_MATERIALS = {"body/color": "self", "effector/color": "effector", "target/color": "target"}
_EDGE = np.array([0.2, 0.3, 0.4])  # the checker's lines, in every look
_WXYZ, _XYZW = [3, 0, 1, 2], [1, 2, 3, 0]


@final
class Paint:
    """Where each factor of a look lives in one model."""

    def __init__(
        self, physics: Any, domain: str, gallery: Gallery, distraction: Distraction | None = None
    ) -> None:
        self._model, self._gallery = physics.model.ptr, gallery
        self._videos = None if distraction is None else distraction.videos
        self._on_floor = distraction is not None and distraction.on_floor
        self._on_sky = distraction is not None and distraction.on_sky
        find, has = physics.model.name2id, DOMAINS[domain]
        self.camera = find(has.camera, "camera")
        self._lamp = find(has.lamp, "light")
        known = {factor.name for factor in factors(domain)}
        self._materials = {
            name: find(material, "material") for name, material in _MATERIALS.items()
        }
        self._drifting = [find(name, "material") for name in MATERIALS]
        set_by_looks = [m for name, m in self._materials.items() if name in known]
        self._own_colour = [m for m in self._drifting if m not in set_by_looks]
        self._own_rgb = self._model.mat_rgba[self._own_colour, :3].copy()
        self._floor_material = find(FLOOR_TEXTURE, "material")
        self._floors = find(FLOOR_TEXTURE, "texture"), find(FLOOR_PICTURE, "texture")
        self._floor_role = int(
            np.flatnonzero(self._model.mat_texid[self._floor_material] == self._floors[0])[0]
        )
        self._skies: tuple[int, ...] = ()
        if has.background:
            self._skies = find(SKY, "texture"), find(SKY_PICTURE, "texture")
        self._orientation = Rotation.from_quat(self._model.cam_quat[self.camera][_XYZW])
        self._quat = self._model.cam_quat[self.camera].copy()
        self._content: dict[int, Hashable] = {}  # what the model's picture textures hold
        self._side: tuple[Hashable, NDArray[np.uint8]] | None = None  # the latest side of the sky

    def write(self, look: Look) -> None:
        """Writes everything but pictures; derive the model's constants afterwards."""
        model = self._model
        for name, material in self._materials.items():
            if name in look:
                model.mat_rgba[material] = look[name]
        if COLOR in look:
            self._drift_colours(look[COLOR].reshape(-1, 3))
        model.mat_reflectance[self._floor_material] = look["reflectance"]
        model.mat_rgba[self._floor_material, 3] = look.get(OPACITY, 1.0)
        model.cam_pos[self.camera], model.cam_quat[self.camera] = self._pose(look)
        model.light_pos[self._lamp] = look["light/position"]
        head = model.vis.headlight
        head.ambient, head.diffuse = look["light/ambient"], look["light/diffuse"]
        head.specular = look["light/specular"]
        if "light/lamp_diffuse" in look:
            model.light_diffuse[self._lamp] = look["light/lamp_diffuse"]
            model.light_specular[self._lamp] = look["light/lamp_specular"]
        chosen = self._floors[self._on_floor or _has_content(look, "floor")]
        model.mat_texid[self._floor_material, self._floor_role] = chosen

    def _pose(self, look: Look) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the camera's place and orientation (w, x, y, z)."""
        place, rotation = look["camera/position"], look["camera/rotation"]
        if CAMERA not in look and not np.any(rotation):
            return place, self._quat  # every bit as compiled
        orientation = self._orientation * Rotation.from_rotvec(rotation)
        if CAMERA in look:
            place, orientation = moved_camera(look[CAMERA], place, orientation)
        return place, orientation.as_quat()[_WXYZ]

    def _drift_colours(self, added: NDArray[np.float64]) -> None:
        """Adds to the colours of materials; those that no look sets start from the compiled."""
        rgba = self._model.mat_rgba
        rgba[self._own_colour, :3] = self._own_rgb
        for material, rgb in zip(self._drifting, added, strict=True):
            rgba[material, :3] = np.clip(rgba[material, :3] + rgb, 0.0, 1.0)

    def show(self, look: Look, drawing: Drawing) -> None:
        """Brings the look's pictures, or the frame of its video, into GL."""
        if self._on_floor or _has_content(look, "floor"):
            self._put(drawing, self._floors[1], self._key(look, "floor"), lambda: self._floor(look))
        if not self._skies:
            return
        own = self._on_sky or _has_content(look, "background")
        if own:
            key = self._key(look, "background")
            self._put(drawing, self._skies[1], key, lambda: self._sky(look))
        drawing.choose_sky(self._skies, self._skies[own])

    def _frame(self, look: Look) -> NDArray[np.uint8]:
        return self._played().frame(int(look[VIDEO]), int(look[FRAME]), PICTURE_SIZE)

    def _played(self) -> Videos:
        assert self._videos is not None, "only a surface that plays a video asks for one"
        return self._videos

    def _plays(self, part: str) -> bool:
        """Returns whether a surface shows a video."""
        return self._on_floor if part == "floor" else self._on_sky

    def _key(self, look: Look, part: str) -> Hashable:
        if self._plays(part):
            return ("video", self._played().digest, int(look[VIDEO]), int(look[FRAME]))
        index = int(look[f"{part}/texture"])
        if index != NO_PICTURE:
            return (part, self._gallery.digest, index)
        return (part, *(look[f"{part}/color_{i}"].tobytes() for i in (1, 2)))

    def _put(self, drawing: Drawing, texture: int, content: Hashable, make: Any) -> None:
        if drawing.loaded.get(texture) != content:
            self._fill(texture, content, make)
            drawing.upload(self._model, texture, content)

    def fill(self, look: Look) -> None:
        """Brings the floor's picture into the model, for who draws without GL."""
        if self._on_floor or _has_content(look, "floor"):
            self._fill(self._floors[1], self._key(look, "floor"), lambda: self._floor(look))

    def sky_side(self, look: Look) -> NDArray[np.uint8] | None:
        """Returns one side of the sky, for who draws without GL; None in a domain without one."""
        if not self._skies:
            return None
        content = self._key(look, "background")
        if self._side is None or self._side[0] != content:
            self._side = content, self._sky(look)[:PICTURE_SIZE]
        return self._side[1]

    def _fill(self, texture: int, content: Hashable, make: Any) -> None:
        if self._content.get(texture) != content:
            start, pixels = int(self._model.tex_adr[texture]), make()
            self._model.tex_data[start : start + pixels.size] = pixels.ravel()
            self._content[texture] = content

    def _floor(self, look: Look) -> NDArray[np.uint8]:
        if self._on_floor:
            return self._frame(look)
        index = int(look["floor/texture"])
        if index != NO_PICTURE:
            return self._gallery.floor(index)
        return checker(look["floor/color_1"], look["floor/color_2"])

    def _sky(self, look: Look) -> NDArray[np.uint8]:
        if self._on_sky:
            return np.tile(self._frame(look), (6, 1, 1))
        index = int(look["background/texture"])
        if index != NO_PICTURE:
            return np.tile(self._gallery.background(index), (6, 1, 1))
        return sky(look["background/color_1"], look["background/color_2"])


def checker(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Returns the floor's checker in two colours, as MuJoCo draws it."""
    colours = _bytes(np.stack([first, second, _EDGE]))
    return np.take(colours, checker_parts(), axis=0)


def sky(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Returns the six faces of the sky of two colours, with its stars, as MuJoCo draws them."""
    left, corner = _heights()  # faces are symmetric: half of a side and a quarter of the top do
    half, up, down = (
        _bytes(part[..., None] * top + (1.0 - part[..., None]) * bottom)
        for part in (left, corner, 1.0 - corner)
    )
    side = np.concatenate([half, half[:, ::-1]], axis=1)
    ends = []
    for quarter in (up, down):
        upper = np.concatenate([quarter, quarter[:, ::-1]], axis=1)
        ends.append(np.concatenate([upper, upper[::-1]]))
    pixels = np.concatenate([side, side, *ends, side, side])
    pixels.reshape(-1, 3)[sky_stars()] = 255
    return pixels


@functools.cache
def _heights() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns how much of the upper colour pixels of a side face and of the top face have."""
    line = 2.0 * np.arange(PICTURE_SIZE) / (PICTURE_SIZE - 1)
    half = PICTURE_SIZE // 2
    x, y = line[None, :half] - 1.0, 1.0 - line[:, None]
    length = np.sqrt(1.0 + x * x + y * y)
    side = np.arcsin(y / length) / (0.5 * np.pi)
    up = 1.0 - np.arccos(1.0 / length[:half]) / (0.5 * np.pi)
    return _share(side), _share(up)


def _share(height: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(0.5 * (1.0 + height / np.sqrt(1.0 + height * height) * np.sqrt(2.0)), 0.0, 1.0)


def _bytes(colour: NDArray[np.float64]) -> NDArray[np.uint8]:
    return (255.0 * colour).astype(np.uint8)  # MuJoCo cuts, it does not round


def _has_content(look: Look, part: str) -> bool:
    """Returns whether a surface is other than the default, which has a texture of its own."""
    defaults = BACKGROUND if part == "background" else FLOOR
    return any(not np.array_equal(look[factor.name], factor.default) for factor in defaults)
