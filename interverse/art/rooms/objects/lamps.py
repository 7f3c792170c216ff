"""Candles, desk lamps and floor lamps: what glows while on, and where its light sits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, moved, rotated, scaled, tube
from interverse.art.rooms.item import Drawn, Floats, Part, Rgb, RoomTexture, Surface, Triple
from interverse.art.rooms.kit import Draw, flat, shade

HEART = Surface(rgba=(1.0, 0.88, 0.45, 1.0), specular=0.0, emission=0.9)
FLAME = Surface(rgba=(1.0, 0.55, 0.1, 0.7), specular=0.0, emission=0.8)
WAXES: tuple[Rgb, ...] = ((0.95, 0.92, 0.82), (0.95, 0.92, 0.82), (0.7, 0.1, 0.1), (0.9, 0.8, 0.5))
LIGHTS: tuple[Rgb, ...] = ((1.0, 0.72, 0.3), (1.0, 0.8, 0.45), (0.7, 0.84, 1.0))
CLOTHS: tuple[Rgb, ...] = ((0.92, 0.88, 0.78), (0.9, 0.9, 0.88), (0.75, 0.62, 0.45))
LIT = Surface(rgba=(1.0, 0.93, 0.75, 1.0), emission=1.0)
Holder = tuple[Mesh, Mesh, Surface, list[Triple]]
"""A candle as it stands: its wax, what holds it, that one's surface, where the wicks are."""
UP = (0, 0, 1)


def _point(place: Sequence[float] | Floats) -> Triple:
    x, y, z = (float(value) for value in place)
    return x, y, z


def candle(draw: Draw) -> Drawn:
    """Returns a candle or a few: pillars, tapers in a stick, or a jar."""
    wax, holder, skin, tips = draw.one((_pillars, _pillars, _stick, _jar))(draw)
    colour = draw.one((*WAXES, draw.vivid(0.55, 0.75)))
    texture = draw.pattern("plain", shade(colour, 0.88), colour)
    lit = Surface(texture=texture, rgba=(1.0, 0.82, 0.55, 1.0), specular=0.2, emission=0.75)
    size = draw(0.85, 1.25)
    wicks = [tube([(x, y, z - 0.01), (x + 1e-3, y, z + 0.012)], 0.0015, 6) for x, y, z in tips]
    parts = [
        Part("wax", wax, Surface(texture=texture), alternate={"on": lit}),
        Part("holder", holder, skin),
        Part("wick", merge(wicks), flat((0.1, 0.08, 0.07))),
        Part("heart", _flames(tips, size * 0.55), HEART, shown_when="on"),
        Part("flame", _flames(tips, size), FLAME, shown_when="on"),
    ]
    x, y, z = _point(np.mean(tips, axis=0))
    return parts, "table", (x, y, z + 0.03)


def _flames(tips: list[Triple], size: float) -> Mesh:
    profile = [(0, 0), (0.7, 0.1), (1, 0.28), (0.8, 0.5), (0.35, 0.78), (0, 1)]
    drop = scaled(lathe(profile, 12, crease=3.0), np.array([0.017, 0.017, 0.07]) * size)
    return merge([moved(drop, (x, y, z + 0.006)) for x, y, z in tips])


def _pillar(draw: Draw, radius: float, height: float, at: Triple) -> Mesh:
    """Returns a candle with a hollow top and wax that ran down its side."""
    edge = draw(0.003, 0.008)
    rim = [(radius, height - edge), (radius * 0.93, height), (radius * 0.75, height - edge * 0.6)]
    top = [(radius * 0.3, height - edge), (0, height - edge)]
    found = [lathe([(0, 0), (radius, 0), *rim, *top], 20)]
    for turn in draw.uniform(0, 2 * np.pi, 3):
        x, y = radius * np.cos(turn), radius * np.sin(turn)
        line = [(x, y, height * draw(0.5, 0.85)), (x, y, height - edge)]
        found.append(tube(line, [radius * 0.12, radius * 0.06], 6))
    return moved(merge(found), at)


