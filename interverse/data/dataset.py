"""A data set in memory: small arrays loaded, pictures drawn or read when asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array
from interverse.core.errors import InvalidValueError
from interverse.data.store import (
    GridScene,
    Header,
    chosen,
    read_dataset,
    read_pixels,
    variable_at,
)
from interverse.scm.graph import CausalGraph
from interverse.sim.raster import SIZE

_FRAMES_AT_ONCE = 4096
Episodes = Any  # a slice, an index array or None for all


class Transitions(NamedTuple):
    """What a world model trains on; the two arguments of `interverse.models`' ArraySource."""

    images: NDArray[np.uint8]  # (E, T + 1, 50, 50, 3)
    actions: NDArray[np.int64]  # (E, T)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """E episodes of T actions each.

    Attributes:
        header: what made it. path: where it lies.
        actions: (E, T). rewards: (E, T), after each action.
        states: (E, T + 1, ...), the observation's `state`; empty in an imported set.
        seeds, episodes: (E,), the noise address of each episode.
        scene: what the frames are drawn from, (E, T + 1, ...), or None where pixels are stored.
        target: what the target pictures are drawn from, (E, ...), or None.
        values: every variable at the start of each episode, (E, *shape).
    """

    header: Header
    path: Path
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    states: NDArray[Any]
    seeds: NDArray[np.int64]
    episodes: NDArray[np.int64]
    scene: GridScene | None
    target: GridScene | None
    values: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        """How many episodes there are."""
        return len(self.actions)

    def __repr__(self) -> str:
        """Names the world and the sizes; the arrays stand in its fields."""
        count, steps = self.actions.shape[:2]
        return f"Dataset({self.header.id}, {count} episodes of {steps} actions, {self.path.name})"

    @property
    def graph(self) -> CausalGraph:
        """The causal graph of the world it was collected in."""
        return CausalGraph.from_json(self.header.graph)

    def images(self, episodes: Episodes = None) -> NDArray[np.uint8]:
        """Returns the frames of some episodes, (e, T + 1, 50, 50, 3)."""
        return self._pictures("images", self.scene, episodes)

    def target_images(self, episodes: Episodes = None) -> NDArray[np.uint8]:
        """Returns the target pictures of some episodes, (e, 50, 50, 3)."""
        if not self.header.targets:
            raise InvalidValueError(f"{self.header.id} {dict(self.header.options)} has no target")
        return self._pictures("target_images", self.target, episodes)

    def _pictures(self, kind: str, scene: GridScene | None, episodes: Episodes) -> Any:
        """Returns stored pictures, or draws some thousand at a time: little else is held."""
        rows = chosen(episodes, len(self), "episodes")
        if self.header.images or scene is None:
            return read_pixels(self.path, kind, rows)
        lead = scene.shapes.shape[1:-1]
        out = np.empty((len(rows), *lead, SIZE, SIZE, 3), dtype=np.uint8)
        at_once = max(1, _FRAMES_AT_ONCE // math.prod(lead))
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            out[some] = _rows(scene, rows[some]).draw()
        return out

    def transitions(self, episodes: Episodes = None) -> Transitions:
        """Returns frames and actions of some episodes."""
        rows = chosen(episodes, len(self), "episodes")
        return Transitions(self.images(rows), self.actions[rows])

    def scene_arrays(self) -> dict[str, NDArray[np.uint8]]:
        """Returns what `draw_frames` takes, (E, T + 1, ...) each, for drawing on a device."""
        if self.scene is None:
            raise InvalidValueError(
                f"{self.path} holds pixels, not the scenes behind them",
                fix="Use images() instead",
            )
        return self.scene._asdict()

    def take(self, episodes: Episodes) -> Dataset:
        """Returns the data set of some of the episodes; its pictures are drawn, not read."""
        rows = chosen(episodes, len(self), "episodes")
        self.scene_arrays()  # raises where there is nothing to draw from
        by_row = ("actions", "rewards", "states", "seeds", "episodes")
        return replace(
            self,
            header=replace(self.header, episodes=len(rows), images=False),
            scene=None if self.scene is None else _rows(self.scene, rows),
            target=None if self.target is None else _rows(self.target, rows),
            values={name: array[rows] for name, array in self.values.items()},
            **{name: getattr(self, name)[rows] for name in by_row},
        )


def draw_frames(rows: Mapping[str, Array]) -> Array:
    """Returns uint8 pictures (B, 50, 50, 3) of rows of `Dataset.scene_arrays`, on their device."""
    return GridScene(**rows).draw()


def open_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Returns the data set in a file; a corrupt or foreign file raises FileFormatError."""
    header, arrays = read_dataset(Path(path))
    return Dataset(
        header=header,
        path=Path(path),
        actions=arrays["actions"],
        rewards=arrays["rewards"],
        states=arrays["states"],
        seeds=arrays["seeds"],
        episodes=arrays["episodes"],
        scene=_scene(arrays, "scene"),
        target=_scene(arrays, "target"),
        values={v: a for path, a in arrays.items() if (v := variable_at(path)) is not None},
    )


def _scene(arrays: Mapping[str, NDArray[Any]], group: str) -> GridScene | None:
    if f"{group}/positions" not in arrays:
        return None
    return GridScene(*(arrays[f"{group}/{part}"] for part in GridScene._fields))


def _rows(scene: GridScene, rows: NDArray[np.int64]) -> GridScene:
    return GridScene(*(part[rows] for part in scene))
