"""Heaps of cubes dropped one after another: the goals of general.

The drop is simulated in a world of its own under default physics, so a heap follows from the number
and size of its cubes and from the noise, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from interverse.core.arrays import from_rotation_vector
from interverse.scm import table
from interverse.scm.store import Store
from interverse.worlds.trifinger.feasibility import GOAL_FLOOR, GOAL_SHARE, goal_place
from interverse.worlds.trifinger.objects import block_variables
from interverse.worlds.trifinger.physics import PHYSICAL, Physics
from interverse.worlds.trifinger.robot import RAISED, SUBSTEP
from interverse.worlds.trifinger.scene import ArenaScene, Block, parking_position
from interverse.worlds.trifinger.shapes import DROP_SECONDS, Drop, drops
from interverse.worlds.trifinger.store import slots_of, starting_rows
from interverse.worlds.trifinger.variables import arena_variables, robot_variables

Array = Any
_ONE = np.arange(1)
_TRIES = 10
_REST_SECONDS = 1.6  # after the last drop


@final
class Heaps:
    """Drops cubes, up to `most` at a time."""

    def __init__(self, most: int) -> None:
        blocks = tuple(Block(position=parking_position(i)) for i in range(most))
        scene = ArenaScene(blocks=blocks)
        self._physics = Physics(scene, num_worlds=1, device="cpu", threads=1)
        variables = [*arena_variables(scene), *robot_variables(scene)]
        variables += [v for i in range(most) for v in block_variables(scene, i)]
        start = starting_rows(scene)
        slots = slots_of((v.name for v in variables), start)
        self._store = Store(table(*variables), num_worlds=1, start=start, slots=slots)
        self._store.follow(self._physics.engine.put, PHYSICAL)
        self._start = self._store.take(_ONE)

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
        store, physics = self._store, self._physics
        physics.engine.reset(_ONE)
        for key, start in self._start.items():
            store.rows[key][:] = start
        store.touch(store.rows)
        rows = store.take(_ONE)
        rows["block/size"][:] = size
        rows["joint_positions"][:] = RAISED
        rows["block/used"][:] = False
        rows["block/position"][:] = 0.0
        store.commit(rows, _ONE)
        hold = rows["joint_positions"].copy()
        for k, fall in enumerate(falls):
            rows = store.take(_ONE)
            rows["block/used"][0, k] = True
            rows["block/position"][0, k] = fall.position + (0.0, 0.0, size / 2)  # noqa: RUF005
            rows["block/orientation"][0, k] = from_rotation_vector(fall.rotation)
            store.commit(rows, _ONE)
            # every block anew, as when the heaps of the published scenes were first made
            physics.engine.put(store.edits(rows, set(store.slots), ("state",)), _ONE)
            seconds = _REST_SECONDS if k == len(falls) - 1 else DROP_SECONDS
            physics.step(store, hold, _ONE, round(seconds / SUBSTEP))
        rested, count = store.rows, len(falls)
        return rested["block/position"][0, :count].copy(), rested["block/orientation"][0, :count]


def _nearer(falls: Sequence[Drop], share: float) -> list[Drop]:
    near = np.array([share, share, 1.0])
    return [Drop(position=fall.position * near, rotation=fall.rotation) for fall in falls]


def _row(count: int, size: float) -> tuple[Array, Array]:
    side = int(np.ceil(np.sqrt(count)))
    k = np.arange(count)
    x, y = (k % side - (side - 1) / 2) * 1.2 * size, (k // side - (side - 1) / 2) * 1.2 * size
    place = np.stack([x, y, np.full(count, size / 2)], axis=1)
    return place, np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
