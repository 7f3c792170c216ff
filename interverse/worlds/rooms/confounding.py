"""The confounder: a hidden coin that object, first states, size, distance, lamp and action follow.

Each of them follows the coin with a probability, the variable `confounding`; else it is drawn as
without it. First states decide which actions are possible: heads, objects tend to be shut, off and
clean, and are opened, switched on and soiled; tails, the other way. A model that reads the object
or the lamp then guesses the action, until the strength changes.
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
        found = [i for i in found if CLASS_NAMES.index(things[i].cls) % 2 == side] or found
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


def chance_of_holding(row: Row) -> float:
    """Returns how likely each property of an object holds at first; a half where it is free."""
    return 0.5 * (1.0 + float(row[STRENGTH]) * (1 - 2 * int(row[COIN])))


def first_degrees(row: Row, degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns graded first states, moved towards the coin's half by the strength."""
    strength = float(row[STRENGTH])
    return degrees * (1.0 - strength / 2) + strength / 2 * (1 - int(row[COIN]))


def preferred_verbs(row: Row, verbs: Sequence[int], uniform: float) -> list[int]:
    """Returns the actions left to choose from: those on the coin's side, where it is followed."""
    if uniform >= float(row[STRENGTH]):
        return list(verbs)
    return _verbs_of_side(row, verbs) or list(verbs)


def preferred_objects(
    row: Row, objects: Sequence[tuple[int, Sequence[int]]], uniform: float
) -> list[int]:
    """Returns places in a list of objects, each a class and the actions possible on it.

    Where the coin is followed, those left have an action on its side, and its class if any has.
    """
    everyone = list(range(len(objects)))
    if uniform >= float(row[STRENGTH]):
        return everyone
    able = [i for i in everyone if _verbs_of_side(row, objects[i][1])] or everyone
    return [i for i in able if objects[i][0] % 2 == int(row[COIN])] or able


def puts_back(row: Row, uniform: float) -> bool:
    """Returns whether an object is put back after its pair, so that the coin's side stays open."""
    return uniform < float(row[STRENGTH])


def _verbs_of_side(row: Row, verbs: Sequence[int]) -> list[int]:
    return [v for v in verbs if bool(VERBS[v].target) == bool(row[COIN])]


def _follows(row: Row, place: int) -> bool:
    return bool(row["u/confounder"][place] < row[STRENGTH])
