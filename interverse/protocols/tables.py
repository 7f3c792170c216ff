"""Protocols as literal tables: CausalWorld's P0-P11, the grid worlds', the rooms' and the slider's.

What the papers of grid worlds and rooms measure (ranking, planning, recognition) needs a model and
stands in `interverse reproduce`; these are for policies that act in the worlds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from interverse.protocols.protocol import Protocol

_BLOCK = "block_*/cylindrical_position"
_GOAL = "goal_*/cylindrical_position"
_TOWER = "goal_tower/cylindrical_position"
_MASS = "block_*/mass"
_SIZE = "block_*/size"
_FLOOR = "floor/friction"
# Half the size that the last episode of P3 drew in the recorded run of the original, m.
_LEAKED = 0.03710834658063
_FLOATS = {_BLOCK: {2: (_LEAKED, _LEAKED)}, _GOAL: {2: (_LEAKED, _LEAKED)}}
_FLOATING = "as the original in benchmark order: heights are those of P3's last block"
_SINKS_A = {_BLOCK: {2: (_LEAKED, 0.15)}, _GOAL: {2: (_LEAKED, 0.20)}}
_SINKS_B = {_BLOCK: {2: (_LEAKED, 0.30)}, _GOAL: {2: (_LEAKED, 0.25)}}
_SINKING = "as the original in benchmark order: after P3 goals may lie near the floor"
_UNMOVED = {_BLOCK: {0: (0.0, 0.0), 1: (0.0, 0.0), 2: (0.0325, 0.0325)}}
_LOOSE = {"legacy_unchecked": True}
_DRAWN = {"draw_scenes": True}  # a scene for each episode, where its causes are drawn
_UNCHECKED = "as the original runs: blocks may start in each other"


_LADDER = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P1", variables={_MASS: "A"}),
    Protocol(name="P2", variables={_MASS: "B"}),
    Protocol(name="P3", variables={_SIZE: "A"}, note="the goal follows the block's size"),
    Protocol(name="P4", variables={_BLOCK: "A"}),
    Protocol(name="P5", variables={_GOAL: "A"}),
    Protocol(name="P6", variables={_BLOCK: "B", _GOAL: "B"}),
    Protocol(name="P7", variables={_BLOCK: "A", _GOAL: "A", _MASS: "A"}),
    Protocol(name="P8", variables={_BLOCK: "B", _GOAL: "B", _MASS: "B"}),
    Protocol(name="P9", variables={_BLOCK: "B", _GOAL: "B", _MASS: "B", _FLOOR: "B"}),
    Protocol(name="P10", everything="A"),
    Protocol(name="P11", everything="B"),
)


def _legacy(protocol: Protocol, note: str, **more: Any) -> Protocol:
    """Returns a protocol as the original runs it; ranges are kept for what it draws."""
    if "ranges" in more:
        more["ranges"] = {k: v for k, v in more["ranges"].items() if k in protocol.variables}
    return replace(protocol, name=f"{protocol.name}_legacy", legacy=True, note=note, **more)


def _sinking(protocol: Protocol) -> Protocol:
    ranges = _SINKS_A if "A" in protocol.variables.values() else _SINKS_B
    return _legacy(protocol, _SINKING, ranges=ranges)


SINGLE_BLOCK = (*_LADDER, *(_legacy(p, _FLOATING, ranges=_FLOATS) for p in _LADDER[4:10]))

PICKING = (
    *_LADDER,
    Protocol(
        name="P3_legacy",
        variables={_SIZE: "A", _BLOCK: "A"},
        ranges=_UNMOVED,
        legacy=True,
        note="as the original runs: the block's centre stays where it was",
    ),
    *map(_sinking, _LADDER[4:10]),
)

_STACKING = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P1", variables={_MASS: "A"}),
    Protocol(name="P2", variables={_MASS: "B"}),
    Protocol(name="P4", variables={_BLOCK: "A"}),
    Protocol(name="P5", variables={_TOWER: "A"}),
    Protocol(name="P6", variables={_BLOCK: "B", _TOWER: "B"}),
    Protocol(name="P7", variables={_BLOCK: "A", _TOWER: "A", _MASS: "A"}),
    Protocol(name="P8", variables={_BLOCK: "B", _TOWER: "B", _MASS: "B"}),
    Protocol(
        name="P9",
        variables={_BLOCK: "B", _TOWER: "B", _MASS: "B", _FLOOR: "B"},
        note="repaired: the original's goal stays fixed",
    ),
    Protocol(name="P10", everything="A"),
    Protocol(name="P11", everything="B"),
)

STACKING = (
    *_STACKING,
    *(_legacy(p, _UNCHECKED, options=_LOOSE) for p in _STACKING[5:8]),
    Protocol(
        name="P9_legacy",
        variables={_BLOCK: "B", _MASS: "B", _FLOOR: "B"},
        legacy=True,
        note="as the original runs: the goal stays fixed",
    ),
    *(_legacy(p, _UNCHECKED, options=_LOOSE) for p in _STACKING[9:]),
)

REACHING = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P5", variables={_GOAL: "A"}),
    Protocol(name="P12", variables={_GOAL: "B"}),
)

# The original defines no protocols for the tasks below; these follow the same ladder: one cause at
# a time in A, then in B, then together.
_SHARED = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P1", variables={"blocks/mass": "A"}),
    Protocol(name="P2", variables={"blocks/mass": "B"}),
    Protocol(name="P3", variables={_FLOOR: "B"}),
)

TOWERS = (
    *_SHARED,
    Protocol(name="P4", variables={"tower/dims": "A"}),
    Protocol(name="P5", variables={"tower/center": "A"}),
    Protocol(name="P6", variables={"tower/center": "B"}),
    Protocol(name="P7", variables={"tower/center": "A", "blocks/mass": "A"}),
    Protocol(name="P8", variables={"tower/center": "B", "blocks/mass": "B"}),
    Protocol(name="P9", variables={"tower/center": "B", "blocks/mass": "B", _FLOOR: "B"}),
)

STACKED = (
    *_SHARED,
    Protocol(name="P4", variables={"stack/min_size": "A"}, options=_DRAWN),
    Protocol(name="P5", variables={"stack/max_width": "A"}, options=_DRAWN),
    Protocol(name="P6", variables={"stack/levels": "A", "stack/max_width": "A"}, options=_DRAWN),
    Protocol(name="P7", variables={"stack/levels": "A", "blocks/mass": "A"}, options=_DRAWN),
    Protocol(
        name="P8", variables={"stack/levels": "A", "blocks/mass": "B", _FLOOR: "B"}, options=_DRAWN
    ),
)

GENERAL = (
    *_SHARED,
    Protocol(name="P4", variables={"general/size": "A"}, options=_DRAWN),
    Protocol(name="P5", variables={"general/count": "A"}, options=_DRAWN),
    Protocol(name="P6", variables={"general/size": "B"}, options=_DRAWN),
    Protocol(name="P7", variables={"general/count": "A", "blocks/mass": "A"}, options=_DRAWN),
    Protocol(
        name="P8", variables={"general/size": "B", "blocks/mass": "B", _FLOOR: "B"}, options=_DRAWN
    ),
)


_SHAPE, _PAINT = "block_*/shape", "block_*/palette_index"

BLOCKS = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P1", variables={_SHAPE: "A"}),
    Protocol(name="P2", variables={_SHAPE: "B"}, note="shapes that training never shows"),
)

HIDDEN_WEIGHTS = (
    *BLOCKS,
    Protocol(name="P3", variables={_PAINT: "A"}),
    Protocol(name="P4", variables={_PAINT: "B"}, note="colours that training never shows"),
    Protocol(name="P5", variables={_SHAPE: "B", _PAINT: "B"}),
)

ROOMS = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P1", grid={"room/seed": range(10_000)}, note="rooms to train in"),
    Protocol(name="P2", grid={"room/seed": range(10_000, 12_000)}, note="rooms held out"),
)


SLIDER = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P1", variables={"box/mass": "A"}),
    Protocol(name="P2", variables={"box/mass": "B"}),
    Protocol(name="P3", variables={"box/friction": "B"}),
    Protocol(name="P4", variables={"gravity": "B", "box/mass": "B"}),
    Protocol(name="P5", variables={"box/mass": "B"}, at=(20, 40), note="within the episode"),
)
