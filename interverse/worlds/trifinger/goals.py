"""Draws of new goals: uniform numbers with addresses, mapped into the active spaces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise
from interverse.scm import Space, Variable
from interverse.scm.variable import SpaceName
from interverse.worlds.world import Index, World

Array = Any

NAME = "sample_goal/"  # start of the noise addresses of goal draws


def draw(name: str, space: Space, noise: Noise) -> Array:
    """Returns one value per world, uniform in the space, (N, *shape)."""
    return space.from_uniform(noise.uniform(NAME + name, (space.draws,)))


def draw_on_disc(name: str, space: Space, noise: Noise) -> Array:
    """Returns cylindrical positions, (N, 3), uniform over the ring's area, angle and height."""
    u = noise.uniform(NAME + name, (3,))
    low, high = np.broadcast_to(space.low, u.shape), np.broadcast_to(space.high, u.shape)
    area = low[:, 0] ** 2 + u[:, 0] * (high[:, 0] ** 2 - low[:, 0] ** 2)
    rest = low[:, 1:] + u[:, 1:] * (high[:, 1:] - low[:, 1:])
    return np.concatenate([np.sqrt(area)[:, None], rest], axis=1)


def draw_side(name: str, noise: Noise) -> Array:
    """Returns a fair coin per world, (N,): -1.0 or 1.0."""
    return np.where(noise.uniform(NAME + name) < 0.5, -1.0, 1.0)


def quarter_turn(side: Array) -> Array:
    """Returns the angle of the middle of a side (1: y > 0, -1: y < 0), rad."""
    return side * (math.pi / 2)


@final
class ValuesOf(Mapping[str, Array]):
    """Present values of some worlds, read when asked for."""

    def __init__(self, world: World, worlds: Index | slice) -> None:
        self._world, self._worlds = world, worlds

    def __getitem__(self, name: str) -> Array:
        return self._world.read(name)[self._worlds]

    def __iter__(self) -> Iterator[str]:
        return iter(self._world.variables)

    def __len__(self) -> int:
        return len(self._world.variables)


@final
class ActiveSpaces(Mapping[str, Space]):
    """The active space of each variable at the present values."""

    def __init__(
        self, variables: Mapping[str, Variable], values: Mapping[str, Array], name: SpaceName
    ) -> None:
        self._variables, self._values, self._name = variables, values, name

    def __getitem__(self, name: str) -> Space:
        space = self._variables[name].resolve(self._values).space(self._name)
        if space is None:
            raise InvalidValueError(explain(f"{name} has no space to draw from"))
        return space

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)
