"""Mechanisms of one room: its variables from its seed, from noise and from what is held fixed.

A row is one world: every variable by name, beside it `u/...` (its noise), `cut/...` (whether an
intervention holds a variable), `order` (which item of the room stands in which slot) and `aimed`
(the item the camera was drawn for, -1 for the one in slot 0).
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.art.rooms.forms import FORM, Form
from interverse.art.rooms.item import PROPERTIES
from interverse.core.errors import explain
from interverse.core.rng import Noise, generator
from interverse.worlds.rooms import camera, confounding, lights
from interverse.worlds.rooms.actions import ABSENT, CLASS_NAMES, VERBS, has
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.placing import Bounds, Occupancy, Pose
from interverse.worlds.rooms.room import Room, Thing, form_of, place_item, plan_room, reach
from interverse.worlds.rooms.variables import (
    CAMERA,
    FIELDS,
    LIGHT,
    STEEPEST,
    TRAINING_ROOMS,
    name_of,
)

Row = dict[str, NDArray[Any]]
_OPEN = VERBS[0].target
_SHAKE = np.array([0.12, 0.12, 0.08, 0.16, 0.10])  # of a camera in a step: m, m, m, rad, rad
_STRETCH = 2.0  # the most that an object is stretched or shrunk by
_NO_PLACE = "Take another class or instance, or set its position too"


def draw_numbers(noise: Noise, options: RoomsOptions) -> Row:
    """Returns the uniform numbers that a new episode's values are made of, (N, ...) each."""
    names = [name_of(slot, "state") for slot in range(options.objects)]
    zero = np.zeros(len(noise))
    hidden: Row = {}
    if options.confounder:
        hidden["u/confounder"] = noise.uniform(confounding.COIN, (confounding.NUMBERS,))
        hidden["focused"] = zero > 0
    return hidden | {
        "u/room": noise.uniform("room/seed"),
        "u/object": noise.uniform("object/class"),
        "u/state": noise.uniforms(names, len(PROPERTIES)),
        "u/camera": noise.uniform("camera/position", (camera.TRIES, camera.NUMBERS)),
        "u/light": noise.uniform("light/color", (lights.NUMBERS,)),
        "u/shake": np.full((len(noise), len(_SHAKE)), 0.5),
        "u/shift": np.zeros((len(noise), lights.NUMBERS)),
        "aimed": np.full(len(noise), -1),
        "shifted": zero > 0,
    }


def change_noise(noise: Noise, options: RoomsOptions) -> Row:
    """Returns the uniform numbers of what else changes in a step, for those that do."""
    found: Row = {}
    if options.shakes_camera:
        found["u/shake"] = noise.uniform("camera/position", (len(_SHAKE),))
    if options.shifts_light:
        found["u/shift"] = noise.uniform("light/color", (lights.NUMBERS,))
        found["shifted"] = np.ones(len(noise), dtype=bool)
    return found


def things_of(row: Row) -> list[Thing | None]:
    """Returns what stands in the room now, by the item's index in it; None for nothing."""
    found: list[Thing | None] = [None] * len(row["order"])
    for slot, index in enumerate(row["order"].tolist()):
        cls = int(row[name_of(slot, "class")])
        if cls != ABSENT:
            pose = Pose(row[name_of(slot, "position")], float(row[name_of(slot, "yaw")]))
            instance = int(row[name_of(slot, "instance")])
            found[index] = Thing(CLASS_NAMES[cls], instance, pose, _form(row, slot))
    return found


def _form(row: Row, slot: int) -> Form | None:
    """Returns the form of an object, None where it is that of its instance."""
    names = [name_of(slot, field) for field in FORM]
    if names[0] not in row:
        return None
    cls, instance = CLASS_NAMES[int(row[name_of(slot, "class")])], row[name_of(slot, "instance")]
    found: Form = tuple(float(row[name]) for name in names)  # type: ignore[assignment]
    return None if found == form_of(cls, int(instance)) else found


def _settle_form(row: Row, slot: int) -> str | None:
    """Puts the factors of an object's form that are not held; returns why it cannot be."""
    number, instance = (int(row[name_of(slot, field)]) for field in ("class", "instance"))
    own = [0.0] * len(FORM) if number == ABSENT else form_of(CLASS_NAMES[number], instance)
    for field, value in zip(FORM, own, strict=True):
        name = name_of(slot, field)
        _put(row, name, np.float64(value))
        least, most = value / _STRETCH, value * _STRETCH
        if field in FORM[:3] and not least <= row[name] <= most:
            return explain(
                f"{name} is {float(row[name]):.3f}", allowed=f"{least:.3f} to {most:.3f} m"
            )
    return None


