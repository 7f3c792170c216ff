"""Pictures of a model, drawn as fast as the software renderer can.

Each `Drawing` holds the textures of one model, in the GL context of one of the threads that draw
(`sim/threads.py`). That costs tens of milliseconds to set up, so the latest closed drawings are
kept and lent again to models of the same key.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name
from interverse.sim import gl
from interverse.sim.elements import element_id
from interverse.sim.threads import DrawingThread, drawing_thread

Kind = Literal["rgb", "depth", "segmentation"]
_SPARE_GEOMS = 64  # for what MuJoCo itself adds to a scene
_KEPT = 8  # closed drawings kept in all: each holds tens of megabytes of textures and buffers
_SKYBOX = int(mujoco.mjtTexture.mjTEXTURE_SKYBOX)
_FLAT = int(mujoco.mjtTexture.mjTEXTURE_2D)
_OFFSCREEN = int(mujoco.mjtFramebuffer.mjFB_OFFSCREEN)
_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
_ID_FLAGS = (int(mujoco.mjtRndFlag.mjRND_SEGMENT), int(mujoco.mjtRndFlag.mjRND_IDCOLOR))


@final
@dataclass(frozen=True, slots=True)
class Quality:
    """What drawing costs: the shadow map's edge and the samples per pixel."""

    shadow: int
    samples: int


QUALITIES = {
    "default": Quality(512, 4),
    "fast": Quality(256, 0),
    "full": Quality(2048, 4),
}

_CLOSED: deque[Drawing] = deque(maxlen=_KEPT)  # to be lent again; the oldest one goes first
_LENDING = threading.Lock()
_MAKING = threading.Lock()  # MuJoCo loads GL's functions into globals when it makes a context


def open_drawing(
    model: Any, *, size: tuple[int, int], quality: Quality, key: Hashable = None, thread: int = 0
) -> Drawing:
    """Returns a drawing for a model; models with the same key share one after the other.

    Args:
        model: MuJoCo's.
        size: rows and columns.
        quality: what it may cost.
        key: the same for models that differ in nothing that GL keeps; None shares with none.
        thread: which of the process's threads draws.
    """
    owner = drawing_thread(thread)
    full_key = None if key is None else (key, size, quality, thread)
    with _LENDING:
        for kept in reversed(_CLOSED):
            if full_key is not None and kept.key == full_key:
                _CLOSED.remove(kept)
                return kept
    return Drawing(model, size, quality, (full_key, owner))


