"""The world on the page: solids that can be turned, or its picture, and the ghost in the same."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.viewer.canvas import ViewerCanvas, blended
from interverse.viewer.desk import Desk
from interverse.viewer.ghost import MOST_FRAMES, Ghost
from interverse.viewer.ghost import Frame as GhostFrame
from interverse.viewer.solids import Solids, bounds, ghosts, light_up

_FLAT = np.array([1.0, 1.0, 0.0])  # a followed world moves along the floor


@final
class ViewerScene:
    """Shows a session, and its ghost, at one step."""

    def __init__(self, server: Any, desk: Desk) -> None:
        self._session = desk.session
        self._frames: dict[int, GhostFrame] = {}  # of this episode, by step
        self._start = self._session.history.start
        first = self._session.shapes()
        self._canvas = None if first else ViewerCanvas(server, self._session.picture())
        if first:
            self._middle = light_up(server, first)
            self._fact, self._ghost = (Solids(server.scene, r) for r in ("/world", "/ghost"))
            self._add_views(desk)

    def _add_views(self, desk: Desk) -> None:
        with desk.gui.add_folder("View", expand_by_default=False):
            self._follow = desk.gui.add_checkbox("Follow", True, hint="Keep it in the middle")
            self._camera = desk.gui.add_checkbox(
                "Camera", False, hint="The picture of the world's own camera, textures and all"
            )
            self._photo = desk.gui.add_image(np.full((8, 8, 3), 255, np.uint8), visible=False)
        for handle in (self._follow, self._camera):
            handle.on_update(lambda _: desk.order("view", lambda: ""))

    def show(self, step: int, ghost: Ghost | None) -> None:
        """Shows the session at a step: now, or one that was seen before."""
        self._remember()
        seen = max((s for s in self._frames if s <= step), default=min(self._frames))
        fact, other = self._frames[seen], None
        if ghost is not None:
            other = ghost.frames.get(seen, ghost.frames[max(ghost.frames)])
        if isinstance(fact, tuple):
            self._show_solids(fact, other if isinstance(other, tuple) else ())
        elif self._canvas is not None:
            both = isinstance(other, np.ndarray)
            self._canvas.show(blended(fact, np.asarray(other)) if both else fact)

    def _remember(self) -> None:
        """Keeps the present frame; forgets those that were undone."""
        session, now = self._session, self._session.steps
        if session.history.start is not self._start:
            self._start, self._frames = session.history.start, {}
        self._frames = {step: frame for step, frame in self._frames.items() if step < now}
        self._frames.pop(now - MOST_FRAMES, None)
        self._frames[now] = session.picture() if self._canvas is not None else session.shapes()

    def _show_solids(self, fact: tuple[Any, ...], other: tuple[Any, ...]) -> None:
        middle, _ = bounds(fact)
        moved: NDArray[np.float64] = (middle - self._middle) * _FLAT
        moved = moved if self._follow.value else np.zeros(3)
        self._fact.show(fact, moved)
        self._ghost.show(ghosts(other, fact) if other else (), moved)
        self._photo.visible = self._camera.value
        if self._camera.value:
            self._photo.image = self._session.picture()
