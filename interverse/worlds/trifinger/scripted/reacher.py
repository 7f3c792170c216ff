"""Reaching: each tip heads for its own point, and an integral takes away the sag."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.scripted.senses import ObservationReader

_SPEED = 0.5  # of the commanded tips, m/s
_GAIN = 3.0  # of the integral, 1/s
_NEAR = 0.01  # errors beyond this count as this much, m
_MOST = 0.03  # of the integral, m


@final
class Reacher:
    """Brings three tips to three goals."""

    def __init__(self, senses: ObservationReader) -> None:
        self._senses = senses
        self._started = np.zeros(0, dtype=bool)

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Forgets the commands of the worlds in the mask."""
        if len(mask) != len(self._started):
            self._started = np.zeros(len(mask), dtype=bool)
            self._command, self._integral = np.zeros((2, len(mask), 3, 3))
        self._started[mask] = False
        self._integral[mask] = 0.0

    def __call__(self, observations: Any) -> NDArray[np.float32]:
        """Returns one action per world."""
        sight = self._senses.read(observations)
        if len(sight.tips) != len(self._started):
            self.reset(np.ones(len(sight.tips), dtype=bool), np.arange(len(sight.tips)))
        step, goal = self._senses.step_time, sight.goals.position
        command = np.where(self._started[:, None, None], self._command, sight.tips)
        self._command = command + shorten(goal - command, _SPEED * step)
        error = np.clip(goal - sight.tips, -_NEAR, _NEAR)
        self._integral = np.clip(self._integral + _GAIN * step * error, -_MOST, _MOST)
        self._started[:] = True
        return self._senses.action(self._command + self._integral, sight)


def shorten(vector: Any, most: Any) -> Any:
    """Returns vectors, (..., 3), no longer than `most`, a number or (...)."""
    return vector * np.minimum(1.0, most / np.maximum(length(vector), 1e-9))[..., None]


def length(vector: Any) -> Any:
    """Returns the lengths of vectors, (..., 3)."""
    return np.sqrt((vector * vector).sum(axis=-1))
