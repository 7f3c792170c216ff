"""Worlds on a device: steps a second of thousands, TriFinger beside MuJoCo Warp stepping alone.

The bare rate is that of the same model in the same process: MuJoCo Warp's own step, recorded once,
with neither drag nor commands nor observations. Rows of `make_vec` are what a user's loop gets,
observations, rewards and all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from interverse.actors.curriculum import paper_curriculum
from interverse.agents.batch.ppo import DevicePpo, PpoSettings
from interverse.agents.batch.starts import curriculum_starts, make_arena
from interverse.bench.measure import Row, best_seconds, finished, plays, rate_row
from interverse.envs import make_vec
from interverse.worlds import trifinger

_TARGETS = {"pushing": 350_000, "stacking2": 150_000}
_WORLDS = {"pushing": 16_384, "stacking2": 8_192}
_LEARNERS = 8_192
_VECTORS = {  # worlds and targets of `make_vec`
    "trifinger/pushing-v1": (16_384, "350,000"),
    "trifinger/towers-v1": (4_096, "80,000"),
}
LOADS = ("rest", "middle")  # of the fingers
_SET = {  # what a start sets, and between which values
    "block_0/mass": (0.015, 0.045),
    "block_0/friction": (0.5, 1.0),
    "block_0/size": (0.055, 0.075),
}
_GOAL = "goal_0/cylindrical_position"
_DRAWN, _SIDE = 4_096, 128  # worlds that are drawn, pixels along an edge
_LOOKS, _DRAWN_TASKS = 256, ("control/cartpole_balance-v1", "control/walker_walk-v1")
_GRIDS = ("blocks/observed-3-v1", "chemistry/chain-v1")
_GRID_WORLDS = 65_536
_TIMED = 20  # steps of every world
_EPISODES = "steps of whole episodes, mass, size, friction and goal set at each start"


def device_rows(
    device: str = "cuda", *, tasks: tuple[str, ...] = ("pushing", "stacking2"), scale: int = 1
) -> list[Row]:
    """Returns steps a second on a device, beside bare stepping, those of PPO and of `make_vec`.

    Args:
        device: "cuda", or "warp" to try it out on the CPU.
        tasks: of `pushing` and `stacking2`.
        scale: divides the number of worlds.
    """
    rows: list[Row] = []
    for task in tasks:
        rows += _steps(task, device, max(_WORLDS[task] // scale, 2))
    rows.append(_learning(device, max(_LEARNERS // scale, 2)))
    for name, (worlds, target) in _VECTORS.items():
        for load in LOADS:
            rows += _vector(name, device, max(worlds // scale, 2), target, load=load)
    for name in _GRIDS:
        rows += _grid(name, device, max(_GRID_WORLDS // scale, 2))
    return rows


def picture_rows(device: str = "cuda", *, scale: int = 1) -> list[Row]:
    """Returns steps a second with pictures that are drawn on a device, as in `device_rows`."""
    rows = [pixels_row(device, max(_DRAWN // scale, 2), shadows=s) for s in (True, False)]
    return [*rows, *(_looks(name, device, max(_LOOKS // scale, 2)) for name in _DRAWN_TASKS)]


def _looks(name: str, device: str, worlds: int) -> Row:
    """Returns the rate at which looks of a control world are drawn: poses sent, pictures back."""
    env: Any = make_vec(name, num_envs=worlds, renderer=device, frame_stack=1)
    env.reset(seed=0, options={"do": {"visual_seed": np.arange(worlds)}})
    draw = env.unwrapped.world._photographer.draw
    draw()
    rate = _rate(draw, worlds)
    env.close()
    title = f"make_vec of {name}, drawn on {device}, {worlds:,} looks"
    return rate_row(title, "pictures of 84 pixels", rate)


def _arena(task: str, device: str, worlds: int, skip: int) -> trifinger.DeviceArena:
    name, options = f"trifinger/{task}-v1", {"skip_frame": skip}
    starts = curriculum_starts(name, paper_curriculum(2), 256, seed=0, options=options)
    return make_arena(name, starts, num_worlds=worlds, device=device, options=options)


def _steps(task: str, device: str, worlds: int) -> list[Row]:
    """Returns the rates of a task with ten substeps a step: whole, bare, and of new starts.

    That of whole episodes follows from the first and the last.
    """
    arena = _arena(task, device, worlds, 10)
    noise = torch.randn(_TIMED, worlds, 9, device=arena.device) * 0.3 + arena.rest_action()

    def whole() -> None:
        for action in noise:
            arena.step(action)
            arena.view()

    whole()
    mine, theirs = _rate(whole, worlds * _TIMED), _bare(arena.engine, worlds)
    fresh = _rate(arena.restart, worlds)
    arena.close()
    name, target = f"{task} on {device}, {worlds:,} worlds, skip 10", f"{_TARGETS[task]:,}"
    length = arena.max_steps
    episodes = length / (length / mine + 1.0 / fresh)
    return [
        *_beside_bare(name, {"steps": mine, _EPISODES: episodes}, theirs, target),
        rate_row(name, "bare steps", theirs),
        rate_row(name, "starts with mass, size, friction and goal", fresh),
    ]


def _bare(engine: Any, worlds: int, controls: Any = None) -> float:
    """Returns the rate of the engine's own step, ten substeps each; `controls` set what acts."""
    live = engine.live("ctrl")[:, :9]

    def bare() -> None:
        for step in range(_TIMED):
            if controls is not None:  # at rest there would be less to solve
                live[:] = controls[step]
            for _ in range(10):
                engine.bare_step()

    return _rate(bare, worlds * _TIMED)


