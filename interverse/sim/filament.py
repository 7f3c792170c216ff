"""Pictures by Filament, MuJoCo's physically based renderer, where it runs.

Without a display it needs Vulkan, and where that is missing it ends the whole process. So it is
first tried in a child process, with the same calls that draw later. It draws in one thread only,
the one that ends the process.
"""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Collection
from typing import Any, final

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import RenderError, explain

_PATIENCE = 120.0  # seconds a child may take; the first picture compiles shaders
_TRIAL = "from interverse.sim.filament import trial; trial()"
_MODEL = """<mujoco><worldbody><light pos="0 0 2"/><geom type="box" size="1 1 1" rgba="1 0 0 1"/>
<camera pos="0 -4 2" xyaxes="1 0 0 0 0.5 1"/></worldbody></mujoco>"""
_WARM_UP = 2  # a scene's first picture can lack textures


@functools.cache
def probe() -> None:
    """Returns if Filament draws on this machine, or raises RenderError naming what is missing."""
    command = [sys.executable, "-c", _TRIAL]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        told = f": {lines[-1].strip()}" if lines else ""
        problem = f"its trial ended with status {done.returncode}{told}" if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"its trial failed: {error}"
    if problem:
        raise RenderError(
            f"quality='high' needs the Filament renderer, which does not run here ({problem})",
            allowed="quality='fast', everywhere",
            fix="Install a Vulkan driver, on Debian: apt-get install libvulkan1"
            " mesa-vulkan-drivers; and mujoco with mujoco-studio",
        )


def trial() -> None:
    """Draws a red box and raises unless it is seen; for the child process of `probe`."""
    model = mujoco.MjModel.from_xml_string(_MODEL)
    data, scene = mujoco.MjData(model), mujoco.MjvScene(model, 100)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
    everything = int(mujoco.mjtCatBit.mjCAT_ALL)
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, everything, scene)
    picture = Painter(model, ()).paint(data, scene, 32)
    if int(picture[..., 0].max()) < 16:
        raise RenderError(explain("Filament drew an empty picture"))


@final
class Painter:
    """One model in Filament."""

    def __init__(self, model: mujoco.MjModel, shadowless: Collection[int]) -> None:
        self._scene = _module("mujoco.rendering.filament.model_scene").ModelScene(_context(), model)
        self._shadowless = tuple(shadowless)
        self._target: Any = None
        self._size = 0
        self._pixels = np.zeros((1, 1, 3), np.uint8)
        self._read: Any = None

    def paint(self, data: mujoco.MjData, seen: mujoco.MjvScene, size: int) -> NDArray[np.uint8]:
        """Returns the picture (size, size, 3) that the scene's camera sees."""
        self._scene.update(data)
        for geom in self._shadowless:
            self._scene.get_renderable(mujoco.mjtObj.mjOBJ_GEOM, geom).set_cast_shadow(False)
        first = self._size != size
        self._resize(size)
        request = self._request(seen, size)
        for _ in range(_WARM_UP if first else 1):
            _context().wait_for_frame(_context().render([request], [self._read]))
        return self._pixels.copy()

    def _resize(self, size: int) -> None:
        if self._size == size:
            return
        mjrf = _module("mujoco.mjrf")
        config = mjrf.RenderTargetConfig(color_format=mjrf.PixelFormat.PIXEL_FORMAT_RGB8)
        self._target = _context().create_render_target(config)
        self._target.resize(size, size)
        self._pixels = np.zeros((size, size, 3), np.uint8)
        self._read = mjrf.ReadRequest(target=self._target)
        self._read.set_buffer(self._pixels)
        self._size = size

    def _request(self, seen: mujoco.MjvScene, size: int) -> Any:
        mjrf = _module("mujoco.mjrf")
        left, right = seen.camera[0], seen.camera[1]  # two eyes, for stereo pictures
        request = mjrf.RenderRequest()
        request.scene, request.target = self._scene.scene, self._target
        request.camera = mjrf.Camera(
            pos=(left.pos + right.pos) / 2,
            forward=left.forward,
            up=left.up,
            frustum_bottom=left.frustum_bottom,
            frustum_top=left.frustum_top,
            frustum_near=left.frustum_near,
            frustum_far=left.frustum_far,
        )
        request.viewport.left = request.viewport.bottom = 0
        request.viewport.width = request.viewport.height = size
        return request


@final
class FilamentCanvas:
    """The model in Filament now: a second one beside it makes its pictures fail."""

    def __init__(self) -> None:
        self._model: mujoco.MjModel | None = None
        self._painter: Painter | None = None

    def painter(self, model: mujoco.MjModel, shadowless: Collection[int]) -> Painter:
        """Returns the painter of a model; the one before is given up."""
        if self._painter is None or self._model is not model:
            self._painter = None  # frees it before the next is made
            self._model, self._painter = model, Painter(model, shadowless)
        return self._painter


@functools.cache
def shared_canvas() -> FilamentCanvas:
    """Returns the canvas of this process."""
    return FilamentCanvas()


@functools.cache
def _context() -> Any:
    _module("mujoco.studio.window")  # registers the files of materials
    mjrf = _module("mujoco.mjrf")
    config = mjrf.ContextConfig()
    config.graphics_api = mjrf.GraphicsApi.GRAPHICS_API_VULKAN
    return mjrf.Context(config)


def _module(name: str) -> Any:
    """Returns a module of mujoco-studio, imported when first drawn with."""
    return importlib.import_module(name)
