"""The library around worlds: its import, evaluation, and a frame of the viewer."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from interverse.bench.measure import WALL, Row, best_pair
from interverse.envs import make_vec
from interverse.protocols.protocol import Protocol, select_protocols
from interverse.protocols.unit import ROWS, Unit, run_unit
from interverse.rollouts.policy import as_policy

if TYPE_CHECKING:
    from interverse.viewer.server import Viewer
    from interverse.viewer.session import Session

_TASK = "trifinger/pushing-v1"
_TIMED = ("P0", "P6", "P11")  # nothing drawn, two places, everything
_PROTOCOLS, _EPISODES = 12, 200
_REPEATS = 2
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

    pair = (lambda: fresh("interverse"), lambda: fresh("gymnasium"))
    ours, theirs = best_pair(*pair, clock=WALL)
    return [
        Row(
            name="import interverse",
            metric="seconds",
            value=ours,
            unit="s",
            ratio=ours / theirs,
            baseline="import gymnasium",
            target="ratio at most 1.5",
        )
    ]


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


def viewer() -> list[Row]:
    """Returns the milliseconds of a frame: the step, and everything that is sent to the page."""
    return [
        _frame_row(id, f) for f, ids in ((_played, _PLAYED), (_dragged, _DRAGGED)) for id in ids
    ]


def _frame_row(id: str, frame_of: Callable[[Session], Callable[[], None]]) -> Row:
    from interverse.viewer.server import Viewer  # needs the extra `view`, which other rows do not
    from interverse.viewer.session import Session

    session, bare = Session(id), Session(id)
    shown = Viewer(session, port=None)
    try:
        frame, alone = frame_of(session), frame_of(bare)
        taken, plain = best_pair(lambda: _shown(frame, shown), alone, repeats=_FRAMES)
    finally:
        shown.close()
        session.close()
        bare.close()
    return Row(
        name=f"{id} in the viewer",
        metric="CPU milliseconds a frame",
        value=1e3 * taken,
        unit="ms",
        ratio=taken / plain,
        baseline="the same without a page",
        target="under 66 ms: 15 frames a second on one core",
    )


def _shown(frame: Callable[[], None], on: Viewer) -> None:
    frame()
    on.show()


def _played(session: Session) -> Callable[[], None]:
    return session.step


def _dragged(session: Session) -> Callable[[], None]:
    values = iter(np.linspace(0.5, 1.3, 10 * _FRAMES))

    def drag() -> None:
        session.do({"light/brightness": next(values)})

    return drag
