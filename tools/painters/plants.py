"""Floors that grow: grass, grass between stones, fallen leaves, moss, lichen."""

from __future__ import annotations

import numpy as np

from interverse.art.textures import (
    BlobShape,
    Colour,
    FloatArray,
    blobs,
    blur,
    cells,
    mix,
    palette,
    relief,
    smoothstep,
    spectral,
    strokes,
    warp,
)

_MEADOWS: tuple[tuple[Colour, ...], ...] = (
    ((0.05, 0.10, 0.02), (0.16, 0.30, 0.06), (0.36, 0.52, 0.14), (0.66, 0.76, 0.34)),  # lush
    ((0.07, 0.11, 0.03), (0.24, 0.34, 0.10), (0.50, 0.56, 0.24), (0.80, 0.80, 0.46)),  # summer
    ((0.12, 0.10, 0.05), (0.36, 0.33, 0.15), (0.62, 0.56, 0.30), (0.90, 0.82, 0.56)),  # dry
    ((0.10, 0.07, 0.03), (0.40, 0.30, 0.14), (0.70, 0.56, 0.30), (0.94, 0.84, 0.58)),  # straw
    ((0.04, 0.10, 0.05), (0.12, 0.30, 0.12), (0.28, 0.50, 0.24), (0.56, 0.74, 0.48)),  # lawn
)
_LEAVES: tuple[tuple[Colour, ...], ...] = (
    ((0.30, 0.14, 0.06), (0.58, 0.30, 0.10), (0.76, 0.50, 0.18), (0.84, 0.68, 0.36)),  # autumn
    ((0.26, 0.18, 0.12), (0.44, 0.32, 0.22), (0.60, 0.48, 0.36), (0.72, 0.62, 0.50)),  # brown
    ((0.42, 0.10, 0.06), (0.68, 0.26, 0.10), (0.82, 0.52, 0.16), (0.60, 0.56, 0.20)),  # maple
    ((0.24, 0.30, 0.10), (0.46, 0.48, 0.16), (0.68, 0.62, 0.24), (0.80, 0.72, 0.40)),  # early
)


