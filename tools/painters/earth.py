"""Floors of the ground itself: sand, soil, rock, frozen ground."""

from __future__ import annotations

import numpy as np

from interverse.art.textures import (
    BlobShape,
    FloatArray,
    blobs,
    cells,
    mix,
    palette,
    relief,
    smoothstep,
    spectral,
    turbulence,
    warp,
)


def sand(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns sand: plain, rippled by the wind, trodden, or with pebbles."""
    style = rng.choice(["plain", "ripples", "trodden", "pebbles"], p=[0.35, 0.3, 0.2, 0.15])
    swell = spectral(rng, size, 3.2)
    height = 0.8 * swell + 0.12 * spectral(rng, size, 1.2)
    if style == "ripples":
        height = height + _ripples(rng, size, swell)
    if style == "trodden":
        prints = blobs(
            rng, size, 25, BlobShape(radius=0.8, aspect=1.6), rough=0.15 * spectral(rng, size, 2.5)
        )
        height = height - 2.0 * smoothstep(prints.height, 0.0, 0.8) + 0.5 * spectral(rng, size, 2.4)
    grain = spectral(rng, size, 0.5)
    tone = 0.55 + 0.03 * swell + 0.035 * grain + 0.30 * relief(height, 0.8, rng.uniform(0.5, 2.6))
    tone = tone - 0.22 * smoothstep(grain, 2.2, 3.0) + 0.16 * smoothstep(-grain, 2.2, 3.0)
    warm = float(rng.uniform(-0.04, 0.08))
    colours = ((0.26, 0.20, 0.14), (0.62 + warm, 0.54, 0.42 - warm), (0.95, 0.91, 0.82 - warm))
    image = palette(np.clip(tone, 0, 1), colours)
    if style == "pebbles":
        image = _pebbles(rng, image, int(rng.choice([100, 225])))
    return image


def soil(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns bare soil: crumbs and clods with small stones, or cracked mud."""
    bend = 5.0 * spectral(rng, size, 3.4)
    bent = np.roll(bend, size // 2, axis=1)
    fine = spectral(rng, size, 2.0)
    patches = spectral(rng, size, 2.6)
    red = float(rng.uniform(-0.03, 0.06))
    colours = ((0.06, 0.04, 0.03), (0.34 + red, 0.27, 0.21), (0.66 + red, 0.57, 0.47 - red))
    if rng.random() < 0.35:
        mud = cells(rng, size, int(rng.choice([16, 36])))
        border = warp(mud.border, bend, bent) + 0.012 * fine
        height = 1.5 * smoothstep(border, 0.0, 0.3) + 0.25 * fine
        tone = 0.50 + 0.05 * patches + 0.22 * relief(height, 1.0, 2.2)
        tone = tone - 0.42 * (1 - smoothstep(border, 0.02, 0.10))
        return palette(np.clip(tone, 0, 1), colours)
    crumbs = blobs(
        rng, size, int(rng.choice([144, 256, 484])), BlobShape(radius=0.9), rough=0.15 * fine
    )
    height = 1.8 * np.sqrt(crumbs.height) + 0.5 * fine
    tone = 0.42 + 0.08 * patches + 0.30 * relief(height, 0.9, 2.2)
    own = (0.16 * rng.random(crumbs.index.max() + 2))[crumbs.index]
    image = palette(np.clip(tone + own - 0.2 * (crumbs.index < 0), 0, 1), colours)
    return _pebbles(rng, image, 81, share=float(rng.uniform(0.0, 0.35)))


def rock(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns rock: rough and creased, layered, or broken into blocks."""
    height = 1.6 * turbulence(rng, size, 3.0) + 0.10 * spectral(rng, size, 1.4)
    style = rng.choice(["rough", "layered", "blocks"])
    cracks = np.zeros((size, size))
    if style == "layered":
        bands = spectral(rng, size, 2.4, stretch=(1.0, float(rng.uniform(2.5, 4))))
        height = 0.5 * height + 1.4 * bands
    if style == "blocks":
        bend = 9.0 * spectral(rng, size, 3.2)
        blocks = cells(rng, size, int(rng.choice([9, 16, 36])))
        border = warp(blocks.border, bend, np.roll(bend, size // 2, axis=0))
        height = height + 2.5 * smoothstep(border, 0.0, 0.25)
        cracks = 1 - smoothstep(border, 0.01, 0.07)
    tone = 0.48 + 0.06 * spectral(rng, size, 2.6) + 0.30 * relief(height, 1.0, 2.2) - 0.3 * cracks
    warm = float(rng.uniform(-0.03, 0.09))
    colours = ((0.08, 0.07, 0.06), (0.48 + warm, 0.46, 0.44 - warm), (0.90, 0.87, 0.82 - warm))
    return palette(np.clip(tone, 0, 1), colours)


def frozen(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns frozen ground: patches of snow, cracked ice, or hoarfrost on soil."""
    style = rng.choice(["snow", "ice", "frost"], p=[0.45, 0.3, 0.25])
    if style == "ice":
        return _ice(rng, size)
    ground = (
        0.5 + 0.11 * spectral(rng, size, 2.0) + 0.18 * relief(spectral(rng, size, 2.2), 1.2, 2.2)
    )
    bare = ((0.14, 0.12, 0.11), (0.50, 0.46, 0.42), (0.80, 0.78, 0.75))
    cover = spectral(rng, size, 3.0 if style == "snow" else 2.0)
    level = float(rng.uniform(-0.6, 0.8))
    snow = smoothstep(cover, level - 0.4, level + 0.4)
    drift = 0.78 + 0.16 * relief(snow * 4 + 1.2 * spectral(rng, size, 2.8), 0.8, 2.2)
    white = palette(np.clip(drift, 0, 1), ((0.20, 0.21, 0.24), (0.97, 0.97, 0.97)))
    thick = 0.95 if style == "snow" else 0.6
    return mix(thick * snow, palette(np.clip(ground, 0, 1), bare), white)


def _ice(rng: np.random.Generator, size: int) -> FloatArray:
    bend = 7.0 * spectral(rng, size, 3.2)
    bent = np.roll(bend, size // 2, axis=0)
    tone = 0.45 + 0.07 * spectral(rng, size, 2.8) + 0.02 * spectral(rng, size, 1.4)
    for count, wide in ((9, 0.08), (36, 0.05)):
        plates = cells(rng, size, count)
        border = warp(plates.border, bend, bent)
        tone = tone + (wide * (rng.random(count) - 0.5))[plates.index]
        tone = tone + 5 * wide * (1 - smoothstep(border, 0.0, wide)) + wide * np.exp(-4 * border)
    cold = float(rng.uniform(0.0, 0.04))
    colours = ((0.26 - cold, 0.28, 0.31), (0.64 - cold, 0.66, 0.68), (0.97, 0.97, 0.97))
    return palette(np.clip(tone, 0, 1), colours)


def _ripples(rng: np.random.Generator, size: int, swell: FloatArray) -> FloatArray:
    waves = int(rng.integers(8, 18))
    across = int(rng.integers(-3, 4))
    place = np.arange(size) / size
    phase = 2 * np.pi * (waves * place[:, None] + across * place[None, :])
    phase = phase + 1.4 * swell + 0.5 * spectral(rng, size, 2.6)
    return 2.2 * (np.sin(phase) + 0.3 * np.sin(2 * phase + 0.8))


def _pebbles(
    rng: np.random.Generator, image: FloatArray, count: int, share: float = 0.5
) -> FloatArray:
    size = len(image)
    dents = 0.1 * spectral(rng, size, 2.4)
    stones = blobs(rng, size, count, BlobShape(radius=0.5, aspect=1.3, share=share), rough=dents)
    inside = smoothstep(stones.height, 0.0, 0.25)
    grey = (0.35 + 0.35 * rng.random(stones.index.max() + 2))[stones.index]
    tone = grey + 0.22 * relief(3 * stones.height, 1.0, 2.2) + 0.4 * dents
    cast = np.roll(inside, (2, 1), axis=(0, 1)) * (1 - inside)
    # Stones come from the same ground: half of its tint.
    tint = 0.5 + 0.5 * image.mean(axis=(0, 1)) / image.mean()
    pebble = np.clip(tone, 0.05, 1)[..., None] * tint
    return mix(inside, image * (1 - 0.5 * cast)[..., None], pebble)
