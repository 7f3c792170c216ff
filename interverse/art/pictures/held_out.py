"""Pictures to train with and pictures held out: spaces A and B of floors and backgrounds.

Of generated pictures, B holds every fourth picture of the kinds that are trained with and all
pictures of the kinds below; of a user's folder, every third picture. A is the rest, with the
default surface, which has no picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from interverse.art.pictures.catalogue import BACKGROUNDS, FLOORS
from interverse.art.pictures.procedural import Procedural
from interverse.art.pictures.sets import PictureSet

HELD_OUT_KINDS = ("leaves", "lichen", "moss", "tile", "city", "interior", "night")
_EVERY_GENERATED, _EVERY_OWN = 4, 3
_CATALOGUES = {"backgrounds": BACKGROUNDS, "floors": FLOORS}


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


def shelf(pictures: PictureSet) -> Shelf:
    """Returns how a set of pictures is divided.

    >>> floors = shelf(Procedural("floors"))
    >>> floors.count, len(floors.a), len(floors.b)
    (384, 253, 131)
    """
    if not isinstance(pictures, Procedural):
        numbers = range(pictures.count)
        held = tuple(i for i in numbers if i % _EVERY_OWN == _EVERY_OWN - 1)
        held = held or tuple(numbers[1:])  # of two pictures the second; of one none
        rest = tuple(i for i in numbers if i not in held)
        return Shelf(rest, held, (0,) * pictures.count, ("picture",))
    a: list[int] = []
    b: list[int] = []
    kinds: list[int] = []
    catalogue = _CATALOGUES[pictures.name]
    for number, kind in enumerate(catalogue):
        for i in range(kind.count):
            last = i % _EVERY_GENERATED == _EVERY_GENERATED - 1
            (b if last or kind.name in HELD_OUT_KINDS else a).append(len(kinds))
            kinds.append(number)
    return Shelf(tuple(a), tuple(b), tuple(kinds), tuple(kind.name for kind in catalogue))
