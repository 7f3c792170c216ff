"""Baseline for TriFinger: a plain Python loop over single `MjData` of the same scene.

It does the bare minimum: commands and substeps, reset and forward, three cameras. It has no drag,
no observation, no reward, no feasibility check.
"""

from __future__ import annotations

from typing import final

import mujoco
import numpy as np

from interverse.sim import gl
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.robot import REST
from interverse.worlds.trifinger.scene import OBSERVATION_CAMERAS, ArenaScene
from interverse.worlds.trifinger.variables import JOINTS

_SUBSTEPS = 10


@final
class PlainLoop:
    """Worlds of a scene, one after the other."""

    def __init__(self, scene: ArenaScene, count: int = 32) -> None:
        self.model = compile_scene(scene)
        self._datas = [mujoco.MjData(self.model) for _ in range(count)]
        self._draw = np.random.default_rng(0)
        self._motors = [self.model.actuator(name).id for name in JOINTS]
        self._joints = [self.model.joint(name).qposadr[0] for name in JOINTS]
        self._renderer: mujoco.Renderer | None = None
        self.reset()

    def __len__(self) -> int:
        return len(self._datas)

    def step(self) -> None:
        """Ten substeps of every world under random commands."""
        for data in self._datas:
            data.ctrl[self._motors] = self._draw.uniform(-1, 1, len(JOINTS))
            mujoco.mj_step(self.model, data, nstep=_SUBSTEPS)

    def reset(self) -> None:
        """Every world back at its start, with all that follows from its state."""
        for data in self._datas:
            mujoco.mj_resetData(self.model, data)
            data.qpos[self._joints] = REST
            mujoco.mj_forward(self.model, data)

    def step_and_draw(self, size: int) -> None:
        """A step, and pictures of every world by the three cameras with `mujoco.Renderer`."""
        if self._renderer is None:
            gl.backend()
            self._renderer = mujoco.Renderer(self.model, height=size, width=size)
        self.step()
        for data in self._datas:
            for camera in OBSERVATION_CAMERAS:
                self._renderer.update_scene(data, camera=camera.name)
                self._renderer.render()

    def close(self) -> None:
        """Releases the GL context."""
        if self._renderer is not None:
            self._renderer.close()
