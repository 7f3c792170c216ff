"""The seven actions: which property each sets, and to what."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from interverse.art.rooms.item import HELD_FROM, PROPERTIES
from interverse.art.rooms.objects import CLASSES

CLASS_NAMES = tuple(CLASSES)
"""Object classes by number."""

_ROOM = 0.1  # a graded action needs so much of the way left
ABSENT = -1  # the class of a slot that holds nothing


class Verb(NamedTuple):
    """What an action does: the component of the state it sets, and its value."""

    name: str
    component: int
    target: float


VERBS: tuple[Verb, ...] = (
    Verb("open", 0, 0.8),
    Verb("close", 0, 0.0),
    Verb("turnon", 1, 1.0),
    Verb("turnoff", 1, 0.0),
    Verb("dirty", 2, 1.0),
    Verb("clean", 2, 0.0),
    Verb("break", 3, 1.0),
)
"""Actions by number."""


@functools.cache
def has(cls: int) -> NDArray[np.bool_]:
    """Returns which of the four components a class has, (4,), read-only; an empty slot none."""
    traits = () if cls == ABSENT else CLASSES[CLASS_NAMES[cls]][1]
    held = np.array([name in traits for name in PROPERTIES])
    held.flags.writeable = False
    return held


def act(cls: int, state: NDArray[np.float64], verb: int) -> NDArray[np.float64]:
    """Returns an object's state (4,) after an action.

    An action on what the class has not, or on what holds already, changes nothing.

    >>> act(CLASS_NAMES.index("Fridge"), np.zeros(4), 0).tolist()
    [0.8, 0.0, 0.0, 0.0]
    """
    _, component, target = VERBS[verb]
    after = state.copy()
    holds = bool(state[component] >= HELD_FROM)
    if has(cls)[component] and holds != (target >= HELD_FROM):
        after[component] = target
    return after


def possible(cls: int, state: NDArray[np.float64], *, graded: bool = False) -> list[int]:
    """Returns the actions that change an object of a class in a state.

    Of whole states one a property at most; of graded ones both ways where there is room.
    """
    if not graded:
        return [v for v in range(len(VERBS)) if not np.array_equal(act(cls, state, v), state)]
    left = [1 - state[v.component] if v.target else state[v.component] for v in VERBS]
    return [n for n, v in enumerate(VERBS) if left[n] >= _ROOM and has(cls)[v.component]]


def graded_target(state: NDArray[np.float64], verb: int, uniform: float) -> float:
    """Returns how far an action goes: from where it is, at least a quarter of what is left.

    >>> graded_target(np.zeros(4), 0, 0.16)
    0.37
    """
    _, component, target = VERBS[verb]
    now = float(state[component])
    if target:
        return round(now + (1 - now) * (0.25 + 0.75 * uniform), 2)
    return round(now * 0.75 * uniform, 2)


def act_to(cls: int, state: NDArray[np.float64], verb: int, target: float) -> NDArray[np.float64]:
    """Returns an object's state (4,) after an action that goes to a target, "open to 0.37".

    An action on what the class has not, or whose target lies the other way, changes nothing.

    >>> act_to(CLASS_NAMES.index("Fridge"), np.zeros(4), 0, 0.37).tolist()
    [0.37, 0.0, 0.0, 0.0]
    """
    _, component, full = VERBS[verb]
    after = state.copy()
    onwards = target > state[component] if full else target < state[component]
    if has(cls)[component] and onwards:
        after[component] = target
    return after
