"""Cardboard boxes: four flaps on top, tape, labels, and something packed inside."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, merge, painted, soft_box
from interverse.art.rooms.item import Item, Part, Rgb, RoomJoint, RoomTexture, Surface, Triple
from interverse.art.rooms.objects.joinery import Tinted, bar, finished, tinted
from interverse.art.rooms.surfaces import chance, choose, flat, shade, uniform, variant, vivid

WALL = 0.006


CARDS: tuple[Rgb, ...] = (
    (0.72, 0.54, 0.34),
    (0.62, 0.45, 0.27),
    (0.8, 0.64, 0.44),
    (0.9, 0.88, 0.84),
)
INKS: tuple[Rgb, ...] = ((0.15, 0.12, 0.1), (0.65, 0.12, 0.1), (0.1, 0.2, 0.5))
TAPES: tuple[Rgb, ...] = ((0.78, 0.66, 0.42), (0.85, 0.82, 0.75), (0.55, 0.38, 0.2))
PADDING: Rgb = (0.16, 0.11, 0.07)


def build(rng: np.random.Generator) -> Item:
    """Returns a cardboard box."""
    size = (uniform(rng, 0.26, 0.55), uniform(rng, 0.22, 0.42), uniform(rng, 0.16, 0.42))
    colour = choose(rng, (*CARDS, vivid(rng, 0.4, 0.7)))
    dark = shade(colour, 0.8)
    printed = RoomTexture(
        kind="parcel", colours=(dark, colour, choose(rng, INKS)), seed=variant(rng)
    )
    plain = RoomTexture(kind="cardboard", colours=(dark, colour), seed=variant(rng))
    outside, card = (Surface(texture=t, specular=0.05, shininess=0.1) for t in (printed, plain))
    x, y = size[0] / 2, size[1] / 2
    parts = [
        Part(name="sides", mesh=_sides(size), surface=outside),
        Part(name="bottom", mesh=bar((-x, -y, 0.001), (x, y, WALL), 0.002), surface=card),
        tinted("packed", _packed(rng, size)),
        *_flaps(rng, size, card, flat(choose(rng, TAPES), 0.6, 0.7)),
    ]
    return finished("Box", parts, choose(rng, ("floor", "floor", "table")))


def _sides(size: Triple) -> Mesh:
    """Returns four walls, the whole print on each."""
    x, y, height = size[0] / 2, size[1] / 2, size[2]
    inner = y - WALL
    walls = (
        ((-x, -y, 0), (x, -inner, height), 0),
        ((-x, inner, 0), (x, y, height), 0),
        ((-x, -inner, 0), (-x + WALL, inner, height), 1),
        ((x - WALL, -inner, 0), (x, inner, height), 1),
    )
    return merge([painted(bar(low, high, 0.002), across, 2) for low, high, across in walls])


def _flaps(rng: np.random.Generator, size: Triple, card: Surface, tape: Surface) -> list[Part]:
    width, depth, height = size
    x, y, thin = width / 2, depth / 2, 0.004
    low, high = height, height + thin + 0.001
    reach = min(y, x) * 0.98
    slabs = {
        "left": (bar((-x, -y, low), (-x + reach, y, low + thin), 0.001), (-x, 0, low), (0, -1, 0)),
        "right": (bar((x - reach, -y, low), (x, y, low + thin), 0.001), (x, 0, low), (0, 1, 0)),
        "front": (bar((-x, -y, high), (x, -0.001, high + thin), 0.001), (0, -y, low), (1, 0, 0)),
        "back": (bar((-x, 0.001, high), (x, y, high + thin), 0.001), (0, y, low), (-1, 0, 0)),
    }
    parts = []
    for name, (mesh, origin, axis) in slabs.items():
        joint = RoomJoint(kind="hinge", origin=origin, axis=axis, travel=uniform(rng, 2.4, 3.1))
        parts.append(Part(name=name, mesh=mesh, surface=card, joint=joint))
    if chance(rng, 0.7):
        for name, sign in (("front", -1), ("back", 1)):
            y0, y1 = sorted((0.0005 * sign, 0.028 * sign))
            strip = bar((-x, y0, high + thin - 0.001), (x, y1, high + thin + 0.001), 0.0005)
            parts.append(Part(name=f"tape_{name}", mesh=strip, surface=tape, parent=name))
    return parts


def _packed(rng: np.random.Generator, size: Triple) -> list[Tinted]:
    width, depth, height = size
    x, y, level = width / 2 - WALL, depth / 2 - WALL, height * 0.35
    found: list[Tinted] = [(bar((-x, -y, WALL), (x, y, level)), PADDING)]
    for column in (-1, 0, 1):
        for row in (-0.5, 0.5):
            tall = height * uniform(rng, 0.1, 0.45)
            centre = (column * width * 0.29, row * depth * 0.42, level + tall / 2)
            lump = soft_box((width * 0.26, depth * 0.36, tall), 0.015, 1, centre)
            found.append((lump, vivid(rng)))
    return found
