"""Chests of drawers: rows of fronts with knobs or bars, one or two of which slide out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from interverse.art.meshes import Mesh, merge, moved, rotated, soft_box
from interverse.art.rooms.item import Item, Part, RoomJoint, Surface, Triple
from interverse.art.rooms.objects.joinery import (
    Front,
    Tinted,
    bar,
    carcass,
    finished,
    grip,
    knob,
    legs,
    tinted,
)
from interverse.art.rooms.surfaces import chance, choose, metal, paint, uniform, vivid, wood

WALL = 0.02
FRONT = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Fittings:
    """What all fronts of a chest share."""

    skin: Surface
    metal: Surface
    pull: Mesh
    pulls: int
    inset: float
    """Width of the border round a raised field; without a field below 0.012."""


def build(rng: np.random.Generator) -> Item:
    """Returns a chest of drawers."""
    rows = int(rng.integers(2, 6))
    columns = 2 if chance(rng, 0.25) else 1
    width = uniform(rng, 0.42, 0.62) * (1.5 if columns == 2 else 1.0)
    depth, height = uniform(rng, 0.38, 0.5), rows * uniform(rng, 0.16, 0.23) + 2 * WALL
    stand = uniform(rng, 0.08, 0.18) if chance(rng, 0.5) else 0.03
    body = wood(rng) if chance(rng, 0.6) else paint(rng)
    fittings = _fittings(rng, body)
    fronts = _grid((width, depth, height), stand, rows, columns)
    upper = np.arange(len(fronts) // 2, len(fronts))  # where one can see into them
    moving = rng.choice(upper, size=min(len(upper), 1 + int(chance(rng, 0.4))), replace=False)
    parts = [Part(name="case", mesh=_case((width, depth, height), stand), surface=body)]
    still = [_face(front, fittings) for n, front in enumerate(fronts) if n not in moving]
    if still:
        slabs, pulls = zip(*still, strict=True)
        parts.append(Part(name="fronts", mesh=merge(slabs), surface=fittings.skin))
        parts.append(Part(name="pulls", mesh=merge(pulls), surface=fittings.metal))
    tray = wood(rng)
    for number in moving:
        parts += _drawer(rng, f"drawer{number}", fronts[number], (fittings, tray), depth)
    return finished("Drawer", parts, "floor")


def _grid(size: Triple, stand: float, rows: int, columns: int) -> list[Front]:
    width, depth, height = size
    edges = np.linspace(-width / 2 + WALL / 2, width / 2 - WALL / 2, columns + 1)
    levels = np.linspace(stand + WALL, stand + height - WALL, rows + 1)
    return [
        Front(x0 + 0.003, x1 - 0.003, z0 + 0.003, z1 - 0.003, -depth / 2)
        for z0, z1 in pairwise(levels)
        for x0, x1 in pairwise(edges)
    ]


def _case(size: Triple, stand: float) -> Mesh:
    width, depth, height = size
    x, y, top = width / 2, depth / 2, stand + height
    case = carcass(size, WALL, front=FRONT, floor=stand)
    board = bar((-x - 0.012, -y - 0.01, top), (x + 0.012, y, top + 0.022), 0.006)
    if stand > 0.05:
        return merge([case, board, legs((width, depth, stand), 0.05, 0.05)])
    return merge([case, board, bar((-x + 0.01, -y + 0.03, 0), (x - 0.01, y, stand))])


def _fittings(rng: np.random.Generator, body: Surface) -> Fittings:
    pull, count = knob(rng, uniform(rng, 0.012, 0.02)), choose(rng, (1, 2))
    if chance(rng, 0.5):
        upright = grip(rng, uniform(rng, 0.1, 0.2), 0.025)
        pull, count = rotated(upright, (0, 1, 0), np.pi / 2), 1
    return Fittings(
        skin=body if chance(rng, 0.7) else choose(rng, (wood(rng), paint(rng))),
        metal=metal(rng) if chance(rng, 0.7) else wood(rng),
        pull=pull,
        pulls=count,
        inset=uniform(rng, 0.0, 0.03),
    )


def _face(front: Front, fittings: Fittings) -> tuple[Mesh, Mesh]:
    """Returns a drawer's front and what one pulls it by."""
    slab = front.slab(0, FRONT, bevel=0.005)
    if fittings.inset > 0.012:
        slab = merge([slab, front.slab(0.006, 0.002, fittings.inset, 0.005)])
    x, face, z = front.middle
    apart = (front.right - front.left) * 0.28
    places = [x] if fittings.pulls == 1 else [x - apart, x + apart]
    return slab, merge([moved(fittings.pull, (place, face, z)) for place in places])


def _drawer(
    rng: np.random.Generator,
    name: str,
    front: Front,
    look: tuple[Fittings, Surface],
    depth: float,
) -> list[Part]:
    fittings, tray = look
    slab, pull = _face(front, fittings)
    travel = depth * uniform(rng, 0.75, 0.95)
    slide = RoomJoint(kind="slide", origin=(0, 0, 0), axis=(0, -1, 0), travel=travel)
    return [
        Part(name=name, mesh=slab, surface=fittings.skin, joint=slide),
        Part(name=f"{name}_tray", mesh=_tray(front, depth), surface=tray, parent=name),
        tinted(f"{name}_clothes", _clothes(rng, front, depth), parent=name),
        Part(name=f"{name}_pull", mesh=pull, surface=fittings.metal, parent=name),
    ]


def _tray(front: Front, depth: float) -> Mesh:
    a, b = front.left + 0.015, front.right - 0.015
    y0, y1 = front.face + FRONT, depth / 2 - 0.04
    low, top = front.low + 0.01, front.low + (front.high - front.low) * 0.75
    return merge(
        [
            bar((a, y0, low), (b, y1, low + 0.01)),
            bar((a, y0, low), (a + 0.01, y1, top)),
            bar((b - 0.01, y0, low), (b, y1, top)),
            bar((a, y1 - 0.01, low), (b, y1, top)),
        ]
    )


def _clothes(rng: np.random.Generator, front: Front, depth: float) -> list[Tinted]:
    wide, tall = front.right - front.left, front.high - front.low
    count = max(2, int(wide / 0.16))
    pitch = (wide - 0.06) / count
    found = []
    for number in range(count):
        x = front.left + 0.03 + (number + 0.5) * pitch
        for layer in range(2):
            size = (pitch * 0.92, depth * uniform(rng, 0.55, 0.8), tall * uniform(rng, 0.2, 0.3))
            z = front.low + 0.022 + (layer + 0.5) * tall * 0.28
            found.append((soft_box(size, 0.02, 1, (x, -0.02, z)), vivid(rng, 0.45, 0.75)))
    return found
