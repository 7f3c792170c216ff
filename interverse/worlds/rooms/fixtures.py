"""Kinds of rooms, and their fixtures: windows with the sky behind, curtains, doors; and rugs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from interverse.art.meshes import frame, merge, moved, rotated, sheet, tiled
from interverse.art.rooms.item import RoomTexture, Surface
from interverse.art.rooms.prop import (
    FABRICS,
    VIVID,
    Prop,
    bar,
    cloth,
    painted_surface,
    pick,
    wooden,
)
from interverse.worlds.rooms.placing import QUARTER
from interverse.worlds.rooms.shell import Opening, Size, at_wall, panel

Rng = np.random.Generator
_REVEAL = 0.12  # depth of a window's niche, m


def window(size: Size, opening: Opening, trim: Surface, sky: RoomTexture) -> Prop:
    """Returns a window: niche, frame with a cross, sill, and the sky behind."""
    width, height = opening.width, opening.high - opening.low
    middle = (opening.low + opening.high) / 2
    x, z = width / 2, height / 2
    niche = [
        bar((-x - 0.01, 0, -z - 0.01), (-x, _REVEAL, z + 0.01), 0.001),
        bar((x, 0, -z - 0.01), (x + 0.01, _REVEAL, z + 0.01), 0.001),
        bar((-x, 0, z), (x, _REVEAL, z + 0.01), 0.001),
        bar((-x - 0.04, -0.06, -z - 0.03), (x + 0.04, _REVEAL, -z), 0.006),
    ]
    rim = moved(frame((width, height), 0.05, 0.05), (0, _REVEAL, 0))
    cross = [bar((-0.02, _REVEAL - 0.04, -z), (0.02, _REVEAL - 0.005, z))]
    if height > 0.9:
        cross.append(
            bar((-x, _REVEAL - 0.04, 0.18 * height), (x, _REVEAL - 0.005, 0.18 * height + 0.035))
        )
    casing = moved(frame((width + 0.12, height + 0.12), 0.06, 0.015), (0, 0, 0))
    pane = rotated(panel(np.array([-x, x]), np.array([-z, z])), (1, 0, 0), QUARTER)
    view = tiled(pane, (1 / width, 1 / height), (0.5, 0.5))
    where = size, opening.wall, opening.along, middle
    glow = Surface(texture=sky, emission=1.0, specular=0.0, shininess=0.0)
    return Prop(
        name="window",
        parts=(
            (at_wall(merge([*niche, rim, *cross, casing]), *where), trim),
            (at_wall(moved(view, (0, _REVEAL + 0.005, 0)), *where), glow),
        ),
    )


def curtains(rng: Rng, size: Size, opening: Opening) -> Prop:
    """Returns two curtains that hang beside a window from a rod."""
    tall = opening.high + 0.12 - 0.12
    cover = cloth(rng)
    strips = []
    for side in (-1, 1):
        u = np.linspace(0, 1, 15)
        x = side * (opening.width / 2 + 0.02 + 0.24 * u)
        y = -0.07 + 0.03 * np.sin(2 * np.pi * 3.5 * u)
        rows = [np.column_stack([x, y, np.full(15, z)]) for z in np.linspace(0.12, 0.12 + tall, 4)]
        lines = np.stack(rows) if side > 0 else np.stack(rows)[:, ::-1]
        strips.append(tiled(sheet(lines, 0.004), (1.0, 4.0)))
    reach = opening.width / 2 + 0.32
    rod = bar((-reach, -0.09, 0.14 + tall), (reach, -0.065, 0.165 + tall), 0.008)
    where = size, opening.wall, opening.along, 0.0
    dark = painted_surface((0.2, 0.18, 0.17))
    return Prop(
        name="curtains",
        parts=((at_wall(merge(strips), *where), cover), (at_wall(rod, *where), dark)),
    )


def door(size: Size, opening: Opening, rng: Rng, trim: Surface) -> Prop:
    """Returns a closed door in its frame."""
    width, height = opening.width, opening.high
    x = width / 2
    leaf = bar((-x, 0.02, 0), (x, 0.06, height), 0.004)
    fields = [
        bar((s * x / 2 - x * 0.36, 0.008, a), (s * x / 2 + x * 0.36, 0.03, b), 0.012)
        for s in (-1, 1)
        for a, b in ((0.2, 0.85), (1.05, height - 0.18))
    ]
    posts = [
        bar((s * (x + 0.035) - 0.035, -0.02, 0), (s * (x + 0.035) + 0.035, 0.06, height + 0.07))
        for s in (-1, 1)
    ]
    lintel = bar((-x - 0.07, -0.02, height), (x + 0.07, 0.06, height + 0.07))
    handle = bar((x - 0.16, -0.045, 1.0), (x - 0.05, -0.025, 1.02), 0.006)
    plate = bar((x - 0.085, -0.03, 0.93), (x - 0.045, 0.02, 1.1), 0.004)
    where = size, opening.wall, opening.along, 0.0
    wood = wooden(rng) if rng.random() < 0.6 else trim
    steel = Surface(rgba=(0.7, 0.7, 0.72, 1.0), specular=0.8, shininess=0.8)
    return Prop(
        name="door",
        parts=(
            (at_wall(merge([tiled(m, 1.2) for m in (leaf, *fields)]), *where), wood),
            (at_wall(merge([*posts, lintel]), *where), trim),
            (at_wall(merge([handle, plate]), *where), steel),
        ),
    )


def rug(rng: Rng, middle: tuple[float, float], extent: tuple[float, float]) -> Prop:
    """Returns a rug on the floor, one whole pattern."""
    x, y = extent[0] / 2, extent[1] / 2
    pile = panel(np.linspace(-x, x, 7), np.linspace(-y, y, 7))
    pile = tiled(pile, (1 / extent[0], 1 / extent[1]), (0.5, 0.5))
    colours = tuple(pick(rng, (*VIVID, *FABRICS)) for _ in range(3))
    cover = Surface(
        texture=RoomTexture(kind="rug", colours=colours, seed=int(rng.integers(12))), specular=0.0
    )
    return Prop(name="rug", parts=((moved(pile, (*middle, 0.008)), cover),))


def draw_sky(rng: Rng) -> RoomTexture:
    """Returns a view out of a window."""
    return RoomTexture(
        kind="sky", colours=((0.86, 0.91, 0.96), (0.36, 0.58, 0.88)), seed=int(rng.integers(8))
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoomKind:
    """What a kind of room is furnished with, in the order of placing, and what is found there."""

    along: tuple[str, ...]
    middle: tuple[str, ...] = ()
    classes: tuple[str, ...]
    wet: bool = False
    share: float = 0.2
    """Of all rooms."""


def _often(text: str) -> tuple[str, ...]:
    """Returns classes, one that is likelier several times: `Toilet*3 Faucet`."""
    found = (word.partition("*") for word in text.split())
    return tuple(name for name, _, times in found for _ in range(int(times or 1)))


KINDS: dict[str, RoomKind] = {
    "bathroom": RoomKind(
        along=("counter", "sideboard", "plant"),
        classes=_often("Toilet*3 Faucet*2 LaundryHamper Candle Cabinet Blinds Mug Vase Bowl Box"),
        wet=True,
        share=0.16,
    ),
    "bedroom": RoomKind(
        along=("desk", "nightstand", "wardrobe", "nightstand", "plant"),
        middle=("chair",),
        classes=_often(
            "Bed*3 DeskLamp*2 Drawer Laptop Book CellPhone Safe LaundryHamper Blinds Television"
            " Candle FloorLamp"
        ),
        share=0.24,
    ),
    "kitchen": RoomKind(
        along=("counter", "sideboard", "plant"),
        middle=("table", "chair", "chair"),
        classes=_often(
            "Fridge*3 Microwave*3 Faucet*2 Plate*2 Pan*2 Pot*2 Bowl Mug Cabinet Drawer Box Vase"
        ),
        wet=True,
        share=0.28,
    ),
    "living room": RoomKind(
        along=("console", "sofa", "bookshelf", "armchair", "plant"),
        middle=("low table",),
        classes=_often(
            "Television*2 FloorLamp*2 Vase*2 Book Laptop CellPhone Candle Bowl Blinds Box Plate"
            " Safe"
        ),
        share=0.18,
    ),
    "study": RoomKind(
        along=("desk", "bookshelf", "sideboard", "armchair", "plant"),
        middle=("low table", "chair"),
        classes=_often(
            "DeskLamp*2 Laptop Book*2 Safe FloorLamp CellPhone Box Mug Drawer Vase Cabinet Pot Pan"
        ),
        share=0.14,
    ),
}
