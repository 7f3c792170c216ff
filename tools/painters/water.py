"""Water: lakes that mirror what stands behind them, and coasts."""

from __future__ import annotations

import numpy as np

from interverse.art.textures import Colour, FloatArray, mix, palette, smoothstep, spectral

from . import earth
from .canvas import below, ground, lay, mirror, over, places, ridge
from .land import ranges
from .skies import SkyColors, random_sky_colors, sky
from .woods import trees

_SEAS: tuple[Colour, ...] = ((0.06, 0.24, 0.34), (0.08, 0.34, 0.38), (0.12, 0.22, 0.30))


def lake(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns a lake below mountains or a forest, with their image in it."""
    look, horizon = random_sky_colors(rng), float(rng.uniform(0.5, 0.62))
    image = sky(rng, size, look, horizon)
    if rng.random() < 0.7:
        image = ranges(rng, image, look, horizon, tall=float(rng.uniform(0.10, 0.18)))
    if rng.random() < 0.6:
        image = trees(rng, image, look, horizon, tall=float(rng.uniform(0.06, 0.14)))
    waves = spectral(rng, size, 1.6, stretch=(1.0, 4.0))
    tint = np.asarray(_SEAS[rng.integers(3)]) * look.light
    rough = float(rng.choice([0.002, 0.01, 0.03]))
    return mirror(image, horizon, waves, (tint[0], tint[1], tint[2]), rough=rough)


def coast(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns the sea with waves, a beach with surf in front, sometimes a headland."""
    look, horizon = random_sky_colors(rng), float(rng.uniform(0.42, 0.56))
    image = sky(rng, size, look, horizon)
    if rng.random() < 0.6:
        image = _headland(rng, image, look, horizon)
    image = _sea(rng, image, look, horizon)
    if rng.random() < 0.7:
        image = _beach(rng, image, look, float(rng.uniform(0.72, 0.86)))
    return image


def _sea(
    rng: np.random.Generator, image: FloatArray, look: SkyColors, horizon: float
) -> FloatArray:
    """Returns the picture with waves below the horizon: long ones near, a fine band far off."""
    size = len(image)
    near = spectral(rng, size, 2.0, stretch=(1.0, 3.0))
    far = spectral(rng, size, 1.0, stretch=(1.0, 8.0))
    depth = np.clip((places(size)[:, None] - horizon) / (1 - horizon), 0, 1)
    swell = near * depth + far * (1 - depth)
    deep = np.asarray(_SEAS[rng.integers(3)])
    tone = np.clip(0.45 + 0.2 * swell - 0.1 * depth + 0.25 * (1 - depth) ** 4, 0, 1)
    water = palette(
        tone, (deep * 0.6, deep * 1.3 + 0.06, 0.6 * deep + 0.45 * np.asarray(look.horizon))
    )
    foam = smoothstep(swell + 0.3 * far, 1.9, 2.6) * depth
    water = lay(water, foam, (0.95, 0.96, 0.97)) * look.light
    return over(image, np.full(size, horizon), water)


def _beach(
    rng: np.random.Generator, image: FloatArray, look: SkyColors, shore: float
) -> FloatArray:
    size = len(image)
    sand = np.clip(1.15 * earth.sand(rng, 128), 0, 1) * look.light
    land = ground(image, sand, shore - 0.12, near=3.0)
    line = shore + 0.02 * ridge(rng, size, 3.0, highest=12)
    depth = places(size)[:, None] - line[None, :]
    wet = 1 - 0.35 * (1 - smoothstep(depth, 0.0, 0.07))
    image = mix(below(line, size, soft=0.01), image, land * wet[..., None])
    lace = 0.02 * spectral(rng, size, 2.2, stretch=(1.0, 2.5))
    surf = np.exp(-(((depth + lace) / 0.014) ** 2)) + 0.6 * np.exp(
        -(((depth + 0.05 + lace) / 0.01) ** 2)
    )
    return lay(image, np.clip(surf, 0, 1) * 0.9, (0.96, 0.97, 0.98))


def _headland(
    rng: np.random.Generator, image: FloatArray, look: SkyColors, horizon: float
) -> FloatArray:
    size = len(image)
    at = float(rng.random())
    x = np.abs((places(size) - at + 0.5) % 1.0 - 0.5)
    rise = np.clip(1 - x / float(rng.uniform(0.2, 0.4)), 0, None) ** 0.7
    line = horizon + 0.01 - (0.12 + 0.02 * ridge(rng, size, 2.4)) * rise
    tone = np.clip(0.45 + 0.2 * spectral(rng, size, 2.0, stretch=(1.5, 1.0)), 0, 1)
    rock = palette(tone, ((0.14, 0.13, 0.12), (0.36, 0.38, 0.28), (0.60, 0.56, 0.46)))
    body = 0.75 * rock * look.light + 0.25 * np.asarray(look.horizon)
    return mix(below(line, size) * (rise > 0), image, body)
