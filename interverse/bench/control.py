"""Control from pixels: agent steps, new looks and construction beside the stock suite."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from interverse.bench.measure import CPU, WALL, Row, best_pair, best_seconds
from interverse.envs import make, make_vec
from interverse.sim.threads import cores
from interverse.worlds.control.compat import suite
from interverse.worlds.control.domains import DOMAINS

_SIZE, _STEPS, _REPEATS, _WORLDS = 84, 6, 4, 8
_STATE_STEPS, _STATE_WORLDS, _STATE_REPEATS = 20, 16, 60
_STOCK = "dm_control env.step and physics.render"
_LOOKS = (11, 12, 13, 14)  # drawn once before, so that their pictures are painted


def control() -> list[Row]:
    """Returns agent steps a second per domain at two qualities, and the cost of a new look."""
    ratios: dict[str, list[float]] = {"default": [], "fast": []}
    rows: list[Row] = []
    for domain in DOMAINS:
        for quality, found in ratios.items():
            row = _steps(domain, quality)
            rows.append(row)
            found.append(row.ratio or 0.0)
    for quality, target in (("default", "ratio at least 2"), ("fast", "ratio at least 3")):
        mean = float(np.exp(np.mean(np.log(ratios[quality]))))
        rows.append(
            Row(
                name=f"control, {quality} quality, ten domains",
                metric="agent steps a second, geometric mean of ratios",
                value=mean,
                unit="x",
                ratio=mean,
                baseline=_STOCK,
                target=target,
            )
        )
    more = _switch("cheetah_run"), _construction("cheetah_run"), _batch("walker_walk")
    return [*rows, *more]


def states(repeats: int = _STATE_REPEATS) -> list[Row]:
    """Returns the CPU time of steps with state observations, every domain, beside the suite's."""
    return [row for domain in DOMAINS for row in _states(domain, repeats)]


def _states(domain: str, repeats: int) -> list[Row]:
    """Returns a world's, and a world's share in a batch: the same states and actions in all."""
    task = DOMAINS[domain].tasks[0]
    name, stock = f"control/{domain}_{task}-v1", suite.load(domain, task)
    envs: list[Any] = [make(name, observation="state", dynamics_seed=0)]
    envs.append(make_vec(name, _STATE_WORLDS, observation="state", dynamics_seed=0))
    shape = (_STATE_STEPS, *envs[0].action_space.shape)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, shape).astype(np.float32)
    many = np.repeat(actions[:, None], _STATE_WORLDS, axis=1)
    best = np.full((3, _STATE_STEPS), math.inf)  # of each step over the repeats: the same states
    for _ in range(repeats):
        for env in envs:
            env.reset(seed=0)
        stock.task.random.seed(0)
        stock.reset()
        both = zip((*envs, stock), (actions, many, actions), strict=True)
        taken = [[_seconds(env, action) for action in given] for env, given in both]
        best = np.minimum(best, taken)
    for env in envs:
        env.close()
    one, share, stock_s = best.mean(1) / (1, _STATE_WORLDS, 1)
    return [_state_row(name, 1, one, stock_s), _state_row(name, _STATE_WORLDS, share, stock_s)]


def _seconds(env: Any, action: Any) -> float:
    begin = CPU()
    env.step(action)
    return CPU() - begin


def _state_row(name: str, worlds: int, taken: float, stock: float) -> Row:
    return Row(
        name=f"{name}, state observations, {worlds} worlds",
        metric="CPU time of a step of a world",
        value=1e6 * taken,
        unit="us",
        ratio=taken / stock,
        baseline=f"dm_control env.step, {1e6 * stock:.1f} us",
        target=f"ratio at most {1.2 if worlds == 1 else 0.7}",
    )


def _steps(domain: str, quality: str) -> Row:
    task = DOMAINS[domain].tasks[0]
    env = make(f"control/{domain}_{task}-v1", quality=quality, dynamics_seed=0)
    env.reset(seed=0)
    stock = suite.load(domain, task, task_kwargs={"random": 0})
    stock.reset()
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1.0, 1.0, (_STEPS, *(env.action_space.shape or ()))).astype(np.float32)
    ours, theirs = best_pair(_ours(env, actions), _theirs(stock, actions), repeats=_REPEATS)
    env.close()
    return Row(
        name=f"control/{domain}_{task}-v1, {quality} quality",
        metric="agent steps a second",
        value=_STEPS / ours,
        unit="1/s",
        ratio=theirs / ours,
        baseline=_STOCK,
        target="ratio at least 1.5" if quality == "default" else "",
    )


def _ours(env: Any, actions: Any) -> Callable[[], None]:
    def play() -> None:
        for action in actions:
            env.step(action)

    return play


def _theirs(env: Any, actions: Any) -> Callable[[], None]:
    def play() -> None:
        for action in actions:
            env.step(action)
            env.physics.render(_SIZE, _SIZE, camera_id=0)

    return play


def _switch(name: str) -> Row:
    """Returns what a new visual seed adds to a reset, its pictures being on disk or in memory."""
    env = make(f"control/{name}-v1", dynamics_seed=0)
    looks = itertools.cycle(_LOOKS)
    env.reset(seed=0, options={"visual_seed": _LOOKS[0]})
    new, plain = best_pair(
        lambda: env.reset(seed=0, options={"visual_seed": next(looks)}),
        lambda: env.reset(seed=0),
        repeats=12,
    )
    env.close()
    return Row(
        name=f"control/{name}-v1",
        metric="milliseconds that a new visual seed adds to a reset",
        value=1e3 * (new - plain),
        unit="ms",
        ratio=new / plain,
        baseline="reset with the same look",
        target="under 10 ms",
    )


def _construction(name: str) -> Row:
    """Returns how long a world takes to make, its domain being compiled, without a GL context."""
    taken = best_seconds(lambda: make(f"control/{name}-v1").close(), repeats=3)
    return Row(
        name=f"control/{name}-v1",
        metric="milliseconds to construct, before the first picture",
        value=1e3 * taken,
        unit="ms",
        target="under 300 ms",
    )


def _batch(name: str) -> Row:
    """Returns the steps of worlds side by side, on a thread for each core."""
    pair = [make_vec(f"control/{name}-v1", _WORLDS, threads=threads) for threads in (0, 1)]
    for venv in pair:
        venv.reset(seed=0)
    still = np.zeros(pair[0].action_space.shape or (), np.float32)
    plays = [_ours(venv, [still]) for venv in pair]
    ours, theirs = best_pair(*plays, repeats=_REPEATS, clock=WALL)  # CPU time stays the same
    for venv in pair:
        venv.close()
    return Row(
        name=f"control/{name}-v1, {_WORLDS} worlds on {cores()} cores",
        metric="steps of a world a second",
        value=_WORLDS / ours,
        unit="1/s",
        ratio=theirs / ours,
        baseline="the same on one thread, on which GL already spreads its own work",
    )
