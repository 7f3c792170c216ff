"""Forests: seen from outside over a meadow, and from inside between the trunks."""

from __future__ import annotations

import numpy as np

from interverse.art.textures import Colour, FloatArray, mix, palette, relief, smoothstep, spectral

from . import plants
from .canvas import below, blend, ground, hazed, lay, over, places, ridge
from .skies import DAY, HAZE, SkyColors, random_sky_colors, sky

_TILE = 128
_GREENS: tuple[tuple[Colour, Colour], ...] = (
    ((0.09, 0.15, 0.08), (0.42, 0.56, 0.28)),
    ((0.11, 0.16, 0.06), (0.56, 0.62, 0.28)),
    ((0.08, 0.14, 0.11), (0.36, 0.52, 0.40)),
    ((0.16, 0.08, 0.03), (0.66, 0.42, 0.14)),  # autumn
)


def forest(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns a forest: its edge across a meadow, or its inside."""
    if rng.random() < 0.45:
        return _inside(rng, size)
    look, horizon = random_sky_colors(rng), float(rng.uniform(0.55, 0.68))
    image = sky(rng, size, look, horizon)
    image = trees(rng, image, look, horizon, tall=float(rng.uniform(0.22, 0.42)))
    tile = np.clip(1.2 * plants.grass(rng, _TILE), 0, 1) * look.light
    return ground(image, tile, horizon, near=float(rng.uniform(2, 4)))


def trees(
    rng: np.random.Generator, image: FloatArray, look: SkyColors, horizon: float, *, tall: float
) -> FloatArray:
    """Returns the picture with three rows of trees that stand on the horizon."""
    size = len(image)
    dark, light = _GREENS[rng.integers(len(_GREENS))]
    leaf = spectral(rng, size, 1.5)
    lit = np.clip(0.62 + 0.16 * leaf + 0.3 * relief(2 * leaf, 1.0, 2.2), 0, 1)
    body = palette(lit, (dark, blend(dark, light, 0.5), light)) * look.light
    row = _conifers if rng.random() < 0.6 else _crowns
    for step, air in enumerate((0.5, 0.28, 0.08)):
        reach = tall * (0.55 + 0.225 * step)
        line = horizon + 0.01 - row(rng, size, reach)
        image = over(image, line, hazed(body.copy(), look.horizon, air))
    return image


def _conifers(rng: np.random.Generator, size: int, tall: float) -> FloatArray:
    """Returns how high a row of firs reaches in each column: cones with ragged sides."""
    count = int(rng.uniform(4.0, 7.0) / tall)
    height = tall * (0.5 + 0.5 * rng.random((count, 1)))
    x = (places(size)[None, :] - rng.random((count, 1)) + 0.5) % 1.0 - 0.5
    t = np.abs(x) / (0.20 * height)
    ragged = t + 0.10 * np.sin(2 * np.pi * 4.5 * t + 6 * rng.random((count, 1)))
    tops = (height * np.clip(1.0 - ragged, 0.0, None)).max(axis=0)
    return np.maximum(tops, tall * (0.30 + 0.05 * ridge(rng, size, 1.5)))


def _crowns(rng: np.random.Generator, size: int, tall: float) -> FloatArray:
    """Returns how high a row of broad-leaved trees reaches in each column."""
    count = int(rng.uniform(2.5, 4.0) / tall)
    radius = tall * (0.25 + 0.2 * rng.random((count, 1)))
    centre = tall * (0.45 + 0.25 * rng.random((count, 1)))
    x = (places(size)[None, :] - rng.random((count, 1)) + 0.5) % 1.0 - 0.5
    tops = centre + np.sqrt(np.clip(radius**2 - x**2, 0.0, None))
    tops = np.where(np.abs(x) < radius, tops, 0.0).max(axis=0)
    return np.maximum(tops, 0.4 * tall) + 0.02 * tall * ridge(rng, size, 1.0, lowest=6)


def _inside(rng: np.random.Generator, size: int) -> FloatArray:
    look = (DAY, HAZE)[rng.integers(2)]
    dark, light = _GREENS[rng.integers(len(_GREENS))]
    floor = float(rng.uniform(0.66, 0.8))
    leaf = spectral(rng, size, 1.9)
    gaps = smoothstep(np.roll(leaf, size // 2, axis=1), 0.6, 2.0) * (1 - places(size)[:, None])
    tone = np.clip(0.42 + 0.2 * leaf + 0.2 * (1 - places(size)[:, None]), 0, 1)
    bright = blend(light, (0.85, 0.92, 0.55), 0.5)
    image = lay(palette(tone, (dark, light, bright)), 0.85 * gaps, look.horizon)
    paint = (plants.leaves, plants.moss, plants.grass)[rng.integers(3)]
    image = ground(image, paint(rng, _TILE), floor, near=2.0)
    bark: Colour = ((0.30, 0.24, 0.19), (0.42, 0.38, 0.34), (0.24, 0.18, 0.13))[rng.integers(3)]
    grain = spectral(rng, size, 1.6, stretch=(7.0, 1.0))
    for step, (count, wide, air) in enumerate(
        ((22, 0.010, 0.5), (11, 0.020, 0.25), (5, 0.042, 0.0))
    ):
        foot = floor + (0.02, 0.10, 0.24)[step]
        trunk, side = _trunks(rng, size, count, wide)
        tone = np.clip(0.5 + 0.5 * side + 0.12 * grain, 0, 1)
        body = palette(tone, (blend(bark, (0, 0, 0), 0.7), bark, blend(bark, (1, 1, 0.9), 0.4)))
        mask = trunk * (1 - below(np.full(size, foot), size))
        image = mix(mask, image, blend(body, light, air))
    canopy = smoothstep(leaf + 2.2 - 6.0 * places(size)[:, None], 0.4, 1.2)
    return mix(canopy, image, palette(_lit(leaf), (dark, light, bright)))


def _lit(leaf: FloatArray) -> FloatArray:
    """Returns foliage lit from above, 0..1."""
    return np.clip(0.4 + 0.2 * leaf + 0.3 * relief(2 * leaf, 1.0, 1.6), 0, 1)


def _trunks(
    rng: np.random.Generator, size: int, count: int, wide: float
) -> tuple[FloatArray, FloatArray]:
    """Returns masks of leaning trunks, and which side of one a pixel is on (-0.5 to 0.5)."""
    lean = 0.05 * rng.standard_normal((count, 1))
    width = wide * (0.6 + 0.8 * rng.random((count, 1)))
    root = rng.random((count, 1))
    row = places(size)[:, None]
    mask, side = np.zeros((size, size)), np.zeros((size, size))
    for k in range(count):
        near = int((1.2 * width[k, 0] + 0.8 * abs(lean[k, 0])) * size) + 2
        columns = np.arange(-near, near + 1)  # from the root; a trunk touches no others
        t = (columns / size - lean[k] * (row - 0.7)) / (width[k] * (0.75 + 0.35 * row))
        inside = 1 - smoothstep(np.abs(t), 0.85, 1.0)
        columns = (columns + int(root[k, 0] * size)) % size
        side[:, columns] = np.where(inside > 0.5, -0.5 * t, side[:, columns])
        mask[:, columns] = np.maximum(mask[:, columns], inside)
    return mask, side
