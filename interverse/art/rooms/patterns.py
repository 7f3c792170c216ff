"""Patterns of materials, and what lies on top of them.

A pattern is a field of values 0 to 1 that runs through the texture's colours, or a picture in
colours. Row 0 is the top. Noise repeats at the borders of its square and is drawn once a process
for each description.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.art.rooms.item import RoomTexture
from interverse.art.textures import bricks, planks, tiles

Image = NDArray[np.floating[Any]]
Field = NDArray[np.float32]
"""Values 0 to 1, (row, column)."""

# ------------------------------------------------------------------------------------------ noise


@functools.lru_cache(maxsize=256)
def smooth(size: int, rows: int, columns: int, seed: int) -> Field:
    """Returns value noise of so many cells down and across, smoothly joined."""
    lattice = np.random.default_rng([seed, rows, columns]).random((rows, columns), np.float32)
    low, high, share = _cells(size, rows)
    lines = lattice[low] * (1 - share)[:, None] + lattice[high] * share[:, None]
    low, high, share = _cells(size, columns)
    return lines[:, low] * (1 - share) + lines[:, high] * share


def _cells(size: int, count: int) -> tuple[np.ndarray, np.ndarray, Field]:
    place = np.arange(size, dtype=np.float32) * np.float32(count / size)
    low = place.astype(int)
    share = place - low
    return low % count, (low + 1) % count, share * share * (3 - 2 * share)


@functools.lru_cache(maxsize=256)
def fractal(size: int, cells: int, seed: int, octaves: int = 4, stretch: int = 1) -> Field:
    """Returns noise of several sizes, each half as large and half as strong, spread over 0 to 1.

    So many cells go across in the coarsest; `stretch` is how many times longer than high one is.
    """
    total = np.zeros((size, size), np.float32)
    for octave in range(octaves):
        rows = min(cells * 2**octave, size)
        columns = max(rows // stretch, 1)
        total += smooth(size, rows, columns, seed + 101 * octave) / 2**octave
    total -= total.min()
    return total / max(float(total.max()), 1e-6)


@functools.lru_cache(maxsize=128)
def grain(size: int, seed: int) -> Field:
    """Returns independent values, one a pixel."""
    return np.random.default_rng([seed, size]).random((size, size), np.float32)


@functools.lru_cache(maxsize=16)
def axes(size: int) -> tuple[Field, Field]:
    """Returns x to the right and y upwards of each pixel's centre, 0 to 1."""
    line = ((np.arange(size) + 0.5) / size).astype(np.float32)
    return np.broadcast_to(line, (size, size)), np.broadcast_to(line[::-1, None], (size, size))


class Canvas:
    """A square of pixels to be painted as a texture says."""

    def __init__(self, size: int, texture: RoomTexture) -> None:
        self.size, self.seed, self.scale = size, texture.seed, texture.scale
        self.texture, self.colours = texture, texture.colours
        self.x, self.y = axes(size)

    @property
    def grain(self) -> Field:
        """Returns independent values, one a pixel."""
        return grain(self.size, self.seed)

    def fractal(self, cells: int, octaves: int = 4, stretch: int = 1, other: int = 0) -> Field:
        """Returns noise of the texture's seed, or of one that is so much higher."""
        return fractal(self.size, cells, self.seed + other, octaves, stretch)

    def smooth(self, rows: int, columns: int, other: int = 0) -> Field:
        """Returns noise of one size."""
        return smooth(self.size, rows, columns, self.seed + other)

    def count(self, times: int, least: int = 1) -> int:
        """Returns how often something is repeated at the texture's scale."""
        return max(int(times * self.scale), least)

    def staggered(self, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns places in cells, -0.5 to 0.5, every second row of them shifted by a half."""
        row = (self.y * count).astype(int)
        return (self.x * count + 0.5 * (row % 2)) % 1 - 0.5, (self.y * count) % 1 - 0.5

    def steps(self, field: NDArray[Any]) -> NDArray[Any]:
        """Returns the field in as many even steps as there are colours."""
        count = len(self.colours)
        return np.floor(field * count) / max(count - 1, 1)

    def ramp(self, field: NDArray[np.floating[Any]]) -> Image:
        """Returns the texture's colours, run through evenly as the field goes from 0 to 1."""
        table = np.asarray(self.colours, dtype=np.float32)
        place = np.clip(field, 0, 1) * (len(table) - 1)
        low = np.minimum(place.astype(int), len(table) - 2) if len(table) > 1 else place.astype(int)
        share = (place - low)[..., None]
        return table[low] * (1 - share) + table[np.minimum(low + 1, len(table) - 1)] * share


Paint = Callable[[Canvas], Image]


# ------------------------------------------------------------------------------ materials of things


def _checks(c: Canvas) -> Image:
    n = c.count(4)
    return 0.45 * ((c.x * n) % 1 > 0.5) + 0.45 * ((c.y * n) % 1 > 0.5) + 0.1 * grain(c.size, 1)


def _dots(c: Canvas) -> Image:
    u, v = c.staggered(c.count(6))
    return np.clip(8 * (0.32 - np.sqrt(u * u + v * v)), 0, 1)


def _floral(c: Canvas) -> Image:
    u, v = c.staggered(c.count(3))
    radius, turn = np.sqrt(u * u + v * v), np.arctan2(v, u)
    petals = 0.22 + 0.12 * np.cos(5 * turn + c.seed)
    return np.where(radius < 0.09, 0.5, np.where(radius < petals, 1.0, 0.0)).astype(np.float32)


def _weave(c: Canvas) -> Image:
    n = int(16 * c.scale)
    across, along = np.abs(np.sin(np.pi * n * c.x)), np.abs(np.sin(np.pi * n * c.y))
    over = ((c.x * n).astype(int) + (c.y * n).astype(int)) % 2
    return 0.6 * np.where(over == 1, across, along) + 0.25 * c.fractal(4, 3) + 0.15 * c.grain


def _wicker(c: Canvas) -> Image:
    n = int(8 * c.scale)
    shift = (c.y * n).astype(int) % 2
    strand = np.sin(np.pi * ((c.x * n / 2 + 0.5 * shift) % 1))
    rows = np.sin(np.pi * ((c.y * n) % 1))
    return np.clip(0.15 + 0.75 * strand * rows + 0.2 * c.grain * rows, 0, 1)


def _wood(c: Canvas) -> Image:
    n = c.count(4, 2)
    bend = c.fractal(n, 3, 4)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (n * c.y * 2 + 2.2 * bend))
    return 0.5 * rings + 0.25 * c.fractal(32, 2, 12, 7) + 0.25 * bend


