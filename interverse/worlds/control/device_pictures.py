"""Pictures of control worlds by Warp's ray caster, all worlds at once, on a GPU or the CPU.

dm_control steps on the CPU; where shapes, camera and lamps are, colours, and pictures of floor and
sky that have changed are sent. The headlight is a lamp at the camera; sites and strings of tendons
are shapes. What `NOT_DRAWN` names is not drawn.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, final

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.sim.warp_device import find_device, load_warp, quiet
from interverse.sim.warp_render import WarpRenderer, on_default_stream, send_rows
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.options import ControlOptions
from interverse.worlds.control.scene import FLOOR, FLOOR_PICTURE, REPEATS, domain_spec
from interverse.worlds.control.stage import ControlStage

NOT_DRAWN = ("reflectance", "transparency", "haze at the horizon", "the hang of a slack string")
_GROUPS = 3  # of geoms, sites and tendons: MuJoCo shows 0, 1 and 2
_SAMPLES = {"fast": 1, "default": 2, "full": 2}  # along both axes of a pixel, by quality
_BLUR = 0.5  # of what is seen at the middle of the scene; further off it should be coarser
_RGB = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
_CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
_DIRECTIONAL = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
_LAMP = ("ambient", "diffuse", "specular")


@final
class ControlPhotographer:
    """Draws the present moment of every world of one task."""

    def __init__(self, stages: Sequence[ControlStage], options: ControlOptions) -> None:
        """Makes a model to draw, and room for the pictures.

        Args:
            stages: the worlds; each has started when it is drawn.
            options: which renderer, size and quality.
        """
        warp, mujoco_warp = load_warp()
        self._stages, self._device = stages, _device(options.renderer)
        source = stages[0].physics.model.ptr
        self._shown = [_ShownPictures() for _ in stages]
        with quiet(), warp.ScopedDevice(self._device):
            self._moment = _Moment(source, options)
            model = self._moment.drawn
            self._model = mujoco_warp.put_model(model)
            data = mujoco.MjData(model)
            mujoco.mj_forward(model, data)
            room = {"nworld": len(stages), "njmax": 1, "nconmax": 1}
            self._data = mujoco_warp.put_data(model, data, **room)
            self._renderer = WarpRenderer(
                model, self._data, [self._moment.camera], options.size, _SAMPLES[options.quality]
            )
            self._textures = self._renderer.textures
            self._stock = len(self._textures)
            self._skies = np.zeros(len(stages), np.int32)
            self._floor = tuple(source.texture(name).id for name in (FLOOR, FLOOR_PICTURE))
            self._finest = self._moment.periods(data) * options.size[0] * _SAMPLES[options.quality]
            self._put(self._floor[0], self._floor[0], _pixels(source, self._floor[0]))

    def draw(self) -> NDArray[np.uint8]:
        """Returns the pictures, (N, rows, columns, 3)."""
        warp, _ = load_warp()
        with quiet(), warp.ScopedDevice(self._device), on_default_stream(self._device):
            moments = [self._moment.read(stage) for stage in self._stages]
            is_new = [self._dress(world, moment) for world, moment in enumerate(moments)]
            if any(is_new):
                self._renderer.set_textures(self._textures, self._skies)
            for name in moments[0]:
                rows = np.stack([moment[name] for moment in moments])
                send_rows(self._model, self._data, name, rows)
            pictures: NDArray[np.uint8] = self._renderer.cast(self._model, self._data).cpu().numpy()
        return pictures[:, 0]

    def _dress(self, world: int, moment: dict[str, NDArray[Any]]) -> bool:
        """Brings a world's pictures to the device; returns whether any is new.

        Args:
            world: its number.
            moment: what is sent of it; its textures become those of the device.
        """
        shown, stage = self._shown[world], self._stages[world]
        stage.show(shown)
        numbers = {-1: -1, **{i: i for i in range(self._stock)}}
        new = shown.take()
        for texture, pixels in new.items():
            if texture not in shown.places:
                shown.places[texture] = len(self._textures)
                self._textures.append(None)
            self._put(shown.places[texture], texture, pixels)
        numbers |= shown.places
        used = moment["mat_texid"]
        used[:, _RGB] = [numbers[i] for i in used[:, _RGB].tolist()]
        sky = numbers[shown.sky]
        is_new = bool(new) or int(self._skies[world]) != sky
        self._skies[world] = sky
        return is_new

    def _put(self, place: int, texture: int, pixels: NDArray[np.uint8]) -> None:
        """Puts a picture on the device, that of a floor no finer than seen: there is no mipmap."""
        if texture in self._floor:
            while len(pixels) % 2 == 0 and len(pixels) > self._finest * _BLUR:
                pixels = pixels.reshape(len(pixels) // 2, 2, -1, 2, 3).mean(axis=(1, 3))
        self._textures[place] = _texture(pixels.astype(np.uint8))


def _device(renderer: str) -> Any:
    """Returns Warp's device for a renderer."""
    try:
        return find_device(renderer)
    except InvalidValueError as error:
        problem = f"renderer is {renderer!r}, but there is no CUDA device"
        raise InvalidValueError(problem, allowed="mujoco, warp") from error


