"""Painted floors and backgrounds: a number gives a kind and a seed, and those the pixels.

A picture is painted at one size and other sizes are resized from it, so a number means the same
picture at every size. Painted ones are kept in memory and on disk (`sim/textures/cache.py`).
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Literal, final

from interverse.art.pictures.catalogue import BACKGROUNDS, FLOORS, PictureKind
from interverse.art.pictures.means import MEANS
from interverse.art.pictures.sets import Picture, check_index, check_size
from interverse.art.pictures.targets import finish
from interverse.art.textures import quantise
from interverse.art.textures.cache import cached
from interverse.art.textures.resize import resize
from interverse.core.rng import generator

VERSION = 1  # of what all kinds share; a kind has its own in the catalogue
PAINTED = 256  # pixels a side
_IN_MEMORY = 128

_KINDS: dict[str, tuple[PictureKind, ...]] = {"backgrounds": BACKGROUNDS, "floors": FLOORS}


@final
@dataclass(frozen=True, slots=True)
class Procedural:
    """The painted floors or the painted backgrounds."""

    name: Literal["backgrounds", "floors"]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(kind.count for kind in _KINDS[self.name])

    @property
    def digest(self) -> str:
        """Name, version and table of the set in one word."""
        table = [_row(kind) for kind in _KINDS[self.name]]
        text = repr((self.name, VERSION, PAINTED, table))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def kind(self, index: int) -> str:
        """Returns what a picture shows.

        >>> procedural_floors().kind(0), procedural_backgrounds().kind(0)
        ('grass', 'mountains')
        """
        return _find(self.name, check_index(index, self.count, "index"))[0].name

    def picture(self, index: int, size: int) -> Picture:
        """Returns a picture, (size, size, 3), that cannot be written to."""
        index = check_index(index, self.count, "index")
        return _picture(self.name, index, check_size(size))

    def mean_color(self, index: int) -> tuple[float, float, float]:
        """Returns a picture's mean red, green and blue, 0..1, to 1 / 255; it paints nothing."""
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


def paint(name: str, index: int) -> Picture:
    """Returns a picture painted anew, without looking into any cache."""
    kind, seed = _find(name, index)
    rng = generator(seed=seed, name=f"pictures/{name}/{kind.name}/{VERSION}")
    image = kind.paint(rng, PAINTED)
    return quantise(finish(rng, image, kind.target, wraps=name == "floors"))


def _row(kind: PictureKind) -> tuple[str | int, ...]:
    """Returns what tells a kind from another; the first version is not named."""
    return (kind.name, kind.count, *((kind.version,) if kind.version > 1 else ()))


def _find(name: str, index: int) -> tuple[PictureKind, int]:
    """Returns a picture's kind and its number within the kind, which is its seed."""
    for kind in _KINDS[name]:
        if index < kind.count:
            return kind, index
        index -= kind.count
    raise IndexError(index)


@functools.lru_cache(maxsize=_IN_MEMORY)
def _picture(name: str, index: int, size: int) -> Picture:
    kind, _ = _find(name, index)
    place = f"{name}-{VERSION}/{index:04d}-{kind.name}-{kind.version}-{size}"
    if size == PAINTED:
        return cached(place, lambda: paint(name, index))
    return cached(
        place, lambda: resize(_picture(name, index, PAINTED), size, wraps=name == "floors")
    )


@functools.cache
def _means(name: str) -> tuple[tuple[float, float, float], ...]:
    words = MEANS[name].split()
    return tuple(
        (int(word[:2], 16) / 255, int(word[2:4], 16) / 255, int(word[4:], 16) / 255)
        for word in words
    )
