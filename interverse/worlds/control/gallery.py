"""The pictures a world can show: floors and backgrounds by number, with their mean colours."""

from __future__ import annotations

import functools
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.art.pictures import (
    Picture,
    PictureSet,
    folder,
    folder_state,
    procedural_backgrounds,
    procedural_floors,
    shelf,
)
from interverse.worlds.control.scene import PICTURE_SIZE


@final
class Gallery:
    """Floors and backgrounds of one source: generated ones, or a user's folder."""

    def __init__(self, floors: PictureSet, backgrounds: PictureSet) -> None:
        self._floors, self._backgrounds = floors, backgrounds
        self.floor_count, self.background_count = floors.count, backgrounds.count
        self.shelves = {"floor": shelf(floors), "background": shelf(backgrounds)}
        self.digest = f"{floors.digest}-{backgrounds.digest}"
        self._colours: dict[tuple[str, int], NDArray[np.float64]] = {}

    def floor(self, index: int) -> Picture:
        """Returns a floor, (PICTURE_SIZE, PICTURE_SIZE, 3)."""
        return self._floors.picture(index, PICTURE_SIZE)

    def background(self, index: int) -> Picture:
        """Returns a background, (PICTURE_SIZE, PICTURE_SIZE, 3)."""
        return self._backgrounds.picture(index, PICTURE_SIZE)

    def floor_colour(self, index: int) -> NDArray[np.float64]:
        """Returns the mean colour of a floor, in 0..1."""
        return self._colour("floor", self._floors, index)

    def background_colour(self, index: int) -> NDArray[np.float64]:
        """Returns the mean colour of a background, in 0..1."""
        return self._colour("background", self._backgrounds, index)

    def _colour(self, part: str, pictures: PictureSet, index: int) -> NDArray[np.float64]:
        if (part, index) not in self._colours:
            self._colours[part, index] = np.array(pictures.mean_color(index))
        return self._colours[part, index]


def open_gallery(path: str | None) -> Gallery:
    """Returns the generated pictures, or those of a folder; read again only when that changes."""
    return _generated() if path is None else _of_folder(path, folder_state(path))


@functools.cache
def _generated() -> Gallery:
    return Gallery(procedural_floors(), procedural_backgrounds())


@functools.lru_cache(maxsize=8)
def _of_folder(path: str, state: tuple[tuple[str, int, int], ...]) -> Gallery:
    return Gallery(*folder(path))
