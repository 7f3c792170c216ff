"""Bowls: deep round vessels without handles, from shallow to steep, on a foot."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import lathe, shards
from interverse.art.rooms.item import Item
from interverse.art.rooms.objects.crockery import leftovers, vessel
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import chance, glaze, uniform, wood


def build(rng: np.random.Generator) -> Item:
    """Returns a bowl."""
    radius = uniform(rng, 0.075, 0.145)
    height = radius * uniform(rng, 0.62, 0.95)
    foot, rise = radius * uniform(rng, 0.38, 0.55), uniform(rng, 0.004, 0.014)
    wall, power = uniform(rng, 0.004, 0.008), uniform(rng, 1.7, 3.0)
    turn = np.linspace(0, 1, 9)
    sides = foot + (radius - foot) * (1 - (1 - turn) ** power) ** (1 / power)
    outer = np.stack([sides, rise + (height - rise) * turn], axis=1)
    inner = outer[::-1] - (wall, 0)
    inner[-1, 1] += wall
    flare = uniform(rng, 0, 0.008)
    rim = [(radius + flare, height), (radius + flare - wall / 2, height + wall / 2)]
    base = [(0, 0.002), (foot * 0.85, 0.002), (foot * 0.9, 0), (foot, 0), (foot, rise)]
    floor = [(foot - wall, rise + wall), (0, rise + wall)]
    profile = [*base, *outer[1:-1], *rim, *inner[:-1], *floor]
    mesh = lathe(profile, 32, wraps=3)
    glazed = wood(rng) if chance(rng, 0.15) else glaze(rng)
    broken = shards(mesh, rng, pieces=8, spread=0.5, stump=uniform(rng, 0.4, 0.6))
    food = leftovers(rng, radius * 0.6, rise + height * 0.22)
    return finished("Bowl", [*vessel(mesh, broken, glazed), food], "table")
