"""The grid that blocks and chemistry share: distinct cells, and worlds that are arrays by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, converter, namespace
from interverse.core.rng import Noise
from interverse.scm import Variable, refuse_bindings
from interverse.sim.raster import GRID
from interverse.worlds.world import Index, Refusals, State, World, WorldOptions

CELLS = GRID * GRID
_STEPS = 100
Place = tuple[str, tuple[int, ...]]  # a state array, and the index in one world's row of it
Reasons = dict[int, str]  # row -> why it cannot be


class GridWorld(World):
    """N scenes of n objects on the grid, whose state is arrays with a world axis, by name.

    A world gives `_start`, the rows of new episodes, and `_set`, which lays values into rows.
    """

    _state: State
    _where: Mapping[str, Place]  # of every variable that can be set

    def __init__(
        self, num_worlds: int, options: WorldOptions, variables: Mapping[str, Variable]
    ) -> None:
        self.num_worlds, self.options, self.variables = num_worlds, options, variables
        refuse_bindings(variables.values())
        self._array = converter(options.device)
        self.max_steps = _STEPS if options.max_steps is None else options.max_steps

    @abstractmethod
    def _start(self, noise: Noise, given: Mapping[str, Array]) -> tuple[State, Reasons]:
        """Returns the rows of new episodes, and why some cannot hold what is given."""

    @abstractmethod
    def _set(self, rows: State, values: Mapping[str, Array]) -> Reasons:
        """Lays values into rows, with what follows at once; returns why some cannot hold them."""

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Starts episodes; where that is refused, as if nothing had been given."""
        rows, refused = self._start(noise, given)
        if refused:
            bad = np.array(sorted(refused))
            put(rows, self._start(noise.take(bad), {})[0], self._array(bad))
        self._write(rows, worlds)
        return {int(worlds[row]): reason for row, reason in refused.items()}

    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables and what follows at once; worlds that cannot be so stay as they were."""
        here = self._array(worlds)
        rows = {key: self._state[key][here] for key in self._moved_by(values)}
        refused = self._set(rows, values)
        keep = np.array([row not in refused for row in range(len(worlds))], dtype=bool)
        kept = self._array(keep)
        self._write({key: array[kept] for key, array in rows.items()}, worlds[keep])
        return {int(worlds[row]): reason for row, reason in refused.items()}

    def _moved_by(self, values: Mapping[str, Array]) -> Collection[str]:
        """Returns the state arrays that an intervention may change."""
        return self._state

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape), as a fresh array."""
        key, index = self._where[name]
        return fresh(self._state[key][(slice(None), *index)])

    def save(self, worlds: Index) -> State:
        """Returns copies of these worlds' rows."""
        here = self._array(worlds)
        return {name: array[here] for name, array in self._state.items()}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        self._write({name: self._array(state[name]) for name in self._state}, worlds)

    def _write(self, rows: State, worlds: Index) -> None:
        put(self._state, rows, self._array(worlds))

    def _noise(self, noise: Noise) -> Noise:
        """Returns noise that draws arrays of the device's kind."""
        return Noise(*(self._array(part) for part in (noise.seeds, noise.episodes, noise.steps)))

    def _repeated(self, row: NDArray[Any], count: int) -> Array:
        """Returns one world's row for so many."""
        return self._array(np.array(np.broadcast_to(row, (count, *row.shape))))


def put(into: State, rows: Mapping[str, Array], where: Any) -> None:
    """Writes rows into arrays of the same names."""
    for name, array in rows.items():
        into[name][where] = array


def fresh(array: Array) -> Array:
    """Returns a copy, of the same kind."""
    return namespace(array).asarray(array, copy=True)


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
    xp = namespace(uniforms)
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
