"""The variables of a room and its causal graph.

The room's seed is the common cause of nearly everything else: which objects there are, where they
stand, where a camera can be, what colour its lamps have. An action changes one object's state.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from interverse.art.rooms.forms import FORM
from interverse.scm import Angle, Box, CausalGraph, Integers, Variable, table
from interverse.scm.variable import Values
from interverse.worlds.rooms.actions import ABSENT, CLASS_NAMES, VERBS, has
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.world import variable

TRAINING_ROOMS = 10_000
TEST_ROOMS = 2_000
INSTANCES = 2**31 - 1
STEEPEST = 1.4  # of a camera, rad
CAMERA = ("camera/position", "camera/yaw", "camera/pitch", "camera/fov")
LIGHT = ("light/color", "light/brightness", "light/time_of_day")
ACTION = ("action/object", "action/verb")
TARGET = "action/target"
CONFOUNDER = ("confounding", "confounder")
_CLASSES = "Number of the class: " + ", ".join(f"{i} {n}" for i, n in enumerate(CLASS_NAMES)) + "."
FIELDS = ("class", "instance", "position", "yaw", "state")

_FORM_DOCS = (
    "From side to side; half to twice what its instance has.",
    "From front to back; half to twice what its instance has.",
    "From foot to top; half to twice what its instance has.",
    "Of its largest part, on the colour wheel; the other parts' move along.",
    "How colourful its largest part is; the other parts' move along.",
    "How light its largest part is; the other parts' move along.",
    "How much its largest part shines; the other parts' move along.",
    "How faded and rubbed it is.",
)


def name_of(slot: int, field: str) -> str:
    """Returns the name of an object's variable; slot 0 is the object looked at.

    >>> name_of(0, "state"), name_of(2, "state")
    ('object/state', 'object_2/state')
    """
    return f"object/{field}" if slot == 0 else f"object_{slot}/{field}"


def declare(options: RoomsOptions) -> Mapping[str, Variable]:
    """Returns every variable of the world."""
    slots = range(options.objects)
    found = [
        variable(
            "room/seed",
            "latent",
            0,
            Integers(0, INSTANCES),
            "Which room: its size, covers, furniture, objects and lamps.",
            space_a=Integers(0, TRAINING_ROOMS - 1),
            space_b=Integers(TRAINING_ROOMS, TRAINING_ROOMS + TEST_ROOMS - 1),
        )
    ]
    if options.confounder:
        found += _confounder()
    for slot in slots:
        found += _object(slot)
    if options.instances == "open":
        # The factors of an object's form.
        for slot in slots:
            for field, doc in zip(FORM, _FORM_DOCS, strict=True):
                size = field in FORM[:3]
                unit, domain = ("m", Box(0.0, 8.0)) if size else ("", Box(0.0, 1.0))
                found.append(
                    variable(name_of(slot, field), "appearance", 0.0, domain, doc, unit=unit)
                )
    return table(*found, *_camera(), *_light(), *_action(options))


def _confounder() -> Iterator[Variable]:
    yield variable(
        CONFOUNDER[0],
        "latent",
        0.0,
        Box(0.0, 1.0),
        "How likely object, first states, size, distance, lamp and action follow the coin.",
        space_a=Box(0.0, 0.5),
        space_b=Box(0.5, 1.0, open_low=True),
    )
    doc = "A hidden coin, the common cause of what follows it."
    yield variable(CONFOUNDER[1], "latent", 0, Integers(0, 1), doc)


def _object(slot: int) -> Iterator[Variable]:
    least = 0 if slot == 0 else ABSENT
    yield variable(
        name_of(slot, "class"),
        "latent",
        least,
        Integers(least, len(CLASS_NAMES) - 1),
        _CLASSES if slot == 0 else "As object/class; -1 is no object.",
        labels=CLASS_NAMES if slot == 0 else ("none", *CLASS_NAMES),
    )
    doc = "Which individual of its class: its shape, size and materials."
    yield variable(name_of(slot, "instance"), "appearance", 0, Integers(0, INSTANCES), doc)
    doc = "Where it stands (on a wall: the middle of its back), from the middle of the floor."
    place, domain = np.zeros(3), Box(-4.0, 4.0, (3,))
    yield variable(name_of(slot, "position"), "latent", place, domain, doc, unit="m")
    doc = "Its turn about the vertical; at 0 it faces -y."
    yield variable(name_of(slot, "yaw"), "latent", 0.0, Angle(), doc, unit="rad")
    yield variable(
        name_of(slot, "state"),
        "state",
        np.zeros(4),
        Box(0.0, 1.0, (4,)),
        "How far it is open, on, dirty, broken; each holds from 0.5. What a class lacks is 0.",
        space_a=functools.partial(_states, name_of(slot, "class")),
    )


def _states(cls: str, values: Values) -> Box:
    """Returns the states that objects of the present class can be in."""
    classes = np.asarray(values[cls])
    held = np.stack([has(int(c)) for c in classes.ravel()]).reshape((*classes.shape, 4))
    return Box(np.zeros(held.shape), held.astype(float), (4,))


def _camera() -> Iterator[Variable]:
    position, yaw, pitch, fov = CAMERA
    doc = "Where the camera is; between the walls and in no furniture."
    place, domain = [0.0, 0.0, 1.5], Box(-4.0, 4.0, (3,))
    yield variable(position, "appearance", place, domain, doc, unit="m")
    doc = "Its turn about the vertical; at 0 it looks along +y."
    yield variable(yaw, "appearance", 0.0, Angle(), doc, unit="rad")
    steep = Box(-STEEPEST, STEEPEST)
    yield variable(pitch, "appearance", 0.0, steep, "How far it looks up.", unit="rad")
    doc = "Angle of view, across and down alike."
    wide = Box(math.radians(3.0), math.radians(120.0))
    yield variable(fov, "appearance", math.radians(75.0), wide, doc, unit="rad")


def _light() -> Iterator[Variable]:
    color, brightness, time = LIGHT
    doc = "Colour of the ceiling lamp."
    yield variable(color, "appearance", np.ones(3), Box(0.0, 1.0, (3,)), doc, unit="rgb")
    yield variable(
        brightness,
        "appearance",
        1.0,
        Box(0.1, 2.0),
        "Strength of all lights.",
        space_a=Box(0.9, 1.4),
        space_b=Box(0.4, 0.9, open_high=True),
    )
    yield variable(
        time,
        "appearance",
        12.0,
        Box(0.0, 24.0),
        "What the sky looks like, and how much of it comes in.",
        unit="h",
        space_a=Box(7.0, 18.0),
        space_b=Box(18.0, 23.0, open_low=True),
    )


def _action(options: RoomsOptions) -> Iterator[Variable]:
    doc = "The last action's part, as chosen by whoever acts; -1 before the first."
    verbs = ("none", *(verb.name for verb in VERBS))
    for name, most, labels in zip(ACTION, (options.objects, len(VERBS)), ((), verbs), strict=True):
        domain = Integers(-1, most - 1)
        yield variable(name, "state", -1, domain, doc, read_only=True, labels=labels)
    if options.states == "graded":
        doc = "How far the last action went; set, how far the next one goes."
        yield variable(TARGET, "state", 1.0, Box(0.0, 1.0), doc)


def causal_graph(variables: Mapping[str, Variable], options: RoomsOptions) -> CausalGraph:
    """Returns the graph: the room causes nearly all, the action one object's next state."""
    exogenous = ("room/seed", *ACTION, TARGET, *CONFOUNDER, "light/time_of_day")
    followed = [name for name in variables if name not in exogenous]
    edges = [("room/seed", name) for name in followed if name != "light/brightness"]
    for slot in range(options.objects):
        cls, instance, position, yaw, state = (name_of(slot, field) for field in FIELDS)
        form = [name_of(slot, field) for field in FORM] if options.instances == "open" else []
        given = (position, yaw, *form)
        edges += [(cause, effect) for cause in (cls, instance) for effect in given]
        edges += [(cls, state), (cls, f"{state}'"), (state, f"{state}'")]
        edges += [(f"{name}'", f"{state}'") for name in ACTION]
        if options.states == "graded":
            edges += [(f"{TARGET}'", f"{state}'"), (state, f"{TARGET}'")]
    if options.states == "graded":
        edges += [(f"{name}'", f"{TARGET}'") for name in ACTION]
    if options.confounder:
        edges += [(cause, effect) for cause in CONFOUNDER for effect in followed]
        chosen_by = (*CONFOUNDER, name_of(0, "class"), name_of(0, "state"))
        edges += [(cause, f"{ACTION[1]}'") for cause in chosen_by]
    if options.view == "single":
        sizes = FORM[:3] if options.instances == "open" else ()
        seen = [name_of(0, field) for field in ("class", "instance", "position", "yaw", *sizes)]
        edges += [(cause, effect) for cause in seen for effect in CAMERA]
    if options.shakes_camera:
        edges += [(name, f"{name}'") for name in CAMERA[:3]]
    if options.shifts_light:
        edges += [(name, f"{name}'") for name in LIGHT]
    return CausalGraph.build(variables, edges)