def _pillars(draw: Draw) -> Holder:
    count, radius = draw.one((1, 1, 2, 3)), draw(0.028, 0.045)
    apart = 0.0 if count == 1 else radius * 1.25 / np.sin(np.pi / count)
    waxes, tips = [], []
    for turn in 2 * np.pi * np.arange(count) / count + 0.5:
        x, y, height = apart * np.cos(turn), apart * np.sin(turn), draw(0.07, 0.2)
        waxes.append(_pillar(draw, radius, height, (x, y, 0.008)))
        tips.append((x, y, height + 0.004))
    wide = apart + radius * draw(1.3, 1.7)
    rim = [(wide, 0.014), (wide * 0.97, 0.016), (wide * 0.78, 0.006), (0, 0.006)]
    dish = lathe([(0, 0), (wide * 0.8, 0), *rim], 28)
    return merge(waxes), dish, draw.one((draw.glaze(), draw.metal(0, 2, 3), draw.wood())), tips


def _stick(draw: Draw) -> Holder:
    tall, radius = draw(0.06, 0.15), draw(0.011, 0.016)
    wide = draw(0.045, 0.065)
    foot = [(0, 0), (wide, 0), (wide * 0.9, 0.01), (0.012, 0.02), (0.009, tall * 0.4)]
    stem = [(0.018, tall * 0.5), (0.009, tall * 0.6), (0.01, tall * 0.88), (0.024, tall)]
    found = [lathe([*foot, *stem, (0.02, tall + 0.004), (0, tall + 0.002)], 18)]
    waxes, tips = [], []
    for x in draw.one(((0.0,), (0.0,), (-0.075, 0.0, 0.075))):
        if x != 0.0:  # a branch with a cup
            turn = np.linspace(0, np.pi / 2, 7)
            path = np.stack([x * np.sin(turn), np.zeros(7), tall - 0.05 * np.cos(turn)], axis=1)
            cup = [(0.008, tall - 0.012), (0.022, tall), (0.018, tall + 0.004), (0, tall + 0.002)]
            found += [tube(path, 0.005, 6), moved(lathe(cup, 12), (x, 0, 0))]
        height = draw(0.11, 0.2)
        waxes.append(_pillar(draw, radius, height, (x, 0, tall + 0.002)))
        tips.append((x, 0.0, tall + height - 0.003))
    skin = draw.one((draw.metal(0, 2, 2, 3), draw.metal(4), draw.wood()))
    return merge(waxes), merge(found), skin, tips


def _jar(draw: Draw) -> Holder:
    radius, height = draw(0.035, 0.05), draw(0.08, 0.12)
    fill = height * draw(0.55, 0.75)
    wax = _pillar(draw, radius * 0.93, fill, (0, 0, 0.004))
    low = lathe([(0, 0), (radius, 0), (radius, height * 0.16), (radius * 0.95, height * 0.17)], 24)
    inner, outer = radius * 0.95, radius * 1.03
    edge = [(inner, 0.95), (outer, 0.95), (outer, 1.0), (radius * 0.97, 1.0), (inner, 0.95)]
    band = lathe([(size, height * z) for size, z in edge], 24)
    post = lathe([(0.004, height * 0.15), (0.004, height * 0.96)], 6)
    turns = np.arange(6) * np.pi / 3
    posts = [moved(post, (radius * np.cos(turn), radius * np.sin(turn), 0)) for turn in turns]
    return wax, merge([low, band, *posts]), draw.metal(), [(0.0, 0.0, fill)]


