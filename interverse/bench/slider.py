"""The MuJoCo template: what the environment adds to the bare engine."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from interverse.bench.measure import Row, best_pair
from interverse.envs import make_vec
from interverse.worlds.tutorial.scene import SUBSTEPS, build_scene

_WORLDS = 1024


def slider() -> list[Row]:
    """Returns the overhead of `step` over `Batch.step` and the cost of `do` on 1,024 masses."""
    venv = make_vec("tutorial/slider-v1", num_envs=_WORLDS, threads=1, max_steps=10**6)
    venv.reset(seed=0)
    bare = _bare(venv)
    push = np.full((_WORLDS, 2), 0.5, dtype=np.float32)
    ours, theirs = best_pair(lambda: venv.step(push), lambda: bare.step(nstep=SUBSTEPS), repeats=15)
    masses = iter(np.random.default_rng(0).uniform(0.3, 0.6, (64, _WORLDS)))
    edit, derive = best_pair(
        lambda: venv.unwrapped.do({"box/mass": next(masses)}), bare.set_const, repeats=15
    )
    return [
        Row(
            name="tutorial/slider-v1 step",
            metric="seconds, 1024 worlds, one thread",
            value=ours,
            unit="s",
            ratio=ours / theirs,
            baseline="mujoco.batch.Batch.step",
            target="ratio under 1.3",
        ),
        Row(
            name="tutorial/slider-v1 do(box/mass)",
            metric="milliseconds, 1024 worlds",
            value=1e3 * edit,
            unit="ms",
            ratio=edit / derive,
            baseline="Batch.set_const alone",
            target="under 6 ms",
        ),
    ]


def _bare(venv: Any) -> Batch:
    """Returns the engine alone with the same boxes in the same places under the same push."""
    world = venv.unwrapped.world
    scene = build_scene(world.variables)
    batch = Batch(mujoco.MjModel.from_xml_string(scene.model), _WORLDS, nthread=1)
    batch.expand("body_mass")
    batch.reset()
    batch.bind("qpos")[:] = world.read("box/position")
    batch.bind("xfrc_applied")[:, -1, :2] = 0.5 * world.read("push")[:, None]
    return batch
