"""General: rearrange cubes into a heap.

Heaps are dropped in a world of their own under default physics, so a heap follows from the number
and size of its cubes and from the noise, and from nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, from_rotation_vector
from interverse.core.rng import Noise
from interverse.scm import Box, Integers, Space, Variable, table
from interverse.scm.store import Rows, Store
from interverse.worlds.trifinger.objects import block_variables
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.physics import PHYSICAL, Physics
from interverse.worlds.trifinger.robot import HEIGHT, RAISED, SUBSTEP
from interverse.worlds.trifinger.scene import ArenaScene, Block, parking_position
from interverse.worlds.trifinger.store import (
    GOAL_FLOOR,
    GOAL_SHARE,
    goal_place,
    slots_of,
    starting_rows,
)
from interverse.worlds.trifinger.tasks.building import (
    DROP_SECONDS,
    MASS,
    Built,
    Construction,
    Floats,
    drops,
    scatter,
    scene_of,
)
from interverse.worlds.trifinger.variables import arena_variables, declare, robot_variables

_ONE = np.arange(1)
_TRIES = 10
_REST_SECONDS = 1.6  # after the last drop


@final
class Heaps:
    """Drops cubes, up to `most` at a time."""

    def __init__(self, most: int) -> None:
        blocks = tuple(Block(position=parking_position(i)) for i in range(most))
        scene = ArenaScene(blocks=blocks)
        self._physics = Physics(scene, num_worlds=1, options=TriFingerOptions(threads=1))
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
            falls = drops(count, rng)
            if rng is None:
                falls[:, 0, :2] *= 0.85**attempt
            place, turn = self._drop(falls, size)
            share, lowest = goal_place(place, turn, edges)
            if np.all(share >= GOAL_SHARE) and np.all(lowest >= GOAL_FLOOR):
                break
        else:  # a row on the floor, which always fits
            side, k = int(np.ceil(np.sqrt(count))), np.arange(count)
            x, y = ((part - (side - 1) / 2) * 1.2 * size for part in (k % side, k // side))
            place = np.stack([x, y, np.full(count, size / 2)], axis=1)
            turn = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
        return place, turn

    def _drop(self, falls: Floats, size: float) -> tuple[Array, Array]:
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
        for k, (place, rotation) in enumerate(falls):
            rows = store.take(_ONE)
            rows["block/used"][0, k] = True
            rows["block/position"][0, k] = place + (0.0, 0.0, size / 2)  # noqa: RUF005
            rows["block/orientation"][0, k] = from_rotation_vector(rotation)
            store.commit(rows, _ONE)
            # every block anew, as when the heaps of the published scenes were first made
            physics.engine.put(store.edits(rows, set(store.slots), ("state",)), _ONE)
            seconds = _REST_SECONDS if k == len(falls) - 1 else DROP_SECONDS
            physics.step(store, hold, _ONE, round(seconds / SUBSTEP))
        rested, count = store.rows, len(falls)
        return rested["block/position"][0, :count].copy(), rested["block/orientation"][0, :count]


_COUNT, _SIZE = "general/count", "general/size"
_MOST = 9
_DEFAULT = (5, 0.05)


@final
class General(Built):
    """Cubes at random places, goals where dropped cubes came to rest."""

    name = "general"
    causes = (_COUNT, _SIZE)
    generators = (_COUNT, _SIZE, MASS)
    start = RAISED
    draws = True

    def __init__(self) -> None:
        super().__init__()
        self._heaps: Heaps | None = None

    def scene(self) -> ArenaScene:
        """Returns the default heap; the blocks stand in it until an episode draws their places."""
        place, turn = _default_heap()
        count = len(place)
        sizes, wanted = np.full((count, 3), _DEFAULT[1]), np.ones(count, dtype=bool)
        return scene_of(Construction(sizes, place, wanted, place, turns=turn))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables, and the number and size of the cubes."""
        return [
            *super().variables(scene),
            declare(
                _COUNT,
                "goal",
                _DEFAULT[0],
                Integers(1, _MOST),
                spaces=(Integers(1, 5), Integers(6, _MOST)),
                doc="How many cubes there are.",
            ),
            declare(
                _SIZE,
                "goal",
                _DEFAULT[1],
                Box(0.03, 0.08),
                spaces=(Box(0.05, 0.07), Box(0.04, 0.05, open_high=True)),
                unit="m",
                doc="Edge of the cubes.",
            ),
        ]

    def build(self, rows: Rows, row: int, noise: Noise) -> Construction:
        """Returns a new heap, and scattered blocks."""
        count, size = int(rows[_COUNT][row]), float(rows[_SIZE][row])
        sizes, wanted = np.full((count, 3), size), np.ones(count, dtype=bool)
        if count > rows["block/used"].shape[1]:  # it will be refused: spare the drop
            return Construction(sizes, sizes, wanted, sizes)
        tag = self.scene_tag((count, size), _DEFAULT)
        if (count, size) == _DEFAULT:
            place, turn = _default_heap()
        else:
            self._heaps = self._heaps or Heaps(_MOST)
            place, turn = self._heaps.rest(count, size, noise.generator(f"general/heap{tag}", row))
        robot = self.capsules, np.array(RAISED), np.array(HEIGHT)
        starts, yaws = scatter(noise.generator(f"general/start{tag}", row), sizes, robot)
        return Construction(sizes, place, wanted, starts, yaws, turn)

    def most_blocks(self, spaces: Mapping[str, Space]) -> int:
        """Returns the greatest number of cubes."""
        return int(spaces[_COUNT].high)

    def pieces(self, rows: Rows, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the number of cubes, twice."""
        return rows[_COUNT], rows[_COUNT]


@functools.cache  # a second of simulation; nobody may change what comes back
def _default_heap() -> tuple[Array, Array]:
    """Returns where the cubes of the fixed drops come to rest."""
    return Heaps(_DEFAULT[0]).rest(*_DEFAULT, None)
