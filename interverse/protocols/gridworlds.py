"""Protocols of the grid worlds, the rooms and the slider: seen and unseen looks and rooms.

What their papers measure (ranking, planning, recognition) needs a model and stands in
`interverse reproduce`; these are for policies that act in the worlds.
"""

from __future__ import annotations

from interverse.protocols.protocol import Protocol

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
