"""Pictures of one world of a batch: colour, depth, segmentation, drawn off screen."""

from __future__ import annotations

import copy
from typing import Any, final, get_args

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name
from interverse.sim import gl
from interverse.sim.drawing import Drawing, Kind, Quality, open_drawing
from interverse.sim.elements import element_id


@final
class Camera:
    """A model and its data, to be filled in with a world, and a drawing for each picture size."""

    def __init__(self, model: mujoco.MjModel) -> None:
        gl.backend()
        self.model = copy.copy(model)
        self.data = mujoco.MjData(self.model)
        self._drawings: dict[tuple[int, int], Drawing] = {}

    def picture(self, camera: str, size: tuple[int, int], kind: Kind = "rgb") -> NDArray[Any]:
        """Returns what a camera sees now; size is (rows, columns)."""
        gl.check_process()
        check_name("kind of picture", kind, get_args(Kind))
        if size not in self._drawings:
            if min(size) < 1:
                raise InvalidValueError(
                    f"a picture of {size[0]} x {size[1]} pixels", allowed="1 x 1 or more"
                )
            own = self.model.vis.quality
            quality = Quality(own.shadowsize, own.offsamples)
            self._drawings[size] = open_drawing(self.model, size=size, quality=quality)
        mujoco.mj_forward(self.model, self.data)
        seen_by = element_id(self.model, "camera", camera)
        pixels = self._drawings[size].picture(self.model, self.data, seen_by, kind)
        return np.ascontiguousarray(pixels)

    def close(self) -> None:
        """Releases what GL holds."""
        self._drawings.clear()
