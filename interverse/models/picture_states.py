"""Object values read off pictures of a grid, learned from actions alone.

An action paints one object with a given value, so the look of the object's own cell is settled by
the action while all other cells vary: this tells which cell is which object, and what each value
looks like there. True states are never shown. Objects must keep their cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_GRID = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureReader:
    """Where each object is, and how its values look.

    Attributes:
        cells: (n,) the cell of each object.
        looks: (n, values, 3) the mean colour of that cell by value.
    """

    cells: Ints
    looks: NDArray[np.float64]

    @classmethod
    def fitted(
        cls, after: NDArray[np.uint8], acted: Ints, paint: Ints, *, objects: int, values: int
    ) -> PictureReader:
        """Returns a reader.

        Args:
            after: (N, H, W, 3) pictures after the actions.
            acted: (N,) the painted object.
            paint: (N,) its new value.
            objects: how many there are.
            values: how many values an object can have.
        """
        shown = _cell_colours(after)
        cells, looks = np.zeros(objects, dtype=np.int64), np.zeros((objects, values, 3))
        for i in range(objects):
            groups = [shown[(acted == i) & (paint == v)] for v in range(values)]
            means = np.stack([group.mean(0) for group in groups])  # (values, cells, 3)
            inside = np.mean([group.var(0).sum(-1) for group in groups], axis=0)
            between = means.var(0).sum(-1)
            cells[i] = int(np.argmax(between / (inside + 1e-3)))
            looks[i] = means[:, cells[i]]
        return cls(cells=cells, looks=looks)

    def read(self, images: NDArray[np.uint8]) -> Ints:
        """Returns (N, n) values: those whose look is nearest."""
        own = _cell_colours(images)[:, self.cells, None]  # (N, n, 1, 3)
        return np.asarray(np.square(own - self.looks).sum(-1).argmin(-1), dtype=np.int64)


def _cell_colours(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Returns (N, cells, 3) mean colours."""
    rows, height, width, _ = images.shape
    split = images.reshape(rows, _GRID, height // _GRID, _GRID, width // _GRID, 3)
    return split.mean((2, 4), dtype=np.float64).reshape(rows, _GRID**2, 3)
