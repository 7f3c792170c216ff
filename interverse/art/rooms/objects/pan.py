"""Frying pans: shallow, dark or bright, with one long handle."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, painted, rotated, tube
from interverse.art.rooms.item import Item, Part, RoomTexture, Surface
from interverse.art.rooms.objects.crockery import leftovers
from interverse.art.rooms.objects.joinery import bar, finished
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    enamel,
    flat,
    metal,
    soiled,
    uniform,
    variant,
    wood,
)


def build(rng: np.random.Generator) -> Item:
    """Returns a frying pan."""
    radius, height = uniform(rng, 0.105, 0.165), uniform(rng, 0.032, 0.055)
    base, wall, low = radius * uniform(rng, 0.74, 0.88), 0.004, height * 0.4
    bend = base + (radius - base) * 0.6
    outside = lathe([(0, 0), (base, 0), (bend, low), (radius, height)], 36)
    rim = [(radius, height), (radius - wall * 0.3, height + 0.002), (radius - wall, height)]
    inside = lathe([*rim, (bend - wall, low), (base - wall, 0.005), (0, 0.005)], 36)
    handle = choose(rng, (flat((0.08, 0.08, 0.09), 0.4, 0.5), wood(rng), metal(rng, (0, 1))))
    looks = {
        "outside": (outside, _outside(rng)),
        "inside": (painted(inside, 0, 1), choose(rng, (_nonstick(rng), metal(rng, (0, 1))))),
    }
    yaw = uniform(rng, -np.pi, np.pi)
    parts = [
        Part(
            name=name,
            mesh=rotated(mesh, (0, 0, 1), yaw),
            surface=skin,
            alternate={"dirty": soiled(skin)},
        )
        for name, (mesh, skin) in looks.items()
    ]
    grip = rotated(_handle(rng, radius, height), (0, 0, 1), yaw)
    parts.append(Part(name="handle", mesh=grip, surface=handle))
    return finished("Pan", [*parts, leftovers(rng, base * 0.85, 0.005)], "table")


def _outside(rng: np.random.Generator) -> Surface:
    return choose(rng, (_nonstick(rng), metal(rng, (0, 3)), enamel(rng)))


def _nonstick(rng: np.random.Generator) -> Surface:
    texture = RoomTexture(
        kind="iron", colours=((0.05, 0.05, 0.055), (0.19, 0.19, 0.2)), seed=variant(rng)
    )
    return Surface(texture=texture, specular=0.5, shininess=0.4)


def _handle(rng: np.random.Generator, radius: float, height: float) -> Mesh:
    length, rise = radius * uniform(rng, 1.0, 1.5), uniform(rng, 0.01, 0.05)
    end, z = radius + length, height * 0.75
    if chance(rng, 0.6):
        line = [
            (radius * 0.97, 0, z),
            (radius + length * 0.4, 0, z + rise * 0.7),
            (end, 0, z + rise),
        ]
        return tube(line, [0.007, 0.011, 0.013], 10)
    half = uniform(rng, 0.01, 0.015)
    neck = ((radius * 0.96, -half * 0.6, z), (radius + length * 0.3, half * 0.6, z + 0.008))
    hold = ((radius + length * 0.25, -half, z - 0.005), (end, half, z + 0.013))
    return merge([bar(*neck), bar(*hold, 0.007)])
