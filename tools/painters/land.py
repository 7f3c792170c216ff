"""Open country: mountains, deserts, fields, roads."""

from __future__ import annotations

import numpy as np

from interverse.art.textures import (
    Colour,
    FloatArray,
    mix,
    palette,
    relief,
    smoothstep,
    spectral,
    turbulence,
)

from . import earth, plants
from .canvas import below, blend, ground, hazed, lay, over, places, ridge
from .skies import (
    DAWN,
    DAY,
    DUSK,
    HAZE,
    SkyColors,
    random_sky_colors,
    sky,
    sun,
)

_TILE = 128  # pixels of a floor that is spread in perspective


def mountains(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns ranges behind ranges, the far ones pale, some with snow, hills or meadow in front."""
    look, horizon = random_sky_colors(rng), float(rng.uniform(0.5, 0.66))
    image = sky(rng, size, look, horizon)
    image = ranges(rng, image, look, horizon, tall=float(rng.uniform(0.12, 0.26)))
    if rng.random() < 0.6:
        tile = plants.grass(rng, _TILE) * np.asarray(look.light)
        image = ground(image, tile, horizon + 0.06, near=float(rng.uniform(2, 4)))
    return image


def ranges(
    rng: np.random.Generator, image: FloatArray, look: SkyColors, horizon: float, *, tall: float
) -> FloatArray:
    """Returns the picture with three mountain ranges up to and below the horizon."""
    size = len(image)
    top = max(int(size * (horizon - 2.6 * tall)), 0)  # hardly anything reaches above
    rows = places(size)[top:, None]
    folds = np.abs(spectral(rng, size, 3.0))
    lit = np.clip(0.55 + 0.45 * relief(7.0 * folds, 1.0, float(rng.uniform(0.4, 2.7))), 0, 1)[top:]
    grain = spectral(rng, size, 2.0)[top:]
    rock: Colour = ((0.42, 0.40, 0.42), (0.46, 0.38, 0.32), (0.34, 0.38, 0.36))[rng.integers(3)]
    wood: Colour = ((0.16, 0.26, 0.12), (0.24, 0.30, 0.16), (0.36, 0.32, 0.20))[rng.integers(3)]
    light = np.asarray(look.light)
    shades = (0.25 * np.asarray(rock), 0.8 * np.asarray(rock), blend(rock, light, 0.4))
    stone = palette(lit, [shade * light for shade in shades])
    trees = palette(lit, (0.6 * np.asarray(wood) * light, np.asarray(wood) * light))
    white = blend((0.97, 0.97, 0.99), light, 0.3) * light
    snow = float(rng.uniform(0.7, 1.8))
    body = np.empty_like(image)
    for step, air in enumerate((0.42, 0.20, 0.04)):
        base = horizon + 0.05 * step - 0.45 * tall * (2 - step)
        jag = ridge(rng, size, 2.8) + 0.10 * ridge(rng, size, 1.8, lowest=8)
        line = np.maximum(base - tall * (0.5 - 0.12 * step) * jag, (top + 4) / size)
        depth = rows - line[None, :]
        high = (horizon - line)[None, :] / tall - depth / tall * 1.8
        foot = smoothstep(depth + 0.025 * grain, 0.05 + 0.05 * (2 - step), 0.16)
        cap = smoothstep(high + 0.25 * grain, snow, snow + 0.3) * (0.25 + 0.75 * lit)
        body[top:] = hazed(lay(mix(foot, stone, trees), cap, white), look.horizon, air)
        image = over(image, line, body)
    return image


def desert(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns dunes with a lit and a shadowed side, or flat sand with table mountains."""
    look = (DAY, HAZE, DAWN, DUSK)[rng.integers(4)]
    horizon = float(rng.uniform(0.45, 0.6))
    image = sky(rng, size, look, horizon)
    if rng.random() < 0.4:
        return _mesas(rng, image, look, horizon)
    sand: Colour = ((0.86, 0.62, 0.36), (0.80, 0.66, 0.46), (0.78, 0.46, 0.26))[rng.integers(3)]
    sun_side = float(rng.choice([0.5, 2.6]))
    forms = spectral(rng, size, 4.0, stretch=(1.0, 1.6), band=(1.5, 9.0))
    ripples = 0.10 * spectral(rng, size, 1.6, stretch=(1.0, 4.0))
    lit = np.clip(0.62 + 0.5 * relief(9.0 * forms + ripples, 1.0, sun_side), 0, 1)
    shade = blend(sand, (0.1, 0.05, 0.1), 0.7)
    body = palette(lit, (shade, sand, blend(sand, (1, 1, 0.9), 0.35))) * look.light
    for step in range(4):
        crest = ridge(rng, size, 3.4, highest=9)
        line = horizon + 0.13 * step - 0.035 * (1 + 0.5 * step) * crest
        depth = places(size)[:, None] - line[None, :]
        rim = 1.0 + 0.25 * np.exp(-((depth / 0.02) ** 2)) - 0.3 * smoothstep(depth, 0.0, 0.25)
        dune = hazed(body * rim[..., None], look.horizon, 0.36 * (1 - step / 3))
        image = over(image, line, dune)
    return image


def field(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns meadow, crops or ploughed land to the horizon, with hedges or hills beyond."""
    look, horizon = random_sky_colors(rng), float(rng.uniform(0.46, 0.6))
    image = sky(rng, size, look, horizon)
    if rng.random() < 0.35:
        image = sun(image, (horizon * 0.45, float(rng.uniform(0.2, 0.8))), 0.04, (1.0, 0.97, 0.85))
    image = hills(rng, image, look, horizon)
    paint = (plants.grass, plants.grass, earth.soil)[rng.integers(3)]
    tile = paint(rng, _TILE)
    if rng.random() < 0.5:  # crops in rows
        furrow = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * places(_TILE))[None, :, None]
        tile = tile * (0.55 + 0.45 * furrow)
    image = ground(
        image, np.clip(1.3 * tile, 0, 1) * look.light, horizon, near=float(rng.uniform(2, 5))
    )
    return lay(image, _hedge(rng, size, horizon), np.asarray((0.13, 0.20, 0.09)) * look.light)


def road(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns a road to the horizon with a dashed line, through a plain below mountains."""
    look, horizon = random_sky_colors(rng), float(rng.uniform(0.5, 0.6))
    image = ranges(rng, sky(rng, size, look, horizon), look, horizon, tall=0.12)
    tile = (earth.sand, plants.grass, earth.soil)[rng.integers(3)](rng, _TILE)
    image = ground(image, tile * look.light, horizon, near=3.0)
    drop = np.clip((places(size)[:, None] - horizon) / (1 - horizon), 1e-3, 1)
    bend = float(rng.uniform(-0.12, 0.12)) * (1 - drop) ** 2
    x = (places(size)[None, :] - 0.5 - bend) / (0.42 * drop)
    here = places(size)[:, None] > horizon + 0.004
    asphalt = np.clip(0.34 + 0.03 * spectral(rng, size, 1.4), 0, 1)[..., None] * look.light
    road: FloatArray = (1 - smoothstep(np.abs(x), 0.96, 1.0)) * here
    image = lay(image, road, asphalt)
    dashes = ((1.2 / drop) % 1.0 < 0.5) & (np.abs(x) < 0.035)
    borders = (np.abs(x) > 0.86) & (np.abs(x) < 0.91)
    paint: FloatArray = np.asarray((dashes | borders) * here * 0.9, np.float64)
    return lay(image, paint, (0.92, 0.90, 0.80))


def hills(
    rng: np.random.Generator, image: FloatArray, look: SkyColors, horizon: float
) -> FloatArray:
    """Returns the picture with two lines of soft hills on the horizon."""
    size = len(image)
    cover = 0.5 + 0.16 * spectral(rng, size, 2.0)
    for step, air in enumerate((0.6, 0.3)):
        line = horizon - 0.02 - 0.025 * (2 - step) * (1 + 0.6 * ridge(rng, size, 3.2))
        green = palette(np.clip(cover, 0, 1), ((0.10, 0.18, 0.08), (0.42, 0.48, 0.24)))
        body = blend(green * look.light, np.asarray(look.horizon), air)
        image = over(image, line, body)
    return image


def _hedge(rng: np.random.Generator, size: int, horizon: float) -> FloatArray:
    line = horizon - 0.006 - 0.012 * np.maximum(ridge(rng, size, 1.6, lowest=3), -0.4)
    return below(line, size) * (1 - below(np.full(size, horizon + 0.008), size))


def _mesas(
    rng: np.random.Generator, image: FloatArray, look: SkyColors, horizon: float
) -> FloatArray:
    size = len(image)
    clay: Colour = ((0.66, 0.34, 0.20), (0.72, 0.48, 0.30))[rng.integers(2)]
    strata = spectral(rng, size, 1.6, stretch=(1.0, 10.0))
    lit = np.clip(0.5 + 0.15 * strata + 0.25 * relief(turbulence(rng, size, 2.4), 2.0, 0.4), 0, 1)
    for step, air in enumerate((0.45, 0.15)):
        flat = np.tanh(3.0 * ridge(rng, size, 2.6, highest=30))
        line = horizon - 0.02 - 0.10 * (flat + 1) * (0.4 + 0.4 * step)
        body = palette(lit, (blend(clay, (0, 0, 0), 0.6), clay, blend(clay, (1, 0.9, 0.7), 0.4)))
        image = over(image, line, hazed(body * look.light, look.horizon, air))
    tile = earth.sand(rng, _TILE) * np.asarray(clay) * 1.5
    return ground(image, np.clip(tile, 0, 1) * look.light, horizon, near=2.5)
