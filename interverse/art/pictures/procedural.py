"""Painted floors and backgrounds by number, and which of them are held out from training.

`tools/paint_pictures.py` paints them from a kind and a seed and packs them into the files beside
this module. A number means the same picture at every size: others are resized from the stored one.
"""

from __future__ import annotations

import functools
import hashlib
import io
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, final

import numpy as np
from numpy.typing import NDArray

from interverse.art.textures import resize
from interverse.core.errors import InvalidValueError, missing_extra

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

    def __hash__(self) -> int:
        """Sets are kept by what they are: see `shelf`."""


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
        raise InvalidValueError(f"{what}, got {value!r}", allowed=allowed)
    return int(value)  # type: ignore[call-overload]


VERSION = 2  # of the files
PAINTED = 256  # pixels a side
FILES = Path(__file__).parent
MEANS = "means.txt"  # mean colours by number, so that they are known without the pictures
_IN_MEMORY = 128

# Floors keep the original's proportions (grass 117, sand 68, brick 55, concrete 55, frozen ground
# 24, ... of 383) with room made for rock, boards and tiles, which it lacks.
_KINDS: dict[str, dict[str, int]] = {
    "backgrounds": {
        "mountains": 24,
        "forest": 20,
        "lake": 14,
        "coast": 12,
        "field": 12,
        "desert": 10,
        "clouds": 8,
        "sunset": 8,
        "city": 6,
        "night": 6,
        "interior": 4,
        "road": 4,
    },
    "floors": {
        "grass": 100,
        "sand": 58,
        "brick": 48,
        "concrete": 48,
        "frozen": 24,
        "stony_grass": 18,
        "rock": 16,
        "leaves": 14,
        "moss": 12,
        "soil": 12,
        "tile": 12,
        "wood": 12,
        "lichen": 10,
    },
}
HELD_OUT_KINDS = ("leaves", "lichen", "moss", "tile", "city", "interior", "night")
_EVERY_PAINTED, _EVERY_OWN = 4, 3  # of kinds trained with, and of a user's folder, B has one in


@final
@dataclass(frozen=True, slots=True)
class Procedural:
    """The painted floors or the painted backgrounds."""

    name: Literal["backgrounds", "floors"]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(_KINDS[self.name].values())

    @property
    def digest(self) -> str:
        """Name, version and table of the set in one word."""
        text = repr((self.name, VERSION, PAINTED, list(_KINDS[self.name].items())))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def kind(self, index: int) -> str:
        """Returns what a picture shows.

        >>> procedural_floors().kind(0), procedural_backgrounds().kind(0)
        ('grass', 'mountains')
        """
        own = shelf(self)
        return own.kind_names[own.kinds[check_index(index, self.count, "index")]]

    def picture(self, index: int, size: int) -> Picture:
        """Returns a picture, (size, size, 3), that cannot be written to."""
        return _picture(self.name, check_index(index, self.count, "index"), check_size(size))

    def mean_color(self, index: int) -> tuple[float, float, float]:
        """Returns a picture's mean red, green and blue, 0..1, to 1 / 255; it reads no picture."""
        return _means(self.name)[check_index(index, self.count, "index")]


def procedural_floors() -> Procedural:
    """Returns the painted floors, which tile.

    >>> procedural_floors().count
    384
    """
    return Procedural("floors")


def procedural_backgrounds() -> Procedural:
    """Returns the painted backgrounds, which wrap from left to right.

    >>> procedural_backgrounds().count
    128
    """
    return Procedural("backgrounds")


@final
@dataclass(frozen=True, slots=True)
class Shelf:
    """A set of pictures by number: those of A, those of B, and the kind of each."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    kinds: tuple[int, ...]  # of every picture, a number into `kind_names`
    kind_names: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many pictures there are."""
        return len(self.kinds)

    def chosen(self, space: str) -> tuple[int, ...]:
        """Returns the pictures of a space, A, B or both (A_B)."""
        return {"A": self.a, "B": self.b}.get(space, tuple(range(self.count)))


@functools.lru_cache(maxsize=16)
def shelf(pictures: PictureSet) -> Shelf:
    """Returns how a set of pictures is divided into those to train with (A) and those held out (B).

    Of painted pictures, B holds every fourth of the kinds that are trained with and all of
    `HELD_OUT_KINDS`; of a user's folder, every third. A is the rest, with the default surface,
    which has no picture.

    >>> floors = shelf(Procedural("floors"))
    >>> floors.count, len(floors.a), len(floors.b)
    (384, 253, 131)
    """
    numbers = range(pictures.count)
    names: tuple[str, ...] = ("picture",)
    kinds = (0,) * pictures.count
    if not isinstance(pictures, Procedural):
        held = tuple(numbers[_EVERY_OWN - 1 :: _EVERY_OWN])
        held = held or tuple(numbers[1:])  # of two pictures the second; of one none
    else:
        names = tuple(_KINDS[pictures.name])
        counts = _KINDS[pictures.name].values()
        numbered = [(kind, i) for kind, count in enumerate(counts) for i in range(count)]
        held = tuple(
            number
            for number, (kind, i) in enumerate(numbered)
            if i % _EVERY_PAINTED == _EVERY_PAINTED - 1 or names[kind] in HELD_OUT_KINDS
        )
        kinds = tuple(kind for kind, _ in numbered)
    return Shelf(tuple(i for i in numbers if i not in {*held}), held, kinds, names)


@functools.cache
def _file(name: str) -> zipfile.ZipFile:
    """Returns a set's file, held in memory so that processes and threads may share it."""
    return zipfile.ZipFile(io.BytesIO((FILES / f"{name}.zip").read_bytes()))


@functools.lru_cache(maxsize=_IN_MEMORY)
def _picture(name: str, index: int, size: int) -> Picture:
    if size != PAINTED:
        picture = resize(_picture(name, index, PAINTED), size, wraps=name == "floors")
    else:
        try:
            from PIL import Image
        except ImportError as error:
            raise missing_extra("Pillow", "control") from error
        picture = np.array(Image.open(io.BytesIO(_file(name).read(f"{index}.webp"))), np.uint8)
    picture.setflags(write=False)
    return picture


@functools.cache
def _means(name: str) -> tuple[tuple[float, float, float], ...]:
    rows = (bytes.fromhex(word) for word in _file(name).read(MEANS).decode().split())
    return tuple((red / 255, green / 255, blue / 255) for red, green, blue in rows)
