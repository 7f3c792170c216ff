"""Crockery: glazed vessels that get dirty and break, for bowls, plates and mugs."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, moved, scaled, soft_box
from interverse.art.rooms.item import Part, Rgb, Surface
from interverse.art.rooms.objects.joinery import tinted
from interverse.art.rooms.surfaces import choose, soiled, uniform

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
