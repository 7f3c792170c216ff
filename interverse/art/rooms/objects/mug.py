"""Mugs: upright cups with one handle, straight, bulging or tapered."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, rotated, shards, tube
from interverse.art.rooms.item import Item, Part, Rgb
from interverse.art.rooms.objects.crockery import vessel
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import chance, choose, flat, glaze, uniform

DRINKS: tuple[Rgb, ...] = ((0.16, 0.08, 0.04), (0.5, 0.32, 0.18), (0.55, 0.3, 0.06))


def build(rng: np.random.Generator) -> Item:
    """Returns a mug."""
    radius, height = uniform(rng, 0.036, 0.05), uniform(rng, 0.078, 0.125)
    wall = uniform(rng, 0.003, 0.0045)
    taper, bulge = uniform(rng, -0.12, 0.18), uniform(rng, -0.03, 0.12)
    share = np.linspace(0, 1, 8)
    sides = radius * (1 + taper * (share - 0.5) + bulge * np.sin(np.pi * share))
    outer = np.stack([sides, 0.004 + (height - 0.004) * share], axis=1)
    inner = outer[::-1] - (wall, 0)
    inner[-1, 1] += 0.006
    profile = [(0, 0.002), (sides[0] - 0.006, 0.002), (sides[0] - 0.003, 0), *outer]
    profile += [(sides[-1] - wall / 2, height + wall / 3), *inner, (0, inner[-1, 1])]
    body = lathe(profile, 28, wraps=2)
    mesh = merge([body, _handle(rng, float(np.interp(0.5, share, sides)), height)])
    mesh = rotated(mesh, (0, 0, 1), uniform(rng, -1.0, 1.0) - choose(rng, (0.0, np.pi)))
    broken = shards(mesh, rng, pieces=7, spread=0.5, stump=uniform(rng, 0.4, 0.55))
    parts = vessel(mesh, broken, glaze(rng))
    if chance(rng, 0.5):
        level = 0.75 * height
        wet = float(np.interp(0.75, share, sides)) - wall
        top = lathe([(wet, level - 0.001), (wet, level), (0, level)], 20)
        drink = flat(choose(rng, DRINKS), 0.7, 0.8)
        parts.append(Part(name="drink", mesh=top, surface=drink, hidden_when="broken"))
    return finished("Mug", parts, "table")


def _handle(rng: np.random.Generator, side: float, height: float) -> Mesh:
    out = uniform(rng, 0.022, 0.034)
    low, high = height * uniform(rng, 0.16, 0.3), height * uniform(rng, 0.74, 0.88)
    turn = np.linspace(-np.pi / 2, np.pi / 2, 11)
    squareness = uniform(rng, 0.55, 1.0)
    x = side * 0.93 + out * np.abs(np.cos(turn)) ** squareness * 1.2
    z = (low + high) / 2 + (high - low) / 2 * np.sign(turn) * np.abs(np.sin(turn)) ** squareness
    path = np.stack([x, np.zeros_like(x), z], axis=1)
    return tube(path, uniform(rng, 0.0045, 0.007), 8)
