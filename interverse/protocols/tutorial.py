"""The slider's protocols: the template for your own."""

from __future__ import annotations

from interverse.protocols.protocol import Protocol

SLIDER = (
    Protocol(name="P0", note="nothing changes"),
    Protocol(name="P1", variables={"box/mass": "A"}),
    Protocol(name="P2", variables={"box/mass": "B"}),
    Protocol(name="P3", variables={"box/friction": "B"}),
    Protocol(name="P4", variables={"gravity": "B", "box/mass": "B"}),
    Protocol(name="P5", variables={"box/mass": "B"}, at=(20, 40), note="within the episode"),
)
