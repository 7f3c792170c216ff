"""States that each class of objects has."""

from __future__ import annotations

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
