"""Candles: pillars, tapers in a stick, jars and groups; a flame and glowing wax while they burn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from interverse.art.meshes import Mesh, lathe, merge, moved, scaled, tube
from interverse.art.rooms.item import Item, Part, Rgb, RoomTexture, Surface, Triple
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import (
    choose,
    flat,
    glaze,
    metal,
    shade,
    uniform,
    variant,
    vivid,
    wood,
)

HEART = Surface(rgba=(1.0, 0.88, 0.45, 1.0), specular=0.0, emission=0.9)
FLAME = Surface(rgba=(1.0, 0.55, 0.1, 0.7), specular=0.0, emission=0.8)
WAXES: tuple[Rgb, ...] = ((0.95, 0.92, 0.82), (0.95, 0.92, 0.82), (0.7, 0.1, 0.1), (0.9, 0.8, 0.5))


class CandleParts(NamedTuple):
    """A candle as it stands: its wax, what holds it and where the wicks are."""

    wax: Mesh
    holder: Mesh
    skin: Surface
    tips: list[Triple]


def build(rng: np.random.Generator) -> Item:
    """Returns a candle, or a few."""
    made = choose(rng, (_pillars, _pillars, _stick, _jar))(rng)
    colour = choose(rng, (*WAXES, vivid(rng, 0.55, 0.75)))
    texture = RoomTexture(kind="plain", colours=(shade(colour, 0.88), colour), seed=variant(rng))
    wax = Surface(texture=texture, specular=0.3, shininess=0.4)
    lit = Surface(texture=texture, rgba=(1.0, 0.82, 0.55, 1.0), specular=0.2, emission=0.75)
    size = uniform(rng, 0.85, 1.25)
    hearts = merge([_flame(tip, size * 0.55) for tip in made.tips])
    flames = merge([_flame(tip, size) for tip in made.tips])
    parts = [
        Part(name="wax", mesh=made.wax, surface=wax, alternate={"on": lit}),
        Part(name="holder", mesh=made.holder, surface=made.skin),
        Part(name="wick", mesh=_wicks(made.tips), surface=flat((0.1, 0.08, 0.07))),
        Part(name="heart", mesh=hearts, surface=HEART, shown_when="on"),
        Part(name="flame", mesh=flames, surface=FLAME, shown_when="on"),
    ]
    x, y, z = (float(v) for v in np.mean(made.tips, axis=0))
    return finished("Candle", parts, "table", light=(x, y, z + 0.03))


def _wicks(tips: Sequence[Triple]) -> Mesh:
    lines = [[(x, y, z - 0.01), (x + 1e-3, y, z + 0.012)] for x, y, z in tips]
    return merge([tube(line, 0.0015, 6) for line in lines])


def _flame(tip: Triple, size: float) -> Mesh:
    profile = [(0, 0), (0.7, 0.1), (1, 0.28), (0.8, 0.5), (0.35, 0.78), (0, 1)]
    drop = scaled(lathe(profile, 12, crease=3.0), np.array([0.017, 0.017, 0.07]) * size)
    x, y, z = tip
    return moved(drop, (x, y, z + 0.006))


def _pillar(rng: np.random.Generator, radius: float, height: float, at: Triple) -> Mesh:
    """Returns a candle with a hollow top and wax that ran down its side."""
    edge = uniform(rng, 0.003, 0.008)
    rim = [(radius, height - edge), (radius * 0.93, height), (radius * 0.75, height - edge * 0.6)]
    top = [(radius * 0.3, height - edge), (0, height - edge)]
    body = lathe([(0, 0), (radius, 0), *rim, *top], 20)
    drips = []
    for turn in rng.uniform(0, 2 * np.pi, 3):
        x, y = radius * np.cos(turn), radius * np.sin(turn)
        low = height * uniform(rng, 0.5, 0.85)
        drips.append(tube([(x, y, low), (x, y, height - edge)], [radius * 0.12, radius * 0.06], 6))
    return moved(merge([body, *drips]), at)


def _pillars(rng: np.random.Generator) -> CandleParts:
    count, radius = choose(rng, (1, 1, 2, 3)), uniform(rng, 0.028, 0.045)
    apart = 0.0 if count == 1 else radius * 1.25 / np.sin(np.pi / count)
    waxes, tips = [], []
    for turn in 2 * np.pi * np.arange(count) / count + 0.5:
        x, y, height = apart * np.cos(turn), apart * np.sin(turn), uniform(rng, 0.07, 0.2)
        waxes.append(_pillar(rng, radius, height, (x, y, 0.008)))
        tips.append((x, y, height + 0.004))
    wide = apart + radius * uniform(rng, 1.3, 1.7)
    rim = [(wide, 0.014), (wide * 0.97, 0.016), (wide * 0.78, 0.006), (0, 0.006)]
    dish = lathe([(0, 0), (wide * 0.8, 0), *rim], 28)
    return CandleParts(
        merge(waxes), dish, choose(rng, (glaze(rng), metal(rng, (0, 2, 3)), wood(rng))), tips
    )


def _stick(rng: np.random.Generator) -> CandleParts:
    tall, radius = uniform(rng, 0.06, 0.15), uniform(rng, 0.011, 0.016)
    wide = uniform(rng, 0.045, 0.065)
    foot = [(0, 0), (wide, 0), (wide * 0.9, 0.01), (0.012, 0.02), (0.009, tall * 0.4)]
    stem = [(0.018, tall * 0.5), (0.009, tall * 0.6), (0.01, tall * 0.88), (0.024, tall)]
    found = [lathe([*foot, *stem, (0.02, tall + 0.004), (0, tall + 0.002)], 18)]
    waxes, tips = [], []
    for x in choose(rng, ((0.0,), (0.0,), (-0.075, 0.0, 0.075))):
        if x != 0.0:
            found += _branch(x, tall)
        height = uniform(rng, 0.11, 0.2)
        waxes.append(_pillar(rng, radius, height, (x, 0, tall + 0.002)))
        tips.append((x, 0.0, tall + height - 0.003))
    skin = choose(rng, (metal(rng, (0, 2, 2, 3)), metal(rng, (4,)), wood(rng)))
    return CandleParts(merge(waxes), merge(found), skin, tips)


def _branch(x: float, tall: float) -> list[Mesh]:
    turn = np.linspace(0, np.pi / 2, 7)
    path = np.stack([x * np.sin(turn), np.zeros(7), tall - 0.05 * np.cos(turn)], axis=1)
    cup = [(0.008, tall - 0.012), (0.022, tall), (0.018, tall + 0.004), (0, tall + 0.002)]
    return [tube(path, 0.005, 6), moved(lathe(cup, 12), (x, 0, 0))]


def _jar(rng: np.random.Generator) -> CandleParts:
    radius, height = uniform(rng, 0.035, 0.05), uniform(rng, 0.08, 0.12)
    fill = height * uniform(rng, 0.55, 0.75)
    wax = _pillar(rng, radius * 0.93, fill, (0, 0, 0.004))
    low = lathe([(0, 0), (radius, 0), (radius, height * 0.16), (radius * 0.95, height * 0.17)], 24)
    inner, outer = radius * 0.95, radius * 1.03
    edge = [(inner, 0.95), (outer, 0.95), (outer, 1.0), (radius * 0.97, 1.0), (inner, 0.95)]
    band = lathe([(size, height * z) for size, z in edge], 24)
    post = lathe([(0.004, height * 0.15), (0.004, height * 0.96)], 6)
    turns = np.arange(6) * np.pi / 3
    posts = [moved(post, (radius * np.cos(turn), radius * np.sin(turn), 0)) for turn in turns]
    return CandleParts(wax, merge([low, band, *posts]), metal(rng), [(0.0, 0.0, fill)])
