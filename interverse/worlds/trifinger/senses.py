"""What a TriFinger world shows an agent: numbers in a fixed layout, pictures, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, final

import gymnasium as gym
import numpy as np

from interverse.worlds.trifinger.album import Album, observation_space
from interverse.worlds.trifinger.observation import layout
from interverse.worlds.trifinger.rules import Rules
from interverse.worlds.trifinger.scene import Scene
from interverse.worlds.trifinger.store import ADDRESS, CLOCK, noise_of
from interverse.worlds.trifinger.studio import Studio

Array = Any


@final
class Senses:
    """The observations of N worlds, made from their store."""

    def __init__(
        self,
        rules: Rules,
        scene: Scene,
        data: Mapping[str, Array],
        values: Mapping[str, Array],
        studio: Callable[[], Studio],
    ) -> None:
        """Works out what stands where.

        Args:
            rules: the task and its options.
            scene: what is in the world.
            data: the store; it is read whenever somebody looks.
            values: every variable by name, for observations of one's own.
            studio: makes what pictures are taken with, when the first is asked for.
        """
        self._task, self._options, self._seconds = rules.task, rules.options, rules.seconds
        self._data, self._values, self._studio = data, values, studio
        self._album: Album | None = None
        groups, stored = self._task.groups(scene)
        more = {} if self._options.max_blocks is None else {"mask": scene.block_count}
        more |= {name: rows.shape[1] for name, rows in self._custom().items()}
        self.layout = layout(groups, stored, seconds=self._seconds, more=more)
        self._noisy, self._types = self.layout.sensed(), self._task.types(scene)
        flat = gym.spaces.Box(-np.inf, np.inf, (self.layout.width,), np.float64)
        self.space = observation_space(flat, self._options)

    @property
    def slices(self) -> Mapping[str, slice]:
        """Where everything stands in a flat observation; empty where there is none."""
        pixels = self._options.observation_mode == "pixel"
        return MappingProxyType({}) if pixels else self.layout.slices

    def observe(self, tips: Array) -> dict[str, Array]:
        """Returns the parts of every world's observation, given where the fingertips are."""
        mode = self._options.observation_mode
        numbers = {} if mode == "pixel" else {"structured": self._numbers(tips)}
        return numbers if mode == "structured" else {**numbers, **self._pictures()}

    def close(self) -> None:
        """Releases the GL contexts."""
        if self._album is not None:
            self._album.close()
            self._album = None

    def _pictures(self) -> Mapping[str, Array]:
        if self._album is None:
            self._album = Album(self._studio(), self._options, len(self._data[CLOCK]))
        return self._album.pictures(self._data)

    def _numbers(self, tips: Array) -> Array:
        """Returns the structured observations, (N, width)."""
        data = self._data
        left = self._seconds - data[CLOCK] * self._options.step_time
        parts = [
            left[:, None],
            data["joint_positions"],
            data["joint_velocities"],
            tips,
            *self._task.observe(data, self._types),
        ]
        if self._options.max_blocks is not None:
            parts.append(data["block/used"].astype(np.float64))
        parts += self._custom().values()
        raw = np.concatenate(parts, axis=1)[:, self.layout.columns]
        spread = data["robot/observation_noise"]
        if spread.any():
            draw = noise_of(data[ADDRESS]).normal("observation", (self.layout.width,))
            raw = raw + spread[:, None] * self._noisy * draw
        return self.layout.normalise(raw) if self._options.normalize_observations else raw

    def _custom(self) -> dict[str, Array]:
        """Returns the observations of one's own, (N, k) each."""
        count = len(self._data[CLOCK])
        return {
            name: np.asarray(function(self._values), dtype=np.float64).reshape(count, -1)
            for name, function in self._options.custom_observations.items()
        }
