"""Microwave ovens: a door with a dark window, a panel with a clock, a lit turntable inside."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, bevelled_box, lathe, merge, moved, painted
from interverse.art.rooms.item import Item, Part, Rgb, Surface, Triple
from interverse.art.rooms.objects.joinery import Front, bar, carcass, finished, grip, hinged, lining
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    flat,
    metal,
    picture,
    uniform,
    variant,
    vivid,
)

DOOR = 0.03
WALL = 0.022
FOOT = 0.012
BLACK: Rgb = (0.05, 0.05, 0.06)
WHITE: Rgb = (0.92, 0.92, 0.91)
DIGITS: tuple[Rgb, ...] = ((0.2, 1.0, 0.5), (0.2, 0.7, 1.0), (1.0, 0.4, 0.1))


def build(rng: np.random.Generator) -> Item:
    """Returns a microwave oven."""
    size = (uniform(rng, 0.43, 0.56), uniform(rng, 0.31, 0.4), uniform(rng, 0.25, 0.33))
    width, depth, height = size
    colour = choose(rng, (WHITE, (0.1, 0.1, 0.11), WHITE, vivid(rng, 0.4, 0.75)))
    skin = metal(rng, (0, 1)) if chance(rng, 0.35) else flat(colour, 0.5, 0.6)
    split = width / 2 - width * uniform(rng, 0.2, 0.28)
    low, high = FOOT + 0.004, FOOT + height - 0.004
    door = Front(-width / 2, split - 0.002, low, high, -depth / 2)
    panel = Front(split + 0.002, width / 2, low, high, -depth / 2)
    case = [carcass(size, WALL, front=DOOR, floor=FOOT), panel.slab(0, DOOR, bevel=0.006)]
    parts = [
        Part(name="case", mesh=merge([*case, _feet(width, depth)]), surface=skin),
        *_inside(rng, size, split),
        _panel(rng, panel),
        *_door(rng, door, skin),
    ]
    return finished("Microwave", parts, "counter")


def _feet(width: float, depth: float) -> Mesh:
    x, y = width / 2 - 0.04, depth / 2 - 0.04
    places = [(sx * x, sy * y, FOOT / 2) for sx in (-1, 1) for sy in (-1, 1)]
    return merge([bevelled_box((0.03, 0.03, FOOT), 0.003, place) for place in places])


def _inside(rng: np.random.Generator, size: Triple, split: float) -> list[Part]:
    """Returns the cavity, which is lit while the oven runs, a glass dish and a bowl on it."""
    width, depth, height = size
    hollow = lining(size, WALL, front=DOOR, floor=FOOT)
    near, far = -depth / 2 + DOOR, depth / 2 - 0.01
    wall = bar((split, near, FOOT + 0.01), (split + 0.012, far, FOOT + height - 0.01))
    dish = lathe([(0, 0), (0.12, 0), (0.125, 0.006), (0.118, 0.01), (0, 0.006)], 20)
    rim = [(0.075, 0.06), (0.07, 0.06), (0.045, 0.02), (0, 0.02)]
    bowl = lathe([(0, 0.01), (0.05, 0.01), *rim], 16)
    middle = ((split - width / 2) / 2, 0.02, FOOT + WALL + 0.004)
    lit = Surface(rgba=(1.0, 0.85, 0.55, 1.0), emission=0.55)
    grey, glass = flat((0.78, 0.76, 0.72), 0.3, 0.4), flat((0.7, 0.78, 0.8), 0.7, 0.8)
    return [
        Part(name="lining", mesh=merge([hollow, wall]), surface=grey, alternate={"on": lit}),
        Part(name="dish", mesh=moved(dish, middle), surface=glass),
        Part(name="bowl", mesh=moved(bowl, middle), surface=flat(vivid(rng), 0.5, 0.6)),
    ]


def _panel(rng: np.random.Generator, place: Front) -> Part:
    keys = choose(rng, ((0.15, 0.15, 0.16), (0.3, 0.3, 0.32), (0.6, 0.6, 0.62)))
    seed = variant(rng)
    dark = picture("clock", (BLACK, keys, (0.1, 0.22, 0.14)), seed)
    lit = picture("clock", (BLACK, keys, choose(rng, DIGITS)), seed, 0.7)
    mesh = painted(place.slab(0.002, 0.004, 0.012, 0.001), 0, 2)
    return Part(name="panel", mesh=mesh, surface=dark, alternate={"on": lit})


def _door(rng: np.random.Generator, place: Front, skin: Surface) -> list[Part]:
    border = uniform(rng, 0.03, 0.05)
    hole = place._replace(right=place.right - border * 0.5)
    panes = [hole.slab(0.003, 0.003, border, 0.002), hole.slab(4e-3 - DOOR, DOOR, border, 0.002)]
    dark = picture("mesh_window", ((0.03, 0.03, 0.035), (0.12, 0.12, 0.13)), 0)
    lit = picture("mesh_window", ((0.12, 0.08, 0.03), (1.0, 0.72, 0.3)), 0, 0.75)
    pull = grip(rng, (place.high - place.low) * uniform(rng, 0.55, 0.8), 0.03)
    pull = moved(pull, (place.right - 0.02, place.face, place.middle[2]))
    hinge = hinged(place, DOOR, uniform(rng, 1.9, 2.2), left=True)
    window = painted(merge(panes), 0, 2)
    slab = place.slab(0, DOOR - 0.002, bevel=0.006)
    return [
        Part(name="door", mesh=slab, surface=skin, joint=hinge),
        Part(name="window", mesh=window, surface=dark, alternate={"on": lit}, parent="door"),
        Part(name="pull", mesh=pull, surface=metal(rng, (0, 4)), parent="door"),
    ]
