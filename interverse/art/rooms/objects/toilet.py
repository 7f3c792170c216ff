"""Toilets: a china bowl with water, a tank, a seat and a lid that opens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interverse.art.meshes import (
    Mesh,
    extrude,
    grid,
    lathe,
    lifted,
    merge,
    moved,
    soft_box,
    superellipse,
)
from interverse.art.rooms.item import Item, Part, Rgb, RoomJoint, Surface, Triple
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import chance, choose, flat, metal, uniform, vivid, wood

POINTS = 28
SEAT = 0.014
"""Thickness of the seat."""
CHINAS: tuple[Rgb, ...] = ((0.95, 0.95, 0.94), (0.93, 0.91, 0.85), (0.95, 0.95, 0.94))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rim:
    """The bowl's upper edge: half axes, height, and how square it is."""

    half: float
    length: float
    height: float
    power: float

    def ring(self, factor: float, z: float, back: float = 0.0) -> np.ndarray:
        """Returns a closed ring of its shape, a factor smaller, at a height."""
        outline = superellipse(self.half * factor, self.length * factor, self.power, POINTS)
        points = np.column_stack([outline[:, 0], outline[:, 1] + back, np.full(POINTS, z)])
        return np.concatenate([points, points[:1]])


def build(rng: np.random.Generator) -> Item:
    """Returns a toilet."""
    rim = Rim(
        half=uniform(rng, 0.17, 0.2),
        length=uniform(rng, 0.23, 0.27),
        height=uniform(rng, 0.38, 0.44),
        power=uniform(rng, 2.0, 2.6),
    )
    skin = flat(choose(rng, (*CHINAS, vivid(rng, 0.2, 0.85))), 0.7, 0.8)
    tank, top = _tank(rng, rim)
    pool = superellipse(rim.half * 0.42, rim.length * 0.42, rim.power, POINTS)
    water = lifted(extrude(pool, 0.004, bevel=0.001), rim.height * 0.56)
    button = moved(lathe([(0.018, 0), (0.018, 0.012), (0, 0.014)], 12), top)
    parts = [
        Part(name="bowl", mesh=merge([_bowl(rng, rim), tank]), surface=skin),
        Part(name="water", mesh=water, surface=flat((0.45, 0.62, 0.7), 0.9, 0.9)),
        Part(name="button", mesh=button, surface=metal(rng, (0,))),
        *_cover(rng, rim, skin),
    ]
    return finished("Toilet", parts, "floor")


def _bowl(rng: np.random.Generator, rim: Rim) -> Mesh:
    foot = uniform(rng, 0.55, 0.8)
    sizes = ((0.0, foot), (0.08, foot * 0.95), (0.4, foot * 0.9), (0.72, 0.9), (0.93, 1), (1, 0.98))
    outer = [rim.ring(s, rim.height * z, (1 - s) * rim.length * 0.8) for z, s in sizes]
    hollow = ((0.98, 1.0), (0.74, 1.0), (0.66, 0.8), (0.4, 0.55), (0.3, 0.5))
    inner = [rim.ring(size, rim.height * z) for size, z in hollow]
    return merge([grid(np.stack(outer), closed=True), grid(np.stack(inner), closed=True)])


def _tank(rng: np.random.Generator, rim: Rim) -> tuple[Mesh, Triple]:
    """Returns the tank behind the bowl and where its button sits."""
    wide, deep = rim.half * uniform(rng, 1.9, 2.3), uniform(rng, 0.15, 0.19)
    tall, y, base = uniform(rng, 0.32, 0.4), rim.length + deep / 2 - 0.01, rim.height - 0.02
    body = soft_box((wide, deep, tall), 0.025, 2, (0, y, base + tall / 2))
    lid = soft_box((wide + 0.025, deep + 0.02, 0.035), 0.012, 2, (0, y, base + tall + 0.015))
    size = (rim.half * 1.1, deep + 0.1, rim.height * 0.5)
    bridge = soft_box(size, 0.03, 1, (0, y - 0.06, rim.height * 0.72))
    return merge([body, lid, bridge]), (0, y, base + tall + 0.03)


def _cover(rng: np.random.Generator, rim: Rim, china: Surface) -> list[Part]:
    """Returns the seat and the lid that rests on it."""
    other = choose(rng, (wood(rng), flat(vivid(rng), 0.5, 0.6)))
    skin = china if chance(rng, 0.6) else other
    section = ((1.02, 0), (1.02, 0.7), (0.98, 1), (0.76, 1), (0.72, 0.7), (0.72, 0))
    seat = grid(np.stack([rim.ring(s, rim.height + SEAT * z) for s, z in section]), closed=True)
    shape = superellipse(rim.half * 1.02, rim.length * 1.02, rim.power, POINTS)
    lid = lifted(extrude(shape, SEAT + 0.004, bevel=0.006), rim.height + SEAT + 0.002)
    origin = (0, rim.length * 0.93, rim.height + SEAT)
    hinge = RoomJoint(kind="hinge", origin=origin, axis=(-1, 0, 0), travel=uniform(rng, 1.78, 1.88))
    return [
        Part(name="seat", mesh=seat, surface=skin),
        Part(name="lid", mesh=lid, surface=skin, joint=hinge),
    ]
