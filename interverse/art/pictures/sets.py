"""The interface of a set of pictures, whoever made them."""

from __future__ import annotations

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
    whole = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
    if not whole or not 0 <= int(index) < count:  # type: ignore[call-overload]
        raise InvalidValueError(
            explain(f"{name} must be a whole number, got {index!r}", allowed=f"0 to {count - 1}")
        )
    return int(index)  # type: ignore[call-overload]


def check_size(size: object) -> int:
    """Returns a picture's side in pixels, or raises for one that cannot be made."""
    whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
    if not whole or not SIZES[0] <= int(size) <= SIZES[1]:  # type: ignore[call-overload]
        raise InvalidValueError(
            explain(
                f"size must be a whole number of pixels, got {size!r}",
                allowed=f"{SIZES[0]} to {SIZES[1]}",
            )
        )
    return int(size)  # type: ignore[call-overload]