def grass(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns grass seen from above: dry or lush, short or long, combed or tangled."""
    patches = spectral(rng, size, 2.8)
    image = _turf(rng, patches, layers=3)
    wilt = smoothstep(np.roll(patches, size // 3, axis=0), 0.2, 2.2) * float(rng.uniform(0, 0.8))
    straw = palette(np.clip(image[..., 1] * 1.1, 0, 1), _MEADOWS[3])
    return mix(wilt, image, straw)


def stony_grass(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns flat stones with grass in the joints."""
    rough, swell = spectral(rng, size, 2.0), spectral(rng, size, 3.0)
    pattern = cells(rng, size, int(rng.choice([9, 16, 25, 36])))
    border = warp(pattern.border, 4.0 * swell, 4.0 * np.roll(swell, size // 3, axis=1))
    gap = float(rng.uniform(0.12, 0.30))
    joint = 1.0 - smoothstep(border + 0.04 * rough, gap, gap + 0.12)
    shade = 0.10 * (rng.random(pattern.index.max() + 1) - 0.5)[pattern.index]
    height = smoothstep(border, 0.0, 0.5) * 2 + 0.25 * rough
    stone = 0.52 + shade + 0.06 * np.roll(rough, size // 2) + 0.16 * relief(height, 2.0, 2.2)
    warm = float(rng.uniform(0.0, 0.12))
    stones = palette(np.clip(stone, 0, 1), ((0.06, 0.05, 0.04), (0.95, 0.92, 0.86 - warm)))
    return mix(joint, stones, _turf(rng, swell, layers=2))


def leaves(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns ground under fallen leaves, two layers deep."""
    colours = _LEAVES[rng.integers(len(_LEAVES))]
    rough = spectral(rng, size, 2.0)
    image = palette(
        np.clip(0.35 + 0.12 * rough, 0, 1),
        ((0.08, 0.06, 0.04), (0.30, 0.24, 0.16), (0.48, 0.40, 0.28)),
    )
    count = int(rng.choice([25, 49, 81]))
    shape = BlobShape(radius=1.0, aspect=float(rng.uniform(1.2, 2.2)), pointed=True)
    dents = 0.05 * np.roll(rough, size // 2)
    for depth in (0.7, 1.0):
        layer = blobs(rng, size, count, shape, rough=dents)
        tones = rng.random(layer.index.max() + 2)[layer.index] + 1.2 * dents
        across = 1.0 - layer.along**2 + dents - layer.height  # 0 on the midrib
        rib = 0.16 * np.exp(-((across / 0.05) ** 2))
        fold = relief(2.0 * layer.height + 6.0 * dents, 1.0, 2.0)
        light = depth * (0.88 + 0.34 * fold + rib)
        inside = smoothstep(layer.height, 0.0, 0.10)
        cast = np.roll(inside, (2, 2), axis=(0, 1)) * (1 - inside)
        colour = palette(np.clip(tones, 0, 1), colours) * light[..., None]
        image = mix(inside, image * (1 - 0.45 * cast)[..., None], colour)
    return image


def moss(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns cushions of moss with dark gaps."""
    cushions = cells(rng, size, int(rng.choice([16, 25, 49])))
    tufts = cells(rng, size, int(rng.choice([625, 900, 1225])))
    bend = 6.0 * spectral(rng, size, 3.2)
    dome = warp(1.0 - cushions.nearest, bend, np.roll(bend, size // 2, axis=0))
    tuft = 1.0 - tufts.nearest + 0.4 * rng.random(tufts.index.max() + 1)[tufts.index]
    height = dome + 0.45 * tuft
    gaps = smoothstep(height, height.mean() - 0.45, height.mean() + 0.1)
    tone = 0.34 + 0.30 * (height - height.mean()) + 0.20 * relief(4.0 * height, 1.0, 2.2)
    tone = (tone + 0.07 * spectral(rng, size, 2.2)) * (0.3 + 0.7 * gaps) + 0.12
    hue = float(rng.uniform(0, 1))
    bright = (0.52 + 0.26 * hue, 0.66, 0.16 + 0.08 * hue)
    colours = ((0.04, 0.04, 0.02), (0.17, 0.19, 0.07), (0.34 + 0.1 * hue, 0.40, 0.10), bright)
    return palette(np.clip(tone, 0, 1), colours)


def lichen(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns stone with crusts of lichen, each with a pale rim."""
    ground = 0.42 + 0.10 * spectral(rng, size, 2.2)
    ground = ground + 0.14 * relief(spectral(rng, size, 2.0), 1.2, 2.4)
    image = palette(np.clip(ground, 0, 1), ((0.06, 0.05, 0.05), (0.80, 0.76, 0.70)))
    crusts = (((0.55, 0.58, 0.44), (0.80, 0.82, 0.68)), ((0.62, 0.46, 0.16), (0.84, 0.68, 0.30)))
    dents = 0.40 * spectral(rng, size, 2.4, band=(3.0, 90.0))
    for tint, count in zip(rng.permutation(2), (9, 36), strict=True):
        dents = np.roll(dents, size // 3)
        shape = BlobShape(radius=float(rng.uniform(0.3, 0.7)), aspect=1.2)
        crust = blobs(rng, size, count, shape, rough=dents)
        grain = 0.5 + 0.5 * (ground - 0.42) * 4 - 0.4 * smoothstep(crust.height, 0.2, 1.0)
        rim = 0.35 * np.exp(-(((crust.height - 0.12) / 0.10) ** 2))
        colour = palette(np.clip(grain + rim, 0, 1), crusts[tint])
        image = mix(smoothstep(crust.height, 0.0, 0.10), image, colour)
    return image


def _turf(rng: np.random.Generator, patches: FloatArray, *, layers: int) -> FloatArray:
    """Returns layers of blades, the upper ones lighter, darker where the patches are low."""
    size = len(patches)
    length = float(rng.uniform(0.04, 0.16))
    lean = float(rng.uniform(0, 2 * np.pi))
    spread = float(rng.choice([0.5, 1.2, 3.2]))
    tone = np.full((size, size), 0.16)
    for layer in range(layers):
        count = int(rng.uniform(1100, 1700))
        angle = lean + spread * rng.standard_normal(count)
        blades = strokes(rng, size, count, length=length, angle=angle)
        own = (0.25 + 0.55 * rng.random(count))[blades.index] + 0.22 * (blades.along - 0.5)
        light = 0.55 + 0.45 * (layer + 1) / layers
        tone = np.where(blades.index >= 0, own * light, tone)
    tone = blur(tone, float(rng.uniform(0.4, 0.9))) + 0.05 * patches
    return palette(np.clip(tone, 0, 1), _between(rng, _MEADOWS))


def _between(
    rng: np.random.Generator, tables: tuple[tuple[Colour, ...], ...]
) -> list[tuple[float, float, float]]:
    """Returns a palette part of the way from one of the tables to another."""
    first, other = rng.choice(len(tables), size=2, replace=False)
    share = float(rng.uniform(0, 0.6))
    a, b = np.asarray(tables[first]), np.asarray(tables[other])
    return [(float(r), float(g), float(c)) for r, g, c in a + share * (b - a)]
