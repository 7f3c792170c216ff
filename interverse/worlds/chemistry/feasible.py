"""Refusals of chemistry: interventions that cannot be, each with its reason."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import explain
from interverse.sim.raster import GRID
from interverse.worlds.chemistry import graphs

_ROUNDING = 1e-6  # how far a row of chances may be from 1


def out_of_order(adjacency: NDArray[np.int64]) -> dict[int, str]:
    """Returns the rows of (R, n, n) that are no graph of this world, each with its reason."""
    backward = np.triu(np.ones(adjacency.shape[1:], dtype=bool))
    rows = np.flatnonzero((adjacency != 0)[:, backward].any(axis=1))
    return {int(row): graphs.disorder(adjacency[row]) for row in rows}


def disagreeing(name: str, differs: NDArray[np.bool_]) -> dict[int, str]:
    """Returns the rows where an edge and the whole graph, both given, say different things."""
    text = explain(f"{name} and graph/adjacency disagree", fix="Give one of them")
    return {int(row): text for row in np.flatnonzero(differs)}


def not_chances(name: str, rows: NDArray[np.float64]) -> dict[int, str]:
    """Returns the worlds whose table (R, rows, k) has a row that does not sum to 1."""
    off = np.abs(rows.sum(axis=2) - 1.0) > _ROUNDING
    return {
        int(world): explain(
            f"row {int(np.argmax(off[world]))} of {name} sums to"
            f" {rows[world].sum(axis=1)[np.argmax(off[world])]:.6g}",
            allowed="rows that sum to 1",
        )
        for world in np.flatnonzero(off.any(axis=1))
    }


def shared_cells(position: NDArray[np.int64]) -> dict[int, str]:
    """Returns the rows of (R, n, 2) where two objects share a cell, each with its reason."""
    cell = position[:, :, 0] * GRID + position[:, :, 1]
    order = np.sort(cell, axis=1)
    out = {}
    for row in np.flatnonzero((order[:, 1:] == order[:, :-1]).any(axis=1)).tolist():
        taken = cell[row].tolist()
        twice = next(c for c in taken if taken.count(c) > 1)
        one, other = [i for i, c in enumerate(taken) if c == twice][:2]
        out[row] = explain(
            f"object_{one} and object_{other} would share cell {list(divmod(twice, GRID))}",
            allowed="distinct cells",
        )
    return out
