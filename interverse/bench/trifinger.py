"""TriFinger on one core: steps, resets, interventions and memory, in CPU time.

The baseline of the steps is a plain Python loop over single `MjData` of the same scene under the
same commands, without drag, observation or reward, in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np

from interverse.bench.measure import Row, resident_mb
from interverse.envs import make, make_vec
from interverse.worlds.trifinger.physics import JOINTS

_WORLDS = 256
_LOOPED = 32  # single MjData in the baseline
_SUBSTEPS = 10
_ENDLESS = 10**6
_LEAST = {"pushing": 2000, "stacking2": 1500, "towers": 1000, "stacked_blocks": 150}  # steps/s
_SHARED = 1024  # worlds in the measurement of memory


def trifinger() -> list[Row]:
    """Returns the rates of a batch on one core, beside a plain loop where there is one."""
    rows = [steps(task, least) for task, least in _LEAST.items()]
    return [*rows, single(), resets(), *interventions(), memory()]


def steps(task: str, least: int) -> Row:
    """Returns steps a second of 256 worlds; of fewer where a scene is very large."""
    count = _WORLDS if task != "stacked_blocks" else _LOOPED
    venv = _batch(task, count)
    draw = np.random.default_rng(0)
    actions = [draw.uniform(-1, 1, (count, 9)).astype(np.float32) for _ in range(12)]
    turns = iter(range(_ENDLESS))
    baseline = _loop(venv.unwrapped.world)
    ours, theirs = _best(lambda: venv.step(actions[next(turns) % 12]), baseline, warm=12)
    venv.close()
    rate, looped = count / ours, _LOOPED / theirs
    return Row(
        name=f"trifinger/{task}-v1",
        metric=f"steps per second and core, batch of {count}, skip_frame 10",
        value=rate,
        unit="1/s",
        ratio=rate / looped,
        baseline=f"a loop over single MjData without drag, {looped:.0f} steps/s",
        target=f"at least {least}",
    )


def _loop(world: Any) -> Callable[[], None]:
    """Returns a step of single MjData in turn, from the batch's scene, under random commands."""
    model = world._physics.model
    datas = [mujoco.MjData(model) for _ in range(_LOOPED)]
    draw = np.random.default_rng(0)
    motors = [model.actuator(name).id for name in JOINTS]
    start = world.variables["joint_positions"].default
    joints = [model.joint(name).qposadr[0] for name in JOINTS]
    for data in datas:
        data.qpos[joints] = start

    def run() -> None:
        for data in datas:
            data.ctrl[motors] = draw.uniform(-1, 1, 9)
            mujoco.mj_step(model, data, nstep=_SUBSTEPS)

    for _ in range(12):
        run()
    return run


def single() -> Row:
    """Returns steps a second of one environment."""
    env = make("trifinger/pushing-v1", max_steps=_ENDLESS, threads=1)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (100, 9)).astype(np.float32)

    def run() -> None:
        for action in actions:
            env.step(action)

    ours, theirs = _best(run, _loop(env.unwrapped.world), warm=1)
    env.close()
    rate, looped = len(actions) / ours, _LOOPED / theirs
    return Row(
        name="trifinger/pushing-v1, single",
        metric="steps per second",
        value=rate,
        unit="1/s",
        ratio=rate / looped,
        baseline=f"a loop over single MjData without drag, {looped:.0f} steps/s",
        target="at least 600",
    )


def resets() -> Row:
    """Returns resets a second of a batch, all worlds at once."""
    venv = _batch("pushing", _WORLDS)
    seconds, _ = _best(lambda: venv.reset(seed=0), None, warm=2)
    venv.close()
    return Row(
        name="trifinger/pushing-v1 reset",
        metric="worlds per second",
        value=_WORLDS / seconds,
        unit="1/s",
        target="at least 2000",
    )


def interventions() -> list[Row]:
    """Returns interventions a second, each with its feasibility check, by variable."""
    venv = _batch("pushing", _WORLDS)
    rows = []
    for name, least in _DONE.items():
        values = iter(_values(venv, name, count=16))
        seconds, _ = _best(lambda values=values: venv.unwrapped.do(next(values)), None, warm=2)
        rows.append(
            Row(
                name=f"trifinger/pushing-v1 do({name})",
                metric="worlds per second",
                value=_WORLDS / seconds,
                unit="1/s",
                target=f"at least {least}",
            )
        )
        venv.reset(seed=0)
    venv.close()
    return rows


_DONE = {
    "block_0/mass": 5000,
    "floor/friction": 5000,
    "goal_0/cylindrical_position": 5000,
    "block_0/cylindrical_position": 5000,
    "block_0/color": 5000,
    "block_0/size": 2000,
}


def _values(venv: Any, name: str, *, count: int) -> list[Mapping[str, Any]]:
    space = venv.unwrapped.variables[name].space_a
    draw = np.random.default_rng(0)
    low, high = np.asarray(space.low), np.asarray(space.high)
    shape = (_WORLDS, *venv.unwrapped.world.variables[name].shape)
    return [{name: low + draw.uniform(size=shape) * (high - low)} for _ in range(count)]


def memory() -> Row:
    """Returns what a world more costs in a batch, in kilobytes."""
    small = _batch("pushing", 2)  # the code is loaded before memory is read
    small.step(np.zeros((2, 9), dtype=np.float32))
    before = resident_mb()
    venv = _batch("pushing", _SHARED)
    venv.step(np.zeros((_SHARED, 9), dtype=np.float32))
    used = resident_mb() - before
    venv.close()
    small.close()
    return Row(
        name="trifinger/pushing-v1 memory",
        metric=f"kB per world, batch of {_SHARED}",
        value=1024 * used / _SHARED,
        unit="kB",
        target="under 60",
    )


def _batch(task: str, count: int) -> Any:
    venv = make_vec(f"trifinger/{task}-v1", num_envs=count, threads=1, max_steps=_ENDLESS)
    venv.reset(seed=0)
    return venv


def _best(
    one: Callable[[], object], other: Callable[[], object] | None, *, warm: int, repeats: int = 10
) -> tuple[float, float]:
    """Returns the shortest CPU times of two calls made in turn, so that noise hits both alike.

    CPU time, because a core is what is measured and the machine may be busy.
    """
    for _ in range(warm):
        one()
    pairs = [(_cpu(one), 0.0 if other is None else _cpu(other)) for _ in range(repeats)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def _cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start
