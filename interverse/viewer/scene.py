"""The world on the page: solids that can be turned, or its picture, and the ghost in the same."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.viewer.desk import Desk
from interverse.viewer.ghost import MOST_FRAMES, Ghost
from interverse.viewer.ghost import Frame as GhostFrame
from interverse.viewer.solids import Solids, bounds, ghosts, light_up

_FEW_COLORS, _QUALITY = 256, 92
_LONGER = 900  # pixels along the longer side that are sent, about
_GHOST_COLOR, _GHOST_TINT = np.array([109.0, 63.0, 209.0]), 0.5  # the palette's TWIN
_MOST_HATCHED, _GHOST_SHARE = 0.4, 0.6  # of a picture; and of the ghost in a mixed one
_HATCH, _LINE = 6, 3  # pixels from one line of the ghost to the next, and of a line
_BLUR = 48  # how far two sizes of one picture differ at its edges
_FIELD = math.radians(40.0)
_ROOM = 1.06  # of the picture's size, in view
_WIDE = 0.75  # width of a scene, in its heights, until the browser tells its own


@final
class ViewerCanvas:
    """The picture's handle."""

    def __init__(self, server: Any, picture: NDArray[np.uint8]) -> None:
        rows, columns = picture.shape[:2]
        height = rows / columns
        camera = server.initial_camera
        camera.up, camera.look_at, camera.fov = (0.0, -1.0, 0.0), (0.0, 0.0, 0.0), _FIELD
        camera.position = (0.0, 0.0, -distance(height, _WIDE))
        server.on_client_connect(lambda client: _fit(client.camera, height))
        # Few colours: drawn pixel by pixel, and kept so. Many: a photograph, much cheaper as JPEG.
        self._drawn = len(np.unique(picture.reshape(-1, 3), axis=0)) <= _FEW_COLORS
        self._shown, kind = picture, "png" if self._drawn else "jpeg"
        self._handle = server.scene.add_image(
            "/picture", self._sent(picture), 1.0, height, format=kind, jpeg_quality=_QUALITY
        )

    def _sent(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return large(picture) if self._drawn else picture

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Shows another picture of the same size."""
        if not np.array_equal(picture, self._shown):  # a picture is the largest thing to send
            self._handle.image, self._shown = self._sent(picture), picture


def _fit(camera: Any, height: float) -> None:
    """Keeps the whole picture in one browser's scene, whatever shape that gets."""
    fitted = 0.0

    def fit(camera: Any) -> None:
        nonlocal fitted
        if camera.aspect != fitted:  # not where a person moves the camera
            fitted = camera.aspect
            camera.position = (0.0, 0.0, -distance(height, fitted))
            camera.look_at = (0.0, 0.0, 0.0)  # it moved along with the position

    fit(camera)
    camera.on_update(fit)


def distance(height: float, aspect: float) -> float:
    """Returns how far a camera is from a picture of width 1 that just fits its scene.

    >>> distance(1.0, 0.5) == 2 * distance(1.0, 1.0) == 2 * distance(1.0, 1.6)
    True
    """
    return _ROOM * max(1.0 / aspect, height) / 2.0 / math.tan(_FIELD / 2.0)


def blended(fact: NDArray[np.uint8], ghost: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns the fact's picture, hatched with the counterfactual's where the two differ.

    Where nearly everything does, as after a turn of the camera, one shines through the other.
    """
    if fact.shape != ghost.shape:  # one of them is larger; blurred edges are no difference
        near = [np.arange(n) * m // n for n, m in zip(fact.shape, ghost.shape, strict=True)]
        ghost = ghost[near[0]][:, near[1]]
        differs = (np.abs(fact.astype(int) - ghost) > _BLUR).any(axis=-1)
    else:
        differs = (fact != ghost).any(axis=-1)
    tinted = (1.0 - _GHOST_TINT) * ghost + _GHOST_TINT * _GHOST_COLOR
    rows, columns = np.indices(differs.shape)
    share = np.where((rows + columns) % _HATCH < _LINE, 1.0, 0.0)
    if differs.mean() > _MOST_HATCHED:
        share = np.full(differs.shape, _GHOST_SHARE)
    share = np.where(differs, share, 0.0)[..., None]
    return ((1.0 - share) * fact + share * tinted).astype(np.uint8)


def large(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns the picture with every pixel as a square of several: small ones stay crisp.

    >>> large(np.zeros((50, 100, 3), dtype=np.uint8)).shape
    (450, 900, 3)
    """
    times = max(1, _LONGER // max(picture.shape[:2]))
    return picture.repeat(times, axis=0).repeat(times, axis=1)


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