def settle(row: Row, options: RoomsOptions, *, redraw: Collection[int] = ()) -> str | None:
    """Brings a row in line with its causes, but for what is held; returns why it cannot be.

    Slots to `redraw` have a new object, which gets an initial state.
    """
    if not row["cut/room/seed"]:
        row["room/seed"] = np.array(int(row["u/room"] * TRAINING_ROOMS))
    room = plan_room(int(row["room/seed"]), options.objects)
    uniform = float(row["u/object"])  # whose item comes first; it may follow the confounder
    if options.confounder:
        _put(row, confounding.COIN, np.int64(confounding.coin(row)))
        if not row["focused"]:
            uniform = confounding.choose_object(row, room.things, uniform)
    row["order"] = _order(len(room.things), options.objects, uniform)
    for slot in range(options.objects):
        problem = _settle_object(row, room, slot)
        if problem is None and options.instances == "open":
            problem = _settle_form(row, slot)
        if problem is not None:
            return problem
        if slot in redraw:
            row[name_of(slot, "state")] = _initial(row, slot, options)
    hue = float(generator(seed=room.seed, name="rooms/lamps").random())
    light = lights.draw_light(hue, row["u/light"], options.lamps)
    if options.confounder:
        light = confounding.lamp(row, light)
    if row["shifted"]:
        light = lights.shift_light(*light, row["u/shift"])
    for name, value in zip(LIGHT, light, strict=True):
        _put(row, name, np.asarray(value, dtype=float))
    _settle_camera(row, room, options)
    return _impossible(row, room, options)


def refocus(row: Row, room: Room, index: int) -> None:
    """Puts the item of an index into slot 0 and moves the others along; nothing else changes."""
    slots = len(row["order"])
    order = _order(len(room.things), slots, (index + 0.5) / len(room.things))
    was = {item: slot for slot, item in enumerate(row["order"].tolist())}
    source = [was[item] for item in order.tolist()]
    old = dict(row)
    for slot, before in enumerate(source):
        for field in FIELDS if name_of(0, FORM[0]) not in row else (*FIELDS, *FORM):
            for prefix in ("", "cut/"):
                row[prefix + name_of(slot, field)] = old[prefix + name_of(before, field)]
    row["order"], row["u/state"] = order, old["u/state"][source]
    row["u/object"] = np.array((index + 0.5) / len(room.things))
    if "focused" in row:
        row["focused"] = np.array(True)


def impossible_state(row: Row, options: RoomsOptions) -> str | None:
    """Returns why an object cannot be in its state: its class lacks a property."""
    for slot in range(options.objects):
        cls, state = int(row[name_of(slot, "class")]), row[name_of(slot, "state")]
        if np.any(state[~has(cls)] != 0):
            what = "no object" if cls == ABSENT else f"a {CLASS_NAMES[cls]}"
            held = [name for name, on in zip(PROPERTIES, has(cls), strict=True) if on]
            return explain(
                f"{name_of(slot, 'state')} is {state.tolist()} of {what}",
                allowed=f"0 for all but {', '.join(held) or 'nothing'}",
            )
    return None


def _order(present: int, slots: int, uniform: float) -> NDArray[np.int64]:
    """Returns the item in each slot: the one looked at first, the others as they are numbered."""
    first = int(uniform * present)
    return np.array([first, *(i for i in range(slots) if i != first)], dtype=np.int64)


def _put(row: Row, name: str, value: Any) -> None:
    if not row[f"cut/{name}"]:
        row[name] = np.asarray(value)


def _settle_object(row: Row, room: Room, slot: int) -> str | None:
    """Puts an object's class, instance and place, unless held; returns why it cannot be."""
    index = int(row["order"][slot])
    planned = room.things[index] if index < len(room.things) else None
    cls, instance, position = (name_of(slot, name) for name in ("class", "instance", "position"))
    _put(row, cls, np.int64(ABSENT if planned is None else CLASS_NAMES.index(planned.cls)))
    _put(row, instance, np.int64(0 if planned is None else planned.instance))
    number, which = int(row[cls]), int(row[instance])
    pose: Pose | None = Pose(np.zeros(3), 0.0)
    if number != ABSENT:
        name = CLASS_NAMES[number]
        if planned is not None and (planned.cls, planned.instance) == (name, which):
            pose = planned.pose
        else:
            pose = place_item(room, index, name, which)
        if pose is None and not row[f"cut/{position}"]:
            return explain(f"a {name} as {cls} finds no free place in the room", fix=_NO_PLACE)
    pose = Pose(row[position], 0.0) if pose is None else pose
    _put(row, position, pose.position.astype(float))
    _put(row, name_of(slot, "yaw"), np.float64(camera.wrap(pose.yaw)))
    return None


