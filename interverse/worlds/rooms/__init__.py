"""rooms/multi-v1 and rooms/single-v1: furnished rooms before and after one action on an object.

The names below are for code outside this folder; those that draw are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interverse.core.registry import lazy_names
from interverse.worlds.rooms.pair import Address, Origin, Pair, Rejection

if TYPE_CHECKING:
    from interverse.worlds.rooms.actions import CLASS_NAMES, VERBS
    from interverse.worlds.rooms.pairs import (
        Draft,
        RoomSequence,
        act_and_draw,
        generate_pairs,
        generate_sequence,
        redrawn,
    )
    from interverse.worlds.rooms.variables import ACTION

__all__ = [
    "ACTION",
    "CLASS_NAMES",
    "VERBS",
    "Address",
    "Draft",
    "Origin",
    "Pair",
    "Rejection",
    "RoomSequence",
    "act_and_draw",
    "generate_pairs",
    "generate_sequence",
    "redrawn",
]
_LAZY = {
    "ACTION": "variables",
    "CLASS_NAMES": "actions",
    "VERBS": "actions",
    "Draft": "pairs",
    "RoomSequence": "pairs",
    "act_and_draw": "pairs",
    "generate_pairs": "pairs",
    "generate_sequence": "pairs",
    "redrawn": "pairs",
}

__getattr__ = lazy_names(__name__, _LAZY)
