"""Pictures of many models through one GL context: a `DrawingStage` is one model on the card.

A picture is a pure function of the edits handed in: each draw starts from the model as it was
built, so nothing of an earlier picture is left in a later one. One thread of a process draws all of
them, for a GL context belongs to one thread; stages may be used from any.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name
from interverse.sim import filament, gl
from interverse.sim.drawing import geoms_seen, metres
from interverse.sim.threads import drawing_thread

EDITABLE = (
    "body_pos",
    "body_quat",
    "cam_fovy",
    "cam_pos",
    "cam_quat",
    "geom_group",
    "geom_matid",
    "geom_rgba",
    "light_active",
    "light_diffuse",
    "light_dir",
    "light_pos",
    "mat_emission",
)
"""Fields of a model that a picture may be given other values of."""

Part = Literal["rgb", "geoms", "depth"]
_COLOUR: tuple[Part, ...] = ("rgb",)
_SPARE_GEOMS = 64  # for what MuJoCo itself adds to a scene
_THREAD = -1  # of the stages, apart from those of the worlds that draw by themselves
_CASTS_NONE = int(mujoco.mjtCatBit.mjCAT_DECOR)  # the one category of geoms without a shadow
_SEGMENT = (mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What a camera sees; a part that was not asked for is None.

    Attributes:
        rgb: uint8 (S, S, 3). geoms: int32 (S, S), the geom at each pixel, -1 for none.
        depth: float32 (S, S), metres along the camera's axis.
    """

    rgb: NDArray[np.uint8] | None
    geoms: NDArray[np.int32] | None
    depth: NDArray[np.float32] | None


