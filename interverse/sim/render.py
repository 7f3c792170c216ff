"""Pictures of one world of a batch: colour, depth, segmentation, drawn off screen.

GL contexts are costly to make, so a `Camera` keeps one per picture size for as long as it lives. A
context belongs to one thread: all cameras of a process draw in one, and may be used from any.
"""

from __future__ import annotations

import copy
from typing import Any, final

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name, explain
from interverse.sim import gl
from interverse.sim.threads import drawing_thread

_KINDS = ("rgb", "depth", "segmentation")
_THREAD = -1  # apart from those whose libraries keep a context current


@final
class Camera:
    """A model and its data, to be filled in with a world, and the contexts that draw them."""

    def __init__(self, model: mujoco.MjModel) -> None:
        gl.backend()
        self.model = copy.copy(model)
        self.data = mujoco.MjData(self.model)
        self._renderers: dict[tuple[int, int], mujoco.Renderer] = {}

    def picture(self, camera: str, size: tuple[int, int], kind: str = "rgb") -> NDArray[Any]:
        """Returns what a camera sees now; size is (rows, columns)."""
        check_name("kind of picture", kind, _KINDS)
        return drawing_thread(_THREAD).run_apart(self._drawn, camera, size, kind)

    def _drawn(self, camera: str, size: tuple[int, int], kind: str) -> NDArray[Any]:
        renderer = self._renderer(size)
        mujoco.mj_forward(self.model, self.data)
        renderer.disable_depth_rendering()
        renderer.disable_segmentation_rendering()
        if kind == "depth":
            renderer.enable_depth_rendering()
        elif kind == "segmentation":
            renderer.enable_segmentation_rendering()
        renderer.update_scene(self.data, camera=camera)
        pixels = renderer.render()
        if kind == "segmentation":
            seen, what = pixels[..., 0], pixels[..., 1]
            pixels = np.where(what == int(mujoco.mjtObj.mjOBJ_GEOM), seen, -1).astype(np.int32)
        return pixels

    def _renderer(self, size: tuple[int, int]) -> mujoco.Renderer:
        if size not in self._renderers:
            rows, columns = size
            if rows < 1 or columns < 1:
                raise InvalidValueError(
                    explain(f"a picture of {rows} x {columns} pixels", allowed="1 x 1 or more")
                )
            # MuJoCo refuses pictures larger than the model's own off-screen buffer
            self.model.vis.global_.offheight = max(rows, self.model.vis.global_.offheight)
            self.model.vis.global_.offwidth = max(columns, self.model.vis.global_.offwidth)
            self._renderers[size] = mujoco.Renderer(self.model, height=rows, width=columns)
        return self._renderers[size]

    def close(self) -> None:
        """Releases the GL contexts."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
