"""Parts in states between 0 and 1: smaller flames, thinner streams, fainter dirt and cracks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from interverse.art.meshes import Mesh, moved, scaled
from interverse.art.rooms.item import (
    HELD_FROM,
    PROPERTIES,
    MixedTexture,
    Part,
    Surface,
    surface_key,
)
from interverse.art.rooms.kit import covered

State = Mapping[str, float]
_LEAST = 0.15  # of a part's width when it just appears


def is_there(part: Part, state: State) -> bool:
    """Returns whether a part is drawn in a state: any flame, but shards from half broken on."""
    if part.hidden_when is not None and state.get(part.hidden_when, 0.0) >= HELD_FROM:
        return False
    if part.shown_when is None:
        return True
    value = state.get(part.shown_when, 0.0)
    return value >= HELD_FROM if part.shown_when == "broken" else value > 0


def graded_mesh(part: Part, state: State) -> Mesh:
    """Returns a part's mesh in a state: what comes with a property grows with it, sideways."""
    value = state.get(part.shown_when or "", 1.0)
    if value in (0.0, 1.0):
        return part.mesh
    share = _LEAST + (1 - _LEAST) * value
    middle = (part.mesh.vertices.min(axis=0) + part.mesh.vertices.max(axis=0)) / 2
    middle = middle * np.array([1.0, 1.0, 0.0])
    return moved(scaled(moved(part.mesh, -middle), (share, share, 1.0)), middle)


def graded_surface(part: Part, state: State) -> Surface:
    """Returns a part's surface in any state: between two states, their surfaces mixed."""
    for name in PROPERTIES:
        value = state.get(name, 0.0)
        if 0.0 < value < 1.0 and any(name in key.split("+") for key in part.alternate):
            ends = [graded_surface(part, {**state, name: end}) for end in (0.0, 1.0)]
            return mixed(ends[0], ends[1], value)
    key = surface_key(part, state)
    found = part.alternate[key] if key else part.surface
    value = state.get("broken", 0.0)
    if part.hidden_when == "broken" and 0.0 < value < HELD_FROM:  # cracks before it falls apart
        return mixed(found, covered(found, "cracks"), value / HELD_FROM)
    return found


def mixed(first: Surface, second: Surface, share: float) -> Surface:
    """Returns the surface between two."""
    if first == second:
        return first

    def between(name: str) -> float:
        low, high = getattr(first, name), getattr(second, name)
        return float(low + share * (high - low))

    alpha = first.rgba[3] + share * (second.rgba[3] - first.rgba[3])
    return replace(
        first,
        texture=MixedTexture(first=first, second=second, share=share),
        rgba=(1.0, 1.0, 1.0, alpha),
        specular=between("specular"),
        shininess=between("shininess"),
        reflectance=between("reflectance"),
        emission=between("emission"),
    )
