"""Floors people made: brick and paving, concrete, boards, tiles."""

from __future__ import annotations

import numpy as np

from interverse.art.textures import (
    BlobShape,
    Colour,
    FloatArray,
    Masonry,
    blobs,
    bricks,
    cells,
    mix,
    palette,
    planks,
    relief,
    smoothstep,
    spectral,
    tiles,
    warp,
)

_CLAYS: tuple[tuple[Colour, Colour], ...] = (
    ((0.42, 0.22, 0.15), (0.80, 0.52, 0.40)),  # red
    ((0.52, 0.42, 0.28), (0.88, 0.76, 0.56)),  # yellow
    ((0.40, 0.38, 0.36), (0.76, 0.73, 0.68)),  # grey
    ((0.48, 0.34, 0.24), (0.84, 0.66, 0.50)),  # buff
    ((0.30, 0.22, 0.18), (0.62, 0.48, 0.40)),  # dark
)
_GLAZES: tuple[tuple[Colour, Colour], ...] = (
    ((0.82, 0.80, 0.76), (0.30, 0.32, 0.34)),
    ((0.74, 0.44, 0.30), (0.58, 0.32, 0.22)),
    ((0.86, 0.82, 0.72), (0.62, 0.52, 0.40)),
    ((0.78, 0.82, 0.84), (0.26, 0.40, 0.52)),
    ((0.70, 0.72, 0.64), (0.40, 0.48, 0.40)),
)
_WOODS: tuple[tuple[Colour, Colour, Colour], ...] = (
    ((0.30, 0.17, 0.08), (0.60, 0.40, 0.22), (0.78, 0.58, 0.36)),  # oak
    ((0.42, 0.28, 0.16), (0.74, 0.56, 0.36), (0.88, 0.74, 0.54)),  # pine
    ((0.18, 0.10, 0.06), (0.40, 0.25, 0.15), (0.56, 0.38, 0.25)),  # walnut
    ((0.36, 0.34, 0.31), (0.58, 0.55, 0.51), (0.74, 0.71, 0.66)),  # weathered
)


