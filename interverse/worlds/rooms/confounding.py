"""The confounder: one hidden coin that object, size, distance, lamp and action may all follow.

Each of them follows the coin with a probability, the variable `confounding`; else it is drawn as
without it. A model that reads the object or the lamp then guesses the action, until the strength
changes.
"""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.rooms.actions import CLASS_NAMES, VERBS
from interverse.worlds.rooms.room import Thing

Row = Mapping[str, NDArray[Any]]
STRENGTH, COIN = "confounding", "confounder"
NUMBERS = 6  # uniform numbers: the coin, then one for each that may follow it
_OBJECT, _SIZE, _HUE, _BRIGHTNESS, _DISTANCE = 1, 2, 3, 4, 5
_HUES = (0.08, 0.6)  # warm, cold
_SATURATION = 0.2


def coin(row: Row) -> int:
    """Returns the coin that a row's noise gives."""
    return int(row["u/confounder"][0] < 0.5)


def choose_object(row: Row, things: Sequence[Thing], uniform: float) -> float:
    """Returns the uniform number whose object is looked at: class and size may follow the coin."""
    side, found = int(row[COIN]), list(range(len(things)))
    if _follows(row, _OBJECT):
        found = [i for i in found if _side_of(things[i].cls) == side] or found
    if _follows(row, _SIZE):
        found.sort(key=lambda i: float(np.prod(things[i].item.size)))
        chosen = found[-1 if side else 0]
    else:
        chosen = found[int(uniform * len(found))]
    return (chosen + 0.5) / len(things)


def lamp(
    row: Row, light: tuple[NDArray[np.float64], float, float]
) -> tuple[NDArray[np.float64], float, float]:
    """Returns a light whose hue and brightness may follow the coin."""
    color, bright, time = light
    side = int(row[COIN])
    if _follows(row, _HUE):
        color = np.array(colorsys.hsv_to_rgb(_HUES[side], _SATURATION, 1.0))
    if _follows(row, _BRIGHTNESS):
        bright = 0.9 + 0.5 * (bright - 0.9) + 0.25 * (1 - side)
    return color, bright, time


def distance_side(row: Row) -> int | None:
    """Returns whether the camera stands near (0) or far (1); None where it is free."""
    return int(row[COIN]) if _follows(row, _DISTANCE) else None


def preferred_verbs(row: Row, verbs: Sequence[int], uniform: float) -> list[int]:
    """Returns the actions left to choose from: those on the coin's side, where it is followed."""
    if uniform >= float(row[STRENGTH]):
        return list(verbs)
    side = int(row[COIN])
    return [v for v in verbs if bool(VERBS[v].target) == bool(side)] or list(verbs)


def preferred_classes(row: Row, classes: Sequence[int], uniform: float) -> list[int]:
    """Returns places in a list of classes: those on the coin's side, where it is followed."""
    everyone = list(range(len(classes)))
    if uniform >= float(row[STRENGTH]):
        return everyone
    return [i for i in everyone if classes[i] % 2 == int(row[COIN])] or everyone


def _follows(row: Row, place: int) -> bool:
    return bool(row["u/confounder"][place] < row[STRENGTH])


def _side_of(cls: str) -> int:
    return CLASS_NAMES.index(cls) % 2