@final
class _ShownPictures:
    """What a stage shows on floor and sky; takes the place of MuJoCo's drawing."""

    def __init__(self) -> None:
        self.loaded: dict[int, Hashable] = {}  # texture -> what the caller last put in it
        self.places: dict[int, int] = {}  # texture -> its number on the device
        self.sky = -1
        self._new: dict[int, NDArray[np.uint8]] = {}

    def upload(self, model: Any, texture: int, content: Hashable) -> None:
        """Keeps a texture of the model that has changed."""
        self._new[texture], self.loaded[texture] = _pixels(model, texture), content

    def choose_sky(self, textures: tuple[int, ...], chosen: int) -> None:
        """Remembers which of several textures is the sky."""
        self.sky = chosen

    def take(self) -> dict[int, NDArray[np.uint8]]:
        """Returns what has changed since the last call."""
        new, self._new = self._new, {}
        return new


@final
class _Moment:
    """What is sent of a moment: by names of Warp's fields, as the drawn model numbers things."""

    def __init__(self, source: Any, options: ControlOptions) -> None:
        """Makes the model that is drawn.

        Args:
            source: the model that is stepped.
            options: whose world it is.
        """
        self._sites = np.flatnonzero(source.site_group < _GROUPS)
        is_string = (source.tendon_group < _GROUPS) & (source.tendon_num == 2)
        at = source.tendon_adr
        is_string &= np.array([source.wrap_type[i] == mujoco.mjtWrap.mjWRAP_SITE for i in at], bool)
        self._strings = np.flatnonzero(is_string)
        self._ends = at[self._strings]
        first = int((source.geom_bodyid == 0).sum())
        self._extra = slice(first, first + len(self._sites) + len(self._strings))
        self._headlight = int((source.light_bodyid == 0).sum())
        self.camera = DOMAINS[options.domain].camera
        self._camera = source.camera(self.camera).id
        spec = domain_spec(options.domain, options.poles)
        self._floor = source.material(FLOOR).id
        self._add(spec, source)
        self.drawn = spec.compile()
        self.drawn.mat_specular[self._floor] = 0.0  # GL lights corners alone
        self.drawn.vis.headlight.active = False
        self.drawn.stat.extent = source.stat.extent

    def _add(self, spec: Any, source: Any) -> None:
        """Adds to the world what a moment sends beside its geoms and lamps."""
        for i in self._sites.tolist():
            kind = mujoco.mjtGeom(int(source.site_type[i]))
            site = spec.worldbody.add_geom(type=kind, size=source.site_size[i])
            if source.site_matid[i] >= 0:
                site.material = source.material(source.site_matid[i]).name
        for i in self._strings.tolist():
            width = float(source.tendon_width[i])
            string = spec.worldbody.add_geom(type=_CAPSULE, size=[width, width, 0.0])
            if source.tendon_matid[i] >= 0:
                string.material = source.material(source.tendon_matid[i]).name
        spec.worldbody.add_light(
            type=_DIRECTIONAL, castshadow=False, dir=[0.0, 0.0, -1.0], ambient=[0.1, 0.1, 0.1]
        )

    def periods(self, data: Any) -> float:
        """Returns the length of the floor's picture, in heights of the view at the scene's middle.

        Args:
            data: of the drawn model, at rest.
        """
        model, camera = self.drawn, self.drawn.camera(self.camera).id
        far = float(np.linalg.norm(data.cam_xpos[camera] - model.stat.center))
        height = 2.0 * far * np.tan(np.deg2rad(model.cam_fovy[camera]) / 2.0)
        return float(2.0 / REPEATS / height)

    def read(self, stage: ControlStage) -> dict[str, NDArray[Any]]:
        """Returns a stage's moment."""
        model, data = stage.physics.model.ptr, stage.physics.data.ptr
        forward = -data.cam_xmat[self._camera].reshape(3, 3)[:, 2]
        out = {
            "mat_rgba": self._colours(model, max(float(-forward[2]), 0.0)),
            "mat_texid": model.mat_texid.copy(),
            "cam_xpos": data.cam_xpos,
            "cam_xmat": data.cam_xmat.reshape(-1, 3, 3),
            "light_xpos": self._with_headlight(data.light_xpos, data.cam_xpos[self._camera]),
            "light_xdir": self._with_headlight(data.light_xdir, forward),
        }
        for part in _LAMP:
            lamps, head = getattr(model, f"light_{part}"), getattr(model.vis.headlight, part)
            out[f"light_{part}"] = self._with_headlight(lamps, head)
        return out | self._shapes(model, data)

    def _colours(self, model: Any, down: float) -> NDArray[Any]:
        """Returns the colours of materials.

        GL lets no light above one fall on a picture: a floor seen from above is darker for it.

        Args:
            model: with the look.
            down: how much of the headlight's way is downwards.
        """
        rgba, head = model.mat_rgba.copy(), model.vis.headlight
        rgba[self._floor, :3] /= np.maximum(head.ambient + down * head.diffuse, 1.0)
        return rgba

    def _with_headlight(self, lamps: NDArray[Any], head: NDArray[Any]) -> NDArray[Any]:
        return np.insert(lamps, self._headlight, head, axis=0)

    def _shapes(self, model: Any, data: Any) -> dict[str, NDArray[Any]]:
        """Returns geoms, and sites and strings as geoms."""
        sites, ends = self._sites, self._ends
        one, other = data.wrap_xpos.reshape(-1, 3)[ends], data.wrap_xpos.reshape(-1, 3)[ends + 1]
        half = np.linalg.norm(other - one, axis=1) / 2.0
        width = model.tendon_width[self._strings]
        extra = {
            "geom_xpos": (data.site_xpos[sites], (one + other) / 2.0),
            "geom_xmat": (data.site_xmat[sites].reshape(-1, 3, 3), _along(other - one)),
            "geom_size": (model.site_size[sites], np.stack([width, half, 0.0 * half], axis=1)),
            "geom_rgba": (model.site_rgba[sites], model.tendon_rgba[self._strings]),
        }
        own = {
            "geom_xpos": data.geom_xpos,
            "geom_xmat": data.geom_xmat.reshape(-1, 3, 3),
            "geom_size": model.geom_size,
            "geom_rgba": model.geom_rgba,
        }
        at = self._extra.start
        return {
            name: np.concatenate([own[name][:at], *parts, own[name][at:]])
            for name, parts in extra.items()
        }