@final
class DrawingStage:
    """A model and its data, drawn from its first camera."""

    def __init__(
        self, model: mujoco.MjModel, *, shadowless: Collection[int] = (), high: bool = False
    ) -> None:
        """Takes a model for itself.

        Args:
            model: what is drawn.
            shadowless: geoms that receive shadows but cast none.
            high: whether Filament draws the colours; raises RenderError where it does not run.
        """
        if high:
            filament.probe()
        self._high = high
        self._model, self._data = model, mujoco.MjData(model)
        self._built = {name: getattr(model, name).copy() for name in EDITABLE}
        head = model.vis.headlight
        self._built["headlight_ambient"] = head.ambient.copy()
        self._built["headlight_diffuse"] = head.diffuse.copy()
        self._shadowless = frozenset(int(geom) for geom in shadowless)
        self._scene = mujoco.MjvScene(model, model.ngeom + _SPARE_GEOMS)
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._camera.fixedcamid = 0
        self._option = mujoco.MjvOption()
        self._context: mujoco.MjrContext | None = None
        self._size = 0
        casts = np.ones(model.ngeom, bool)
        casts[list(self._shadowless)] = False
        self._casters = np.flatnonzero(casts)
        self._shadows = b""  # what the shadow map on the card was drawn from

    @property
    def model(self) -> mujoco.MjModel:
        """The model, to look names up in."""
        return self._model

    def draw(
        self,
        edits: Mapping[str, NDArray[Any]],
        *,
        qpos: NDArray[np.float64],
        size: int,
        parts: Collection[Part] = _COLOUR,
        fast: bool = False,
    ) -> Picture:
        """Returns the picture of the model as built but for `edits`.

        Args:
            edits: other values of model fields, by name.
            qpos: where the joints are.
            size: pixels a side.
            parts: which of rgb, geoms and depth to draw.
            fast: whether MuJoCo's own renderer draws the colours even of a high stage.
        """
        gl.check_process()
        painted = self._high and not fast and "rgb" in parts
        rest = [part for part in parts if not (painted and part == "rgb")]
        drawn = drawing_thread(_THREAD).run(self._draw, edits, qpos, size, rest)
        if not painted:
            return drawn
        painter = filament.shared_canvas().painter(self._model, self._shadowless)
        return replace(drawn, rgb=painter.paint(self._data, self._scene, size))

    def _draw(
        self,
        edits: Mapping[str, NDArray[Any]],
        qpos: NDArray[np.float64],
        size: int,
        parts: Collection[Part],
    ) -> Picture:
        _ON_THE_CARD.pop(self, None)
        _ON_THE_CARD[self] = None
        while len(_ON_THE_CARD) > _CAPACITY[0]:
            oldest = next(iter(_ON_THE_CARD))
            del _ON_THE_CARD[oldest]
            oldest.close()
        self._apply(edits, qpos)
        self._ready(size)
        kind = int(mujoco.mjtCatBit.mjCAT_ALL)
        mujoco.mjv_updateScene(
            self._model, self._data, self._option, None, self._camera, kind, self._scene
        )
        colours = self._colours(size) if "rgb" in parts else None
        return Picture(colours, *self._geometry(size, parts))

    def _apply(self, edits: Mapping[str, NDArray[Any]], qpos: NDArray[np.float64]) -> None:
        for name in edits:
            check_name("model field", name, self._built)
        for name in EDITABLE:
            getattr(self._model, name)[:] = edits.get(name, self._built[name])
        head = self._model.vis.headlight
        head.ambient[:] = edits.get("headlight_ambient", self._built["headlight_ambient"])
        head.diffuse[:] = edits.get("headlight_diffuse", self._built["headlight_diffuse"])
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)

    def _ready(self, size: int) -> None:
        """Uploads the model at first, and fits the buffer to the size of the picture."""
        if size < 1:
            raise InvalidValueError(f"a picture of {size} pixels", allowed="1 or more")
        if self._context is None:
            self._model.vis.global_.offwidth = self._model.vis.global_.offheight = size
            scale = mujoco.mjtFontScale.mjFONTSCALE_50
            self._context = mujoco.MjrContext(self._model, scale)
            self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR  # the finer one
            _spare_map()  # made now, for a new context takes the buffer that is drawn in
        elif self._size != size:
            mujoco.mjr_resizeOffscreen(size, size, self._context)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._size = size

    def _colours(self, size: int) -> NDArray[np.uint8]:
        scene, rect = self._scene, mujoco.MjrRect(0, 0, size, size)
        assert self._context is not None  # `_ready` made it
        shadows = self._shadow_key()
        drawn = shadows != b"" and shadows == self._shadows
        for geom in scene.geoms[: scene.ngeom]:
            if drawn or geom.objid in self._shadowless:
                geom.category = _CASTS_NONE
        pixels, own = np.empty((size, size, 3), np.uint8), self._context.shadowFBO
        if drawn:  # MuJoCo clears a small map instead, and lights by the one that is there
            self._context.shadowFBO = _spare_map().shadowFBO
        mujoco.mjr_render(rect, scene, self._context)
        self._context.shadowFBO, self._shadows = own, shadows
        mujoco.mjr_readPixels(pixels, None, rect, self._context)
        return np.ascontiguousarray(pixels[::-1])

    def _shadow_key(self) -> bytes:
        """Returns all that decides the shadow map; nothing where lights share the one map."""
        scene, data, model = self._scene, self._data, self._model
        if sum(light.castshadow for light in scene.lights[: scene.nlight]) != 1:
            return b""
        casters, lights = self._casters, np.flatnonzero(model.light_castshadow)
        material = model.geom_matid[casters]
        decides = (
            data.geom_xpos[casters],
            data.geom_xmat[casters],
            model.geom_group[casters],
            model.geom_rgba[casters, 3],
            material >= 0,
            np.append(model.mat_rgba[:, 3], 1.0)[material],  # what is clear casts none
            model.light_active[lights],
            data.light_xpos[lights],
            data.light_xdir[lights],
        )
        return b"".join(part.tobytes() for part in decides)

    def _geometry(self, size: int, parts: Collection[Part]) -> tuple[Any, Any]:
        depth = "depth" in parts
        if not depth and "geoms" not in parts:
            return None, None
        scene, rect = self._scene, mujoco.MjrRect(0, 0, size, size)
        pixels, far = np.empty((size, size, 3), np.uint8), np.empty((size, size), np.float32)
        for flag in _SEGMENT:
            scene.flags[flag] = 1
        mujoco.mjr_render(rect, scene, self._context)
        mujoco.mjr_readPixels(pixels, far if depth else None, rect, self._context)
        for flag in _SEGMENT:
            scene.flags[flag] = 0
        seen = geoms_seen(pixels[::-1], scene) if "geoms" in parts else None
        return seen, metres(far[::-1], self._model) if depth else None

    def close(self) -> None:
        """Takes the model off the graphics card; the next picture puts it back."""
        if self._context is not None:
            self._context.free()
            self._context, self._shadows = None, b""


_ON_THE_CARD: dict[DrawingStage, None] = {}  # of this process, the last used kept
_CAPACITY = [8]  # models on the card; one takes some ten megabytes


def reserve(count: int) -> None:
    """Keeps at least so many stages of this process on the card: those drawn in turn."""
    gl.check_process()
    _CAPACITY[0] = max(_CAPACITY[0], count)


@functools.cache
def _spare_map() -> mujoco.MjrContext:
    """Returns a context whose shadow map, of a few pixels, nobody looks at."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    model.vis.quality.shadowsize = 8
    return mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50)
