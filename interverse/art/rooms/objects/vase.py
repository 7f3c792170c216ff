"""Vases: tall necked vessels, some with flowers, that break."""

from __future__ import annotations

import functools

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, moved, rotated, scaled, shards, tube
from interverse.art.rooms.item import Item, Part, Rgb
from interverse.art.rooms.objects.joinery import Tinted, finished, tinted
from interverse.art.rooms.surfaces import chance, choose, glaze, uniform, vivid


def build(rng: np.random.Generator) -> Item:
    """Returns a vase."""
    height = uniform(rng, 0.2, 0.42)
    belly = height * uniform(rng, 0.2, 0.34)
    foot, neck = belly * uniform(rng, 0.45, 0.75), belly * uniform(rng, 0.25, 0.5)
    lip = neck * uniform(rng, 1.15, 1.9)
    at, throat = uniform(rng, 0.25, 0.5), uniform(rng, 0.72, 0.86)
    share = np.linspace(0, 1, 15)
    knots = np.array([0, at * 0.5, at, (at + throat) / 2, throat, 1.0])
    radii = np.array([foot, (foot + 2 * belly) / 3, belly, (belly * 0.9 + neck) / 1.9, neck, lip])
    sides = _smooth(share, knots, radii)
    wall = 0.006
    outer = np.stack([sides, 0.003 + height * share], axis=1)
    inner = outer[:8:-1] - (wall, 0)
    profile = [(0, 0.0), (foot - 0.004, 0), *outer, (lip - wall / 2, height + 0.006), *inner]
    mesh = lathe(profile, 28, wraps=2)
    glazed = glaze(rng)
    broken = shards(
        mesh, rng, pieces=9, spread=uniform(rng, 0.6, 0.9), stump=uniform(rng, 0.25, 0.4)
    )
    parts = [
        Part(name="whole", mesh=mesh, surface=glazed, hidden_when="broken"),
        Part(name="shards", mesh=broken, surface=glazed, shown_when="broken"),
    ]
    if chance(rng, 0.55):
        flowers = _bouquet(rng, height, neck)
        parts.append(tinted("flowers", flowers, hidden_when="broken"))
        fallen = [(_fallen(piece, belly), colour) for piece, colour in flowers]
        parts.append(tinted("fallen", fallen, shown_when="broken"))
    return finished("Vase", parts, "table")


def _smooth(share: np.ndarray, knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns the values between knots without corners."""
    fine = np.linspace(-0.15, 1.15, 131)
    raw = np.interp(fine, knots, values)
    weights = np.hanning(15)
    return np.interp(share, fine, np.convolve(raw, weights / weights.sum(), mode="same"))


def _bouquet(rng: np.random.Generator, height: float, neck: float) -> list[Tinted]:
    green: Rgb = choose(rng, ((0.18, 0.38, 0.12), (0.28, 0.45, 0.18), (0.15, 0.30, 0.16)))
    petals, heart = vivid(rng, 0.7, 0.85), choose(rng, ((0.9, 0.75, 0.2), (0.3, 0.18, 0.08)))
    size = uniform(rng, 0.022, 0.045)
    found: list[Tinted] = []
    count = int(rng.integers(3, 8))
    for number in range(count):
        turn = 2.4 * number + uniform(rng, 0, 0.5)
        lean = uniform(rng, 0.15, 0.42) * (0.4 if number == 0 else 1)
        length = uniform(rng, 0.06, 0.16)
        way = np.array([np.cos(turn) * np.sin(lean), np.sin(turn) * np.sin(lean), np.cos(lean)])
        root = np.array([way[0] * neck, way[1] * neck, height * 0.7])
        tip = root + way * (length + height * 0.3)
        found.append((tube([root, tip], 0.003, 4), green))
        leaf = scaled(rotated(_unit_leaf(), (0, 1, 0), -0.5), 0.06)
        leaf = moved(rotated(leaf, (0, 0, 1), turn), root + way * (height * 0.3 + length * 0.45))
        found += [(leaf, green), *_blossom(tip, way, size, (petals, heart))]
    return found


def _blossom(
    tip: np.ndarray, way: np.ndarray, size: float, colours: tuple[Rgb, Rgb]
) -> list[Tinted]:
    axis = np.cross((0, 0, 1), way)
    angle = float(np.arccos(np.clip(way[2], -1, 1)))
    placed = [moved(rotated(scaled(mesh, size), axis, angle), tip) for mesh in _unit_blossom()]
    return list(zip(placed, colours, strict=True))


@functools.cache
def _unit_blossom() -> tuple[Mesh, Mesh]:
    """Returns petals and heart of a flower of radius one that looks up."""
    petal = scaled(lathe([(0, -0.5), (0.8, 0.1), (0, 0.5)], 5), (0.6, 0.36, 0.3))
    petal = moved(petal, (0.52, 0, 0.12))
    petals = merge([rotated(petal, (0, 0, 1), 2 * np.pi * k / 6) for k in range(6)])
    return petals, scaled(lathe([(0, -0.5), (0.5, 0), (0.3, 0.4), (0, 0.5)], 7), (0.7, 0.7, 0.6))


@functools.cache
def _unit_leaf() -> Mesh:
    """Returns a leaf of length one along x."""
    return scaled(lathe([(0, -0.5), (0.5, 0), (0, 0.5)], 6), (1.0, 0.34, 0.1))


def _fallen(mesh: Mesh, belly: float) -> Mesh:
    """Returns a piece of a bouquet laid down on the table."""
    down = rotated(scaled(mesh, (1, 0.5, 0.7)), (0, 1, 0), 1.45)
    return moved(down, (-belly * 2.2, 0, 0.004 - float(down.vertices[:, 2].min())))