def brick(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns brick or paving: running, stacked or third bond, narrow or square."""
    style = rng.choice(["running", "third", "stack", "square"], p=[0.5, 0.2, 0.15, 0.15])
    rows = int(rng.choice([4, 6, 8]))
    columns = max(2, rows // (1 if style == "square" else 2))
    step = {"running": 0.5, "third": 1 / 3, "stack": 0.0, "square": 0.5}[style]
    bend = 0.0016 * spectral(rng, size, 2.4)
    laid = bricks(
        size,
        rows,
        columns,
        shifts=np.asarray((step * np.arange(rows)) % 1.0, np.float64),
        wobble=(bend, np.roll(bend, size // 2, axis=0)),
    )
    gap = float(rng.uniform(0.004, 0.009))
    face = smoothstep(laid.edge + 0.0012 * spectral(rng, size, 1.6), gap, gap + 0.007)
    tone = _pieces(rng, laid, 0.5, 0.16) + 0.10 * spectral(rng, size, 2.0)
    height = 1.4 * smoothstep(laid.edge, gap, gap + 0.02) + 0.16 * spectral(rng, size, 1.8)
    tone = tone + 0.16 * relief(height, 2.0, 2.2)
    colours = _CLAYS[rng.integers(len(_CLAYS))]
    mortar = 0.5 + 0.12 * spectral(rng, size, 1.4)
    light = float(rng.uniform(0.25, 0.75))
    joint = palette(np.clip(mortar, 0, 1), ((light * 0.6,) * 3, (light + 0.1, light + 0.08, light)))
    return mix(face, joint, palette(np.clip(tone, 0, 1), colours))


def concrete(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns concrete: clouded, with pores or chips of stone, and sometimes cracks or joints."""
    cloud, fine = spectral(rng, size, 2.4), spectral(rng, size, 1.0)
    tone = 0.55 + 0.06 * cloud + 0.03 * fine + 0.12 * relief(spectral(rng, size, 2.0), 0.7, 2.2)
    style = rng.choice(["pores", "chips", "worn"])
    if style == "pores":
        pores = blobs(rng, size, 225, BlobShape(radius=float(rng.uniform(0.15, 0.4)), share=0.5))
        tone = tone - 0.3 * smoothstep(pores.height, 0.0, 0.5)
    if style == "chips":
        chips = blobs(rng, size, 900, BlobShape(radius=0.75, aspect=1.4), rough=0.1 * fine)
        tone = tone + (0.3 * rng.random(chips.index.max() + 2) - 0.15)[chips.index]
    if style == "worn":
        stain = smoothstep(np.roll(cloud, size // 2), 0.3, 1.6)
        tone = tone - float(rng.uniform(0.05, 0.2)) * stain * (1 + 0.5 * fine)
    if rng.random() < 0.3:
        bend = 8.0 * cloud
        border = warp(cells(rng, size, 4).border, bend, np.roll(bend, size // 2, axis=0))
        tone = tone - 0.30 * (1 - smoothstep(border, 0.0, 0.02))
    elif rng.random() < 0.4:
        slab = tiles(size, int(rng.integers(1, 4)))
        tone = tone + 0.06 * (rng.random(slab.index.max() + 1) - 0.5)[slab.index]
        tone = tone - 0.28 * (1 - smoothstep(slab.edge, 0.002, 0.008))
    warm = float(rng.uniform(-0.02, 0.06))
    colours = ((0.10, 0.10, 0.09), (0.56 + warm, 0.54, 0.50 - warm), (0.92, 0.91, 0.88 - warm))
    return palette(np.clip(tone, 0, 1), colours)


def wood(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns boards with grain, knots bent into it, and dark joints."""
    boards = planks(rng, size, int(rng.choice([2, 3, 4, 6])), int(rng.choice([1, 2])))
    count = int(boards.index.max()) + 1
    flow = spectral(rng, size, 3.0, stretch=(1.0, 3.0))
    own = (rng.random(count) * 9)[boards.index]
    rings = (boards.down + own) * float(rng.uniform(5, 9)) + 0.9 * flow
    grain = 0.5 + 0.5 * np.sin(2 * np.pi * rings)
    fibre = spectral(rng, size, 1.2, stretch=(1.0, 14.0))
    tone = _pieces(rng, boards, 0.5, 0.15) + 0.15 * (grain**2 - 0.4) + 0.07 * fibre
    joint = 1 - smoothstep(boards.edge, 0.002, 0.007)
    image = palette(np.clip(tone, 0, 1), _WOODS[rng.integers(len(_WOODS))])
    if rng.random() < 0.5:
        image = np.swapaxes(image, 0, 1)
        joint = joint.T
    return image * (1 - 0.75 * joint)[..., None]


def tile(rng: np.random.Generator, size: int) -> FloatArray:
    """Returns laid tiles: square, diamond or six-sided, of one colour or two, glazed or stone."""
    pattern = str(rng.choice(["square", "diamond", "hexagon"], p=[0.5, 0.25, 0.25]))
    side = int(rng.choice([4, 6])) if pattern == "hexagon" else int(rng.choice([2, 4, 6]))
    laid = tiles(size, side, pattern=pattern)
    first, other = _GLAZES[rng.integers(len(_GLAZES))]
    veins = spectral(rng, size, 2.2) * float(rng.uniform(0.02, 0.10))
    shade = _pieces(rng, laid, 1.0, 0.10) + veins
    second = np.zeros((size, size))
    if rng.random() < 0.6:
        second = laid.parity.astype(np.float64)
    image = mix(
        second, np.broadcast_to(first, (size, size, 3)), np.broadcast_to(other, (size, size, 3))
    )
    bevel = relief(smoothstep(laid.edge, 0.004, 0.016), 1.2, 2.2)
    image = image * (shade + 0.12 * bevel)[..., None]
    grout = 1 - smoothstep(laid.edge, 0.004, 0.009)
    dark = float(rng.uniform(0.25, 0.8))
    return np.clip(mix(grout, image, np.full((size, size, 3), dark)), 0, 1)


def _pieces(rng: np.random.Generator, laid: Masonry, mean: float, spread: float) -> FloatArray:
    """Returns one tone for each piece of a layout."""
    tones = mean + spread * (2 * rng.random(int(laid.index.max()) + 1) - 1)
    return tones[laid.index]
