"""The library around worlds: its import, evaluation, and a frame of the viewer."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from interverse.bench.measure import WALL, Row, best_pair, time_row
from interverse.envs import make_vec
from interverse.protocols.protocol import Protocol, select_protocols
from interverse.protocols.unit import ROWS, Unit, run_unit
from interverse.rollouts.policy import as_policy

if TYPE_CHECKING:
    from interverse.viewer.session import Session

_TASK = "trifinger/pushing-v1"
_TIMED = ("P0", "P6", "P11")  # nothing drawn, two places, everything
_PROTOCOLS, _EPISODES = 12, 200
_PLAYED = (
    "blocks/observed-3-v1",
    "chemistry/chain-v1",
    "control/cheetah_run-v1",
    "trifinger/pushing-v1",
    "tutorial/slider-v1",
)
# Their episodes are over after an action: a slider is dragged.
_DRAGGED = ("rooms/multi-v1", "rooms/single-v1")
_FRAMES = 20


def imports() -> list[Row]:
    """Returns the import time as a ratio."""

    def fresh(module: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    ours, theirs = best_pair(lambda: fresh("interverse"), lambda: fresh("gymnasium"), clock=WALL)
    told = {"baseline": "import gymnasium", "target": "ratio at most 1.5"}
    return [time_row("import interverse", "seconds", ours, theirs, "s", **told)]


def evaluation() -> list[Row]:
    """Returns the overhead of a unit of 50 episodes, and the CPU seconds of 12 x 200 of them."""
    pairs = []
    for protocol in select_protocols(_TASK, ",".join(_TIMED)):
        unit = Unit(task=_TASK, options={}, protocol=protocol, seed=0, number=0, episodes=ROWS)
        played = functools.partial(run_unit, unit, "scripted")
        pairs.append(best_pair(played, _bare(protocol), repeats=1))
    ours, theirs = np.mean(pairs, axis=0).tolist()
    name = f"evaluation of {_TASK}, scripted"
    metric = f"CPU seconds of {ROWS} episodes, mean of {', '.join(_TIMED)}"
    bare = "the same worlds and policy in a bare vector env"
    one = time_row(name, metric, ours, theirs, "s", baseline=bare, target="ratio under 1.2")
    metric = f"CPU seconds of {_PROTOCOLS} protocols x {_EPISODES} episodes, from the above"
    every, target = ours * _PROTOCOLS * _EPISODES / ROWS, "under 720: 6 minutes on two cores"
    return [one, time_row(name, metric, every, unit="s", target=target)]


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


def viewer() -> list[Row]:
    """Returns the milliseconds of a frame: the step, and everything that is sent to the page."""
    return [_frame_row(id) for id in (*_PLAYED, *_DRAGGED)]


def _frame_row(id: str) -> Row:
    from interverse.viewer.server import Viewer  # needs the extra `view`, which other rows do not
    from interverse.viewer.session import Session

    session, bare = Session(id), Session(id)
    shown = Viewer(session, port=None)
    values = {one: iter(np.linspace(0.5, 1.3, 10 * _FRAMES)) for one in (session, bare)}

    def frame(of: Session) -> None:
        if id in _DRAGGED:
            of.do({"light/brightness": next(values[of])})
        else:
            of.step()

    def frame_shown() -> None:
        frame(session)
        shown.show()

    try:
        taken = best_pair(frame_shown, lambda: frame(bare), repeats=_FRAMES)
    finally:
        shown.close()
        session.close()
        bare.close()
    return time_row(
        f"{id} in the viewer",
        "CPU milliseconds a frame",
        *taken,
        baseline="the same without a page",
        target="under 66 ms: 15 frames a second on one core",
    )
