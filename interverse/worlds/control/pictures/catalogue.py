"""Which picture a number means: literal tables of kinds and how many of each there are.

Floors keep the original's proportions (grass 117, sand 68, brick 55, concrete 55, frozen ground 24,
... of 383) with room made for rock, boards and tiles, which it lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from interverse.sim.textures.fields import FloatArray
from interverse.worlds.control.pictures import (
    built,
    earth,
    land,
    plants,
    skies,
    targets,
    town,
    water,
    woods,
)
from interverse.worlds.control.pictures.targets import Target

Painter = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of picture: what paints it, how many there are, what its photos look like.

    A change of any pixel of a kind needs its next version: the cache keeps pictures by it.
    """

    name: str
    count: int
    paint: Painter
    target: Target
    version: int = 1


FLOORS: tuple[Kind, ...] = (
    Kind("grass", 100, plants.grass, targets.GRASS),
    Kind("sand", 58, earth.sand, targets.SAND),
    Kind("brick", 48, built.brick, targets.BRICK),
    Kind("concrete", 48, built.concrete, targets.CONCRETE),
    Kind("frozen", 24, earth.frozen, targets.FROZEN),
    Kind("stony_grass", 18, plants.stony_grass, targets.STONY_GRASS),
    Kind("rock", 16, earth.rock, targets.ROCK),
    Kind("leaves", 14, plants.leaves, targets.LEAVES),
    Kind("moss", 12, plants.moss, targets.MOSS),
    Kind("soil", 12, earth.soil, targets.SOIL),
    Kind("tile", 12, built.tile, targets.TILE),
    Kind("wood", 12, built.wood, targets.WOOD),
    Kind("lichen", 10, plants.lichen, targets.LICHEN),
)

BACKGROUNDS: tuple[Kind, ...] = (
    Kind("mountains", 24, land.mountains, targets.OPEN),
    Kind("forest", 20, woods.forest, targets.WOODS),
    Kind("lake", 14, water.lake, targets.OPEN),
    Kind("coast", 12, water.coast, targets.OPEN),
    Kind("field", 12, land.field, targets.OPEN),
    Kind("desert", 10, land.desert, targets.DESERT),
    Kind("clouds", 8, skies.clouds, targets.CLOUDS),
    Kind("sunset", 8, skies.sunset, targets.SUNSET),
    Kind("city", 6, town.city, targets.TOWN, version=2),
    Kind("night", 6, skies.night, targets.NIGHT),
    Kind("interior", 4, town.interior, targets.TOWN, version=2),
    Kind("road", 4, land.road, targets.OPEN),
)
