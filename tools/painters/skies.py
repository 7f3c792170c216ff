"""Skies: clear, clouded, at sunset, at night; every landscape begins with one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interverse.art.textures import Colour, FloatArray, mix, palette, smoothstep, spectral

from .canvas import lay, over, places, ridge


@dataclass(frozen=True, slots=True, kw_only=True)
class SkyColors:
    """The colours of a time of day."""

    zenith: Colour
    middle: Colour
    horizon: Colour
    cloud: Colour
    shade: Colour  # of the clouds' undersides
    light: Colour  # of what the sun shines on


DAY = SkyColors(
    zenith=(0.16, 0.36, 0.70),
    middle=(0.40, 0.60, 0.84),
    horizon=(0.78, 0.86, 0.92),
    cloud=(0.98, 0.98, 0.98),
    shade=(0.62, 0.66, 0.72),
    light=(1.0, 1.0, 0.95),
)
HAZE = SkyColors(
    zenith=(0.50, 0.60, 0.70),
    middle=(0.70, 0.76, 0.80),
    horizon=(0.90, 0.90, 0.88),
    cloud=(0.95, 0.94, 0.93),
    shade=(0.70, 0.71, 0.74),
    light=(0.95, 0.95, 0.92),
)
STORM = SkyColors(
    zenith=(0.26, 0.30, 0.36),
    middle=(0.44, 0.48, 0.53),
    horizon=(0.74, 0.74, 0.72),
    cloud=(0.74, 0.76, 0.78),
    shade=(0.22, 0.25, 0.30),
    light=(0.75, 0.78, 0.80),
)
DUSK = SkyColors(
    zenith=(0.16, 0.20, 0.42),
    middle=(0.66, 0.38, 0.42),
    horizon=(0.98, 0.68, 0.34),
    cloud=(0.98, 0.60, 0.40),
    shade=(0.36, 0.24, 0.36),
    light=(0.85, 0.62, 0.50),
)
DAWN = SkyColors(
    zenith=(0.34, 0.44, 0.66),
    middle=(0.76, 0.66, 0.72),
    horizon=(0.99, 0.84, 0.68),
    cloud=(0.99, 0.86, 0.80),
    shade=(0.56, 0.50, 0.62),
    light=(0.95, 0.82, 0.76),
)
DARK = SkyColors(
    zenith=(0.02, 0.03, 0.10),
    middle=(0.07, 0.10, 0.24),
    horizon=(0.22, 0.26, 0.42),
    cloud=(0.20, 0.22, 0.34),
    shade=(0.05, 0.06, 0.12),
    light=(0.22, 0.26, 0.40),
)


def random_sky_colors(rng: np.random.Generator) -> SkyColors:
    """Returns the colours of the sky over a landscape: mostly day."""
    return (DAY, HAZE, STORM, DAWN, DUSK)[rng.choice(5, p=[0.52, 0.16, 0.12, 0.12, 0.08])]


def sky(rng: np.random.Generator, size: int, look: SkyColors, horizon: float) -> FloatArray:
    """Returns a sky down to its horizon; below it the horizon's colour goes on."""
    rise = np.clip(1.0 - places(size) / horizon, 0, 1)  # 1 at the top, 0 at the horizon
    column = palette(rise ** float(rng.uniform(0.6, 1.0)), (look.horizon, look.middle, look.zenith))
    image = np.repeat(column[:, None], size, axis=1)
    end = min(int(horizon * size) + 1, size)  # no cloud below
    high = spectral(rng, size, 2.6, stretch=(1.0, 1.8))[:end]
    low = spectral(rng, size, 2.6, stretch=(1.0, 6.0))[:end]
    rise = rise[:end]
    far = smoothstep(1.0 - rise, 0.35, 0.85)[:, None]
    cover = float(rng.uniform(-0.5, 1.3)) if look is not STORM else -0.8
    amount = mix(np.broadcast_to(far, high.shape), high, low)
    mask = smoothstep(amount, cover, cover + 1.3) * smoothstep(rise, 0.0, 0.18)[:, None]
    thick = amount + 0.5 * np.roll(amount, -size // 24, axis=0)
    clouds = palette(smoothstep(thick, cover + 0.6, cover + 3.4), (look.cloud, look.shade))
    image[:end] = mix(0.92 * mask, image[:end], clouds)
    return image


def sun(image: FloatArray, at: tuple[float, float], radius: float, colour: Colour) -> FloatArray:
    """Returns the picture with a sun or moon and its glow at (row, column)."""
    size = len(image)
    y = places(size)[:, None] - at[0]
    x = (places(size)[None, :] - at[1] + 0.5) % 1.0 - 0.5
    distance = np.sqrt(y * y + x * x)
    disc = 1 - smoothstep(distance, radius * 0.9, radius * 1.1)
    glow = 0.75 * np.exp(-distance / (3.5 * radius)) + 0.25 * np.exp(-distance / (14 * radius))
    image = mix(np.clip(glow, 0, 1) * 0.8, image, np.broadcast_to(colour, image.shape))
    return lay(image, disc, np.clip(np.asarray(colour) * 1.1, 0, 1))


def clouds(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns a sky full of clouds over a low, distant land."""
    look = (DAY, DAY, STORM, DAWN)[rng.integers(4)]
    horizon = float(rng.uniform(0.72, 0.9))
    image = sky(rng, size, look, horizon)
    heap = spectral(rng, size, 2.8, stretch=(1.0, 1.3))
    lit = np.clip(0.5 + 0.25 * (np.roll(heap, 6, axis=0) - heap) * 3, 0, 1)
    colours = palette(lit, (look.shade, look.cloud))
    rise = smoothstep(1 - places(size) / horizon, 0.02, 0.3)[:, None]
    image = mix(smoothstep(heap, 0.1, 0.8) * rise, image, colours)
    line = horizon - 0.012 * ridge(rng, size, 2.5)
    land = np.asarray(look.shade) * (0.5, 0.6, 0.55)
    return over(image, line, land * (0.8 + 0.2 * spectral(rng, size, 2.0)[..., None] * 0.5))


def sunset(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns a low sun behind dark hills, or over dark water that glitters."""
    look = (DUSK, DAWN)[rng.integers(2)]
    horizon = float(rng.uniform(0.58, 0.74))
    image = sky(rng, size, look, horizon)
    at = (horizon - float(rng.uniform(0.02, 0.16)), float(rng.uniform(0.25, 0.75)))
    image = sun(image, at, float(rng.uniform(0.025, 0.05)), (1.0, 0.96, 0.84))
    dark = np.asarray(look.shade)
    if rng.random() < 0.5:
        return _glitter(rng, image, horizon, at[1], look)
    for step, share in enumerate((0.8, 0.45, 0.2)):
        line = horizon + 0.09 * step - 0.04 * ridge(rng, size, 2.4)
        image = over(image, line, dark * share + np.asarray(look.horizon) * share * 0.3)
    return image


def night(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns stars, sometimes the moon or the Milky Way, over dark hills."""
    horizon = float(rng.uniform(0.7, 0.85))
    image = sky(rng, size, DARK, horizon)
    band = np.exp(
        -((places(size)[:, None] - 0.4 - 0.12 * ridge(rng, size, 4.0)[None, :]) ** 2) / 0.02
    )
    dust = smoothstep(spectral(rng, size, 2.2), -0.8, 2.0) * band * float(rng.uniform(0, 0.9))
    image = lay(image, 0.8 * dust, (0.72, 0.70, 0.86))
    shine = rng.random((size, size))
    stars = np.where(shine > 0.9965 - 0.006 * dust, 0.4 + 0.6 * rng.random((size, size)), 0.0)
    halo = sum(np.roll(stars, s, axis=a) for s in (1, -1) for a in (0, 1))
    image = lay(image, np.clip(stars + 0.35 * halo, 0, 1), (0.97, 0.97, 1.0))
    if rng.random() < 0.6:
        at = (float(rng.uniform(0.12, 0.4)), float(rng.uniform(0.15, 0.85)))
        image = sun(image, at, float(rng.uniform(0.03, 0.06)), (0.90, 0.92, 0.98))
    for step, share in enumerate((1.0, 0.4)):
        line = horizon + 0.08 * step - 0.05 * ridge(rng, size, 2.2)
        image = over(image, line, np.asarray((0.06, 0.08, 0.15)) * share)
    return image


def _glitter(
    rng: np.random.Generator, image: FloatArray, horizon: float, column: float, look: SkyColors
) -> FloatArray:
    size = len(image)
    start = int(horizon * size)
    waves = spectral(rng, size, 1.4, stretch=(1.0, 5.0))
    depth = np.clip((places(size)[:, None] - horizon) / (1 - horizon), 0, 1)
    water = palette(
        np.clip(0.35 + 0.12 * waves - 0.25 * depth, 0, 1), (look.shade, look.middle, look.horizon)
    )
    x = np.abs(places(size)[None, :] - column)
    path = np.exp(-((x / (0.04 + 0.16 * depth)) ** 2)) * smoothstep(waves, -0.4, 1.4)
    water = lay(water, 0.9 * path, look.horizon)
    out = image.copy()
    out[start:] = water[start:]
    return out
