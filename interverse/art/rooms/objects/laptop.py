"""Laptops: a keyboard and a lid with a screen that opens, glows and cracks."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import extrude, lifted, merge, painted, rounded_rectangle, tiled, tube
from interverse.art.rooms.item import Item, Part, Rgb, RoomJoint, Surface
from interverse.art.rooms.objects.joinery import bar, finished
from interverse.art.rooms.objects.screen import screen
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    flat,
    metal,
    picture,
    shade,
    uniform,
    vivid,
)

COLOURS: tuple[Rgb, ...] = (
    (0.72, 0.73, 0.75),
    (0.12, 0.12, 0.13),
    (0.35, 0.36, 0.38),
    (0.85, 0.78, 0.72),
    (0.2, 0.25, 0.35),
)


def build(rng: np.random.Generator) -> Item:
    """Returns a laptop."""
    width = uniform(rng, 0.29, 0.39)
    depth, base = width * uniform(rng, 0.62, 0.74), uniform(rng, 0.012, 0.024)
    colour = choose(rng, (*COLOURS, vivid(rng, 0.4, 0.7)))
    skin = flat(colour, 0.5, 0.6) if chance(rng, 0.6) else metal(rng, (0, 1, 4))
    outline = rounded_rectangle(width, depth, uniform(rng, 0.006, 0.02))
    x, y = width / 2, depth / 2
    back = y - 0.006
    barrel = tube([(-x * 0.8, back, base), (x * 0.8, back, base)], 0.005, 8)
    keys = bar((-x + 0.01, -y + 0.008, base - 0.002), (x - 0.01, y - 0.022, base + 0.0012), 0.0005)
    parts = [
        Part(name="base", mesh=merge([extrude(outline, base, bevel=0.003), barrel]), surface=skin),
        Part(name="keys", mesh=painted(keys, 0, 1), surface=_keyboard(rng, colour)),
        *_lid(rng, outline, (x, y, base), skin),
    ]
    return finished("Laptop", parts, "table")


def _keyboard(rng: np.random.Generator, colour: Rgb) -> Surface:
    caps = choose(rng, ((0.08, 0.08, 0.09), shade(colour, 0.5), (0.9, 0.9, 0.9)))
    return picture("keyboard", (colour, caps, (0.6, 0.6, 0.62)), 0)


def _lid(
    rng: np.random.Generator,
    outline: np.ndarray,
    half: tuple[float, float, float],
    skin: Surface,
) -> list[Part]:
    """Returns the lid, lying on the base: its screen looks down."""
    x, y, base = half
    thick = uniform(rng, 0.006, 0.01)
    origin = (0, y - 0.006, base + 0.003)
    hinge = RoomJoint(kind="hinge", origin=origin, axis=(-1, 0, 0), travel=uniform(rng, 2.2, 2.5))
    top = lifted(extrude(outline, thick, bevel=0.002), base + 0.002)
    rim = bar((-x + 0.003, -y + 0.003, base + 0.0012), (x - 0.003, y - 0.012, base + 0.003), 5e-4)
    pane = bar((-x + 0.01, -y + 0.012, base + 4e-4), (x - 0.01, y - 0.025, base + 0.002), 4e-4)
    upright = tiled(painted(pane, 0, 1), (1.0, -1.0), (0.0, 1.0))  # once the lid is raised
    badge = extrude(rounded_rectangle(0.03, 0.03, 0.012), 0.001, bevel=0.0004)
    badge = lifted(badge, base + thick + 0.0018)
    return [
        Part(name="lid", mesh=top, surface=skin, joint=hinge),
        Part(name="rim", mesh=rim, surface=flat((0.04, 0.04, 0.045)), parent="lid"),
        screen(rng, upright, "desktop", parent="lid"),
        Part(name="badge", mesh=badge, surface=flat((0.95, 0.95, 0.97), 0.8, 0.9), parent="lid"),
    ]
