"""Situations of a room in which causes act that seldom do, for the witness search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.rooms.actions import has, possible
from interverse.worlds.rooms.camera import aim
from interverse.worlds.rooms.variables import name_of

_Values = Mapping[str, NDArray[Any]]
_Moves = Iterator[tuple[str, Any]]
_WIDE = 1.6  # angle of view, rad


def handled(values: _Values, rng: np.random.Generator) -> _Moves:
    """Leaves objects in other states than they were found in; then acts on one of them."""
    chosen = rng.permutation([slot for slot in (0, 1) if name_of(slot, "class") in values])
    for slot in chosen.tolist():
        name, held = name_of(slot, "state"), has(int(values[name_of(slot, "class")]))
        yield "do", {name: np.where(held, rng.integers(2, size=4), 0.0)}
        for verb in possible(int(values[name_of(slot, "class")]), values[name]):
            yield "action", [slot, verb]


def facing(values: _Values, rng: np.random.Generator) -> _Moves:
    """Turns the camera to the second object."""
    if name_of(1, "position") not in values:
        return
    there = values[name_of(1, "position")]
    spots = [there + rng.uniform((-1.5, -1.5, 0.2), (1.5, 1.5, 1.2)) for _ in range(10)]
    yield "try", [{"camera/position": np.clip(spot, -4.0, 4.0)} for spot in spots]
    yaw, pitch = aim(values["camera/position"], there)
    yield "do", {"camera/yaw": yaw, "camera/pitch": np.clip(pitch, -1.4, 1.4), "camera/fov": _WIDE}
