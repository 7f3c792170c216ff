"""Where cubes come to rest when they are dropped one after another: the goals of general.

The drop is simulated in a world of its own under default physics, so a heap follows from the number
and size of its cubes and from the noise, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from interverse.worlds.trifinger.feasibility import GOAL_FLOOR, GOAL_SHARE, goal_place
from interverse.worlds.trifinger.physics import Physics
from interverse.worlds.trifinger.robot import RAISED, SUBSTEP
from interverse.worlds.trifinger.rotation import from_rotation_vector
from interverse.worlds.trifinger.scene import Block, Scene, parking_position
from interverse.worlds.trifinger.shapes import DROP_SECONDS, Drop, drops

Array = Any
_ONE = np.arange(1)
_TRIES = 10
_REST_SECONDS = 1.6  # after the last drop


@final
class Heaps:
    """Drops cubes, up to `most` at a time."""

    def __init__(self, most: int) -> None:
        blocks = tuple(Block(position=parking_position(i)) for i in range(most))
        self._most = most
        self._physics = Physics(Scene(blocks=blocks), num_worlds=1, device="cpu", threads=1)

    def rest(self, count: int, size: float, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Returns positions (count, 3) and quaternions (count, 4) of a heap inside the arena.

        Args:
            count: how many cubes.
            size: their edge, m.
            rng: draws the drops; None takes the fixed ones, nearer to the middle if need be.
        """
        edges = np.full((count, 3), size)
        for attempt in range(_TRIES):
            falls = _nearer(drops(count, rng), 0.85**attempt if rng is None else 1.0)
            place, turn = self._drop(falls, size)
            share, lowest = goal_place(place, turn, edges)
            if np.all(share >= GOAL_SHARE) and np.all(lowest >= GOAL_FLOOR):
                break
        else:  # a row on the floor, which always fits
            place, turn = _row(count, size)
        return place, turn

    def _drop(self, falls: Sequence[Drop], size: float) -> tuple[Array, Array]:
        most, physics = self._most, self._physics
        rows = {
            "joint_positions": np.array([RAISED]),
            "joint_velocities": np.zeros((1, 9)),
            "link/mass": np.array([physics.scene.link_masses]),
            "block/mass": np.full((1, most), 0.08),
            "block/size": np.full((1, most, 3), size),
            "block/used": np.zeros((1, most), dtype=bool),
            "block/position": np.zeros((1, most, 3)),
            "block/orientation": np.tile([0.0, 0.0, 0.0, 1.0], (1, most, 1)),
            "block/linear_velocity": np.zeros((1, most, 3)),
            "block/angular_velocity": np.zeros((1, most, 3)),
        }
        physics.engine.reset(_ONE)
        physics.write(rows, rows.keys(), _ONE)
        hold = rows["joint_positions"].copy()
        for k, fall in enumerate(falls):
            rows["block/used"][0, k] = True
            rows["block/position"][0, k] = fall.position + (0.0, 0.0, size / 2)  # noqa: RUF005
            rows["block/orientation"][0, k] = from_rotation_vector(fall.rotation)
            physics.write(rows, ("block/position",), _ONE)
            last = k == len(falls) - 1
            seconds = _REST_SECONDS if last else DROP_SECONDS
            physics.step(rows, hold, _ONE, round(seconds / SUBSTEP))
            physics.read_back(rows, _ONE)
        count = len(falls)
        return rows["block/position"][0, :count].copy(), rows["block/orientation"][0, :count].copy()


def _nearer(falls: Sequence[Drop], share: float) -> list[Drop]:
    near = np.array([share, share, 1.0])
    return [Drop(position=fall.position * near, rotation=fall.rotation) for fall in falls]


def _row(count: int, size: float) -> tuple[Array, Array]:
    side = int(np.ceil(np.sqrt(count)))
    k = np.arange(count)
    x, y = (k % side - (side - 1) / 2) * 1.2 * size, (k // side - (side - 1) / 2) * 1.2 * size
    place = np.stack([x, y, np.full(count, size / 2)], axis=1)
    return place, np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
