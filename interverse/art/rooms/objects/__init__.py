"""The 24 families of objects, each drawn at random from its class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from interverse.art.rooms.item import Item
from interverse.art.rooms.objects import (
    bed,
    blinds,
    book,
    box,
    cabinet,
    candle,
    cellphone,
    crockery,
    desklamp,
    drawer,
    faucet,
    floorlamp,
    fridge,
    hamper,
    laptop,
    microwave,
    pan,
    pot,
    safe,
    television,
    toilet,
    vase,
)
from interverse.art.rooms.objects.traits import TRAITS
from interverse.core.errors import check_name

CLASSES: dict[str, Callable[[np.random.Generator], Item]] = {
    "Bed": bed.build,
    "Blinds": blinds.build,
    "Book": book.build,
    "Bowl": crockery.bowl,
    "Box": box.build,
    "Cabinet": cabinet.build,
    "Candle": candle.build,
    "CellPhone": cellphone.build,
    "DeskLamp": desklamp.build,
    "Drawer": drawer.build,
    "Faucet": faucet.build,
    "FloorLamp": floorlamp.build,
    "Fridge": fridge.build,
    "Laptop": laptop.build,
    "LaundryHamper": hamper.build,
    "Microwave": microwave.build,
    "Mug": crockery.mug,
    "Pan": pan.build,
    "Plate": crockery.plate,
    "Pot": pot.build,
    "Safe": safe.build,
    "Television": television.build,
    "Toilet": toilet.build,
    "Vase": vase.build,
}
"""Builders by class, in the order of the class numbers."""


def build_item(cls: str, rng: np.random.Generator) -> Item:
    """Returns a new instance of a class; the same generator state gives the same instance."""
    check_name("object class", cls, CLASSES)
    return CLASSES[cls](rng)


__all__ = ["CLASSES", "TRAITS", "build_item"]
