"""Painters of the floors and backgrounds that the package holds as files.

A picture is a kind and a seed, its number within the kind.
"""

from __future__ import annotations

from interverse.art.pictures import Picture
from interverse.art.textures import quantise
from interverse.core.rng import generator

from .catalogue import BACKGROUNDS, FLOORS, PictureKind
from .measure import Statistics, statistics
from .targets import finish

SIDE = 256  # pixels
KINDS: dict[str, tuple[PictureKind, ...]] = {"backgrounds": BACKGROUNDS, "floors": FLOORS}

__all__ = ["KINDS", "Statistics", "paint", "statistics"]


def paint(name: str, kind: PictureKind, seed: int) -> Picture:
    """Returns a picture of a kind, (256, 256, 3), as it was before it was packed."""
    rng = generator(seed=seed, name=f"pictures/{name}/{kind.name}/1")
    return quantise(finish(rng, kind.paint(rng, SIDE), kind.target, wraps=name == "floors"))