def _along(ways: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns rotations whose third axis lies along each way, (n, 3, 3)."""
    frames = np.empty((len(ways), 3, 3))
    for frame, way in zip(frames, ways, strict=True):
        turn = np.empty(4)
        length = float(np.linalg.norm(way))
        mujoco.mju_quatZ2Vec(turn, way / length if length > 0.0 else np.array([0.0, 0.0, 1.0]))
        flat = np.empty(9)
        mujoco.mju_quat2Mat(flat, turn)
        frame[:] = flat.reshape(3, 3)
    return frames


def _pixels(model: Any, texture: int) -> NDArray[np.uint8]:
    """Returns a copy of a texture's pixels, (rows, columns, channels)."""
    start, channels = int(model.tex_adr[texture]), int(model.tex_nchannel[texture])
    shape = int(model.tex_height[texture]), int(model.tex_width[texture]), channels
    return np.array(model.tex_data[start : start + int(np.prod(shape))]).reshape(shape)


def _texture(pixels: NDArray[np.uint8]) -> Any:
    """Returns a texture of Warp's for one of MuJoCo's."""
    warp, _ = load_warp()
    full = np.full((*pixels.shape[:2], 4), 255, np.uint8)
    full[..., : pixels.shape[2]] = pixels
    return warp.Texture2D(
        warp.array(full, dtype=warp.uint8), filter_mode=warp.TextureFilterMode.LINEAR
    )
