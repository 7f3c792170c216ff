"""Fridges: one door, a freezer above or below, or two doors side by side; shelves with food."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from interverse.art.meshes import Mesh, merge, moved, soft_box
from interverse.art.rooms.item import Item, Part, Rgb, Surface, Triple
from interverse.art.rooms.objects.joinery import (
    Front,
    Tinted,
    bar,
    carcass,
    finished,
    goods,
    grip,
    hinged,
    lining,
    tinted,
)
from interverse.art.rooms.surfaces import chance, choose, flat, metal, uniform, vivid

DOOR = 0.055
WALL = 0.035
PLINTH = 0.04
WHITE: Rgb = (0.93, 0.94, 0.94)


def build(rng: np.random.Generator) -> Item:
    """Returns a fridge."""
    width, depth, top = uniform(rng, 0.55, 0.85), uniform(rng, 0.58, 0.7), uniform(rng, 1.35, 1.95)
    if chance(rng, 0.12):
        width, top = uniform(rng, 0.5, 0.56), uniform(rng, 0.8, 0.95)
    skin, chrome = _skin(rng), metal(rng, (0, 0, 4))
    style = choose(rng, ("whole", "above", "below", "double"))
    freezer = (top - PLINTH) * uniform(rng, 0.26, 0.36)
    low = PLINTH + (freezer if style == "below" else 0.0)
    high = top - (freezer if style == "above" else 0.0)
    front = Front(-width / 2, width / 2, low + 0.003, high - 0.003, -depth / 2)
    left = chance(rng, 0.5)
    parts = _case((width, depth, top), (low, high), skin)
    parts += _shelves(rng, width, depth, (low + WALL, high - WALL))
    halves = [front]
    if style == "double":
        halves = [front._replace(right=-0.002), front._replace(left=0.002)]
    look = (skin, chrome, uniform(rng, 1.9, 2.15))
    for number, half in enumerate(halves):
        side = number == 0 if style == "double" else left
        parts += _door(rng, f"door{number}", half, look, left=side)
    if style in ("above", "below"):
        z0, z1 = (high, top) if style == "above" else (PLINTH, low)
        lid = front._replace(low=z0 + 0.003, high=z1 - 0.003)
        parts.append(Part(name="freezer", mesh=_panel(lid), surface=skin))
        pull = _pull(rng, lid, 0.5, left=left)
        parts.append(Part(name="freezer_pull", mesh=pull, surface=chrome))
    return finished("Fridge", parts, "floor")


def _skin(rng: np.random.Generator) -> Surface:
    if chance(rng, 0.35):
        return metal(rng, (0, 0, 1))
    usual = (WHITE, WHITE, (0.86, 0.86, 0.82), (0.08, 0.08, 0.09), (0.7, 0.15, 0.14))
    return flat(choose(rng, (*usual, vivid(rng, 0.35, 0.8))), 0.6, 0.6)


def _case(size: Triple, span: tuple[float, float], skin: Surface) -> list[Part]:
    width, depth, top = size
    low, high = span
    case = carcass((width, depth, top - PLINTH), WALL, front=DOOR, floor=PLINTH)
    hollow = lining((width, depth, high - low), WALL, front=DOOR, floor=low)
    x = width / 2 - 0.02
    foot = bar((-x, -depth / 2 + DOOR, 0), (x, depth / 2, PLINTH))
    return [
        Part(name="case", mesh=case, surface=skin),
        Part(name="lining", mesh=hollow, surface=flat(WHITE, 0.3, 0.4)),
        Part(name="plinth", mesh=foot, surface=flat((0.1, 0.1, 0.11))),
    ]


def _panel(place: Front) -> Mesh:
    x, face, z = place.middle
    thick = DOOR - 0.004
    size = (place.right - place.left, thick, place.high - place.low)
    return soft_box(size, 0.018, 2, (x, face + thick / 2, z))


def _pull(rng: np.random.Generator, place: Front, share: float, *, left: bool) -> Mesh:
    """Returns a handle on the side away from the hinge."""
    length = min(0.6, (place.high - place.low) * share)
    x = place.right - 0.055 if left else place.left + 0.055
    z = place.low + (place.high - place.low) * (0.62 if place.low < 0.4 else 0.4)
    return moved(grip(rng, length, 0.045), (x, place.face, z))


def _door(
    rng: np.random.Generator,
    name: str,
    place: Front,
    look: tuple[Surface, Surface, float],
    *,
    left: bool,
) -> list[Part]:
    skin, chrome, travel = look
    back = place.face + DOOR
    x0, x1 = place.left + 0.06, place.right - 0.06
    racks, food = [place.slab(0.004 - DOOR, DOOR + 0.004, 0.05)], []
    for z in np.arange(place.low + 0.12, place.high - 0.25, uniform(rng, 0.3, 0.4)):
        racks.append(bar((x0, back, z), (x1, back + 0.09, z + 0.012)))
        racks.append(bar((x0, back + 0.08, z), (x1, back + 0.09, z + 0.07)))
        near, far = (x0 + 0.01, back + 0.01, z + 0.012), (x1 - 0.01, back + 0.08, z + 0.25)
        food += goods(rng, near, far, max(2, int((x1 - x0) / 0.12)))
    hinge = hinged(place, DOOR, travel, left=left)
    pull = _pull(rng, place, uniform(rng, 0.25, 0.6), left=left)
    parts = [
        Part(name=name, mesh=_panel(place), surface=skin, joint=hinge),
        Part(name=f"{name}_pull", mesh=pull, surface=chrome, parent=name),
        Part(name=f"{name}_racks", mesh=merge(racks), surface=flat(WHITE), parent=name),
    ]
    return [*parts, tinted(f"{name}_food", food, parent=name)] if food else parts


def _shelves(
    rng: np.random.Generator, width: float, depth: float, span: tuple[float, float]
) -> list[Part]:
    low, high = span
    levels = np.linspace(low, high, max(2, int((high - low) / uniform(rng, 0.24, 0.34))) + 1)
    x, y0, y1 = width / 2 - WALL - 0.004, -depth / 2 + DOOR + 0.03, depth / 2 - WALL - 0.004
    boards = [bar((-x, y0, z - 0.006), (x, y1, z + 0.006)) for z in levels[1:-1]]
    food: list[Tinted] = []
    for z, top in pairwise(levels):
        near, far = (-x + 0.01, y0 + 0.04, z + 0.008), (x - 0.01, y1 - 0.02, top - 0.02)
        food += goods(rng, near, far, int(rng.integers(3, 6)))
    shelf = Surface(rgba=(0.75, 0.85, 0.86, 1.0), specular=0.6, shininess=0.7)
    return [Part(name="shelves", mesh=merge(boards), surface=shelf), tinted("food", food)]
