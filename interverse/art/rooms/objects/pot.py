"""Cooking pots: deep and straight, two side handles, with or without a lid."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, rotated, tube
from interverse.art.rooms.item import Item, Part
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import chance, choose, enamel, flat, metal, soiled, uniform


def build(rng: np.random.Generator) -> Item:
    """Returns a cooking pot."""
    radius = uniform(rng, 0.095, 0.15)
    height = radius * uniform(rng, 0.95, 1.5)
    wall, belly = 0.004, uniform(rng, 0.0, 0.06)
    share = np.linspace(0, 1, 7)
    sides = radius * (1 + belly * np.sin(np.pi * share))
    outer = np.stack([sides, 0.008 + (height - 0.008) * share], axis=1)
    inner = outer[::-1] - (wall, 0)
    rim = [
        (radius + 0.004, height),
        (radius + 0.004, height + 0.003),
        (radius - wall, height + 0.003),
    ]
    profile = [(0, 0), (radius * 0.94, 0), *outer, *rim, *inner[1:], (0, 0.012)]
    skin = choose(rng, (metal(rng, (0, 1, 3)), metal(rng, (0,)), enamel(rng), enamel(rng)))
    grips = choose(rng, (skin, flat((0.07, 0.07, 0.08), 0.4, 0.5), metal(rng, (0, 2))))
    yaw = uniform(rng, -0.6, 0.6)
    body = rotated(lathe(profile, 36, wraps=2), (0, 0, 1), yaw)
    parts = [
        Part(name="body", mesh=body, surface=skin, alternate={"dirty": soiled(skin)}),
        Part(
            name="handles",
            mesh=rotated(_handles(rng, radius, height), (0, 0, 1), yaw),
            surface=grips,
        ),
    ]
    if chance(rng, 0.5):
        cover, top = _lid(rng, radius, height)
        parts.append(Part(name="lid", mesh=cover, surface=skin, alternate={"dirty": soiled(skin)}))
        parts.append(Part(name="knob", mesh=top, surface=grips))
    return finished("Pot", parts, "table")


def _handles(rng: np.random.Generator, radius: float, height: float) -> Mesh:
    out, wide, thick = (
        uniform(rng, 0.03, 0.05),
        uniform(rng, 0.035, 0.055),
        uniform(rng, 0.005, 0.009),
    )
    z = height * uniform(rng, 0.7, 0.88)
    turn = np.linspace(-np.pi / 2, np.pi / 2, 9)
    path = np.stack(
        [radius * 0.96 + out * np.cos(turn) ** 0.6, wide * np.sin(turn), np.full(9, z)], axis=1
    )
    one = tube(path, thick, 8)
    return merge([one, rotated(one, (0, 0, 1), np.pi)])


def _lid(rng: np.random.Generator, radius: float, height: float) -> tuple[Mesh, Mesh]:
    rise, z = radius * uniform(rng, 0.1, 0.3), height + 0.003
    turn = np.linspace(0, np.pi / 2, 7)
    dome = np.stack([radius * np.cos(turn), z + 0.006 + rise * np.sin(turn)], axis=1)
    cover = lathe([(0, z), (radius + 0.003, z), (radius + 0.003, z + 0.006), *dome], 32)
    top = z + 0.006 + rise
    size = radius * uniform(rng, 0.12, 0.2)
    stem = [
        (size * 0.5, top - 0.003),
        (size * 0.5, top + size * 0.6),
        (size, top + size),
        (size * 0.9, top + size * 1.5),
    ]
    return cover, lathe([*stem, (0, top + size * 1.6)], 14)
