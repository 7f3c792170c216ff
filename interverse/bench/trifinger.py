"""TriFinger on one core: steps, resets, interventions, pictures and memory, in CPU time.

Each rate stands beside that of a plain loop over single `MjData` of the same scene in the same run.
The loop does the bare minimum: commands and substeps, reset and forward, three cameras. It has no
drag, no observation, no reward, no feasibility check.
"""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, final

import mujoco
import numpy as np

from interverse.bench.measure import Row, best_pair, plays, rate_row, resident_mb
from interverse.envs import make, make_vec
from interverse.sim import gl
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.robot import REST
from interverse.worlds.trifinger.scene import OBSERVATION_CAMERAS, ArenaScene
from interverse.worlds.trifinger.variables import JOINTS

_SUBSTEPS = 10


@final
class PlainLoop:
    """Worlds of a scene, one after the other."""

    def __init__(self, scene: ArenaScene, count: int = 32, size: int = 0) -> None:
        self.model = compile_scene(scene)
        self._datas = [mujoco.MjData(self.model) for _ in range(count)]
        self._draw = np.random.default_rng(0)
        self._motors = [self.model.actuator(name).id for name in JOINTS]
        self._joints = [self.model.joint(name).qposadr[0] for name in JOINTS]
        self._size = size
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

    def step_and_draw(self) -> None:
        """A step, and pictures of every world by the three cameras with `mujoco.Renderer`."""
        if self._renderer is None:
            gl.backend()
            self._renderer = mujoco.Renderer(self.model, height=self._size, width=self._size)
        self.step()
        for data in self._datas:
            for camera in OBSERVATION_CAMERAS:
                self._renderer.update_scene(data, camera=camera.name)
                self._renderer.render()

    def close(self) -> None:
        """Releases the GL context."""
        if self._renderer is not None:
            self._renderer.close()


_WORLDS = 256
_ENDLESS = 10**6
_LEAST = {  # steps a second
    "pushing": 2000,
    "stacking2": 1500,
    "towers": 1000,
    "creative_stacked_blocks": 250,
    "stacked_blocks": 150,
}
_FEWER = {"creative_stacked_blocks": 32, "stacked_blocks": 32}  # worlds, where scenes are large
_WARM = 12  # steps before the clock starts: robot and blocks are on the move
_DONE = {  # worlds a second
    "block_0/mass": 5000,
    "floor/friction": 5000,
    "goal_0/cylindrical_position": 5000,
    "block_0/cylindrical_position": 5000,
    "block_0/color": 5000,
    "block_0/size": 2000,
}
_PIXELS = {"shadows": 14, "fast": 25}  # steps a second
_SHARED = 1024  # worlds in the measurement of memory
_PLAIN = {
    "reset": "mj_resetData and mj_forward",
    "step": "mj_step",
    "step_and_draw": "mj_step and mujoco.Renderer",
}


def trifinger() -> list[Row]:
    """Returns the rates of a batch on one core, each beside a plain loop."""
    return [
        *(steps(task, least) for task, least in _LEAST.items()),
        single(),
        resets("pushing", _WORLDS, 2000),
        resets("general", 8, 8),
        *interventions(),
        *(pixels(mode, least) for mode, least in _PIXELS.items()),
        memory(),
    ]


def steps(task: str, least: int) -> Row:
    """Returns steps a second of 256 worlds; of fewer where a scene is very large."""
    count = _FEWER.get(task, _WORLDS)
    venv = _batch(task, count)
    draw = np.random.default_rng(0)
    actions = itertools.cycle(list(draw.uniform(-1, 1, (12, count, 9)).astype(np.float32)))
    scene = venv.unwrapped.world.scene
    plain = PlainLoop(scene)
    for _ in range(_WARM):
        venv.step(next(actions))
        plain.step()
    row = _rate(
        f"trifinger/{task}-v1",
        f"steps per second and core, batch of {count}, skip_frame 10, {scene.contact} contacts",
        lambda: venv.step(next(actions)),
        count,
        plain,
        least,
    )
    venv.close()
    return row


def single() -> Row:
    """Returns steps a second of one environment."""
    env = make("trifinger/pushing-v1", max_steps=_ENDLESS, threads=1)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (100, 9)).astype(np.float32)
    plain = PlainLoop(env.world.scene)

    row = _rate(
        "trifinger/pushing-v1, single",
        f"steps per second, {env.world.scene.contact} contacts",
        plays(env, actions),
        len(actions),
        plain,
        600,
    )
    env.close()
    return row


