"""The grid that blocks and chemistry share: its cells, and distinct places on it."""

from __future__ import annotations

from array_api_compat import array_namespace

from interverse.core.arrays import Array
from interverse.sim.raster import GRID

CELLS = GRID * GRID


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
