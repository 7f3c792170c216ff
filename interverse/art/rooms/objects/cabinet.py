"""Cabinets: one or two doors with panels, on the floor or the wall, jars and packets inside."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from interverse.art.meshes import Mesh, frame, merge, moved, tiled
from interverse.art.rooms.item import Item, Part, Surface, Triple
from interverse.art.rooms.objects.joinery import (
    TILE,
    Front,
    bar,
    carcass,
    finished,
    goods,
    grip,
    hinged,
    knob,
    legs,
    tinted,
)
from interverse.art.rooms.surfaces import chance, choose, flat, metal, paint, uniform, wood

WALL = 0.02
DOOR = 0.022


def build(rng: np.random.Generator) -> Item:
    """Returns a cabinet."""
    hangs = chance(rng, 0.25)
    doors = 1 if chance(rng, 0.3) else 2
    width = uniform(rng, 0.38, 0.55) if doors == 1 else uniform(rng, 0.65, 1.1)
    height = uniform(rng, 0.6, 0.85) if hangs else uniform(rng, 0.7, 1.35)
    size = (width, uniform(rng, 0.3, 0.45), height)
    stand = 0.0 if hangs else choose(rng, (0.06, uniform(rng, 0.1, 0.2)))
    body = wood(rng) if chance(rng, 0.55) else paint(rng)
    parts = [
        Part(name="case", mesh=_case(size, stand, crowned=not hangs), surface=body),
        *_inside(rng, size, stand),
        *_doors(rng, size, stand, doors, body),
    ]
    return finished("Cabinet", parts, "wall" if hangs else "floor")


def _case(size: Triple, stand: float, *, crowned: bool) -> Mesh:
    width, depth, height = size
    x, y, top = width / 2, depth / 2, stand + height
    case = [carcass(size, WALL, front=DOOR, floor=stand)]
    if crowned:
        case.append(bar((-x - 0.015, -y - 0.012, top), (x + 0.015, y, top + 0.025), 0.006))
    if stand > 0.06:
        case.append(legs((width, depth, stand), 0.05, 0.05, 0.02))
    elif stand > 0:
        case.append(bar((-x + 0.01, -y + 0.04, 0), (x - 0.01, y, stand)))
    return merge(case)


def _doors(
    rng: np.random.Generator, size: Triple, stand: float, count: int, body: Surface
) -> list[Part]:
    width, depth, height = size
    skin = body if chance(rng, 0.7) else choose(rng, (wood(rng), paint(rng)))
    style = choose(rng, ("slab", "frame", "frame", "raised"))
    pull = knob(rng, 0.015) if chance(rng, 0.5) else grip(rng, uniform(rng, 0.1, 0.25), 0.03)
    metalwork, travel = metal(rng), uniform(rng, 2.0, 2.3)
    edges = np.linspace(-width / 2, width / 2, count + 1)
    parts = []
    for number, (x0, x1) in enumerate(pairwise(edges)):
        place = Front(x0 + 0.002, x1 - 0.002, stand + 0.003, stand + height - 0.003, -depth / 2)
        on_left = number == 0 if count == 2 else chance(rng, 0.5)
        hinge = hinged(place, DOOR, travel, left=on_left)
        name = f"door{number}"
        x = place.right - 0.035 if on_left else place.left + 0.035
        at = (x, place.face, stand + height * (0.6 if stand else 0.3))
        parts.append(Part(name=name, mesh=_door(style, place), surface=skin, joint=hinge))
        parts.append(
            Part(name=f"{name}_pull", mesh=moved(pull, at), surface=metalwork, parent=name)
        )
    return parts


def _door(style: str, place: Front) -> Mesh:
    if style == "slab":
        return place.slab(0, DOOR - 0.002, bevel=0.006)
    width, height = place.right - place.left, place.high - place.low
    border = min(0.07, width * 0.2)
    x, face, z = place.middle
    rim = moved(frame((width, height), border, DOOR - 0.002, 0.005), (x, face + DOOR - 0.002, z))
    sunk = -0.009 if style == "frame" else -0.001
    found = [tiled(rim, TILE), place.slab(sunk, DOOR - 0.004, border * 0.9, 0.003)]
    if style == "raised":
        found.append(place.slab(0.006, 0.006, border * 1.5, 0.006))
    return merge(found)


def _inside(rng: np.random.Generator, size: Triple, stand: float) -> list[Part]:
    width, depth, height = size
    low, high = stand + WALL, stand + height - WALL
    x, y0, y1 = width / 2 - WALL, -depth / 2 + DOOR + 0.02, depth / 2 - WALL
    levels = np.linspace(low, high, int(rng.integers(2, 4)) + 1)
    boards = [bar((-x, y0, z - 0.009), (x, y1, z + 0.009)) for z in levels[1:-1]]
    back = bar((-x, y1 - 0.004, low), (x, y1 + 0.001, high))
    things = []
    for z, top in pairwise(levels):
        near, far = (-x + 0.02, y0 + 0.03, z + 0.009), (x - 0.02, y1 - 0.02, top - 0.03)
        things += goods(rng, near, far, int(rng.integers(3, 7)))
    return [
        Part(name="back", mesh=back, surface=flat((0.2, 0.16, 0.13), 0.1, 0.2)),
        tinted("things", things),
        Part(name="shelves", mesh=merge(boards), surface=wood(rng)),
    ]