def _initial(row: Row, slot: int, options: RoomsOptions) -> NDArray[np.float64]:
    """Returns an object's first state: open, on and dirty by the toss of a coin, never broken.

    Graded, each is any hundredth from 0 to 1. A confounder weighs the coin.
    """
    held = has(int(row[name_of(slot, "class")]))
    if options.states == "graded":
        degrees = 1 - row["u/state"][slot]
        if options.confounder:
            degrees = confounding.first_degrees(row, degrees)
        return np.where(held, degrees.round(2), 0.0) * [1.0, 1.0, 1.0, 0.0]
    heads = row["u/state"][slot] < (
        confounding.chance_of_holding(row) if options.confounder else 0.5
    )
    full = np.array([_OPEN, 1.0, 1.0, 0.0])
    return np.where(heads & held, full, 0.0)


def _settle_camera(row: Row, room: Room, options: RoomsOptions) -> None:
    close = options.view == "single"
    index = int(row["order"][0] if close or row["aimed"] < 0 else row["aimed"])
    side = confounding.distance_side(row) if options.confounder else None
    if close:
        things = things_of(row)
        boxes = [t.bounds() for t in things if t is not None]
        target = sum(t is not None for t in things[:index])
        view = camera.choose_view(room, boxes, target, row["u/camera"], close=True, side=side)
    else:
        view = _room_view(room, index, row["u/camera"].tobytes(), side)
    shake = _SHAKE * (row["u/shake"] - 0.5) * (0.25 if close else 1.0)
    place = view.position + shake[:3]
    place = place if camera.stands_free(room, place) else view.position.copy()
    pitch = np.clip(view.pitch + shake[4], -STEEPEST, STEEPEST)
    values = (place, camera.wrap(view.yaw + shake[3]), pitch, view.fov)
    for name, value in zip(CAMERA, values, strict=True):
        _put(row, name, np.asarray(value, dtype=float))


@functools.lru_cache(maxsize=256)
def _room_view(room: Room, target: int, numbers: bytes, side: int | None) -> camera.RoomView:
    """Returns a camera for a whole room, from its items' first places: most changes keep it."""
    tries = np.frombuffer(numbers).reshape(camera.TRIES, camera.NUMBERS)
    boxes = [thing.bounds() for thing in room.things]
    return camera.choose_view(room, boxes, target, tries, close=False, side=side)


def _impossible(row: Row, room: Room, options: RoomsOptions) -> str | None:
    """Returns why things cannot stand as they do, where an intervention put one elsewhere."""
    if row["cut/camera/position"] and not camera.is_possible(room, row["camera/position"]):
        half = (np.array(room.size[:2]) / 2).round(2).tolist()
        return explain(
            f"camera/position is {row['camera/position'].round(3).tolist()}",
            allowed=f"|x|, |y| within {half}, under the ceiling, in no furniture",
        )
    boxes: dict[int, Bounds] = {}
    for index, thing in enumerate(things_of(row)):
        if thing is not None:
            slot = row["order"].tolist().index(index)
            boxes[slot] = thing.pose.bounds(reach(thing.cls, thing.instance, thing.form))
    for slot, box in sorted(boxes.items()):
        held = {f for f in (*FIELDS, *FORM[:3]) if row.get(f"cut/{name_of(slot, f)}", False)}
        moved, what = held & {"position", "yaw"}, None
        if moved and not room.allows(CLASS_NAMES[int(row[name_of(slot, "class")])], box):
            what = "a wall or a piece of furniture"
        elif held - {"state"}:
            for other, its in sorted(boxes.items()):
                alone = Occupancy(room.size, [box[0]], [box[1]])
                if other != slot and alone.meets(its):
                    what = name_of(other, "").rstrip("/")
                    break
        if what is not None:
            place = row[name_of(slot, "position")].round(3).tolist()
            return explain(
                f"{name_of(slot, 'position')} at {place} would run into {what}",
                allowed="a free place between the walls",
            )
    return None