@final
class Drawing:
    """What GL holds of one model: its textures, a buffer to draw in, the list of shapes."""

    def __init__(
        self,
        model: Any,
        size: tuple[int, int],
        quality: Quality,
        owner: tuple[Hashable, DrawingThread],
    ) -> None:
        self.size = size
        self.loaded: dict[int, Hashable] = {}  # texture -> what the caller last put in it
        self.key, self._thread = owner
        self._context = self._thread.run(_mjr_context, model, size, quality)
        self._scene = mujoco.MjvScene(model, max(500, model.ngeom + _SPARE_GEOMS))
        self._options = mujoco.MjvOption()
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._viewport = mujoco.MjrRect(0, 0, size[1], size[0])
        # Freed by the thread that made it; another's context would lose its own textures.
        self._free = weakref.finalize(self, self._thread.later, self._context.free)
        self._free.atexit = False

    def upload(self, model: Any, texture: int, content: Hashable) -> None:
        """Puts a texture of the model into GL unless its content is there already."""
        if self.loaded.get(texture) != content:
            self._thread.run(mujoco.mjr_uploadTexture, model, self._context, texture)
            self.loaded[texture] = content

    def choose_sky(self, textures: tuple[int, ...], chosen: int) -> None:
        """Draws one of several sky textures: GL takes the first that calls itself a sky."""
        for texture in textures:
            self._context.textureType[texture] = _SKYBOX if texture == chosen else _FLAT

    def picture(self, model: Any, data: Any, camera: int, kind: Kind = "rgb") -> NDArray[Any]:
        """Returns what a camera sees, upright: uint8 (rows, columns, 3), or depth or geom ids.

        Depth is float32 in metres, segmentation int32 with -1 for the sky and for what is no geom.
        """
        self._view.fixedcamid = camera
        for flag in _ID_FLAGS:
            self._scene.flags[flag] = kind != "rgb"
        mujoco.mjv_updateScene(
            model,
            data,
            self._options,
            None,
            self._view,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        pixels = self._thread.run(self._draw, kind == "depth")[::-1]
        if kind == "depth":
            return metres(pixels, model)
        return pixels if kind == "rgb" else geoms_seen(pixels, self._scene)

    def _draw(self, depth: bool) -> NDArray[Any]:
        """Returns the drawn scene, or its raw depth, bottom row first."""
        # Which buffer is drawn in belongs to GL, not to MuJoCo's context: others share it.
        mujoco.mjr_setBuffer(_OFFSCREEN, self._context)
        mujoco.mjr_render(self._viewport, self._scene, self._context)
        if depth:
            pixels: NDArray[Any] = np.empty(self.size, dtype=np.float32)
            mujoco.mjr_readPixels(None, pixels, self._viewport, self._context)
        else:
            pixels = np.empty((*self.size, 3), dtype=np.uint8)
            mujoco.mjr_readPixels(pixels, None, self._viewport, self._context)
        return pixels

    def close(self) -> None:
        """Gives it back, to be lent again; what is not kept is freed with the last use of it."""
        if self.key is not None:
            with _LENDING:
                _CLOSED.append(self)


def _mjr_context(model: Any, size: tuple[int, int], quality: Quality) -> Any:
    """Returns GL's copy of the model with a buffer of that size and quality."""
    kept = model.vis.quality.shadowsize, model.vis.quality.offsamples
    model.vis.quality.shadowsize, model.vis.quality.offsamples = quality.shadow, quality.samples
    model.vis.global_.offheight, model.vis.global_.offwidth = size
    with _MAKING:
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
    context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
    model.vis.quality.shadowsize, model.vis.quality.offsamples = kept
    return context


def geoms_seen(pixels: NDArray[np.uint8], scene: mujoco.MjvScene) -> NDArray[np.int32]:
    """Returns the geom that each colour-coded pixel of a scene shows, -1 where there is none."""
    wide = pixels.astype(np.int64)
    codes = wide[..., 0] + wide[..., 1] * 2**8 + wide[..., 2] * 2**16
    names = np.full(scene.ngeom + 1, -1, dtype=np.int32)
    for shape in scene.geoms[: scene.ngeom]:
        if shape.segid >= 0 and shape.objtype == _GEOM:
            names[shape.segid + 1] = shape.objid
    return names[np.minimum(codes, scene.ngeom)]


def metres(depth: NDArray[np.float32], model: Any) -> NDArray[np.float32]:
    """Returns distances along the view for GL's reversed depth: one at the near plane, 0 far."""
    near = model.vis.map.znear * model.stat.extent
    far = model.vis.map.zfar * model.stat.extent
    return (near * far / (near + depth.astype(np.float64) * (far - near))).astype(np.float32)


@final
class Camera:
    """A model and its data, to be filled in with a world, and a drawing for each picture size."""

    def __init__(self, model: mujoco.MjModel) -> None:
        gl.backend()
        self.model = copy.copy(model)
        self.data = mujoco.MjData(self.model)
        self._drawings: dict[tuple[int, int], Drawing] = {}

    def picture(self, camera: str, size: tuple[int, int], kind: Kind = "rgb") -> NDArray[Any]:
        """Returns what a camera sees now; size is (rows, columns)."""
        gl.check_process()
        check_name("kind of picture", kind, get_args(Kind))
        if size not in self._drawings:
            if min(size) < 1:
                problem = f"a picture of {size[0]} x {size[1]} pixels"
                raise InvalidValueError(problem, allowed="1 x 1 or more")
            own = self.model.vis.quality
            quality = Quality(own.shadowsize, own.offsamples)
            self._drawings[size] = open_drawing(self.model, size=size, quality=quality)
        mujoco.mj_forward(self.model, self.data)
        seen_by = element_id(self.model, "camera", camera)
        pixels = self._drawings[size].picture(self.model, self.data, seen_by, kind)
        return np.ascontiguousarray(pixels)
