"""Places people built: a skyline by day or night, a street of houses, a room."""

from __future__ import annotations

import numpy as np

from interverse.art.textures import Colour, FloatArray, mix, palette, smoothstep, spectral

from . import built
from .canvas import blend, ground, lay, mirror, places
from .skies import DARK, DAWN, DAY, DUSK, HAZE, SkyColors, sky

_TILE = 128
_WALLS: tuple[Colour, ...] = (
    (0.62, 0.60, 0.58),
    (0.50, 0.40, 0.34),
    (0.44, 0.50, 0.56),
    (0.70, 0.62, 0.50),
    (0.36, 0.38, 0.42),
)
_PAINTS: tuple[Colour, ...] = (
    (0.80, 0.76, 0.68),
    (0.62, 0.70, 0.66),
    (0.58, 0.64, 0.74),
    (0.76, 0.62, 0.52),
    (0.84, 0.82, 0.80),
)


def city(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns towers behind towers with their windows, over a street or a river."""
    look = (DAY, HAZE, DAWN, DUSK, DARK)[rng.integers(5)]
    horizon = float(rng.uniform(0.62, 0.74))
    image = sky(rng, size, look, horizon).copy()
    lamps = 0.55 if look in (DARK, DUSK) else 0.08
    for step, air in enumerate((0.55, 0.3, 0.05)):
        x = start = int(rng.integers(0, size))
        while x < start + size - 6:  # round the horizon to where the row began
            width = min(int(size * rng.uniform(0.05, 0.12)), start + size - x)
            top = int(size * (horizon - rng.uniform(0.10, 0.46 - 0.08 * step)))
            body = _tower(rng, (int(horizon * size) - top, width), look, lamps)
            columns = np.arange(x, x + width) % size
            image[top : int(horizon * size), columns] = blend(body, np.asarray(look.horizon), air)
            x += width + int(rng.integers(0, 3 + 8 * (step + 1)))
    if rng.random() < 0.5:
        waves = spectral(rng, size, 1.4, stretch=(1.0, 4.0))
        return mirror(image, horizon, waves, (0.10, 0.16, 0.22), rough=0.012)
    asphalt = 0.7 * built.concrete(rng, _TILE).mean(axis=2, keepdims=True) * look.light
    return ground(image, asphalt, horizon, near=3.0, wraps=True)


def interior(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns the wall of a room: boards or tiles before it, a window, a picture and a cupboard.

    The sky cube shows it on four sides, so that its left and right edges are corners of the room.
    """
    top, bottom = float(rng.uniform(0.12, 0.22)), float(rng.uniform(0.64, 0.74))
    wall = np.asarray(_PAINTS[rng.integers(len(_PAINTS))])
    y, x = np.meshgrid(places(size), places(size), indexing="ij")
    image = np.broadcast_to(wall, (size, size, 3)).copy()
    floor = (built.wood if rng.random() < 0.6 else built.tile)(rng, _TILE)
    spread = ground(image, floor, 0.5 * (top + bottom), near=1.5, wraps=True)
    image = lay(image, smoothstep(top - y, -0.004, 0.004), 0.3 * wall + 0.62)
    image = mix(smoothstep(y - bottom, -0.004, 0.004), image, spread)
    skirting = (y < bottom) & (y > bottom - 0.02)
    image = lay(image, skirting.astype(np.float64), (0.92, 0.91, 0.88))
    image = _furnish(rng, image, (0.06, 0.94), (top, bottom))
    apart = np.abs((x - rng.uniform(0.3, 0.7) + 0.5) % 1.0 - 0.5)
    corner = 0.16 * np.exp(-np.minimum(x, 1.0 - x) / 0.05)
    light = 0.72 + 0.4 * np.exp(-((apart / 0.4) ** 2)) - 0.15 * y - corner
    shade = light * (1 + 0.03 * spectral(rng, size, 2.4))
    return np.clip(image * shade[..., None], 0, 1)


def _tower(
    rng: np.random.Generator, shape: tuple[int, int], look: SkyColors, lamps: float
) -> FloatArray:
    """Returns a front (rows, columns, 3) with windows, some of them lit."""
    rows, columns = shape
    wall = np.asarray(_WALLS[rng.integers(len(_WALLS))]) * look.light * rng.uniform(0.7, 1.1)
    pitch = (int(rng.integers(5, 9)), int(rng.integers(4, 7)))
    r, c = np.arange(rows)[:, None], np.arange(columns)[None, :]
    pane = (r % pitch[0] >= 2) & (c % pitch[1] >= 1 + (pitch[1] > 4)) & (c < columns - 1) & (r > 2)
    lit = rng.random((rows // pitch[0] + 1, columns // pitch[1] + 1)) < lamps
    lit = lit[r // pitch[0], c // pitch[1]]
    glass = blend(wall * 0.35, np.asarray(look.middle), 0.3)
    front = np.broadcast_to(wall, (rows, columns, 3)) * (1 - 0.25 * c[..., None] / columns)
    front = np.where(pane[..., None], glass, front)
    return np.where((pane & lit)[..., None], (0.98, 0.86, 0.56), front)


def _furnish(
    rng: np.random.Generator,
    image: FloatArray,
    across: tuple[float, float],
    down: tuple[float, float],
) -> FloatArray:
    """Returns the room with a window, a picture or shelf, and a low piece of furniture."""
    size, (left, right), (top, bottom) = len(image), across, down
    wide, tall = right - left, bottom - top
    order = rng.permutation(3)
    slots = [left + wide * (0.06 + 0.32 * k) for k in order]
    image = image.copy()
    view = sky(rng, size, (DAY, HAZE, DAWN)[rng.integers(3)], bottom)
    _frame(image, (top + 0.12 * tall, slots[0]), (0.55 * tall, 0.26 * wide), view)
    art = palette(
        np.clip(0.5 + 0.3 * spectral(rng, size, 2.4), 0, 1), (_WALLS[1], _WALLS[2], _PAINTS[0])
    )
    _frame(image, (top + 0.2 * tall, slots[1]), (0.32 * tall, 0.22 * wide), art)
    wood = built.wood(rng, _TILE).repeat(2, axis=0).repeat(2, axis=1)[:size, :size]
    if len(wood) == size:
        high = float(rng.choice([0.35, 0.6]))
        _frame(
            image, (bottom - high * tall + 0.03, slots[2]), (high * tall, 0.28 * wide), wood * 0.8
        )
    return image


def _frame(
    image: FloatArray, at: tuple[float, float], extent: tuple[float, float], inside: FloatArray
) -> None:
    """Writes a framed rectangle of another picture into the room."""
    size = len(image)
    rows = slice(int(at[0] * size), int((at[0] + extent[0]) * size))
    columns = slice(int(at[1] * size), int((at[1] + extent[1]) * size))
    image[rows, columns] = (0.90, 0.89, 0.86)
    inner = (slice(rows.start + 2, rows.stop - 2), slice(columns.start + 2, columns.stop - 2))
    image[inner] = inside[inner]
    middle = (columns.start + columns.stop) // 2
    image[rows, middle : middle + 2] = (0.88, 0.87, 0.84)