def resets(task: str, count: int, least: int) -> Row:
    """Returns resets a second of a batch, all worlds at once, each time with new draws."""
    venv = _batch(task, count)
    plain = PlainLoop(venv.unwrapped.world.scene)
    row = _rate(
        f"trifinger/{task}-v1 reset",
        f"worlds per second, batch of {count}",
        venv.reset,
        count,
        plain,
        least,
        "reset",
    )
    venv.close()
    return row


def interventions() -> list[Row]:
    """Returns interventions a second, each with its feasibility check, by variable."""
    venv = _batch("pushing", _WORLDS)
    plain = PlainLoop(venv.unwrapped.world.scene)
    rows = []
    for name, least in _DONE.items():
        variable, draw = venv.unwrapped.variables[name], np.random.default_rng(0)
        low, high = np.asarray(variable.space_a.low), np.asarray(variable.space_a.high)
        drawn = draw.uniform(size=(16, _WORLDS, *variable.shape))
        values = itertools.cycle(list(low + drawn * (high - low)))

        def intervene(name: str = name, values: Iterator[Any] = values) -> None:
            venv.unwrapped.do({name: next(values)})

        title, metric = f"trifinger/pushing-v1 do({name})", f"worlds per second, batch of {_WORLDS}"
        rows.append(_rate(title, metric, intervene, _WORLDS, plain, least, "reset"))
        venv.reset(seed=0)
    venv.close()
    return rows


def pixels(mode: str, least: int) -> Row:
    """Returns steps a second of one environment that sees three live images and three of goals."""
    env = make(
        "trifinger/pushing-v1",
        observation_mode="pixel",
        shadows=mode == "shadows",
        max_steps=_ENDLESS,
        threads=1,
    )
    env.reset(seed=0)
    size = env.world.options.image_size
    actions = itertools.cycle(np.random.default_rng(0).uniform(-1, 1, (12, 9)).astype(np.float32))
    plain = PlainLoop(env.world.scene, count=1, size=size)
    row = _rate(
        f"trifinger/pushing-v1, pixels, {mode}",
        f"steps per second, three cameras of {size} pixels",
        lambda: env.step(next(actions)),
        1,
        plain,
        least,
        "step_and_draw",
    )
    plain.close()
    env.close()
    return row


def memory() -> Row:
    """Returns what a world more costs in a batch, in kilobytes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as fresh:  # nothing freed before to be reused
        ours, plain = fresh.submit(_kilobytes).result()
    metric, beside = f"kB per world, batch of {_SHARED}", f"an MjData a world, {plain:.0f} kB"
    name = "trifinger/pushing-v1 memory"
    return Row(name, metric, ours, "kB", ours / plain, beside, "under 60")


def _kilobytes() -> tuple[float, float]:
    """Returns what a world takes in a batch and as an `MjData`, the code being loaded before."""
    small = _batch("pushing", 2)
    small.step(np.zeros((2, 9), dtype=np.float32))
    start = resident_mb()
    venv = _batch("pushing", _SHARED)
    venv.step(np.zeros((_SHARED, 9), dtype=np.float32))
    middle = resident_mb()
    plain = PlainLoop(venv.unwrapped.world.scene, count=64)
    plain.step()
    ours, theirs = middle - start, resident_mb() - middle
    return 1024 * ours / _SHARED, 1024 * theirs / len(plain)


def _batch(task: str, count: int) -> Any:
    venv = make_vec(f"trifinger/{task}-v1", num_envs=count, threads=1, max_steps=_ENDLESS)
    venv.reset(seed=0)
    return venv


def _rate(
    name: str,
    metric: str,
    call: Callable[[], object],
    count: int,
    plain: PlainLoop,
    least: int,
    work: str = "step",
) -> Row:
    """Returns how many a second, in CPU time: a core is measured, and the machine may be busy.

    A call does `count` things, and the plain loop the same `work` on each of its worlds.
    """
    one, other = best_pair(call, getattr(plain, work), repeats=10)
    looped = len(plain) / other
    told = f"{_PLAIN[work]} in a loop over single MjData, {looped:.0f}/s"
    return rate_row(name, metric, count / one, looped, baseline=told, target=f"at least {least}")
