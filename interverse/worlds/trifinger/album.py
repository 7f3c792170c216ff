"""Picture observations: live and goal images of every world, goal images kept until they change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.store import take
from interverse.worlds.trifinger.studio import Studio

Array = Any

_TYPES: Mapping[str, Any] = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32}
_LOOKS = (  # what a goal image shows
    "robot/height",
    "floor/color",
    "floor/texture",
    "stage/color",
    "light/direction",
    "light/color",
    "camera/position",
    "camera/rotation",
    "link/color",
    *(f"goal/{key}" for key in ("position", "orientation", "size", "color", "used")),
    *(f"obstacle/{key}" for key in ("position", "size", "color", "used")),
)


def observation_space(flat: gym.spaces.Box, options: TriFingerOptions) -> gym.Space[Any]:
    """Returns the space of one world's observation in the chosen mode."""
    if options.observation_mode == "structured":
        return flat
    shape = (2 * len(tuple(options.cameras)), options.image_size, options.image_size)
    pixels = gym.spaces.Box(0, 255, (*shape, 3), np.uint8)
    if options.observation_mode == "pixel":
        return pixels
    spaces: dict[str, gym.Space[Any]] = {"structured": flat, "pixels": pixels}
    live = (shape[0] // 2, *shape[1:])
    if "depth" in options.picture_kinds:
        spaces["depth"] = gym.spaces.Box(0.0, np.inf, live, np.float32)
    if "segmentation" in options.picture_kinds:
        spaces["segmentation"] = gym.spaces.Box(-1, np.iinfo(np.int32).max, live, np.int32)
    return gym.spaces.Dict(spaces)


@final
class Album:
    """Draws the picture observations of N worlds."""

    def __init__(self, studio: Studio, options: TriFingerOptions, num_worlds: int) -> None:
        self._studio, self._options = studio, options
        self._cameras = tuple(options.cameras)
        self._seen: list[tuple[bytes, ...] | None] = [None] * num_worlds
        self._goals: list[NDArray[np.uint8] | None] = [None] * num_worlds

    def pictures(self, store: Mapping[str, Array]) -> dict[str, Array]:
        """Returns "pixels", (N, 2k, S, S, 3): k live, k goal images; and what else is asked for."""
        options = self._options
        pixels, extra = [], {k: [] for k in options.picture_kinds if k != "rgb"}
        for world in range(len(self._seen)):
            rows = take(store, np.array([world]))
            live = self._studio.live(rows, self._cameras, options.image_size)
            pixels.append(np.concatenate([live, self._goal(world, rows)]))
            if options.observation_mode == "mixed":
                for kind, shots in extra.items():
                    shots.append(self._studio.live(rows, self._cameras, options.image_size, kind))
        out = {"pixels": self._mirrored(np.stack(pixels), axis=3)}
        if options.observation_mode == "mixed":
            for kind, shots in extra.items():
                out[kind] = self._mirrored(np.stack(shots).astype(_TYPES[kind]), axis=3)
        return out

    def close(self) -> None:
        """Releases the GL contexts."""
        self._studio.close()

    def _goal(self, world: int, rows: Mapping[str, Array]) -> NDArray[np.uint8]:
        marks = tuple(rows[key].tobytes() for key in _LOOKS)
        if self._seen[world] != marks or self._goals[world] is None:
            self._goals[world] = self._studio.goal(rows, self._cameras, self._options.image_size)
            self._seen[world] = marks
        goal = self._goals[world]
        return goal if goal is not None else np.empty((0,), dtype=np.uint8)

    def _mirrored(self, pictures: Array, axis: int) -> Array:
        """Returns the pictures, turned left to right where the original's are asked for."""
        return (
            np.ascontiguousarray(np.flip(pictures, axis))
            if self._options.mirrored_images
            else pictures
        )