def desk_lamp(draw: Draw) -> Drawn:
    """Returns a desk lamp: a foot, a bent or jointed arm, and a shade."""
    height, reach = draw(0.3, 0.46), draw(0.12, 0.24)
    dark, pale = flat((0.08, 0.08, 0.09), 0.5, 0.6), flat((0.92, 0.91, 0.88), 0.5, 0.6)
    bright = flat(draw.vivid(0.7, 0.7), 0.6, 0.7)
    skin = draw.one((bright, bright, dark, pale, draw.metal(0, 2, 3)))
    rods = skin if draw.chance(0.5) else draw.one((draw.metal(), draw.wood()))
    wide = draw(0.065, 0.1)
    rim = [(wide, 0.012), (wide * 0.85, 0.022), (0.02, 0.028), (0, 0.03)]
    foot = lathe([(0, 0), (wide, 0), *rim], 24)
    arm, end, tilt = draw.one((_jointed, _jointed, _goose))(draw, height, reach)
    yaw = draw.one((0.0, np.pi)) + draw(-0.5, 0.5)
    # The head opens downwards: a shade, its inside, and its bulb.
    wide, deep = draw(0.07, 0.11), draw(0.1, 0.16)
    neck, bend = draw(0.02, 0.035), draw(0.6, 1.6)
    share = np.linspace(0, 1, 8)
    radii = neck + (wide - neck) * share**bend
    outer = np.stack([radii[::-1], 0.02 - deep * share[::-1]], axis=1)
    inner = np.stack([radii - 0.003, 0.018 - deep * share], axis=1)
    glass = [(0, -1.02), (0.02, -0.98), (0.03, -0.78), (0.012, -0.3)]
    head = (
        lathe([*outer, (neck * 0.9, 0.03), (0.012, 0.045), (0, 0.046)], 24),
        lathe([(0, 0.018), *inner, (wide, 0.02 - deep)], 24),
        lathe([(radius, deep * z) for radius, z in glass], 12),
    )
    placed = [moved(rotated(mesh, (0, 1, 0), tilt), end) for mesh in head]
    stem, cover, inside, bulb = (rotated(mesh, UP, yaw) for mesh in (arm, *placed))
    colour = draw.one(LIGHTS)
    # Lit, the shade has a third of its own colour and two of the lamp's.
    own = skin.texture.colours[-1] if isinstance(skin.texture, RoomTexture) else skin.rgba[:3]
    red, green, blue = (a + (b - a) * 0.65 for a, b in zip(own, colour, strict=True))
    glow = Surface(rgba=(red, green, blue, 1.0), specular=0.0, emission=0.55)
    lit = Surface(rgba=(*colour, 1.0), emission=1.0)
    white = flat((0.9, 0.89, 0.85))
    parts = [
        Part("foot", foot, skin),
        Part("arm", stem, rods),
        Part("shade", cover, skin, alternate={"on": glow}),
        Part("inside", merge([inside, bulb]), white, alternate={"on": lit}),
    ]
    return parts, "table", _point(bulb.vertices.mean(axis=0))


def _jointed(draw: Draw, height: float, reach: float) -> tuple[Mesh, Floats, float]:
    """Returns an arm of two pairs of rods, where it ends, and the turn of the head."""
    elbow = (-reach * draw(0.4, 0.8), 0, height * draw(0.5, 0.65))
    path = np.array([(0, 0, 0.02), elbow, (reach * 0.6, 0, height)], dtype=float)
    tilt = -draw(0.35, 0.8)
    pin = rotated(lathe([(0.014, -0.014), (0.014, 0.014), (0, 0.016)], 12), (1, 0, 0), np.pi / 2)
    found = [moved(pin, point) for point in path[1:]]
    for ends in pairwise(path):
        rod = tube(ends, 0.0045, 6)
        found += [moved(rod, (0, -0.008, 0)), moved(rod, (0, 0.008, 0))]
    return merge(found), path[-1], tilt


def _goose(draw: Draw, height: float, reach: float) -> tuple[Mesh, Floats, float]:
    """Returns a bent arm, where it ends, and the turn of the head."""
    turn = np.linspace(0, np.pi * draw(0.62, 0.85), 12)
    radius = reach * 0.5
    x, z = radius - radius * np.cos(turn), height - radius + radius * np.sin(turn)
    stem = [(0, 0, 0.02), (0, 0, (height - radius) * 0.6)]
    path = np.array([*stem, *np.stack([x, np.zeros(12), z], axis=1)])
    return tube(path, 0.008, 8), path[-1], -draw(0.0, 0.3)


