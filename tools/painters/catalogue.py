"""The catalogue of pictures: literal tables of kinds and how many of each there are.

Floors keep the original's proportions (grass 117, sand 68, brick 55, concrete 55, frozen ground 24,
... of 383) with room made for rock, boards and tiles, which it lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from interverse.art.textures import FloatArray

from . import built, earth, land, plants, skies, targets, town, water, woods
from .targets import Target

Painter = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True, slots=True)
class PictureKind:
    """One kind of picture: what paints it, how many there are, what its photos look like."""

    name: str
    count: int
    paint: Painter
    target: Target


FLOORS: tuple[PictureKind, ...] = (
    PictureKind("grass", 100, plants.grass, targets.GRASS),
    PictureKind("sand", 58, earth.sand, targets.SAND),
    PictureKind("brick", 48, built.brick, targets.BRICK),
    PictureKind("concrete", 48, built.concrete, targets.CONCRETE),
    PictureKind("frozen", 24, earth.frozen, targets.FROZEN),
    PictureKind("stony_grass", 18, plants.stony_grass, targets.STONY_GRASS),
    PictureKind("rock", 16, earth.rock, targets.ROCK),
    PictureKind("leaves", 14, plants.leaves, targets.LEAVES),
    PictureKind("moss", 12, plants.moss, targets.MOSS),
    PictureKind("soil", 12, earth.soil, targets.SOIL),
    PictureKind("tile", 12, built.tile, targets.TILE),
    PictureKind("wood", 12, built.wood, targets.WOOD),
    PictureKind("lichen", 10, plants.lichen, targets.LICHEN),
)

BACKGROUNDS: tuple[PictureKind, ...] = (
    PictureKind("mountains", 24, land.mountains, targets.OPEN),
    PictureKind("forest", 20, woods.forest, targets.WOODS),
    PictureKind("lake", 14, water.lake, targets.OPEN),
    PictureKind("coast", 12, water.coast, targets.OPEN),
    PictureKind("field", 12, land.field, targets.OPEN),
    PictureKind("desert", 10, land.desert, targets.DESERT),
    PictureKind("clouds", 8, skies.clouds, targets.CLOUDS),
    PictureKind("sunset", 8, skies.sunset, targets.SUNSET),
    PictureKind("city", 6, town.city, targets.TOWN),
    PictureKind("night", 6, skies.night, targets.NIGHT),
    PictureKind("interior", 4, town.interior, targets.TOWN),
    PictureKind("road", 4, land.road, targets.OPEN),
)
