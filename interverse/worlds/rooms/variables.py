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
    objects = [variable for slot in slots for variable in _object(slot)]
    if options.instances == "open":
        objects += [variable for slot in slots for variable in _opened(slot)]
    hidden = _confounder() if options.confounder else ()
    return table(_room(), *hidden, *objects, *_camera(), *_light(), *_action(options))


def _room() -> Variable:
    last = TRAINING_ROOMS + TEST_ROOMS - 1
    return Variable(
        name="room/seed",
        kind="latent",
        default=np.array(0),
        domain=Integers(0, INSTANCES),
        space_a=Integers(0, TRAINING_ROOMS - 1),
        space_b=Integers(TRAINING_ROOMS, last),
        doc="Which room: its size, covers, furniture, objects and lamps.",
    )


def _confounder() -> Iterator[Variable]:
    yield Variable(
        name=CONFOUNDER[0],
        kind="latent",
        default=np.array(0.0),
        domain=Box(0.0, 1.0),
        space_a=Box(0.0, 0.5),
        space_b=Box(0.5, 1.0, open_low=True),
        doc="How likely object, first states, size, distance, lamp and action follow the coin.",
    )
    yield Variable(
        name=CONFOUNDER[1],
        kind="latent",
        default=np.array(0),
        domain=Integers(0, 1),
        doc="A hidden coin, the common cause of what follows it.",
    )


def _object(slot: int) -> Iterator[Variable]:
    least = 0 if slot == 0 else ABSENT
    yield Variable(
        name=name_of(slot, "class"),
        kind="latent",
        default=np.array(least),
        domain=Integers(least, len(CLASS_NAMES) - 1),
        doc=_CLASSES if slot == 0 else "As object/class; -1 is no object.",
        labels=CLASS_NAMES if slot == 0 else ("none", *CLASS_NAMES),
    )
    yield Variable(
        name=name_of(slot, "instance"),
        kind="appearance",
        default=np.array(0),
        domain=Integers(0, INSTANCES),
        doc="Which individual of its class: its shape, size and materials.",
    )
    yield Variable(
        name=name_of(slot, "position"),
        kind="latent",
        unit="m",
        default=np.zeros(3),
        domain=Box(-4.0, 4.0, (3,)),
        doc="Where it stands (on a wall: the middle of its back), from the middle of the floor.",
    )
    yield Variable(
        name=name_of(slot, "yaw"),
        kind="latent",
        unit="rad",
        default=np.array(0.0),
        domain=Angle(),
        doc="Its turn about the vertical; at 0 it faces -y.",
    )
    yield Variable(
        name=name_of(slot, "state"),
        kind="state",
        default=np.zeros(4),
        domain=Box(0.0, 1.0, (4,)),
        space_a=functools.partial(_states, name_of(slot, "class")),
        doc="How far it is open, on, dirty, broken; each holds from 0.5. What a class lacks is 0.",
    )


def _opened(slot: int) -> Iterator[Variable]:
    """Yields the factors of an object's form."""
    for field, doc in zip(FORM, _FORM_DOCS, strict=True):
        size = field in FORM[:3]
        yield Variable(
            name=name_of(slot, field),
            kind="appearance",
            unit="m" if size else "",
            default=np.array(0.0),
            domain=Box(0.0, 8.0 if size else 1.0),
            doc=doc,
        )


def _states(cls: str, values: Values) -> Box:
    """Returns the states that objects of the present class can be in."""
    classes = np.asarray(values[cls])
    held = np.stack([has(int(c)) for c in classes.ravel()]).reshape((*classes.shape, 4))
    return Box(np.zeros(held.shape), held.astype(float), (4,))


def _camera() -> Iterator[Variable]:
    yield Variable(
        name="camera/position",
        kind="appearance",
        unit="m",
        default=np.array([0.0, 0.0, 1.5]),
        domain=Box(-4.0, 4.0, (3,)),
        doc="Where the camera is; between the walls and in no furniture.",
    )
    yield Variable(
        name="camera/yaw",
        kind="appearance",
        unit="rad",
        default=np.array(0.0),
        domain=Angle(),
        doc="Its turn about the vertical; at 0 it looks along +y.",
    )
    yield Variable(
        name="camera/pitch",
        kind="appearance",
        unit="rad",
        default=np.array(0.0),
        domain=Box(-STEEPEST, STEEPEST),
        doc="How far it looks up.",
    )
    yield Variable(
        name="camera/fov",
        kind="appearance",
        unit="rad",
        default=np.array(math.radians(75.0)),
        domain=Box(math.radians(3.0), math.radians(120.0)),
        doc="Angle of view, across and down alike.",
    )


def _light() -> Iterator[Variable]:
    yield Variable(
        name="light/color",
        kind="appearance",
        unit="rgb",
        default=np.ones(3),
        domain=Box(0.0, 1.0, (3,)),
        doc="Colour of the ceiling lamp.",
    )
    yield Variable(
        name="light/brightness",
        kind="appearance",
        default=np.array(1.0),
        domain=Box(0.1, 2.0),
        space_a=Box(0.9, 1.4),
        space_b=Box(0.4, 0.9, open_high=True),
        doc="Strength of all lights.",
    )
    yield Variable(
        name="light/time_of_day",
        kind="appearance",
        unit="h",
        default=np.array(12.0),
        domain=Box(0.0, 24.0),
        space_a=Box(7.0, 18.0),
        space_b=Box(18.0, 23.0, open_low=True),
        doc="What the sky looks like, and how much of it comes in.",
    )


def _action(options: RoomsOptions) -> Iterator[Variable]:
    for name, most in zip(ACTION, (options.objects, len(VERBS)), strict=True):
        yield Variable(
            name=name,
            kind="state",
            default=np.array(-1),
            domain=Integers(-1, most - 1),
            read_only=True,
            doc="The last action's part, as chosen by whoever acts; -1 before the first.",
            labels=("none", *(verb.name for verb in VERBS)) if name == ACTION[1] else (),
        )
    if options.states == "graded":
        yield Variable(
            name=TARGET,
            kind="state",
            default=np.array(1.0),
            domain=Box(0.0, 1.0),
            doc="How far the last action went; set, how far the next one goes.",
        )


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
