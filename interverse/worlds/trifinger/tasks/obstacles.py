"""Small fixed cubes that a variable puts in the way of the fingers."""

from __future__ import annotations

from typing import Any

import numpy as np

from interverse.core.rng import Noise
from interverse.scm import Integers, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.objects import obstacle_place
from interverse.worlds.trifinger.scene import ArenaScene, Obstacle
from interverse.worlds.trifinger.variables import declare

Array = Any

COUNT = "obstacles/count"
MOST = 5
_EDGE = 0.01  # m
_LOW, _HIGH = (-0.15, -0.15, 0.0), (0.15, 0.15, 0.3)  # of their centres, m


def spare_obstacles() -> tuple[Obstacle, ...]:
    """Returns the cubes a scene keeps ready, below the floor."""
    return tuple(
        Obstacle(name=f"obstacle_{i}", position=(0.0, 0.0, -3.0 - i), size=(_EDGE,) * 3)
        for i in range(MOST)
    )


def count_variable(scene: ArenaScene) -> Variable:
    """Returns the variable that says how many cubes there are."""
    return declare(
        COUNT,
        "latent",
        0,
        Integers(0, MOST),
        spaces=(Integers(1, MOST), None),
        doc="Fixed cubes of 1 cm at random places of the arena.",
        bindings=tuple(obstacle_place(o, i) for i, o in enumerate(scene.obstacles)),
    )


def place_obstacles(rows: Rows, noise: Noise) -> None:
    """Puts the first cubes at addressed random places; the same ones whatever their number."""
    count = rows["obstacle/used"].shape[1]
    u = noise.uniform(COUNT, (count, 3))
    low, high = np.array(_LOW), np.array(_HIGH)
    rows["obstacle/used"][:] = np.arange(count) < rows[COUNT][:, None]
    place = low + u * (high - low)
    rows["obstacle/position"][:] = np.where(
        rows["obstacle/used"][..., None], place, rows["obstacle/position"]
    )
