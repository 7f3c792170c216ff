"""Plates: flat or soup plates with a rim, round or square, glazed in many ways."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lathe, painted, parted
from interverse.art.rooms.item import Item
from interverse.art.rooms.objects.crockery import leftovers, vessel
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import chance, glaze, uniform


def build(rng: np.random.Generator) -> Item:
    """Returns a plate."""
    radius = uniform(rng, 0.105, 0.155)
    foot, height = radius * uniform(rng, 0.5, 0.66), uniform(rng, 0.014, 0.03)
    well = radius * uniform(rng, 0.62, 0.78)
    wall, lip = uniform(rng, 0.004, 0.006), 0.4 * height
    profile = [(0, 0.003), (foot * 0.94, 0.003), (foot, 0), (foot * 1.04, 0.003), (well, lip)]
    profile += [(radius, height - 0.002), (radius, height), (radius - 0.004, height + 0.001)]
    profile += [(well, lip + wall), (well * 0.9, 0.003 + wall), (0, 0.003 + wall)]
    mesh = lathe(profile, 36)
    if chance(rng, 0.25):
        mesh = _squared(mesh, uniform(rng, 4, 8))
    mesh = painted(mesh, 0, 1)
    broken = parted(mesh, rng, pieces=int(rng.integers(5, 9)), spread=uniform(rng, 0.25, 0.45))
    food = leftovers(rng, well * 0.85, 0.003 + wall)
    return finished("Plate", [*vessel(mesh, broken, glaze(rng)), food], "table")


def _squared(mesh: Mesh, power: float) -> Mesh:
    """Returns the round mesh drawn out to a square with soft corners."""
    x, y = mesh.vertices[:, 0], mesh.vertices[:, 1]
    turn = np.arctan2(y, x)
    factor = (np.abs(np.cos(turn)) ** power + np.abs(np.sin(turn)) ** power) ** (-1 / power)
    vertices = (
        mesh.vertices * np.stack([factor, factor, np.ones_like(factor)], axis=1) * (0.85, 0.85, 1)
    )
    return Mesh(vertices, mesh.faces, mesh.normals, mesh.texcoords)
