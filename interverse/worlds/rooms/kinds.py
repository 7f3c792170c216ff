"""Kinds of rooms: what stands in them, and which objects are found there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoomKind:
    """What a kind of room is furnished with, in the order of placing, and what is found there."""

    along: tuple[str, ...]
    middle: tuple[str, ...]
    classes: tuple[str, ...]
    wet: bool = False
    share: float = 0.2
    """Of all rooms."""


KINDS: dict[str, RoomKind] = {
    "bathroom": RoomKind(
        along=("counter", "sideboard", "plant"),
        middle=(),
        classes=(
            *("Toilet", "Toilet", "Toilet", "Faucet", "Faucet", "LaundryHamper", "Candle"),
            *("Cabinet", "Blinds", "Mug", "Vase", "Bowl", "Box"),
        ),
        wet=True,
        share=0.16,
    ),
    "bedroom": RoomKind(
        along=("desk", "nightstand", "wardrobe", "nightstand", "plant"),
        middle=("chair",),
        classes=(
            *("Bed", "Bed", "Bed", "DeskLamp", "DeskLamp", "Drawer", "Laptop", "Book", "CellPhone"),
            *("Safe", "LaundryHamper", "Blinds", "Television", "Candle", "FloorLamp"),
        ),
        share=0.24,
    ),
    "kitchen": RoomKind(
        along=("counter", "sideboard", "plant"),
        middle=("table", "chair", "chair"),
        classes=(
            *("Fridge", "Fridge", "Fridge", "Microwave", "Microwave", "Microwave", "Faucet"),
            *("Faucet", "Plate", "Plate", "Pan", "Pan", "Pot", "Pot", "Bowl", "Mug", "Cabinet"),
            *("Drawer", "Box", "Vase"),
        ),
        wet=True,
        share=0.28,
    ),
    "living room": RoomKind(
        along=("console", "sofa", "bookshelf", "armchair", "plant"),
        middle=("low table",),
        classes=(
            *("Television", "Television", "FloorLamp", "FloorLamp", "Vase", "Vase", "Book"),
            *("Laptop", "CellPhone", "Candle", "Bowl", "Blinds", "Box", "Plate", "Safe"),
        ),
        share=0.18,
    ),
    "study": RoomKind(
        along=("desk", "bookshelf", "sideboard", "armchair", "plant"),
        middle=("low table", "chair"),
        classes=(
            *("DeskLamp", "DeskLamp", "Laptop", "Book", "Book", "Safe", "FloorLamp", "CellPhone"),
            *("Box", "Mug", "Drawer", "Vase", "Cabinet", "Pot", "Pan"),
        ),
        share=0.14,
    ),
}
"""A class that stands twice is twice as likely."""
