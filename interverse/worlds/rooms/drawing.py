"""Pictures of rooms: which model to draw, what to change in it, and whose pixels are whose."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from interverse.art.rooms.forms import Form
from interverse.art.rooms.item import PROPERTIES
from interverse.sim import studio
from interverse.sim.studio import DrawingStage
from interverse.worlds.rooms.camera import RoomView
from interverse.worlds.rooms.lights import light_edits, sky_color
from interverse.worlds.rooms.placing import Pose
from interverse.worlds.rooms.room import Thing, plan_room
from interverse.worlds.rooms.scene import LIGHTS, Model, build_model, state_edits
from interverse.worlds.rooms.shell import Opening

Grade = tuple[float, float, float]  # on, dirty, broken, where one is neither 0 nor 1
Cast = tuple[tuple[int, str, int, Grade | None, Form | None], ...]
"""Index, class, instance of each item, the state its surfaces are mixed for, a form not its own."""
Part = Literal["rgb", "items", "depth"]
_ASKED: dict[Part, studio.Part] = {"rgb": "rgb", "items": "geoms", "depth": "depth"}
_LAMP = 0.9  # strength of an item's own light where lamps shine
_NOWHERE = Pose(np.zeros(3), 0.0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """A room ready to be drawn."""

    built: Model
    stage: DrawingStage
    indices: tuple[int, ...]
    """The item in each place of the model."""
    openings: tuple[Opening, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shot:
    """What a picture shows: things by index with their states, a camera and a light."""

    things: Sequence[Thing | None]
    states: NDArray[np.float64]
    view: RoomView
    light: tuple[NDArray[np.float64], float, float]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A picture: colours, the index of the item at each pixel (-1 for none), depth in metres."""

    rgb: NDArray[np.uint8] | None
    items: NDArray[np.int16] | None
    depth: NDArray[np.float32] | None


def cast_of(things: Sequence[Thing | None], states: NDArray[np.float64]) -> Cast:
    """Returns what a model is made of, whatever the places.

    Args:
        things: by index in the room.
        states: (items, 4) of them.
    """
    return tuple(
        (i, t.cls, t.instance, _grade(states[i]), t.form)
        for i, t in enumerate(things)
        if t is not None
    )


def _grade(state: NDArray[np.float64]) -> Grade | None:
    """Returns on, dirty and broken in hundredths, None where each is 0 or 1."""
    if np.all((state[1:] == 0) | (state[1:] == 1)):
        return None
    on, dirty, broken = (
        float(v) if v in (0.0, 1.0) else min(max(round(float(v), 2), 0.01), 0.99) for v in state[1:]
    )
    return on, dirty, broken


@functools.lru_cache(maxsize=12)
def staged(seed: int, objects: int, cast: Cast, *, spill: bool, high: bool) -> Staged:
    """Returns the room of a seed with a cast in it; the last few are kept.

    Args:
        seed: of the room.
        objects: how many items it has at most.
        cast: its items.
        spill: whether lamps shine and moving parts cast shadows.
        high: whether Filament draws it.
    """
    room = plan_room(seed, objects)
    things = [Thing(cls, instance, _NOWHERE, form) for _, cls, instance, _, form in cast]
    grades = {
        place: dict(zip(PROPERTIES[1:], entry[3], strict=True))
        for place, entry in enumerate(cast)
        if entry[3] is not None
    }
    built = build_model(room, things, lamps=spill, high=high, grades=grades)
    stage = DrawingStage(built.model, shadowless=() if spill else built.shadowless, high=high)
    return Staged(built, stage, tuple(entry[0] for entry in cast), room.openings)


def draw(scene: Staged, shot: Shot, *, size: int, parts: Collection[Part], fast: bool) -> Frame:
    """Returns a picture.

    Args:
        scene: a room ready to be drawn.
        shot: what it shows.
        size: pixels a side.
        parts: which of rgb, items and depth to draw.
        fast: whether the quick renderer draws the colours whatever the quality.
    """
    rows, built = list(scene.indices), scene.built
    model = built.model
    edits, qpos = state_edits(built, shot.states[rows])
    position, turn = model.body_pos.copy(), model.body_quat.copy()
    for row, item in zip(rows, built.items, strict=True):
        thing = shot.things[row]
        if thing is not None:
            body = model.body(item.body).id
            position[body], turn[body] = thing.pose.position, thing.pose.quaternion
    lights = light_edits(*shot.light, scene.openings)
    diffuse, way = model.light_diffuse.copy(), model.light_dir.copy()
    for row, name in enumerate(LIGHTS):
        light = model.light(name).id
        diffuse[light], way[light] = lights["light_diffuse"][row], lights["light_dir"][row]
    for row, item in zip(rows, built.items, strict=True):
        if built.lamps and item.item.light is not None:
            lamp = model.light(f"{item.body}/lamp").id
            diffuse[lamp] = _LAMP * shot.states[row, 1] * np.array([1.0, 0.85, 0.6])
    edits |= {
        "body_pos": position,
        "body_quat": turn,
        "cam_pos": shot.view.position[None],
        "cam_quat": shot.view.quaternion[None],
        "cam_fovy": np.array([math.degrees(shot.view.fov)]),
        "light_diffuse": diffuse,
        "light_dir": way,
        "headlight_ambient": lights["headlight_ambient"],
    }
    edits["geom_rgba"][list(built.sky), :3] = sky_color(shot.light[2])
    asked = [_ASKED[part] for part in parts]
    seen = scene.stage.draw(edits, qpos=qpos, size=size, parts=asked, fast=fast)
    if seen.geoms is None:
        return Frame(seen.rgb, None, seen.depth)
    owner = built.owner
    table = np.full(len(owner) + 1, -1, np.int16)  # the last is for no geom at all
    table[:-1] = np.where(owner >= 0, np.array([*rows, -1], np.int16)[owner], -1)
    return Frame(seen.rgb, table[seen.geoms], seen.depth)
