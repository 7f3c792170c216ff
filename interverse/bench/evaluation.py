"""Evaluation: what it adds to a bare vector environment, and how long the whole benchmark takes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from interverse.bench.measure import Row
from interverse.envs import make_vec
from interverse.protocols.protocol import Protocol, select_protocols
from interverse.protocols.unit import ROWS, Unit, run_unit
from interverse.rollouts.policy import as_policy

_TASK = "trifinger/pushing-v1"
_TIMED = ("P0", "P6", "P11")  # nothing drawn, two places, everything
_PROTOCOLS, _EPISODES = 12, 200
_REPEATS = 2


def evaluation() -> list[Row]:
    """Returns the overhead of a unit of 50 episodes, and the CPU seconds of 12 x 200 of them."""
    ours = theirs = 0.0
    for protocol in select_protocols(_TASK, ",".join(_TIMED)):
        pairs = [(_seconds(_unit(protocol)), _seconds(_bare(protocol))) for _ in range(_REPEATS)]
        ours += min(pair[0] for pair in pairs)
        theirs += min(pair[1] for pair in pairs)
    whole = ours / len(_TIMED) * _PROTOCOLS * _EPISODES / ROWS
    return [
        Row(
            name=f"evaluation of {_TASK}, scripted",
            metric=f"CPU seconds of {ROWS} episodes, mean of {', '.join(_TIMED)}",
            value=ours / len(_TIMED),
            unit="s",
            ratio=ours / theirs,
            baseline="the same worlds and policy in a bare vector env",
            target="ratio under 1.2",
        ),
        Row(
            name=f"evaluation of {_TASK}, scripted",
            metric=f"CPU seconds of {_PROTOCOLS} protocols x {_EPISODES} episodes, from the above",
            value=whole,
            unit="s",
            target="under 720: 6 minutes on two cores",
        ),
    ]


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _unit(protocol: Protocol) -> Callable[[], object]:
    unit = Unit(task=_TASK, options={}, protocol=protocol, seed=0, number=0, episodes=ROWS)
    return lambda: run_unit(unit, "scripted")


def _bare(protocol: Protocol) -> Callable[[], object]:
    """Returns the same episodes without scoring: reset, intervene once, act and step."""

    def run() -> None:
        venv = make_vec(_TASK, ROWS, autoreset_mode="disabled", threads=1)
        options = {"episode": list(range(ROWS))}
        observation, _ = venv.reset(seed=[0] * ROWS, options=options)
        protocol.apply(venv.unwrapped.driver, np.arange(ROWS))
        policy = as_policy("scripted", venv.unwrapped.world)
        policy.reset(np.ones(ROWS, dtype=bool), np.arange(ROWS))
        for _ in range(venv.unwrapped.world.max_steps):
            observation, *_ = venv.step(policy(observation))
        venv.close()

    return run
