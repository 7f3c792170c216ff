"""The interface of a set of pictures, whoever made them."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain

SIZES = (8, 1024)  # pixels a side that can be asked for

Picture = NDArray[np.uint8]  # (size, size, 3)


class PictureSet(Protocol):
    """Pictures by number: a number means the same picture on every machine."""

    @property
    def count(self) -> int:
        """How many there are; numbers run from 0 to count - 1."""

    @property
    def digest(self) -> str:
        """Which set this is: equal digests mean equal pictures."""

    def picture(self, index: int, size: int) -> Picture:
        """Returns a picture, (size, size, 3), that cannot be written to."""

    def mean_color(self, index: int) -> tuple[float, float, float]:
        """Returns a picture's mean red, green and blue, 0..1."""


class Videos(Protocol):
    """Moving pictures by number; a frame is a function of its address alone."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def digest(self) -> str:
        """Which set this is."""

    def frame(self, video: int, step: int, size: int) -> Picture:
        """Returns what a video shows at a step of the world, (size, size, 3)."""


def check_index(index: object, count: int, name: str) -> int:
    """Returns a picture's number as an int, or raises for one that no picture has."""
    return check_number(index, f"{name} must be a whole number", 0, count - 1)


def check_size(size: object) -> int:
    """Returns a picture's side in pixels, or raises for one that cannot be made."""
    return check_number(size, "size must be a whole number of pixels", *SIZES)


def check_number(value: object, what: str, least: int, most: float = math.inf) -> int:
    """Returns a whole number as an int, or raises."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:  # type: ignore[call-overload]
        allowed = f"{least} to {most}" if most < math.inf else f"{least} and more"
        raise InvalidValueError(explain(f"{what}, got {value!r}", allowed=allowed))
    return int(value)  # type: ignore[call-overload]
