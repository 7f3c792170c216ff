"""Grid scenes to pixels: precomputed masks stamped into cells, thousands of frames in one call.

A scene is 5 x 5 cells of 10 x 10 pixels, black where nothing lies. Cell (row, column) owns pixel
rows 10 row .. 10 row + 9 and columns 10 column .. 10 column + 9. The same code runs on NumPy arrays
and Torch tensors.
"""

from __future__ import annotations

from typing import final

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from interverse.core.arrays import Array

GRID = 5
CELL = 10
SIZE = GRID * CELL
_CHANNELS = 3
_ROW = CELL * _CHANNELS  # bytes of one pixel row of one cell

# Flat fill without anti-aliasing; every shape stays inside its own cell.
_BITMAPS = {
    "circle": "000 07c 0fe 1ff 1ff 1ff 1ff 1ff 0fe 07c",
    "triangle": "000 010 030 038 078 07c 0fc 0fe 1fe 1ff",
    "square": "3ff 3ff 3ff 3ff 3ff 3ff 3ff 3ff 3ff 3ff",
    "diamond": "000 030 078 0fc 1fe 3ff 1fe 0fc 078 030",
    "cross": "030 030 030 030 3ff 3ff 030 030 030 030",
    "pentagon": "000 030 078 0fc 1fe 3ff 1ff 1fe 0fe 0fc",
    "parallelogram": "3e0 1f0 1f0 0f8 0f8 07c 07c 03e 03e 01f",
    "scalene": "000 010 038 03c 07e 07f 0fc 0f0 1c0 100",
}  # one hexadecimal word per pixel row, leftmost pixel in the highest of ten bits

SHAPES = tuple(_BITMAPS)  # a shape's id is its place here


def _mask(words: str) -> NDArray[np.bool_]:
    rows = [[int(bit) for bit in format(int(word, 16), f"0{CELL}b")] for word in words.split()]
    return np.array(rows, dtype=bool)


MASKS: NDArray[np.bool_] = np.stack([_mask(words) for words in _BITMAPS.values()])  # (8, 10, 10)
MASKS.flags.writeable = False
# Whole pixel rows of a cell, three channels wide, as bytes to AND with a colour.
_ROW_MASKS = np.repeat(MASKS, _CHANNELS, axis=2).astype(np.uint8) * 255


def draw(positions: Array, shapes: Array, colors: Array) -> Array:
    """Returns (N, 50, 50, 3) uint8 pictures of N scenes of n objects.

    Args:
        positions: (N, n, 2) int64 cells, row and column, each in 0..4. No two objects of a scene
            may share a cell: a stamp replaces its whole cell.
        shapes: (N, n) int64 ids, places in `SHAPES`.
        colors: (N, n, 3) uint8.

    >>> image = draw(np.array([[[4, 0]]]), np.array([[2]]), np.array([[[0, 0, 7]]], np.uint8))
    >>> image.shape, int(image.astype(int).sum()), image[0, 45, 5].tolist()
    ((1, 50, 50, 3), 700, [0, 0, 7])
    """
    xp = array_namespace(positions, shapes, colors)
    where = device(colors)
    count = positions.shape[0]
    canvas = xp.zeros((count, GRID, CELL, GRID, _ROW), dtype=xp.uint8, device=where)
    world = xp.arange(count, device=where)[:, None]
    canvas[world, positions[:, :, 0], :, positions[:, :, 1]] = _tiles(shapes, colors)
    return xp.reshape(canvas, (count, SIZE, SIZE, _CHANNELS))


def _tiles(shapes: Array, colors: Array) -> Array:
    """Returns (..., 10, 30) cells full of pixels for shapes (...) and colours (..., 3)."""
    xp = array_namespace(shapes, colors)
    masks = xp.asarray(_ROW_MASKS, device=device(colors))
    rows = xp.tile(colors, (*([1] * shapes.ndim), CELL))
    return masks[shapes] & rows[..., None, :]


@final
class Canvas:
    """N pictures that remember what is on them, so that only what changed is painted again.

    `draw` gives the same bytes as the function `draw`, in a fraction of its time when few objects
    change between calls. It costs the memory of one more batch of pictures.
    """

    def __init__(self) -> None:
        self._pixels: Array | None = None
        self._scene: tuple[Array, Array, Array] = (None, None, None)

    def draw(self, positions: Array, shapes: Array, colors: Array) -> Array:
        """Returns fresh (N, 50, 50, 3) uint8 pictures; arguments as for the function `draw`."""
        xp = array_namespace(positions, shapes, colors)
        if self._pixels is None or self._scene[1].shape != shapes.shape:
            self._pixels = draw(positions, shapes, colors)
        else:
            self._repaint(positions, shapes, colors)
        self._scene = tuple(xp.asarray(a, copy=True) for a in (positions, shapes, colors))
        return xp.asarray(self._pixels, copy=True)

    def _repaint(self, positions: Array, shapes: Array, colors: Array) -> None:
        xp = array_namespace(positions, shapes, colors)
        old_positions, old_shapes, old_colors = self._scene
        cells = xp.reshape(self._pixels, (-1, GRID, CELL, GRID, _ROW))
        moved = _differ(positions, old_positions)
        if bool(xp.any(moved)):
            world, item = xp.nonzero(moved)
            left = old_positions[world, item]
            cells[world, left[:, 0], :, left[:, 1]] = 0
        world, item = xp.nonzero(moved | (shapes != old_shapes) | _differ(colors, old_colors))
        at = positions[world, item]
        cells[world, at[:, 0], :, at[:, 1]] = _tiles(shapes[world, item], colors[world, item])


def _differ(a: Array, b: Array) -> Array:
    """Returns (N, n) bool: where the last axis of two arrays differs anywhere."""
    unequal = a != b
    out = unequal[:, :, 0]
    for i in range(1, unequal.shape[2]):
        out = out | unequal[:, :, i]
    return out


def enlarge(image: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Returns a picture (rows, columns, 3) with every pixel blown up to a square, for people."""
    return np.repeat(np.repeat(image, factor, axis=0), factor, axis=1)
