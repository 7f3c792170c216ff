"""The grid that blocks and chemistry share: distinct cells, and worlds that are arrays by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from interverse.core.arrays import Array, converter
from interverse.core.rng import Noise
from interverse.sim.raster import GRID
from interverse.worlds.world import Index, State, World, WorldOptions

CELLS = GRID * GRID
_STEPS = 100


class GridWorld(World):
    """N scenes of n objects on the grid, whose state is arrays with a world axis, by name."""

    _state: State

    def __init__(self, num_worlds: int, options: WorldOptions) -> None:
        self.num_worlds, self.options = num_worlds, options
        self._array = converter(options.device)
        self.layout = MappingProxyType({})
        self.max_steps = _STEPS if options.max_steps is None else options.max_steps

    def _noise(self, noise: Noise) -> Noise:
        """Returns noise that draws arrays of the device's kind."""
        return Noise(*(self._array(part) for part in (noise.seeds, noise.episodes, noise.steps)))

    def save(self, worlds: Index) -> State:
        """Returns copies of these worlds' rows."""
        here = self._array(worlds)
        return {name: array[here] for name, array in self._state.items()}


def put(into: State, rows: Mapping[str, Array], where: Any) -> None:
    """Writes rows into arrays of the same names."""
    for name, array in rows.items():
        into[name][where] = array


def fresh(array: Array) -> Array:
    """Returns a copy, of the same kind."""
    return array_namespace(array).asarray(array, copy=True)


def clashes(cells: NDArray[np.int64]) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    """Yields each row of (R, n, 2) where two objects share a cell, these two, and the cell."""
    flat = cells[:, :, 0] * GRID + cells[:, :, 1]
    order = np.sort(flat, axis=1)
    for row in np.flatnonzero((order[:, 1:] == order[:, :-1]).any(axis=1)).tolist():
        places = flat[row].tolist()
        second = next(i for i, place in enumerate(places) if place in places[:i])
        yield row, places.index(places[second]), second, divmod(places[second], GRID)


def place(uniforms: Array) -> Array:
    """Returns (N, n, 2) distinct cells for (N, n) numbers in [0, 1).

    Block i takes one of the 25 - i cells that earlier blocks left, each equally likely, so every
    ordered choice of distinct cells is equally likely and no draw is rejected.
    """
    xp = array_namespace(uniforms)
    cells: list[Array] = []
    for i in range(uniforms.shape[1]):
        cell = xp.astype(xp.floor(uniforms[:, i] * (CELLS - i)), xp.int64)
        if cells:
            # Counting free cells only: each taken cell at or before it moves the choice up by one.
            taken = xp.sort(xp.stack(cells, axis=1), axis=1)
            for j in range(i):
                cell = cell + xp.astype(cell >= taken[:, j], xp.int64)
        cells.append(cell)
    flat = xp.stack(cells, axis=1)
    return xp.stack([flat // GRID, flat % GRID], axis=-1)
