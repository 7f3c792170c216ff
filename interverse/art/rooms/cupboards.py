"""Cupboards of all heights, and the kitchen counter; each faces -y and stands on z = 0."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, merge, tiled, tube
from interverse.art.rooms.item import Surface
from interverse.art.rooms.prop import (
    RIM,
    VIVID,
    WOODS,
    Prop,
    Top,
    bar,
    grain,
    knob,
    legs,
    metal,
    painted_surface,
    pick,
    textured,
    wooden,
)

Rng = np.random.Generator


def console(rng: Rng) -> Prop:
    """Returns a low sideboard, as televisions stand on."""
    return _cupboard(rng, "console", rng.uniform(1.1, 1.7), 0.42, rng.uniform(0.48, 0.62))


def sideboard(rng: Rng) -> Prop:
    """Returns a chest-high cupboard."""
    return _cupboard(rng, "sideboard", rng.uniform(0.9, 1.3), 0.45, rng.uniform(0.78, 0.9))


def nightstand(rng: Rng) -> Prop:
    """Returns a small bedside cupboard."""
    return _cupboard(rng, "nightstand", rng.uniform(0.42, 0.52), 0.42, rng.uniform(0.48, 0.6))


def wardrobe(rng: Rng) -> Prop:
    """Returns a tall cupboard."""
    return _cupboard(rng, "wardrobe", rng.uniform(0.9, 1.3), 0.55, rng.uniform(1.85, 2.1))


def counter(rng: Rng) -> Prop:
    """Returns a kitchen's run of base cupboards under one work top, with a splash-back."""
    units = int(rng.integers(2, 6))
    width, depth, height = 0.6 * units, 0.62, rng.uniform(0.86, 0.92)
    front = painted_surface(
        pick(rng, (*WOODS, (0.93, 0.92, 0.9), (0.35, 0.45, 0.45), (0.25, 0.3, 0.4)))
    )
    carcass = bar((-width / 2, -depth / 2 + 0.05, 0.1), (width / 2, depth / 2, height - 0.04))
    kick = bar((-width / 2 + 0.01, -depth / 2 + 0.1, 0), (width / 2 - 0.01, depth / 2, 0.1))
    doors = _doors(width, units, -depth / 2 + 0.03, (0.12, height - 0.06))
    top = bar(
        (-width / 2 - 0.01, -depth / 2, height - 0.04), (width / 2 + 0.01, depth / 2, height), 0.008
    )
    splash = bar(
        (-width / 2, depth / 2 - 0.015, height), (width / 2, depth / 2, height + 0.14), 0.003
    )
    stone = pick(rng, ((0.85, 0.83, 0.8), (0.35, 0.34, 0.35), (0.65, 0.6, 0.55), (0.6, 0.45, 0.3)))
    kind = "marble" if rng.random() < 0.5 else "speckle"
    parts = (
        (merge([carcass, *doors]), front),
        (kick, painted_surface((0.12, 0.12, 0.12))),
        (merge(_handles(width, units, -depth / 2 + 0.02, height - 0.14)), metal(rng)),
        (tiled(top, 1.5), Surface(texture=textured(rng, kind, stone), specular=0.5, shininess=0.7)),
        (tiled(splash, 1.6), _tile_surface(rng)),
    )
    deep = Top(
        low=(-width / 2 + RIM, -depth / 2 + RIM),
        high=(width / 2 - RIM, depth / 2 - 0.02),
        height=height,
        counter=True,
    )
    low, high = merge([carcass, top]).bounds
    return Prop(
        name="counter", parts=parts, tops=(deep,), solids=((low * (1, 1, 0), high), splash.bounds)
    )


def _tile_surface(rng: Rng) -> Surface:
    colour = pick(rng, ((0.92, 0.92, 0.9), (0.6, 0.72, 0.72), (0.75, 0.7, 0.6), (0.35, 0.45, 0.5)))
    return Surface(
        texture=textured(rng, "tiles", colour, contrast=0.85), specular=0.6, shininess=0.8
    )


def _doors(width: float, count: int, y: float, rows: tuple[float, float]) -> list[Mesh]:
    pitch = width / count
    return [
        bar(
            (-width / 2 + i * pitch + 0.006, y, rows[0]),
            (-width / 2 + (i + 1) * pitch - 0.006, y + 0.02, rows[1]),
            0.005,
        )
        for i in range(count)
    ]


def _handles(width: float, count: int, y: float, z: float) -> list[Mesh]:
    pitch = width / count
    middles = [-width / 2 + (i + 0.5) * pitch for i in range(count)]
    return [tube([(x - 0.07, y, z), (x + 0.07, y, z)], 0.007, 6) for x in middles]


def _cupboard(rng: Rng, name: str, width: float, depth: float, height: float) -> Prop:
    """Returns a carcass on feet with doors or drawers in front."""
    body = wooden(rng)
    front = (
        body if rng.random() < 0.5 else painted_surface(pick(rng, (*VIVID[1:], (0.9, 0.9, 0.88))))
    )
    case = bar((-width / 2, -depth / 2 + 0.02, 0.08), (width / 2, depth / 2, height - 0.02))
    top = bar(
        (-width / 2 - 0.01, -depth / 2, height - 0.025),
        (width / 2 + 0.01, depth / 2, height),
        0.008,
    )
    feet = legs((width, depth, 0.09), 0.04, 0.03)
    count = max(1, round(width / 0.45))
    if height > 1.5 or rng.random() < 0.5:
        doors = _doors(width, count, -depth / 2, (0.1, height - 0.04))
        knobs = _handles(
            width, count, -depth / 2 - 0.01, (0.1 + height) / 2 if height > 1.5 else height - 0.12
        )
    else:
        rows = max(2, round((height - 0.12) / 0.2))
        step = (height - 0.14) / rows
        doors = [
            d
            for r in range(rows)
            for d in _doors(width, 1, -depth / 2, (0.1 + r * step, 0.092 + (r + 1) * step))
        ]
        knobs = [
            knob((s * width / 5, -depth / 2 - 0.01, 0.1 + (r + 0.5) * step))
            for r in range(rows)
            for s in (-1, 1)
        ]
    parts = (
        (merge(grain([case, top, *feet])), body),
        (merge(grain(doors)), front),
        (merge(knobs), metal(rng)),
    )
    inner = Top(
        low=(-width / 2 + RIM, -depth / 2 + RIM),
        high=(width / 2 - RIM, depth / 2 - 0.01),
        height=height,
    )
    return Prop(name=name, parts=parts, tops=(inner,) if height < 1.2 else ())
