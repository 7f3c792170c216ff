"""dm_control's physics of a world whose pictures show the world's look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.core.rng import Noise
from interverse.sim.drawing import Kind

if TYPE_CHECKING:
    from interverse.worlds.control.world import ControlWorld

_FREE = -1  # dm_control's free camera, its default


@final
class DrawnPhysics:
    """dm_control's `Physics` of one world; `render` draws the look, all else is passed on."""

    def __init__(self, world: ControlWorld) -> None:
        self._world = world

    def render(
        self, height: int = 240, width: int = 320, camera_id: int | str = _FREE, depth: bool = False
    ) -> NDArray[Any]:
        """Returns a picture as the stock suite draws it, (height, width[, 3]).

        Args:
            height: rows.
            width: columns.
            camera_id: a camera's number or name; the free camera (-1) is the task's own camera 0.
            depth: distances in metres instead of colours.
        """
        stage = self._world.stage(0)
        if not stage.has_started:  # dm_control's wrappers draw before the first episode
            self._world.reset(np.arange(1), Noise.single(seed=0), {})
        model = stage.physics.model
        known = [model.id2name(i, "camera") for i in range(model.ncam)]
        if camera_id in known:
            camera_id = known.index(str(camera_id))
        if not isinstance(camera_id, int | np.integer) or not _FREE <= camera_id < model.ncam:
            allowed = f"-1 to {model.ncam - 1}, {', '.join(known)}"
            raise InvalidValueError(f"camera_id is {camera_id!r}", allowed=allowed)
        camera = None if camera_id == _FREE else int(camera_id)
        kind: Kind = "depth" if depth else "rgb"
        return np.array(stage.picture((height, width), "full", kind, camera=camera))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.stage(0).physics, name)
