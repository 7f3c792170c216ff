"""Pixels of textures: patterns of materials, then what lies on top of them.

A pattern is a field of values 0 to 1 that runs through the texture's colours; pictures (screens,
pages, covers) are drawn in full by `pictures`. Row 0 is the top.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.art.rooms.item import MixedTexture, Rgb, RoomTexture
from interverse.art.rooms.noise import Field, axes, fractal, grain, smooth
from interverse.art.rooms.pictures import PICTURES
from interverse.core.errors import UnknownNameError, check_name, unknown

Image = NDArray[np.floating[Any]]


@functools.lru_cache(maxsize=1024)
def pixels(texture: RoomTexture | MixedTexture, size: int = 128) -> NDArray[np.uint8]:
    """Returns the texture's picture (size, size, 3), read-only, drawn once a process.

    >>> pixels(RoomTexture(kind="plain", colours=((0.2, 0.4, 0.6), (0.2, 0.4, 0.6))), 8)[0, 0]
    array([ 51, 102, 153], dtype=uint8)
    """
    if isinstance(texture, MixedTexture):
        return _mixed(texture, size)
    if texture.kind in PICTURES:
        image = PICTURES[texture.kind](size, texture)
    elif texture.kind in PATTERNS:
        image = ramp(PATTERNS[texture.kind](size, texture), texture.colours)
    else:
        raise UnknownNameError(unknown("texture", texture.kind, KINDS))
    for name in texture.overlays:
        check_name("overlay", name, OVERLAYS)
        image = OVERLAYS[name](image, texture.seed)
    found = (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)
    found.setflags(write=False)
    return found


def _mixed(texture: MixedTexture, size: int) -> NDArray[np.uint8]:
    """Returns the pictures of two surfaces, each in its colour, laid over each other."""
    ends = []
    for surface in (texture.first, texture.second):
        tint = np.array(surface.rgba[:3], np.float32)
        plain = np.full((size, size, 3), 255.0, np.float32)
        image = plain if surface.texture is None else pixels(surface.texture, size)
        ends.append(image * tint)
    found = ends[0] + np.float32(texture.share) * (ends[1] - ends[0])
    out: NDArray[np.uint8] = (np.clip(found, 0, 255) + 0.5).astype(np.uint8)
    out.setflags(write=False)
    return out


def ramp(field: NDArray[np.floating[Any]], colours: tuple[Rgb, ...]) -> Image:
    """Returns colours (row, column, 3) run through evenly as the field goes from 0 to 1."""
    table = np.asarray(colours, dtype=np.float32)
    place = np.clip(field, 0, 1) * (len(table) - 1)
    low = np.minimum(place.astype(int), len(table) - 2) if len(table) > 1 else place.astype(int)
    share = (place - low)[..., None]
    return table[low] * (1 - share) + table[np.minimum(low + 1, len(table) - 1)] * share


def _plain(size: int, texture: RoomTexture) -> Field:
    return fractal(size, 4, texture.seed, 3)


def _speckle(size: int, texture: RoomTexture) -> Field:
    spots = smooth(size, size // 4, size // 4, texture.seed)
    return np.where(spots > 0.78, 1.0, 0.25 * fractal(size, 6, texture.seed, 3)).astype(np.float32)


def _wood(size: int, texture: RoomTexture) -> Field:
    cells = max(int(4 * texture.scale), 2)
    bend = fractal(size, cells, texture.seed, 3, stretch=4)
    _, y = axes(size)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (cells * y * 2 + 2.2 * bend))
    fibre = fractal(size, 32, texture.seed + 7, 2, stretch=12)
    return 0.5 * rings + 0.25 * fibre + 0.25 * bend


def _brushed(size: int, texture: RoomTexture) -> Field:
    lines = smooth(size, size, 3, texture.seed) + smooth(size, size // 2, 6, texture.seed + 1)
    return 0.3 * lines + 0.4 * fractal(size, 3, texture.seed, 2)


def _weave(size: int, texture: RoomTexture) -> Field:
    count = int(16 * texture.scale)
    x, y = axes(size)
    across = np.abs(np.sin(np.pi * count * x))
    along = np.abs(np.sin(np.pi * count * y))
    over = ((x * count).astype(int) + (y * count).astype(int)) % 2
    threads = np.where(over == 1, across, along)
    return (
        0.6 * threads + 0.25 * fractal(size, 4, texture.seed, 3) + 0.15 * grain(size, texture.seed)
    )


def _wicker(size: int, texture: RoomTexture) -> Field:
    count = int(8 * texture.scale)
    x, y = axes(size)
    shift = (y * count).astype(int) % 2
    strand = np.sin(np.pi * ((x * count / 2 + 0.5 * shift) % 1))
    rows = np.sin(np.pi * ((y * count) % 1))
    return np.clip(0.15 + 0.75 * strand * rows + 0.2 * grain(size, texture.seed) * rows, 0, 1)


def _stripes(size: int, texture: RoomTexture) -> Field:
    count = max(int(6 * texture.scale), 1)
    _, y = axes(size)
    return ((y * count) % 1 > 0.5) * 0.9 + 0.1 * fractal(size, 8, texture.seed, 2)


def _columns(size: int, texture: RoomTexture) -> Field:
    count = max(int(6 * texture.scale), 1)
    x, _ = axes(size)
    return ((x * count) % 1 > 0.5) * 0.9 + 0.1 * fractal(size, 8, texture.seed, 2)


def _checks(size: int, texture: RoomTexture) -> Field:
    count = max(int(4 * texture.scale), 1)
    x, y = axes(size)
    return 0.45 * ((x * count) % 1 > 0.5) + 0.45 * ((y * count) % 1 > 0.5) + 0.1 * grain(size, 1)


def _dots(size: int, texture: RoomTexture) -> Field:
    count = max(int(6 * texture.scale), 1)
    x, y = axes(size)
    row = (y * count).astype(int)
    u, v = (x * count + 0.5 * (row % 2)) % 1 - 0.5, (y * count) % 1 - 0.5
    return np.clip(8 * (0.32 - np.sqrt(u * u + v * v)), 0, 1)


def _floral(size: int, texture: RoomTexture) -> Field:
    count = max(int(3 * texture.scale), 1)
    x, y = axes(size)
    row = (y * count).astype(int)
    u, v = (x * count + 0.5 * (row % 2)) % 1 - 0.5, (y * count) % 1 - 0.5
    radius, turn = np.sqrt(u * u + v * v), np.arctan2(v, u)
    petals = 0.22 + 0.12 * np.cos(5 * turn + texture.seed)
    heart = radius < 0.09
    return np.where(heart, 0.5, np.where(radius < petals, 1.0, 0.0)).astype(np.float32)


def _marble(size: int, texture: RoomTexture) -> Field:
    bend = fractal(size, 3, texture.seed, 5)
    veins = np.abs(np.sin(np.pi * (3 * texture.scale * bend + 2 * axes(size)[0])))
    return 1 - veins**0.35


def _leather(size: int, texture: RoomTexture) -> Field:
    folds = smooth(size, size // 5, size // 5, texture.seed)
    return 0.6 * np.abs(2 * folds - 1) + 0.4 * fractal(size, 4, texture.seed, 3)


def _iron(size: int, texture: RoomTexture) -> Field:
    return 0.5 * grain(size, texture.seed) + 0.5 * fractal(size, 8, texture.seed, 4)


def _cardboard(size: int, texture: RoomTexture) -> Field:
    flutes = 0.5 + 0.5 * np.sin(2 * np.pi * 32 * axes(size)[0])
    return (
        0.25 * flutes + 0.45 * fractal(size, 4, texture.seed, 4) + 0.3 * grain(size, texture.seed)
    )


def _bands(size: int, texture: RoomTexture) -> Field:
    """Painted rings: the colours one above the other, with a hand's unevenness."""
    _, y = axes(size)
    wobble = 0.02 * (fractal(size, 6, texture.seed, 2) - 0.5)
    count = len(texture.colours)
    turns = (y * texture.scale + wobble) % 1
    return np.floor(turns * count) / max(count - 1, 1)


def _swatch(size: int, texture: RoomTexture) -> Field:
    """The colours side by side, for meshes that pick one each."""
    count = len(texture.colours)
    columns = np.floor(axes(size)[0] * count) / max(count - 1, 1)
    return columns.astype(np.float32)


PATTERNS: dict[str, Callable[[int, RoomTexture], Field]] = {
    "bands": _bands,
    "brushed": _brushed,
    "cardboard": _cardboard,
    "checks": _checks,
    "columns": _columns,
    "dots": _dots,
    "floral": _floral,
    "iron": _iron,
    "leather": _leather,
    "marble": _marble,
    "plain": _plain,
    "speckle": _speckle,
    "stripes": _stripes,
    "swatch": _swatch,
    "weave": _weave,
    "wicker": _wicker,
    "wood": _wood,
}


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
        nearest = np.minimum(
            nearest,
            np.where(radius[..., None] < reach, apart * radius[..., None], 1.0).min(axis=-1),
        )
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
KINDS = tuple(sorted({*PATTERNS, *PICTURES}))
"""What a texture's `kind` may be."""
