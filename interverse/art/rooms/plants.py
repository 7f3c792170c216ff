"""Plants in pots."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, rotated, sheet
from interverse.art.rooms.item import Surface
from interverse.art.rooms.prop import Prop, pick, textured, tinted

Rng = np.random.Generator


def plant(rng: Rng) -> Prop:
    """Returns a plant in a pot, as high as a hip."""
    radius, tall = rng.uniform(0.13, 0.18), rng.uniform(0.24, 0.34)
    pot = lathe(
        [
            (0, 0),
            (radius * 0.75, 0),
            (radius, tall),
            (radius * 1.05, tall),
            (radius * 0.95, tall - 0.02),
            (0, tall - 0.03),
        ],
        20,
    )
    count, height = int(rng.integers(12, 18)), rng.uniform(0.5, 0.9)
    leaves = [
        _leaf(rng, 2.4 * i, height * rng.uniform(0.6, 1.0), tall - 0.03) for i in range(count)
    ]
    green = tinted(rng, (0.22, 0.42, 0.18))
    leaf = Surface(texture=textured(rng, "foliage", green, contrast=0.5), specular=0.15)
    clay = Surface(
        texture=textured(
            rng, "plain", pick(rng, ((0.7, 0.4, 0.28), (0.85, 0.83, 0.8), (0.3, 0.32, 0.35)))
        )
    )
    return Prop(name="plant", parts=((pot, clay), (merge(leaves), leaf)))


def _leaf(rng: Rng, turn: float, length: float, base: float) -> Mesh:
    """Returns a leaf that rises from the pot and bends over, seen from both sides."""
    bend, lean = rng.uniform(0.6, 1.3), rng.uniform(0.25, 0.6)
    t = np.linspace(0, 1, 6)
    out, up = length * lean * t * (0.4 + t), length * (t - 0.25 * bend * t**3)
    half = 0.06 * length * np.sin(np.pi * np.clip(t * 0.93 + 0.05, 0, 1)) * 1.6
    rows = np.stack(
        [np.stack([out, s * half, up + base], axis=1) for s in (-1.0, 0.0, 1.0)], axis=1
    )
    rows[:, 1, 2] -= 0.012
    return rotated(sheet(rows, 0.002), (0, 0, 1), turn + rng.uniform(-0.4, 0.4))
