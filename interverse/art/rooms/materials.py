"""Pixels of what rooms are built of: boards, tiles, bricks, plaster, paper, carpets, the sky.

`pixels` draws these and hands every other kind on to `textures`, so a prop may use them all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from interverse.art.rooms import textures
from interverse.art.rooms.item import RoomTexture
from interverse.art.rooms.noise import axes, fractal, grain
from interverse.art.rooms.textures import Image, ramp
from interverse.art.textures import bricks, planks, tiles

LARGE = 256  # pixels a side of what covers floors and walls; one tile spans metres


@functools.lru_cache(maxsize=128)
def pixels(texture: RoomTexture) -> NDArray[np.uint8]:
    """Returns the texture's picture (size, size, 3), read-only, drawn once a process."""
    if texture.kind not in BUILDING:
        return textures.pixels(texture, 128)
    image = BUILDING[texture.kind](LARGE, texture)
    found = (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)
    found.setflags(write=False)
    return found


def _rng(texture: RoomTexture) -> np.random.Generator:
    return np.random.default_rng([texture.seed, 5])


def _planks(size: int, texture: RoomTexture) -> Image:
    """Returns floor boards: each of its own tone and grain, with dark joints."""
    rng = _rng(texture)
    laid = planks(rng, size, max(int(8 * texture.scale), 2), 1)
    count = int(laid.index.max()) + 1
    tone, shift = rng.uniform(0.15, 0.85, count), rng.uniform(0, 1, count)
    fibre = fractal(size, 24, texture.seed, 3, stretch=10)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (2 * laid.down + shift[laid.index]) + 5 * fibre)
    image = ramp(0.55 * tone[laid.index] + 0.25 * fibre + 0.2 * rings, texture.colours)
    joint = np.clip(laid.edge * size / 1.3, 0.35, 1.0)
    return image * joint[..., None]


def _tiles(size: int, texture: RoomTexture) -> Image:
    rng = _rng(texture)
    pattern = ("square", "square", "diamond", "hexagon")[texture.seed % 4]
    laid = tiles(size, max(int(4 * texture.scale), 1), pattern=pattern)
    tone = rng.uniform(0.3, 0.8, int(laid.index.max()) + 1)[laid.index]
    cloud = fractal(size, 6, texture.seed, 4)
    image = ramp(0.6 * tone + 0.4 * cloud, texture.colours)
    mortar = np.clip((laid.edge * size - 0.8) / 1.2, 0, 1)[..., None]
    grey = np.array([0.72, 0.71, 0.69], np.float32) * (0.9 + 0.1 * grain(size, 1)[..., None])
    return image * mortar + grey * (1 - mortar)


def _bricks(size: int, texture: RoomTexture) -> Image:
    rng = _rng(texture)
    laid = bricks(size, max(int(10 * texture.scale), 2), max(int(4 * texture.scale), 1))
    tone = rng.uniform(0, 1, int(laid.index.max()) + 1)[laid.index]
    rough = fractal(size, 24, texture.seed, 3)
    image = ramp(0.6 * tone + 0.4 * rough, texture.colours)
    mortar = np.clip((laid.edge * size - 1.0) / 1.5, 0, 1)[..., None]
    grey = np.array([0.70, 0.67, 0.62], np.float32) * (0.8 + 0.2 * grain(size, 2)[..., None])
    return image * mortar + grey * (1 - mortar)


def _plaster(size: int, texture: RoomTexture) -> Image:
    field = 0.6 * fractal(size, 5, texture.seed, 5) + 0.4 * grain(size, texture.seed)
    return ramp(0.35 + 0.4 * (field - 0.5), texture.colours)


def _wallpaper(size: int, texture: RoomTexture) -> Image:
    x, y = axes(size)
    count = max(int(5 * texture.scale), 2)
    if texture.seed % 3 == 0:
        field = 0.25 + 0.5 * ((x * count * 2) % 1 > 0.5)
    elif texture.seed % 3 == 1:
        row = (y * count).astype(int)
        u, v = (x * count + 0.5 * (row % 2)) % 1 - 0.5, (y * count) % 1 - 0.5
        radius, turn = np.hypot(u, v), np.arctan2(v, u)
        field = 0.25 + 0.5 * (radius < 0.2 + 0.1 * np.cos(4 * turn))
    else:
        across, down = (x * count) % 1 - 0.5, (y * count) % 1 - 0.5
        field = 0.25 + 0.5 * (np.abs(np.abs(across) + np.abs(down) - 0.35) < 0.05)
    return ramp(field + 0.12 * (fractal(size, 6, texture.seed, 4) - 0.5), texture.colours)