def _beside_bare(name: str, rates: dict[str, float], bare: float, target: str) -> list[Row]:
    """Returns a row for every rate, by metric, next to that of bare stepping."""
    told = {"baseline": "mujoco_warp.step alone", "target": target}
    return [rate_row(name, metric, rate, bare, **told) for metric, rate in rates.items()]


def _learning(device: str, worlds: int) -> Row:
    arena = _arena("pushing", device, worlds, 3)
    learner = DevicePpo(arena, PpoSettings(), seed=0)

    def update() -> None:
        learner.network.observe(learner.collect())
        learner.update(0.0)

    update()
    rate = _rate(update, worlds * learner.settings.horizon)
    arena.close()
    name = f"PPO on pushing, {device}, {worlds:,} worlds, skip 3"
    return rate_row(name, "steps, learning included", rate, target="400,000")


def _vector(
    name: str, device: str, worlds: int, target: str, *, load: str = "rest", **options: Any
) -> list[Row]:
    """Returns the rate of TriFinger's vector environment, ten substeps a step, and of its episodes.

    Args:
        name: a world's id.
        device: where.
        worlds: how many.
        target: what the rates should reach.
        load: where commands lie: about the resting pose, as in the rows of whole tasks, or about
            the middle of the joints' ranges, where fingers press on the floor and contacts are two
            fifths more.
        options: of the world.
    """
    env: Any = make_vec(
        name, num_envs=worlds, device=device, skip_frame=10, normalize_actions=False, **options
    )
    env.reset(seed=0)
    rest, space = env.unwrapped.values["joint_positions"], env.single_action_space
    low, high = (torch.as_tensor(a, device=rest.device) for a in (space.low, space.high))
    middle = rest if load == "rest" else (low + high) / 2.0
    noise = torch.randn(_TIMED, worlds, 9, device=rest.device) * 0.15 * (high - low) + middle
    steps = plays(env, noise)
    steps()
    rate = _rate(steps, worlds * _TIMED)
    theirs = _bare(env.unwrapped.world._physics.engine, worlds, noise)
    metric = f"steps with 3 pictures of {_SIDE} pixels" if options else "steps"
    metric += ", no shadows" if options.get("shadows") is False else ""
    metric += "" if load == "rest" else ", commands about the middle of the joints' ranges"
    found = {metric: rate}
    if not options and name == "trifinger/pushing-v1":
        fresh = _rate(lambda: _begin_anew(env), worlds)
        length = env.unwrapped.world.max_steps
        found[f"{metric}; {_EPISODES}"] = length / (length / rate + 1.0 / fresh)
    env.close()
    title = f"make_vec of {name} on {device}, {worlds:,} worlds, skip 10"
    return _beside_bare(title, found, theirs, target)


def _begin_anew(env: Any) -> None:
    """Resets every world and sets mass, friction, size and goal of each."""
    env.reset()
    given = {}
    for name, (low, high) in _SET.items():
        given[name] = low + torch.rand_like(env.unwrapped.values[name]) * (high - low)
    env.unwrapped.do(given)
    goal = env.unwrapped.values[_GOAL].clone()  # its height follows from the size
    drawn = torch.rand_like(goal)
    goal[:, 0], goal[:, 1] = 0.11 * drawn[:, 0], math.pi * (2.0 * drawn[:, 1] - 1.0)
    env.unwrapped.do({_GOAL: goal})


def pixels_row(device: str, worlds: int, *, shadows: bool = True) -> Row:
    """Returns the rate of pushing seen through its three cameras, drawn on the device."""
    look: dict[str, Any] = {"observation_mode": "pixel", "image_size": _SIDE, "shadows": shadows}
    return _vector("trifinger/pushing-v1", device, worlds, "20,000", **look)[0]


def _grid(name: str, device: str, worlds: int) -> list[Row]:
    """Returns the rates of a grid world with its pictures and without."""
    where = "torch" if device == "warp" else device
    env: Any = make_vec(name, num_envs=worlds, device=where, max_steps=10**6)
    env.reset(seed=0)
    driver, everyone = env.unwrapped.driver, np.arange(worlds)
    place = "cpu" if where == "torch" else where
    moves = torch.randint(int(env.single_action_space.n), (_TIMED, worlds), device=place)

    def alone() -> None:
        for action in moves:
            driver.steps[driver._advance(action, everyone)] += 1

    drawn = plays(env, moves)
    drawn()
    rates = {
        "frames": (_rate(drawn, worlds * _TIMED), "3,000,000"),
        "steps without pictures": (_rate(alone, worlds * _TIMED), "20,000,000"),
    }
    env.close()
    title = f"make_vec of {name} on {where}, {worlds:,} worlds"
    return [
        rate_row(title, metric, rate, target=target) for metric, (rate, target) in rates.items()
    ]


def _rate(call: Callable[[], None], count: int) -> float:
    """Returns things a second in the fastest of three calls, by the wall clock."""
    return count / best_seconds(call, repeats=3, warm=0, clock=finished)