PATTERNS: dict[str, Paint] = {
    # Painted rings, the colours one above the other, with a hand's unevenness.
    "bands": lambda c: c.steps((c.y * c.scale + 0.02 * (c.fractal(6, 2) - 0.5)) % 1),
    "brushed": lambda c: (
        0.3 * (c.smooth(c.size, 3) + c.smooth(c.size // 2, 6, 1)) + 0.4 * c.fractal(3, 2)
    ),
    "cardboard": lambda c: (
        0.25 * (0.5 + 0.5 * np.sin(2 * np.pi * 32 * c.x)) + 0.45 * c.fractal(4) + 0.3 * c.grain
    ),
    "checks": _checks,
    "columns": lambda c: ((c.x * c.count(6)) % 1 > 0.5) * 0.9 + 0.1 * c.fractal(8, 2),
    "dots": _dots,
    "floral": _floral,
    "iron": lambda c: 0.5 * c.grain + 0.5 * c.fractal(8),
    "leather": lambda c: (
        0.6 * np.abs(2 * c.smooth(c.size // 5, c.size // 5) - 1) + 0.4 * c.fractal(4, 3)
    ),
    "marble": lambda c: (
        1 - np.abs(np.sin(np.pi * (3 * c.scale * c.fractal(3, 5) + 2 * c.x))) ** 0.35
    ),
    "plain": lambda c: c.fractal(4, 3),
    "speckle": lambda c: np.where(
        c.smooth(c.size // 4, c.size // 4) > 0.78, 1.0, 0.25 * c.fractal(6, 3)
    ).astype(np.float32),
    "stripes": lambda c: ((c.y * c.count(6)) % 1 > 0.5) * 0.9 + 0.1 * c.fractal(8, 2),
    # The colours side by side, for meshes that pick one each.
    "swatch": lambda c: c.steps(c.x).astype(np.float32),
    "weave": _weave,
    "wicker": _wicker,
    "wood": _wood,
}

# ----------------------------------------------------------------------------- materials of rooms


def _rng(c: Canvas) -> np.random.Generator:
    return np.random.default_rng([c.seed, 5])


def _bricks(c: Canvas) -> Image:
    laid = bricks(c.size, c.count(10, 2), c.count(4))
    tone = _rng(c).uniform(0, 1, int(laid.index.max()) + 1)[laid.index]
    image = c.ramp(0.6 * tone + 0.4 * c.fractal(24, 3))
    mortar = np.clip((laid.edge * c.size - 1.0) / 1.5, 0, 1)[..., None]
    grey = np.array([0.70, 0.67, 0.62], np.float32) * (0.8 + 0.2 * grain(c.size, 2)[..., None])
    return image * mortar + grey * (1 - mortar)


def _foliage(c: Canvas) -> Image:
    vein = np.abs((c.x * 2) % 1 - 0.5) < 0.03
    side = 0.5 + 0.5 * np.sin(2 * np.pi * (8 * c.y + 3 * np.abs(c.x - 0.5)))
    return np.where(vein, 1.0, 0.3 * side + 0.7 * c.fractal(6, 3))


def _planks(c: Canvas) -> Image:
    """Floor boards: each of its own tone and grain, with dark joints."""
    rng = _rng(c)
    laid = planks(rng, c.size, c.count(8, 2), 1)
    count = int(laid.index.max()) + 1
    tone, shift = rng.uniform(0.15, 0.85, count), rng.uniform(0, 1, count)
    fibre = c.fractal(24, 3, 10)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (2 * laid.down + shift[laid.index]) + 5 * fibre)
    image = c.ramp(0.55 * tone[laid.index] + 0.25 * fibre + 0.2 * rings)
    return image * np.clip(laid.edge * c.size / 1.3, 0.35, 1.0)[..., None]


def _rug(c: Canvas) -> Image:
    """One whole rug: a border in bands and a woven middle."""
    x, y = c.x, c.y
    edge = np.minimum(np.minimum(x, 1 - x), np.minimum(y, 1 - y))
    u, v = np.abs(x - 0.5) * 2, np.abs(y - 0.5) * 2
    middle = 0.5 + 0.5 * np.sin(2 * np.pi * (3 + c.seed % 5) * (u + v * (c.seed % 2)))
    lozenge = np.abs(u + v - 0.6) < 0.1
    field = np.where(edge < 0.04, 0.0, np.where(edge < 0.07, 1.0, np.where(edge < 0.12, 0.25, -1)))
    field = np.where(field < 0, 0.35 + 0.45 * (np.where(lozenge, 1.0, middle) > 0.55), field)
    return 0.85 * field + 0.15 * c.grain


def _sky(c: Canvas) -> Image:
    """The view out of a window: sky with clouds over a line of hedges."""
    clouds = np.clip(2.2 * (c.fractal(4, 5, 2) - 0.5), 0, 1)[..., None]
    image = c.ramp(c.y) * (1 - clouds) + clouds
    hill = 0.18 + 0.10 * c.fractal(6, 4, other=3)[0][None, :]
    leaf = c.fractal(32, 3, other=4)[..., None]
    green = np.array([0.16, 0.30, 0.12], np.float32) + 0.25 * leaf
    return np.where((c.y < hill)[..., None], green, image)


def _spines(c: Canvas) -> Image:
    """A row of book spines, eight or so, each of its own colour and title bands."""
    rng = _rng(c)
    cuts = np.cumsum(rng.uniform(0.6, 1.6, 9))
    which = np.searchsorted(cuts / cuts[-1], c.x[0])
    tone = np.asarray(c.colours, np.float32)[rng.integers(len(c.colours), size=10)]
    tone = tone * rng.uniform(0.75, 1.15, (10, 1)).astype(np.float32)
    image = np.broadcast_to(tone[which][None], (c.size, c.size, 3)).copy()
    for book in range(10):
        height, width = rng.uniform(0.55, 0.8), rng.uniform(0.03, 0.12)
        band = (np.abs(c.y - height) < width) & (which == book)[None, :]
        image[band] = image[band] * 0.4 + 0.55
    gap = np.diff(which, prepend=which[0]) != 0
    image[:, gap | np.roll(gap, 1)] *= 0.35
    return image


def _tiles(c: Canvas) -> Image:
    pattern = ("square", "square", "diamond", "hexagon")[c.seed % 4]
    laid = tiles(c.size, c.count(4), pattern=pattern)
    tone = _rng(c).uniform(0.3, 0.8, int(laid.index.max()) + 1)[laid.index]
    image = c.ramp(0.6 * tone + 0.4 * c.fractal(6))
    mortar = np.clip((laid.edge * c.size - 0.8) / 1.2, 0, 1)[..., None]
    grey = np.array([0.72, 0.71, 0.69], np.float32) * (0.9 + 0.1 * grain(c.size, 1)[..., None])
    return image * mortar + grey * (1 - mortar)


def _wallpaper(c: Canvas) -> Image:
    """Stripes, flowers or lozenges."""
    n = c.count(5, 2)
    if c.seed % 3 == 0:
        field = 0.25 + 0.5 * ((c.x * n * 2) % 1 > 0.5)
    elif c.seed % 3 == 1:
        u, v = c.staggered(n)
        field = 0.25 + 0.5 * (np.hypot(u, v) < 0.2 + 0.1 * np.cos(4 * np.arctan2(v, u)))
    else:
        across, down = (c.x * n) % 1 - 0.5, (c.y * n) % 1 - 0.5
        field = 0.25 + 0.5 * (np.abs(np.abs(across) + np.abs(down) - 0.35) < 0.05)
    return field + 0.12 * (c.fractal(6) - 0.5)


BUILDING: dict[str, Paint] = {
    "bricks": _bricks,
    "carpet": lambda c: 0.55 * c.grain + 0.45 * c.fractal(8),
    "foliage": _foliage,
    "planks": _planks,
    "plaster": lambda c: 0.35 + 0.4 * (0.6 * c.fractal(5, 5) + 0.4 * c.grain - 0.5),
    "rug": _rug,
    "sky": _sky,
    "spines": _spines,
    "tiles": _tiles,
    "wallpaper": _wallpaper,
}
"""Kinds that cover floors and walls, and fill windows and shelves."""

# -------------------------------------------------------------------------------- what lies on top


def _dirt(image: Image, seed: int) -> Image:
    """Returns the image under stains: broad brown blots with dark rims, and splashes."""
    size = image.shape[0]
    field = fractal(size, 4, seed + 11, 5)
    cover = np.clip(6 * (field - 0.4), 0, 0.95)[..., None]
    rim = np.clip(1 - np.abs(field - 0.46) * 25, 0, 1)[..., None]
    tone = fractal(size, 9, seed + 12, 3)[..., None]
    brown = np.array([0.36, 0.24, 0.11], np.float32) * (0.5 + 0.9 * tone)
    soiled = image * (1 - cover) + (0.12 * image + 0.88 * brown) * cover
    soiled = soiled * (1 - 0.55 * rim)
    splash = (smooth(size, size // 5, size // 5, seed + 13) > 0.86)[..., None]
    return np.where(splash, soiled * 0.35 + np.array([0.08, 0.05, 0.01], np.float32), soiled)


def _cracks(image: Image, seed: int) -> Image:
    """Returns the image under a broken pane: rays and rings of bright, dark-rimmed lines."""
    nearest = _broken_pane(image.shape[0], seed)
    line = np.clip(1.6 - nearest * 150, 0, 1)[..., None]
    shade = np.clip(1.0 - nearest * 40, 0, 0.75)[..., None]
    return image * (1 - shade) * (1 - line) + line * np.array([0.9, 0.93, 0.95], np.float32)


@functools.lru_cache(maxsize=64)
def _broken_pane(size: int, seed: int) -> Field:
    """Returns each pixel's distance to the nearest crack, in widths of the pane."""
    rng = np.random.default_rng([seed, 77])
    x, y = axes(size)
    nearest = np.full((size, size), 1.0, np.float32)
    for centre in rng.uniform(0.25, 0.75, (2, 2)):
        dx, dy = x - centre[0], y - centre[1]
        radius, turn = np.hypot(dx, dy), np.arctan2(dy, dx)
        rays = np.sort(rng.uniform(-np.pi, np.pi, 11))
        kinks = 0.05 * rng.normal(size=(8, 11))[(radius * 9).astype(int) % 8]  # jagged, by rings
        apart = np.abs((turn[..., None] - rays + kinks + np.pi) % (2 * np.pi) - np.pi)
        reach = rng.uniform(0.4, 1.2, 11)
        away = np.where(radius[..., None] < reach, apart * radius[..., None], 1.0)
        nearest = np.minimum(nearest, away.min(axis=-1))
        sector = np.searchsorted(rays, turn)
        for ring in (0.08, 0.19, 0.34):
            jag = ring * (0.75 + 0.5 * rng.random(12))[sector]
            nearest = np.minimum(nearest, np.abs(radius - jag) + 0.002)
        nearest = np.where(radius < 0.035, 0.0, nearest)
    return nearest.astype(np.float32)


def _wear(image: Image, seed: int) -> Image:
    """Returns the image faded in patches and rubbed down to a pale ground in streaks."""
    size = image.shape[0]
    faded = np.clip(3 * (fractal(size, 5, seed + 21, 4) - 0.35), 0, 0.7)[..., None]
    grey = image.mean(axis=-1, keepdims=True)
    pale = image + faded * (0.5 * grey + 0.35 - image)
    streak = np.clip(8 * (fractal(size, 6, seed + 22, 3, 6) - 0.66), 0, 0.6)[..., None]
    return pale + streak * (np.array([0.8, 0.77, 0.72], np.float32) - pale)


OVERLAYS: dict[str, Callable[[Image, int], Image]] = {
    "cracks": _cracks,
    "dirt": _dirt,
    "wear": _wear,
}
