"""Screens of laptops, telephones and televisions: panes that are dark, lit, cracked or both."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh
from interverse.art.rooms.item import Part, Rgb
from interverse.art.rooms.surfaces import cracked, flat, picture, scenery, variant

BLACK: Rgb = (0.03, 0.03, 0.035)


def screen(rng: np.random.Generator, mesh: Mesh, kind: str, parent: str | None = None) -> Part:
    """Returns a pane that shows a picture of a kind while on, and cracks while broken."""
    lit = picture(kind, scenery(rng), variant(rng), 0.75)
    dead = cracked(picture("plain", (BLACK, (0.05, 0.05, 0.055)), variant(rng)))
    return Part(
        name="screen",
        mesh=mesh,
        surface=flat((0.025, 0.027, 0.03), 0.7, 0.85),
        alternate={"on": lit, "broken": dead, "on+broken": cracked(lit)},
        parent=parent,
    )
