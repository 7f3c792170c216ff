"""Control from pixels: agent steps, new looks and construction beside the stock suite."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from interverse.bench.measure import (
    WALL,
    Row,
    best_pair,
    best_seconds,
    plays,
    rate_row,
    time_row,
)
from interverse.envs import make, make_vec
from interverse.sim.threads import cores
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.suite import suite

_SIZE, _STEPS, _REPEATS, _WORLDS = 84, 6, 4, 8
_STATE_STEPS, _STATE_WORLDS, _STATE_REPEATS = 20, 16, 60
_STOCK = "dm_control env.step and physics.render"
_LOOKS = (11, 12, 13, 14)  # drawn once before, so that their pictures are painted


def control() -> list[Row]:
    """Returns agent steps a second per domain at two qualities, and the cost of a new look."""
    targets = {"default": "ratio at least 2", "fast": "ratio at least 3"}
    rows = [_steps(domain, quality) for domain in DOMAINS for quality in targets]
    for place, (quality, target) in enumerate(targets.items()):
        ratios = [row.ratio or 0.0 for row in rows[: 2 * len(DOMAINS)][place::2]]
        mean = float(np.exp(np.mean(np.log(ratios))))
        name = f"control, {quality} quality, ten domains"
        metric = "agent steps a second, geometric mean of ratios"
        rows.append(Row(name, metric, mean, "x", mean, _STOCK, target))
    return [*rows, _switch("cheetah_run"), _construction("cheetah_run"), _batch("walker_walk")]


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
        taken = [
            [best_seconds(functools.partial(env.step, a), repeats=1, warm=0) for a in given]
            for env, given in zip((*envs, stock), (actions, many, actions), strict=True)
        ]
        best = np.minimum(best, taken)
    for env in envs:
        env.close()
    one, share, stock_s = best.mean(1) / (1, _STATE_WORLDS, 1)
    return [
        time_row(
            f"{name}, state observations, {worlds} worlds",
            "CPU time of a step of a world",
            seconds,
            stock_s,
            "us",
            baseline=f"dm_control env.step, {1e6 * stock_s:.1f} us",
            target=f"ratio at most {most}",
        )
        for worlds, seconds, most in ((1, one, 1.2), (_STATE_WORLDS, share, 0.7))
    ]


def _steps(domain: str, quality: str) -> Row:
    task = DOMAINS[domain].tasks[0]
    env = make(f"control/{domain}_{task}-v1", quality=quality, dynamics_seed=0)
    env.reset(seed=0)
    stock = suite.load(domain, task, task_kwargs={"random": 0})
    stock.reset()
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1.0, 1.0, (_STEPS, *(env.action_space.shape or ()))).astype(np.float32)

    def play_stock() -> None:
        for action in actions:
            stock.step(action)
            stock.physics.render(_SIZE, _SIZE, camera_id=0)

    ours, theirs = best_pair(plays(env, actions), play_stock, repeats=_REPEATS)
    env.close()
    name = f"control/{domain}_{task}-v1, {quality} quality"
    target = "ratio at least 1.5" if quality == "default" else ""
    rates = _STEPS / ours, _STEPS / theirs
    return rate_row(name, "agent steps a second", *rates, baseline=_STOCK, target=target)


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
    metric, same = "milliseconds that a new visual seed adds to a reset", "reset with the same look"
    added = 1e3 * (new - plain)
    return Row(f"control/{name}-v1", metric, added, "ms", new / plain, same, "under 10 ms")


def _construction(name: str) -> Row:
    """Returns how long a world takes to make, its domain being compiled, without a GL context."""
    taken = best_seconds(lambda: make(f"control/{name}-v1").close(), repeats=3)
    metric = "milliseconds to construct, before the first picture"
    return time_row(f"control/{name}-v1", metric, taken, target="under 300 ms")


def _batch(name: str) -> Row:
    """Returns the steps of worlds side by side, on a thread for each core."""
    pair = [make_vec(f"control/{name}-v1", _WORLDS, threads=threads) for threads in (0, 1)]
    for venv in pair:
        venv.reset(seed=0)
    still = np.zeros(pair[0].action_space.shape or (), np.float32)
    both = [plays(venv, [still]) for venv in pair]
    taken = best_pair(*both, repeats=_REPEATS, clock=WALL)  # CPU time stays the same
    for venv in pair:
        venv.close()
    return rate_row(
        f"control/{name}-v1, {_WORLDS} worlds on {cores()} cores",
        "steps of a world a second",
        *(_WORLDS / seconds for seconds in taken),
        baseline="the same on one thread, on which GL already spreads its own work",
    )
