"""The 24 families of objects, each drawn at random from its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from interverse.art.meshes import moved
from interverse.art.rooms.item import Drawn, Item, Part, Triple
from interverse.art.rooms.kit import Draw
from interverse.art.rooms.objects import cases, furnishings, lamps, screens, vessels
from interverse.core.errors import check_name

CLASSES: dict[str, Callable[[Draw], Drawn]] = {
    "Bed": furnishings.bed,
    "Blinds": furnishings.blinds,
    "Book": screens.book,
    "Bowl": vessels.bowl,
    "Box": cases.box,
    "Cabinet": cases.cabinet,
    "Candle": lamps.candle,
    "CellPhone": screens.telephone,
    "DeskLamp": lamps.desk_lamp,
    "Drawer": cases.drawer,
    "Faucet": furnishings.faucet,
    "FloorLamp": lamps.floor_lamp,
    "Fridge": cases.fridge,
    "Laptop": screens.laptop,
    "LaundryHamper": furnishings.hamper,
    "Microwave": cases.microwave,
    "Mug": vessels.mug,
    "Pan": vessels.pan,
    "Plate": vessels.plate,
    "Pot": vessels.pot,
    "Safe": cases.safe,
    "Television": screens.television,
    "Toilet": furnishings.toilet,
    "Vase": vessels.vase,
}
"""What draws each class, in the order of the class numbers."""

TRAITS: dict[str, tuple[str, ...]] = {
    "Bed": ("dirty",),
    "Blinds": ("open",),
    "Book": ("open",),
    "Bowl": ("dirty", "broken"),
    "Box": ("open",),
    "Cabinet": ("open",),
    "Candle": ("on",),
    "CellPhone": ("on", "broken"),
    "DeskLamp": ("on",),
    "Drawer": ("open",),
    "Faucet": ("on",),
    "FloorLamp": ("on",),
    "Fridge": ("open",),
    "Laptop": ("open", "on", "broken"),
    "LaundryHamper": ("open",),
    "Microwave": ("open", "on"),
    "Mug": ("dirty", "broken"),
    "Pan": ("dirty",),
    "Plate": ("dirty", "broken"),
    "Pot": ("dirty",),
    "Safe": ("open",),
    "Television": ("on", "broken"),
    "Toilet": ("open",),
    "Vase": ("broken",),
}
"""States that each class of objects has."""


def build_item(cls: str, rng: np.random.Generator) -> Item:
    """Returns a new instance of a class; the same generator state gives the same instance."""
    check_name("object class", cls, CLASSES)
    parts, stand, light = CLASSES[cls](Draw.of(rng))
    drawn = Item(cls, tuple(parts), (1, 1, 1), stand, TRAITS[cls])
    # What was drawn in a frame of its own is shifted to where items of its stand are centred.
    low, high = drawn.bounds()
    shift = -(low + high) / 2
    if stand == "wall":
        shift[1] = -high[1]
    else:
        shift[2] = -low[2]

    def at(point: Triple) -> Triple:
        x, y, z = (float(value) for value in np.asarray(point) + shift)
        return x, y, z

    def placed(part: Part) -> Part:
        joint = part.joint
        if joint is not None:
            joint = replace(joint, origin=at(joint.origin))
        return replace(part, mesh=moved(part.mesh, shift), joint=joint)

    width, depth, height = (float(side) for side in high - low)
    return replace(
        drawn,
        parts=tuple(placed(part) for part in drawn.parts),
        size=(width, depth, height),
        light=None if light is None else at(light),
    )


__all__ = ["CLASSES", "TRAITS", "build_item"]
