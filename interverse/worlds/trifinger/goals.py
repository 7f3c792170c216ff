"""Draws of new goals: uniform numbers with addresses, mapped into the active spaces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from interverse.rng import Noise
from interverse.scm import Space

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
