"""Rearrange cubes into a heap."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import numpy as np

from interverse.core.rng import Noise
from interverse.scm import Box, Integers, Space, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.goals import draw
from interverse.worlds.trifinger.robot import HEIGHT, RAISED
from interverse.worlds.trifinger.scene import ArenaScene
from interverse.worlds.trifinger.shapes import Construction
from interverse.worlds.trifinger.tasks.building import (
    MASS,
    building_edges,
    changed_generators,
    fill,
    follow,
    piece_variables,
    scatter,
    scene_of,
)
from interverse.worlds.trifinger.tasks.heap import Heaps
from interverse.worlds.trifinger.tasks.task import Edge, Task
from interverse.worlds.trifinger.variables import declare

Array = Any
_COUNT, _SIZE = "general/count", "general/size"
_CAUSES = (_COUNT, _SIZE)
_MOST = 9
_DEFAULT = (5, 0.05)


@final
class General(Task):
    """Cubes at random places, goals where dropped cubes came to rest."""

    name = "general"
    generators = (*_CAUSES, MASS)
    start = RAISED
    draws = True
    varies = True

    def __init__(self) -> None:
        super().__init__()
        self._heaps: Heaps | None = None

    def scene(self) -> ArenaScene:
        """Returns the default heap; the blocks stand in it until an episode draws their places."""
        place, turn = _default_heap()
        return scene_of(_shape(place, _DEFAULT[1], place, np.zeros(len(place))), turn)

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables, and the number and size of the cubes."""
        return [
            *piece_variables(scene),
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

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that number and size make all pieces."""
        return building_edges(scene, _CAUSES)

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Drops a new heap and scatters the blocks where number or size is given."""
        follow(rows, given)
        if not changed_generators(given, _CAUSES):
            return {}
        refused = {}
        robot = self.capsules, np.array(RAISED), np.array(HEIGHT)
        for row in range(len(rows[_COUNT])):
            count, size = int(rows[_COUNT][row]), float(rows[_SIZE][row])
            if count > rows["block/used"].shape[1]:
                place = turn = np.zeros((count, 4))  # it will be refused: spare the drop
            else:
                place, turn = self._heap(count, size, noise, row)
            starts, yaws = scatter(
                noise.generator("general/start", row), np.full((count, 3), size), robot
            )
            reason = fill(rows, row, _shape(place[:, :3], size, starts, yaws), turn)
            if reason is not None:
                refused[row] = reason
        return refused

    def _heap(self, count: int, size: float, noise: Noise, row: int) -> tuple[Array, Array]:
        if (count, size) == _DEFAULT:
            return _default_heap()
        if self._heaps is None:
            self._heaps = Heaps(_MOST)
        return self._heaps.rest(count, size, noise.generator("general/heap", row))

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns number, size and mass of the cubes."""
        return {name: draw(name, spaces[name], noise) for name in self.generators}


@functools.cache  # a second of simulation; nobody may change what comes back
def _default_heap() -> tuple[Array, Array]:
    """Returns where the cubes of the fixed drops come to rest."""
    return Heaps(_DEFAULT[0]).rest(*_DEFAULT, None)


def _shape(goals: Array, size: float, starts: Array, yaws: Array) -> Construction:
    count = len(goals)
    return Construction(
        sizes=np.full((count, 3), size),
        goals=goals,
        wanted=np.ones(count, dtype=bool),
        starts=starts,
        yaws=yaws,
    )