def floor_lamp(draw: Draw) -> Drawn:
    """Returns a floor lamp: a tall pole, a tripod or an arc under a shade."""
    height = draw(1.3, 1.75)
    black = flat((0.1, 0.1, 0.1), 0.5, 0.6)
    pole = draw.one((draw.metal(), draw.metal(), draw.wood(), black))
    stem, top = draw.one((_pole, _pole, _tripod, _arc))(draw, height)
    low, tall = draw(0.2, 0.29), draw(0.26, 0.42)
    high = low * draw(0.45, 1.0)
    upper, bottom = tall * 0.6, -tall * 0.4
    belly = draw(-0.1, 0.12) if draw.chance(0.5) else 0.0
    share = np.linspace(0, 1, 6)
    radii = low + (high - low) * share + low * belly * np.sin(np.pi * share)
    outer = np.stack([radii, bottom + (upper - bottom) * share], axis=1)
    cover = lathe([*outer, *(outer[::-1] - (0.004, 0)), outer[0]], 32, wraps=3)
    bulb = lathe([(0, -0.04), (0.035, -0.02), (0.04, 0.02), (0.015, 0.06), (0, 0.07)], 12)
    colour = draw.one((*CLOTHS, draw.vivid(0.45, 0.75)))
    kind = draw.one(("weave", "columns", "plain"))
    texture = draw.pattern(kind, shade(colour, 0.85), colour, scale=2.0)
    glow = Surface(
        texture=texture,
        rgba=(1.0, 0.88, 0.62, 1.0),
        specular=0.05,
        shininess=0.1,
        emission=draw(0.75, 0.95),
    )
    skin = Surface(texture=texture, specular=0.05, shininess=0.1)
    parts = [
        Part("stem", stem, pole),
        Part("shade", moved(cover, top), skin, alternate={"on": glow}),
        Part("bulb", moved(bulb, top), flat((0.95, 0.94, 0.9)), alternate={"on": LIT}),
    ]
    return parts, "floor", _point(top)


def _disc(draw: Draw) -> Mesh:
    wide, tall = draw(0.12, 0.17), draw(0.02, 0.04)
    top = [(wide * 0.9, tall), (0.02, tall + 0.01), (0, tall + 0.01)]
    return lathe([(0, 0), (wide, 0), (wide, tall * 0.6), *top], 28)


def _pole(draw: Draw, height: float) -> tuple[Mesh, Floats]:
    thick = draw(0.009, 0.016)
    ring = lathe([(thick, 0), (thick * 1.9, 0.01), (thick * 1.9, 0.02), (thick, 0.03)], 12)
    rings = [moved(ring, (0, 0, z)) for z in draw.uniform(0.1, height - 0.3, 2)]
    stem = tube([(0, 0, 0.02), (0, 0, height)], thick, 10)
    return merge([_disc(draw), stem, *rings]), np.array([0, 0, height])


def _tripod(draw: Draw, height: float) -> tuple[Mesh, Floats]:
    spread, knee = draw(0.2, 0.3), height * draw(0.78, 0.92)
    turns = draw(0, 2) + 2 * np.pi * np.arange(3) / 3
    ways = np.stack([np.cos(turns), np.sin(turns), np.zeros(3)], axis=1)
    lines = np.stack([spread * ways, 0.02 * ways + (0, 0, knee)], axis=1)
    rods = [tube(line, [0.011, 0.016], 8) for line in lines]
    hub = [(0, knee - 0.05), (0.045, knee - 0.04), (0.045, knee + 0.01), (0, knee + 0.02)]
    neck = tube([(0, 0, knee), (0, 0, height)], 0.01, 8)
    return merge([*rods, lathe(hub, 14), neck]), np.array([0, 0, height])


def _arc(draw: Draw, height: float) -> tuple[Mesh, Floats]:
    reach, side = draw(0.3, 0.5), draw.one((-1, 1))
    turn = np.linspace(0, np.pi * 0.72, 14)
    rise = height * 0.55
    x = reach * 0.6 * (1 - np.cos(turn)) * side
    z = rise + (height - rise) * np.sin(turn)
    path = np.array([(0, 0, 0.02), (0, 0, rise * 0.5), *np.stack([x, np.zeros(14), z], axis=1)])
    return merge([_disc(draw), tube(path, 0.012, 8)]), path[-1] - (0, 0, 0.05)
