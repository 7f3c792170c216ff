"""A tiny world of pictures: a bright square that actions move sideways; the middle pays."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from interverse.envs import Snapshot

SIZE, LENGTH = 24, 12


class Dot(gym.Env[Any, Any]):
    """Observations are three stacked frames, the first repeated at the start."""

    def __init__(self, size: int = SIZE, length: int = LENGTH, *, ends: bool = False) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (9, size, size), np.uint8)
        self.action_space = gym.spaces.Box(-2.0, 2.0, (1,), np.float32)
        self._size, self._length, self._ends = size, length, ends
        self._place, self._time, self._frames = 0.0, 0, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if options is not None:
            return self._restore(options["snapshot"]), {}
        self._place, self._time = self.np_random.uniform(-0.6, 0.6), 0
        self._frames = [self._draw()] * 3
        return np.concatenate(self._frames), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self._place = float(np.clip(self._place + 0.1 * float(action[0]), -1.0, 1.0))
        self._time += 1
        self._frames = [*self._frames[1:], self._draw()]
        lost = self._ends and abs(self._place) == 1.0
        return (
            np.concatenate(self._frames),
            1.0 - abs(self._place),
            lost,
            self._time >= self._length,
            {},
        )

    def _draw(self):
        frame = np.zeros((3, self._size, self._size), dtype=np.uint8)
        column = round((self._place + 1.0) / 2.0 * (self._size - 6))
        frame[:, 8:14, column : column + 6] = 255
        frame[1, 0, 0] = self._time
        return frame

    def snapshot(self) -> Snapshot:
        state = self.np_random.bit_generator.state["state"]
        words = [[state["state"] >> 64, state["state"] & (2**64 - 1)]]
        arrays = {
            "place": np.array([self._place]),
            "time": np.array([self._time]),
            "frames": np.stack(self._frames)[None],
            "words": np.array(words, dtype=np.uint64),
            "inc": np.array([[state["inc"] >> 64, state["inc"] & (2**64 - 1)]], dtype=np.uint64),
        }
        return Snapshot("dot", "{}", arrays)

    def _restore(self, snapshot: Snapshot):
        held = snapshot.arrays
        self._place, self._time = float(held["place"][0]), int(held["time"][0])
        self._frames = list(held["frames"][0])
        whole = {k: (int(held[k][0, 0]) << 64) | int(held[k][0, 1]) for k in ("words", "inc")}
        state = self.np_random.bit_generator.state
        state["state"] = {"state": whole["words"], "inc": whole["inc"]}
        self.np_random.bit_generator.state = state
        return np.concatenate(self._frames)


class PlainDot(Dot):
    """The same without snapshots, as most Gymnasium environments are."""

    snapshot = None
