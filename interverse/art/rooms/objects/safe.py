"""Safes: thick-walled steel with a wheel or a keypad; gold and papers inside."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, moved, painted, rotated, tube
from interverse.art.rooms.item import Item, Part, Rgb, RoomTexture, Surface, Triple
from interverse.art.rooms.objects.joinery import (
    Front,
    Tinted,
    bar,
    carcass,
    finished,
    hinged,
    lining,
    tinted,
)
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    flat,
    metal,
    picture,
    shade,
    uniform,
    variant,
)

DOOR = 0.05
WALL = 0.045
FOOT = 0.02
STEELS: tuple[Rgb, ...] = (
    (0.22, 0.24, 0.26),
    (0.14, 0.15, 0.16),
    (0.18, 0.28, 0.23),
    (0.38, 0.39, 0.40),
    (0.2, 0.23, 0.34),
    (0.36, 0.16, 0.14),
)
FELTS: tuple[Rgb, ...] = ((0.45, 0.06, 0.08), (0.08, 0.2, 0.12), (0.1, 0.12, 0.35))
GOLD: Rgb = (0.9, 0.68, 0.18)
NOTES: tuple[Rgb, ...] = ((0.45, 0.6, 0.4), (0.92, 0.9, 0.82))


def build(rng: np.random.Generator) -> Item:
    """Returns a safe."""
    size = (uniform(rng, 0.36, 0.55), uniform(rng, 0.36, 0.48), uniform(rng, 0.36, 0.75))
    width, depth, height = size
    skin = _steel(rng)
    gap = WALL * 0.55
    x = width / 2 - gap
    door = Front(-x, x, FOOT + gap, FOOT + height - gap, -depth / 2)
    left = chance(rng, 0.5)
    slab = [door.slab(0, 0.02, bevel=0.007), door.slab(-0.015, DOOR, 0.025, 0.005)]
    slab.append(door.slab(0.006, 0.002, 0.03, 0.006))
    hinge = hinged(door, 0.004, uniform(rng, 1.9, 2.2), left=left)
    fittings = merge([_wheel(rng, door, left=left), _pins(door, left=left)])
    bright = metal(rng, (0, 2, 2))
    parts = [
        Part(name="case", mesh=_case(size), surface=skin),
        *_inside(rng, size),
        Part(name="door", mesh=merge(slab), surface=skin, joint=hinge),
        Part(name="fittings", mesh=fittings, surface=bright, parent="door"),
    ]
    if chance(rng, 0.5):
        parts.append(_keypad(rng, door))
    return finished("Safe", parts, "floor")


def _steel(rng: np.random.Generator) -> Surface:
    colour = choose(rng, STEELS)
    colours = (shade(colour, 0.75), shade(colour, 1.15))
    texture = RoomTexture(kind="iron", colours=colours, seed=variant(rng))
    return Surface(texture=texture, specular=0.5, shininess=0.4)


def _case(size: Triple) -> Mesh:
    width, depth, _ = size
    x, y = width / 2 - 0.06, depth / 2 - 0.06
    feet = [
        bar((sx * x - 0.025, sy * y - 0.025, 0), (sx * x + 0.025, sy * y + 0.025, FOOT))
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    return merge([carcass(size, WALL, front=0.012, floor=FOOT), *feet])


def _inside(rng: np.random.Generator, size: Triple) -> list[Part]:
    width, depth, height = size
    middle = FOOT + height * 0.5
    x = width / 2 - WALL
    hollow = lining(size, WALL, front=0.07, floor=FOOT)
    shelf = bar((-x, -depth / 2 + 0.08, middle - 0.006), (x, depth / 2 - WALL, middle + 0.006))
    felt = flat(choose(rng, FELTS), 0.05, 0.1)
    y = -depth / 2 + 0.14
    treasure = [
        *_stacks(rng, (x, y, FOOT + WALL + 0.004), (0.09, 0.045, 0.026), GOLD),
        *_stacks(rng, (x, y, middle + 0.008), (0.09, 0.1, 0.022), choose(rng, NOTES)),
    ]
    lined = Part(name="lining", mesh=merge([hollow, shelf]), surface=felt)
    return [lined, tinted("treasure", treasure)]


def _stacks(rng: np.random.Generator, place: Triple, size: Triple, colour: Rgb) -> list[Tinted]:
    """Returns piles of bars or bundles of a size, side by side from -x to x at y and z."""
    x, y, z = place
    found: list[Tinted] = []
    for column in range(int((2 * x - 0.03) / (size[0] * 1.12))):
        left = -x + 0.02 + column * size[0] * 1.12
        for layer in range(int(rng.integers(1, 4))):
            low = (left, y, z + layer * size[2])
            high = (left + size[0], y + size[1], z + (layer + 0.93) * size[2])
            found.append((bar(low, high, 0.003), colour))
    return found


def _wheel(rng: np.random.Generator, door: Front, *, left: bool) -> Mesh:
    x, face, z = door.middle
    size = min(door.right - door.left, door.high - door.low) * uniform(rng, 0.17, 0.24)
    hub = lathe([(size * 0.35, 0), (size * 0.35, 0.02), (size * 0.25, 0.035), (0, 0.037)], 16)
    found, spokes = [hub], choose(rng, (3, 4, 5))
    ball = lathe([(0, -0.012), (0.012, 0), (0, 0.012)], 8)
    for turn in 2 * np.pi * np.arange(spokes) / spokes + 0.3:
        tip = (size * np.cos(turn), size * np.sin(turn), 0.028)
        found += [tube([(0, 0, 0.028), tip], 0.007, 6), moved(ball, tip)]
    if chance(rng, 0.5):
        turn = np.linspace(0, 2 * np.pi, 21)
        ring = np.stack([size * np.cos(turn), size * np.sin(turn), np.full(21, 0.028)], axis=1)
        found.append(tube(ring, 0.008, 6))
    aside = (door.right - door.left) * (0.08 if left else -0.08)
    return moved(rotated(merge(found), (1, 0, 0), np.pi / 2), (x + aside, face - 0.006, z - 0.03))


def _pins(door: Front, *, left: bool) -> Mesh:
    edge = door.left if left else door.right
    ends = (door.low + 0.04, door.high - 0.1)
    return merge(
        [tube([(edge, door.face, z), (edge, door.face, z + 0.06)], 0.012, 8) for z in ends]
    )


def _keypad(rng: np.random.Generator, door: Front) -> Part:
    x, face, _ = door.middle
    pad = bar(
        (x - 0.05, face - 0.016, door.high - 0.17), (x + 0.05, face - 0.004, door.high - 0.045)
    )
    keys = ((0.06, 0.06, 0.07), (0.75, 0.75, 0.77), (0.2, 0.9, 0.4))
    surface = picture("clock", keys, variant(rng), 0.1)
    return Part(name="pad", mesh=painted(pad, 0, 2), surface=surface, parent="door")
