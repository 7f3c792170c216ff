"""Televisions: flat screens on feet or on the wall, and old deep ones; they glow and crack."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import (
    Mesh,
    bevelled_box,
    frame,
    lathe,
    merge,
    moved,
    painted,
    rotated,
    sheet,
    soft_box,
    tube,
)
from interverse.art.rooms.item import Item, Part, Rgb, Triple
from interverse.art.rooms.objects.joinery import Front, bar, finished
from interverse.art.rooms.objects.screen import screen
from interverse.art.rooms.surfaces import chance, choose, flat, metal, uniform, vivid, wood

CASINGS: tuple[Rgb, ...] = (
    (0.05, 0.05, 0.055),
    (0.05, 0.05, 0.055),
    (0.3, 0.31, 0.33),
    (0.85, 0.85, 0.86),
)
FOOT = 0.03


def build(rng: np.random.Generator) -> Item:
    """Returns a television."""
    return _old(rng) if chance(rng, 0.2) else _flat(rng)


def _flat(rng: np.random.Generator) -> Item:
    width, depth = uniform(rng, 0.7, 1.35), uniform(rng, 0.035, 0.06)
    height = width * uniform(rng, 0.55, 0.62)
    hangs = chance(rng, 0.25)
    rise = 0.0 if hangs else uniform(rng, 0.05, 0.11)
    place = Front(-width / 2, width / 2, rise, rise + height, -depth / 2)
    x, face, z = place.middle
    border = uniform(rng, 0.01, 0.03)
    casing = flat(choose(rng, CASINGS), 0.5, 0.6)
    rim = moved(frame((width, height), border, 0.012, 0.003), (x, face + 0.012, z))
    pane = painted(place.slab(-0.004, 0.009, border * 0.9, 0.001), 0, 2)
    body = merge([place.slab(-0.008, depth, bevel=0.006), rim])
    parts = [Part(name="casing", mesh=body, surface=casing), screen(rng, pane, "broadcast")]
    if hangs:
        bracket = bevelled_box((width * 0.4, 0.05, height * 0.4), 0.005, (x, depth / 2 + 0.025, z))
        parts.append(Part(name="bracket", mesh=bracket, surface=flat((0.1, 0.1, 0.1))))
        return finished("Television", parts, "wall")
    skin = casing if chance(rng, 0.6) else metal(rng, (0, 1))
    parts.append(Part(name="feet", mesh=_feet(rng, width, rise), surface=skin))
    return finished("Television", parts, "table")


def _feet(rng: np.random.Generator, width: float, rise: float) -> Mesh:
    if chance(rng, 0.5):
        plate = bevelled_box((width * 0.35, 0.2, 0.012), 0.005, (0, 0, 0.006))
        neck = bevelled_box((width * 0.1, 0.03, rise + 0.04), 0.004, (0, 0, rise / 2 + 0.015))
        return merge([plate, neck])
    return merge(
        [
            tube([(x, y, 0.006), (x, y * 0.15, rise + 0.02)], 0.008, 6)
            for x in (-width * 0.36, width * 0.36)
            for y in (-0.11, 0.11)
        ]
    )


def _old(rng: np.random.Generator) -> Item:
    width = uniform(rng, 0.5, 0.7)
    size = (width, width * uniform(rng, 0.55, 0.7), width * uniform(rng, 0.75, 0.85))
    _, depth, height = size
    plain = flat(choose(rng, ((0.2, 0.2, 0.21), vivid(rng, 0.5, 0.7), (0.5, 0.5, 0.52))), 0.4, 0.5)
    shell = wood(rng) if chance(rng, 0.5) else plain
    low, high = FOOT + 0.05, FOOT + height - 0.05
    pane = Front(-width / 2 + 0.035, width / 2 - width * 0.2, low, high, -depth / 2 - 0.004)
    trim = [_ring(pane), *_panel(size)]
    if chance(rng, 0.6):
        trim += [
            tube(
                [(0, 0, FOOT + height), (side * width * 0.3, 0, FOOT + height + width * 0.4)],
                0.004,
                6,
            )
            for side in (-1, 1)
        ]
    parts = [
        Part(name="casing", mesh=_shell(size), surface=shell),
        Part(name="trim", mesh=merge(trim), surface=metal(rng, (0, 2, 4))),
        screen(rng, _bulging(pane), "broadcast"),
    ]
    return finished("Television", parts, "table")


def _shell(size: Triple) -> Mesh:
    width, depth, height = size
    body = soft_box(size, 0.025, 2, (0, 0, FOOT + height / 2))
    back = soft_box(
        (width * 0.7, depth * 0.3, height * 0.7), 0.04, 1, (0, depth * 0.55, FOOT + height * 0.5)
    )
    feet = [
        bevelled_box((0.04, 0.04, FOOT), 0.004, (sx * width * 0.4, sy * depth * 0.38, FOOT / 2))
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    return merge([body, back, *feet])


def _ring(pane: Front) -> Mesh:
    x, face, z = pane.middle
    outer = (pane.right - pane.left + 0.03, pane.high - pane.low + 0.03)
    return moved(frame(outer, 0.016, 0.014, 0.004), (x, face + 0.006, z))


def _panel(size: Triple) -> list[Mesh]:
    """Returns two dials and a loudspeaker's grille beside the screen."""
    width, depth, height = size
    x, face = width * 0.4, -depth / 2
    dial = rotated(lathe([(0.022, 0), (0.02, 0.018), (0, 0.02)], 14), (1, 0, 0), np.pi / 2)
    dials = [moved(dial, (x, face, FOOT + height * share)) for share in (0.75, 0.58)]
    grille = [
        bar((x - width * 0.06, face - 0.004, z), (x + width * 0.06, face + 0.002, z + 0.006), 0.001)
        for z in FOOT + height * np.linspace(0.14, 0.42, 7)
    ]
    return [*dials, *grille]


def _bulging(pane: Front) -> Mesh:
    u, v = np.meshgrid(np.linspace(-1, 1, 7), np.linspace(-1, 1, 7))
    x, face, z = pane.middle
    across, up = (pane.right - pane.left) / 2, (pane.high - pane.low) / 2
    points = np.stack([x + u * across, face - 0.018 * (1 - u**2) * (1 - v**2), z + v * up], axis=-1)
    return painted(sheet(points, 0.004), 0, 2)
