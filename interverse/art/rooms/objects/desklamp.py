"""Desk lamps: a foot, a bent or jointed arm, and a shade that glows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, moved, rotated, tube
from interverse.art.rooms.item import Item, Part, Rgb, RoomTexture, Surface
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import chance, choose, flat, metal, mix, uniform, vivid, wood

LIGHTS: tuple[Rgb, ...] = ((1.0, 0.72, 0.3), (1.0, 0.8, 0.45), (0.7, 0.84, 1.0))


def build(rng: np.random.Generator) -> Item:
    """Returns a desk lamp."""
    height, reach = uniform(rng, 0.3, 0.46), uniform(rng, 0.12, 0.24)
    skin = _skin(rng)
    arm = skin if chance(rng, 0.5) else choose(rng, (metal(rng), wood(rng)))
    wide = uniform(rng, 0.065, 0.1)
    rim = [(wide, 0.012), (wide * 0.85, 0.022), (0.02, 0.028), (0, 0.03)]
    foot = lathe([(0, 0), (wide, 0), *rim], 24)
    path, tilt = choose(rng, (_jointed, _jointed, _goose))(rng, height, reach)
    yaw = choose(rng, (0.0, np.pi)) + uniform(rng, -0.5, 0.5)
    head = [moved(rotated(mesh, (0, 1, 0), tilt), path[-1]) for mesh in _head(rng)]
    stem, shade, inside, bulb = (rotated(mesh, (0, 0, 1), yaw) for mesh in (_arm(path), *head))
    colour = choose(rng, LIGHTS)
    lit = Surface(rgba=(*colour, 1.0), emission=1.0)
    white = flat((0.9, 0.89, 0.85), 0.3, 0.4)
    parts = [
        Part(name="foot", mesh=foot, surface=skin),
        Part(name="arm", mesh=stem, surface=arm),
        Part(name="shade", mesh=shade, surface=skin, alternate={"on": _lit(skin, colour)}),
        Part(name="inside", mesh=merge([inside, bulb]), surface=white, alternate={"on": lit}),
    ]
    x, y, z = (float(v) for v in bulb.vertices.mean(axis=0))
    return finished("DeskLamp", parts, "table", light=(x, y, z))


def _skin(rng: np.random.Generator) -> Surface:
    dark, pale = flat((0.08, 0.08, 0.09), 0.5, 0.6), flat((0.92, 0.91, 0.88), 0.5, 0.6)
    bright = flat(vivid(rng, 0.7, 0.7), 0.6, 0.7)
    return choose(rng, (bright, bright, dark, pale, metal(rng, (0, 2, 3))))


def _lit(skin: Surface, colour: Rgb) -> Surface:
    """Returns the shade with light through it: half its own colour, half the lamp's."""
    own = skin.texture.colours[-1] if isinstance(skin.texture, RoomTexture) else skin.rgba[:3]
    return Surface(rgba=(*mix(own, colour, 0.65), 1.0), specular=0.0, emission=0.55)


def _jointed(rng: np.random.Generator, height: float, reach: float) -> tuple[np.ndarray, float]:
    elbow = (-reach * uniform(rng, 0.4, 0.8), 0, height * uniform(rng, 0.5, 0.65))
    path = [(0, 0, 0.02), elbow, (reach * 0.6, 0, height)]
    return np.array(path, dtype=float), -uniform(rng, 0.35, 0.8)


def _goose(rng: np.random.Generator, height: float, reach: float) -> tuple[np.ndarray, float]:
    turn = np.linspace(0, np.pi * uniform(rng, 0.62, 0.85), 12)
    radius = reach * 0.5
    x, z = radius - radius * np.cos(turn), height - radius + radius * np.sin(turn)
    stem = [(0, 0, 0.02), (0, 0, (height - radius) * 0.6)]
    return np.array([*stem, *np.stack([x, np.zeros(12), z], axis=1)]), -uniform(rng, 0.0, 0.3)


def _arm(path: np.ndarray) -> Mesh:
    if len(path) > 3:
        return tube(path, 0.008, 8)
    pin = rotated(lathe([(0.014, -0.014), (0.014, 0.014), (0, 0.016)], 12), (1, 0, 0), np.pi / 2)
    found = [moved(pin, point) for point in path[1:]]
    for ends in pairwise(path):
        rod = tube(ends, 0.0045, 6)
        found += [moved(rod, (0, -0.008, 0)), moved(rod, (0, 0.008, 0))]
    return merge(found)


def _head(rng: np.random.Generator) -> tuple[Mesh, Mesh, Mesh]:
    """Returns a shade that opens downwards from the origin, its inside, and its bulb."""
    wide, deep = uniform(rng, 0.07, 0.11), uniform(rng, 0.1, 0.16)
    neck, bend = uniform(rng, 0.02, 0.035), uniform(rng, 0.6, 1.6)
    share = np.linspace(0, 1, 8)
    radii = neck + (wide - neck) * share**bend
    outer = np.stack([radii[::-1], 0.02 - deep * share[::-1]], axis=1)
    cap = [(neck * 0.9, 0.03), (0.012, 0.045), (0, 0.046)]
    inner = np.stack([radii - 0.003, 0.018 - deep * share], axis=1)
    glass = [(0, -1.02), (0.02, -0.98), (0.03, -0.78), (0.012, -0.3)]
    bulb = lathe([(radius, deep * z) for radius, z in glass], 12)
    return lathe([*outer, *cap], 24), lathe([(0, 0.018), *inner, (wide, 0.02 - deep)], 24), bulb
