"""The 24 families of objects, each drawn at random from its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from interverse.art.meshes import moved
from interverse.art.rooms.item import Drawn, Item, Part, Triple
from interverse.art.rooms.kit import Draw
from interverse.art.rooms.objects import cases, furnishings, lamps, screens, vessels

CLASSES: dict[str, tuple[Callable[[Draw], Drawn], tuple[str, ...]]] = {
    "Bed": (furnishings.bed, ("dirty",)),
    "Blinds": (furnishings.blinds, ("open",)),
    "Book": (screens.book, ("open",)),
    "Bowl": (vessels.bowl, ("dirty", "broken")),
    "Box": (cases.box, ("open",)),
    "Cabinet": (cases.cabinet, ("open",)),
    "Candle": (lamps.candle, ("on",)),
    "CellPhone": (screens.telephone, ("on", "broken")),
    "DeskLamp": (lamps.desk_lamp, ("on",)),
    "Drawer": (cases.drawer, ("open",)),
    "Faucet": (furnishings.faucet, ("on",)),
    "FloorLamp": (lamps.floor_lamp, ("on",)),
    "Fridge": (cases.fridge, ("open",)),
    "Laptop": (screens.laptop, ("open", "on", "broken")),
    "LaundryHamper": (furnishings.hamper, ("open",)),
    "Microwave": (cases.microwave, ("open", "on")),
    "Mug": (vessels.mug, ("dirty", "broken")),
    "Pan": (vessels.pan, ("dirty",)),
    "Plate": (vessels.plate, ("dirty", "broken")),
    "Pot": (vessels.pot, ("dirty",)),
    "Safe": (cases.safe, ("open",)),
    "Television": (screens.television, ("on", "broken")),
    "Toilet": (furnishings.toilet, ("open",)),
    "Vase": (vessels.vase, ("broken",)),
}
"""What draws each class, in the order of the class numbers, and the states that it has."""


def build_item(cls: str, rng: np.random.Generator) -> Item:
    """Returns a new instance of a class; the same generator state gives the same instance."""
    draw, traits = CLASSES[cls]
    parts, stand, light = draw(Draw.of(rng))
    drawn = Item(cls, tuple(parts), (1, 1, 1), stand, traits)
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


__all__ = ["CLASSES", "build_item"]
