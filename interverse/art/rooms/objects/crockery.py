"""Bowls, mugs and plates, whole or broken, clean or dirty."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import (
    Mesh,
    lathe,
    merge,
    moved,
    painted,
    parted,
    rotated,
    scaled,
    shards,
    soft_box,
    tube,
)
from interverse.art.rooms.item import Item, Part, Rgb, Surface
from interverse.art.rooms.objects.joinery import finished, tinted
from interverse.art.rooms.surfaces import chance, choose, flat, glaze, soiled, uniform, wood

FOODS: tuple[tuple[Rgb, ...], ...] = (
    ((0.62, 0.13, 0.06), (0.85, 0.55, 0.15), (0.25, 0.42, 0.10)),
    ((0.36, 0.22, 0.09), (0.72, 0.52, 0.25), (0.55, 0.12, 0.08)),
    ((0.30, 0.38, 0.10), (0.80, 0.72, 0.45), (0.45, 0.25, 0.10)),
)


def vessel(whole: Mesh, broken: Mesh, glaze: Surface) -> list[Part]:
    """Returns a vessel and its shards, each with a dirty look."""
    dirty = {"dirty": soiled(glaze)}
    return [
        Part(name="whole", mesh=whole, surface=glaze, alternate=dirty, hidden_when="broken"),
        Part(name="shards", mesh=broken, surface=glaze, alternate=dirty, shown_when="broken"),
    ]


def leftovers(rng: np.random.Generator, radius: float, height: float) -> Part:
    """Returns remains of a meal on a round floor of a radius at a height, seen while dirty."""
    colours = choose(rng, FOODS)
    pieces = []
    for number in range(9):
        turn, away = rng.uniform(0, 2 * np.pi), radius * np.sqrt(rng.uniform(0, 0.8))
        wide = radius * uniform(rng, 0.12, 0.3)
        crumb = scaled(
            soft_box((1, 1, 1), 0.45, 1), (wide, wide * uniform(rng, 0.5, 1), wide * 0.35)
        )
        place = (away * np.cos(turn), away * np.sin(turn), height + wide * 0.1)
        pieces.append((moved(crumb, place), colours[number % len(colours)]))
    return tinted("leftovers", pieces, shown_when="dirty")


def bowl(rng: np.random.Generator) -> Item:
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


DRINKS: tuple[Rgb, ...] = ((0.16, 0.08, 0.04), (0.5, 0.32, 0.18), (0.55, 0.3, 0.06))


def mug(rng: np.random.Generator) -> Item:
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


def plate(rng: np.random.Generator) -> Item:
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
