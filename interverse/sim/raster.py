"""Grid scenes to pixels: precomputed masks stamped into cells, thousands of frames in one call.

A scene is 5 x 5 cells of 10 x 10 pixels, black where nothing lies. Cell (row, column) owns pixel
rows 10 row .. 10 row + 9 and columns 10 column .. 10 column + 9. The same code runs on NumPy arrays
and Torch tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, device, namespace

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
    xp = namespace(positions, shapes, colors)
    where = device(colors)
    count = positions.shape[0]
    canvas = xp.zeros((count, GRID, CELL, GRID, _ROW), dtype=xp.uint8, device=where)
    world = xp.arange(count, device=where)[:, None]
    canvas[world, positions[:, :, 0], :, positions[:, :, 1]] = _tiles(shapes, colors)
    return xp.reshape(canvas, (count, SIZE, SIZE, _CHANNELS))


def _tiles(shapes: Array, colors: Array) -> Array:
    """Returns (..., 10, 30) cells full of pixels for shapes (...) and colours (..., 3)."""
    xp = namespace(shapes, colors)
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
        xp = namespace(positions, shapes, colors)
        if self._pixels is None or self._scene[1].shape != shapes.shape:
            self._pixels = draw(positions, shapes, colors)
        else:
            self._repaint(positions, shapes, colors)
        self._scene = tuple(xp.asarray(a, copy=True) for a in (positions, shapes, colors))
        return xp.asarray(self._pixels, copy=True)

    def _repaint(self, positions: Array, shapes: Array, colors: Array) -> None:
        xp = namespace(positions, shapes, colors)
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


# --- pictures for people: the same scene, larger, with smooth edges ------------------------------

PEOPLE_SIZE = 250  # pixels along an edge
_PEOPLE_CELL, _FINER = PEOPLE_SIZE // GRID, 4  # pixels of a cell, samples along a pixel's edge
_GROUND, _LINE_COLOR, _ARROW_COLOR = 0, 38, 205
_ARROW_WIDTH, _HEAD = 2.2, 11.0  # pixels
# Corners (right, down) of the convex parts of each shape, in a cell from 0 to 1; a circle has none.
_CORNERS: dict[str, list[list[tuple[float, float]]]] = {
    "circle": [],
    "triangle": [[(0.5, 0.08), (0.97, 0.98), (0.03, 0.98)]],
    "square": [[(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]],
    "diamond": [[(0.5, 0.05), (0.97, 0.5), (0.5, 0.95), (0.03, 0.5)]],
    "cross": [
        [(0.38, 0.02), (0.62, 0.02), (0.62, 0.98), (0.38, 0.98)],
        [(0.02, 0.38), (0.98, 0.38), (0.98, 0.62), (0.02, 0.62)],
    ],
    "pentagon": [[(0.5, 0.06), (0.97, 0.42), (0.79, 0.97), (0.21, 0.97), (0.03, 0.42)]],
    "parallelogram": [[(0.02, 0.02), (0.5, 0.02), (0.98, 0.98), (0.5, 0.98)]],
    "scalene": [[(0.45, 0.05), (0.98, 0.5), (0.1, 0.98)]],
}
# 3 x 5 pixels a digit: a number from 0 to 7 for each row, its bits the pixels.
_DIGITS = ("75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717")
FloatColor = NDArray[np.float64]


def portrait(
    positions: NDArray[np.int64],
    shapes: NDArray[np.int64],
    colors: NDArray[np.uint8],
    *,
    numbers: NDArray[np.int64] | None = None,
    arrows: Iterable[tuple[int, int]] = (),
) -> NDArray[np.uint8]:
    """Returns one scene for people, (250, 250, 3): smooth edges, and what cannot be seen in it.

    Args:
        positions: (n, 2) cells.
        shapes: (n,) ids.
        colors: (n, 3) bytes.
        numbers: (n,) written on the objects, such as weights.
        arrows: pairs of objects, from cause to effect.
    """
    canvas = np.full((PEOPLE_SIZE, PEOPLE_SIZE, 3), float(_GROUND))
    canvas[_PEOPLE_CELL::_PEOPLE_CELL] = _LINE_COLOR
    canvas[:, _PEOPLE_CELL::_PEOPLE_CELL] = _LINE_COLOR
    for place, (cell, shape, color) in enumerate(zip(positions, shapes, colors, strict=True)):
        top, left = (int(x) * _PEOPLE_CELL for x in cell)
        part = canvas[top : top + _PEOPLE_CELL, left : left + _PEOPLE_CELL]
        _blend(part, _smooth_mask(int(shape)), np.asarray(color, dtype=np.float64))
        if numbers is not None:
            dark = float(np.asarray(color, dtype=np.float64) @ (0.3, 0.59, 0.11)) > 120.0
            _write(part, str(int(numbers[place])), 0.0 if dark else 255.0)
    middles = (np.asarray(positions, dtype=np.float64) + 0.5) * _PEOPLE_CELL
    for cause, effect in arrows:
        _blend(canvas, _arrow(middles[cause], middles[effect]), np.full(3, _ARROW_COLOR))
    return np.round(canvas).astype(np.uint8)


def _blend(part: NDArray[np.float64], share: NDArray[np.float64], color: FloatColor) -> None:
    part += share[..., None] * (color - part)


@functools.cache
def _smooth_mask(shape: int) -> NDArray[np.float64]:
    """Returns how much of each pixel of a cell a shape covers."""
    edge = _PEOPLE_CELL * _FINER
    at = (np.arange(edge) + 0.5) / edge
    right, down = np.meshgrid(at, at)
    corners = _CORNERS[SHAPES[shape]]
    inside = np.zeros((edge, edge), dtype=bool)
    if not corners:
        inside = (right - 0.5) ** 2 + (down - 0.5) ** 2 <= 0.45**2
    for part in corners:
        held = np.ones_like(inside)
        for (x1, y1), (x2, y2) in zip(part, part[1:] + part[:1], strict=True):
            held &= (x2 - x1) * (down - y1) - (y2 - y1) * (right - x1) >= 0
        inside |= held
    fine = inside.reshape(_PEOPLE_CELL, _FINER, _PEOPLE_CELL, _FINER)
    return np.asarray(fine.mean(axis=(1, 3)), dtype=np.float64)


def _write(part: NDArray[np.float64], text: str, ink: float) -> None:
    """Writes a number in the middle of a cell."""
    times, columns = 3, 4 * len(text) - 1
    top, left = (_PEOPLE_CELL - 5 * times) // 2 + 3, (_PEOPLE_CELL - columns * times) // 2
    for place, digit in enumerate(text):
        for row, word in enumerate(_DIGITS[int(digit)]):
            for column, bit in enumerate(format(int(word), "03b")):
                if bit == "1":
                    y, x = top + row * times, left + (4 * place + column) * times
                    part[y : y + times, x : x + times] = ink


def _arrow(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns how much of each pixel an arrow covers, from one object's rim to another's."""
    length = float(np.linalg.norm(end - start))
    along = (end - start) / length
    across = np.array([-along[1], along[0]])
    at = np.arange(PEOPLE_SIZE) + 0.5
    places = np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1) - start
    far, side = places @ along, np.abs(places @ across)
    rim = 0.42 * _PEOPLE_CELL
    shaft = np.minimum(_ARROW_WIDTH / 2 - side, np.minimum(far - rim, length - rim - _HEAD - far))
    head = np.minimum((length - rim - far) * 0.5 - side, far - (length - rim - _HEAD))
    return np.clip(np.maximum(shaft, head) + 0.5, 0.0, 1.0)
