"""Laundry hampers: wicker or cloth baskets with a lid, full of clothes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from interverse.art.meshes import (
    Mesh,
    extrude,
    grid,
    lifted,
    merge,
    moved,
    rotated,
    scaled,
    soft_box,
    superellipse,
    tiled,
    tube,
)
from interverse.art.rooms.item import Item, Part, Rgb, RoomJoint, RoomTexture, Surface, Triple
from interverse.art.rooms.objects.joinery import Tinted, finished, tinted
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    cloth,
    flat,
    shade,
    uniform,
    variant,
    vivid,
    wood,
)

POINTS = 32


STRAWS: tuple[Rgb, ...] = (
    (0.7, 0.5, 0.3),
    (0.5, 0.33, 0.2),
    (0.85, 0.75, 0.6),
    (0.88, 0.86, 0.82),
    (0.4, 0.38, 0.36),
)


def build(rng: np.random.Generator) -> Item:
    """Returns a laundry hamper."""
    half, height = uniform(rng, 0.18, 0.27), uniform(rng, 0.48, 0.72)
    power = choose(rng, (2.0, 6.0, 8.0))
    deep = half if power == 2.0 else uniform(rng, 0.16, 0.22)
    size, taper = (half, deep, height), uniform(rng, 0.75, 0.95)
    skin = _skin(rng)
    trim = choose(rng, (wood(rng), flat(vivid(rng, 0.4, 0.4)), flat((0.3, 0.2, 0.12))))
    parts = [
        Part(name="basket", mesh=_basket(size, power, taper), surface=skin),
        Part(name="trim", mesh=_rims(size, power, taper), surface=trim),
        tinted("clothes", _clothes(rng, size)),
        *_lid(rng, size, power, (skin, trim)),
    ]
    return finished("LaundryHamper", parts, "floor")


def _skin(rng: np.random.Generator) -> Surface:
    if chance(rng, 0.3):
        return cloth(rng)
    tone = choose(rng, STRAWS)
    tones = (shade(tone, 0.3), tone, shade(tone, 1.1))
    texture = RoomTexture(kind="wicker", colours=tones, seed=variant(rng))
    return Surface(texture=texture, specular=0.1, shininess=0.2)


def _lid(
    rng: np.random.Generator, size: Triple, power: float, skins: tuple[Surface, Surface]
) -> list[Part]:
    half, deep, height = size
    skin, trim = skins
    own = skin if chance(rng, 0.6) else choose(rng, (wood(rng), cloth(rng)))
    shape = superellipse(half * 1.04, deep * 1.04, power, POINTS)
    cover = tiled(lifted(extrude(shape, 0.022, bevel=0.007), height + 0.001), 3.0)
    knob = scaled(soft_box((1, 1, 1), 0.4, 1), (0.07, 0.025, 0.03))
    origin, travel = (0, deep, height + 0.004), uniform(rng, 2.0, 2.4)
    hinge = RoomJoint(kind="hinge", origin=origin, axis=(-1, 0, 0), travel=travel)
    knob = moved(knob, (0, -deep * 0.7, height + 0.032))
    return [
        Part(name="lid", mesh=cover, surface=own, joint=hinge),
        Part(name="knob", mesh=knob, surface=trim, parent="lid"),
    ]


def _basket(size: Triple, power: float, taper: float) -> Mesh:
    half, deep, height = size
    rows = []
    for factor, z in (
        (taper * 0.2, 0.004),
        (taper, 0.004),
        (taper, 0.0),
        (1.0, height),
        (0.96, height),
        (taper * 0.92, height * 0.3),
        (0.1, height * 0.3),
    ):
        outline = superellipse(half * factor, deep * factor, power, POINTS)
        ring = np.column_stack([outline, np.full(POINTS, z)])
        rows.append(np.concatenate([ring, ring[:1]]))
    bands = [grid(np.stack(pair), closed=True) for pair in pairwise(rows[1:])]
    return tiled(merge(bands), (4.0, 2.5))


def _rims(size: Triple, power: float, taper: float) -> Mesh:
    half, deep, height = size
    found = []
    for factor, z, thick in ((taper, 0.012, 0.012), (1.0, height - 0.008, 0.01)):
        outline = superellipse(half * factor, deep * factor, power, POINTS)
        ring = np.column_stack([outline, np.full(POINTS, z)])
        found.append(tube(np.concatenate([ring, ring[:1]]), thick, 6, capped=False))
    turn = np.linspace(-np.pi / 2, np.pi / 2, 7)
    loop = np.stack(
        [half * 0.97 + 0.05 * np.cos(turn), 0.06 * np.sin(turn), np.full(7, height * 0.78)], axis=1
    )
    side = tube(loop, 0.009, 6)
    return merge([*found, side, rotated(side, (0, 0, 1), np.pi)])


def _clothes(rng: np.random.Generator, size: Triple) -> list[Tinted]:
    half, deep, height = size
    lump, count = soft_box((1, 1, 1), 0.4, 1), 10
    found: list[Tinted] = []
    for number in range(count):
        turn, away = 2.4 * number, 0.55 * np.sqrt((number + 0.5) / count)
        stretch = np.array(size) * rng.uniform((0.5, 0.4, 0.12), (0.8, 0.7, 0.2))
        lying = rotated(scaled(lump, stretch), rng.normal(size=3), uniform(rng, 0, 0.5))
        x, y = half * away * np.cos(turn), deep * away * np.sin(turn)
        found.append(
            (moved(lying, (x, y, height * uniform(rng, 0.78, 0.86))), vivid(rng, 0.5, 0.75))
        )
    return found
