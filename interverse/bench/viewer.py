"""The viewer: CPU time of one frame of a world that plays, for one world of each family."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from interverse.bench.measure import Row, best_pair
from interverse.viewer.server import Viewer
from interverse.viewer.session import Session

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


def viewer() -> list[Row]:
    """Returns the milliseconds of a frame: the step, and everything that is sent to the page."""
    return [_row(id, f) for f, ids in ((_played, _PLAYED), (_dragged, _DRAGGED)) for id in ids]


def _row(id: str, frame_of: Callable[[Session], Callable[[], None]]) -> Row:
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
