"""Floor lamps: tall poles, tripods and arcs under a shade that glows."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, moved, tube
from interverse.art.rooms.item import Item, Part, Rgb, RoomTexture, Surface
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    flat,
    glowing,
    metal,
    shade,
    uniform,
    variant,
    vivid,
    wood,
)

CLOTHS: tuple[Rgb, ...] = ((0.92, 0.88, 0.78), (0.9, 0.9, 0.88), (0.75, 0.62, 0.45))
LIT = Surface(rgba=(1.0, 0.93, 0.75, 1.0), emission=1.0)


def build(rng: np.random.Generator) -> Item:
    """Returns a floor lamp."""
    height = uniform(rng, 1.3, 1.75)
    pole = choose(rng, (metal(rng), metal(rng), wood(rng), flat((0.1, 0.1, 0.1), 0.5, 0.6)))
    stem, top = choose(rng, (_pole, _pole, _tripod, _arc))(rng, height)
    shape, bulb = (moved(mesh, top) for mesh in _shade(rng))
    skin = _cloth(rng)
    lit = glowing(skin, (1.0, 0.88, 0.62), uniform(rng, 0.75, 0.95))
    white = flat((0.95, 0.94, 0.9))
    parts = [
        Part(name="stem", mesh=stem, surface=pole),
        Part(name="shade", mesh=shape, surface=skin, alternate={"on": lit}),
        Part(name="bulb", mesh=bulb, surface=white, alternate={"on": LIT}),
    ]
    x, y, z = (float(v) for v in top)
    return finished("FloorLamp", parts, "floor", light=(x, y, z))


def _cloth(rng: np.random.Generator) -> Surface:
    colour = choose(rng, (*CLOTHS, vivid(rng, 0.45, 0.75)))
    kind, colours = choose(rng, ("weave", "columns", "plain")), (shade(colour, 0.85), colour)
    texture = RoomTexture(kind=kind, colours=colours, seed=variant(rng), scale=2.0)
    return Surface(texture=texture, specular=0.05, shininess=0.1)


def _disc(rng: np.random.Generator) -> Mesh:
    wide, tall = uniform(rng, 0.12, 0.17), uniform(rng, 0.02, 0.04)
    top = [(wide * 0.9, tall), (0.02, tall + 0.01), (0, tall + 0.01)]
    return lathe([(0, 0), (wide, 0), (wide, tall * 0.6), *top], 28)


def _pole(rng: np.random.Generator, height: float) -> tuple[Mesh, np.ndarray]:
    thick = uniform(rng, 0.009, 0.016)
    ring = lathe([(thick, 0), (thick * 1.9, 0.01), (thick * 1.9, 0.02), (thick, 0.03)], 12)
    rings = [moved(ring, (0, 0, z)) for z in rng.uniform(0.1, height - 0.3, 2)]
    stem = tube([(0, 0, 0.02), (0, 0, height)], thick, 10)
    return merge([_disc(rng), stem, *rings]), np.array([0, 0, height])


def _tripod(rng: np.random.Generator, height: float) -> tuple[Mesh, np.ndarray]:
    spread, knee = uniform(rng, 0.2, 0.3), height * uniform(rng, 0.78, 0.92)
    turns = uniform(rng, 0, 2) + 2 * np.pi * np.arange(3) / 3
    ways = np.stack([np.cos(turns), np.sin(turns), np.zeros(3)], axis=1)
    lines = np.stack([spread * ways, 0.02 * ways + (0, 0, knee)], axis=1)
    rods = [tube(line, [0.011, 0.016], 8) for line in lines]
    hub = [(0, knee - 0.05), (0.045, knee - 0.04), (0.045, knee + 0.01), (0, knee + 0.02)]
    neck = tube([(0, 0, knee), (0, 0, height)], 0.01, 8)
    return merge([*rods, lathe(hub, 14), neck]), np.array([0, 0, height])


def _arc(rng: np.random.Generator, height: float) -> tuple[Mesh, np.ndarray]:
    reach, side = uniform(rng, 0.3, 0.5), choose(rng, (-1, 1))
    turn = np.linspace(0, np.pi * 0.72, 14)
    rise = height * 0.55
    x = reach * 0.6 * (1 - np.cos(turn)) * side
    z = rise + (height - rise) * np.sin(turn)
    path = np.array([(0, 0, 0.02), (0, 0, rise * 0.5), *np.stack([x, np.zeros(14), z], axis=1)])
    return merge([_disc(rng), tube(path, 0.012, 8)]), path[-1] - (0, 0, 0.05)


def _shade(rng: np.random.Generator) -> tuple[Mesh, Mesh]:
    low, tall = uniform(rng, 0.2, 0.29), uniform(rng, 0.26, 0.42)
    high = low * uniform(rng, 0.45, 1.0)
    top, bottom = tall * 0.6, -tall * 0.4
    belly = uniform(rng, -0.1, 0.12) if chance(rng, 0.5) else 0.0
    share = np.linspace(0, 1, 6)
    radii = low + (high - low) * share + low * belly * np.sin(np.pi * share)
    outer = np.stack([radii, bottom + (top - bottom) * share], axis=1)
    inner = outer[::-1] - (0.004, 0)
    skin = lathe([*outer, *inner, outer[0]], 32, wraps=3)
    return skin, lathe([(0, -0.04), (0.035, -0.02), (0.04, 0.02), (0.015, 0.06), (0, 0.07)], 12)