def _carpet(size: int, texture: RoomTexture) -> Image:
    field = 0.55 * grain(size, texture.seed) + 0.45 * fractal(size, 8, texture.seed, 4)
    return ramp(field, texture.colours)


def _rug(size: int, texture: RoomTexture) -> Image:
    """Returns one whole rug: a border in bands and a woven middle."""
    x, y = axes(size)
    edge = np.minimum(np.minimum(x, 1 - x), np.minimum(y, 1 - y))
    u, v = np.abs(x - 0.5) * 2, np.abs(y - 0.5) * 2
    waves = 3 + texture.seed % 5
    middle = 0.5 + 0.5 * np.sin(2 * np.pi * waves * (u + v * (texture.seed % 2)))
    lozenge = np.abs(u + v - 0.6) < 0.1
    field = np.where(edge < 0.04, 0.0, np.where(edge < 0.07, 1.0, np.where(edge < 0.12, 0.25, -1)))
    field = np.where(field < 0, 0.35 + 0.45 * (np.where(lozenge, 1.0, middle) > 0.55), field)
    return ramp(0.85 * field + 0.15 * grain(size, texture.seed), texture.colours)


def _sky(size: int, texture: RoomTexture) -> Image:
    """Returns the view out of a window: sky with clouds over a line of hedges."""
    _, y = axes(size)
    clouds = np.clip(2.2 * (fractal(size, 4, texture.seed, 5, stretch=2) - 0.5), 0, 1)[..., None]
    image = ramp(y, texture.colours) * (1 - clouds) + clouds
    hill = 0.18 + 0.10 * fractal(size, 6, texture.seed + 3, 4)[0][None, :]
    leaf = fractal(size, 32, texture.seed + 4, 3)[..., None]
    green = np.array([0.16, 0.30, 0.12], np.float32) + 0.25 * leaf
    return np.where((y < hill)[..., None], green, image)


def _foliage(size: int, texture: RoomTexture) -> Image:
    x, y = axes(size)
    vein = np.abs((x * 2) % 1 - 0.5) < 0.03
    side = 0.5 + 0.5 * np.sin(2 * np.pi * (8 * y + 3 * np.abs(x - 0.5)))
    field = 0.3 * side + 0.7 * fractal(size, 6, texture.seed, 3)
    return ramp(np.where(vein, 1.0, field), texture.colours)


def _spines(size: int, texture: RoomTexture) -> Image:
    """Returns a row of book spines, eight or so, each of its own colour and title bands."""
    rng = _rng(texture)
    x, y = axes(size)
    cuts = np.cumsum(rng.uniform(0.6, 1.6, 9))
    which = np.searchsorted(cuts / cuts[-1], x[0])
    tone = np.asarray(texture.colours, np.float32)[rng.integers(len(texture.colours), size=10)]
    tone = tone * rng.uniform(0.75, 1.15, (10, 1)).astype(np.float32)
    image = np.broadcast_to(tone[which][None], (size, size, 3)).copy()
    for book in range(10):
        height, width = rng.uniform(0.55, 0.8), rng.uniform(0.03, 0.12)
        band = (np.abs(y - height) < width) & (which == book)[None, :]
        image[band] = image[band] * 0.4 + 0.55
    gap = np.diff(which, prepend=which[0]) != 0
    image[:, gap | np.roll(gap, 1)] *= 0.35
    return image


BUILDING: dict[str, Callable[[int, RoomTexture], Image]] = {
    "bricks": _bricks,
    "carpet": _carpet,
    "foliage": _foliage,
    "planks": _planks,
    "plaster": _plaster,
    "rug": _rug,
    "sky": _sky,
    "spines": _spines,
    "tiles": _tiles,
    "wallpaper": _wallpaper,
}
"""Kinds drawn here, beside those of `textures.KINDS`."""
