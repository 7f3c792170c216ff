"""The pictures a world can show: floors and skies by number or by colours, with their means."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, final

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
from interverse.worlds.control.scene import PICTURE_SIZE, checker_parts, sky_stars

NO_PICTURE = -1
_EDGE = np.array([0.2, 0.3, 0.4])  # the checker's lines, in every look


@final
class Gallery:
    """Floors and backgrounds of one source: generated ones, or a user's folder."""

    def __init__(self, floors: PictureSet, backgrounds: PictureSet) -> None:
        self._sets = {"floor": floors, "background": backgrounds}
        self.shelves = {part: shelf(pictures) for part, pictures in self._sets.items()}
        self.digest = f"{floors.digest}-{backgrounds.digest}"
        self._colours: dict[tuple[str, int], NDArray[np.float64]] = {}

    def picture(self, part: str, index: int) -> Picture:
        """Returns a floor or a background, (PICTURE_SIZE, PICTURE_SIZE, 3)."""
        return self._sets[part].picture(index, PICTURE_SIZE)

    def floors(
        self, number: NDArray[Any], first: NDArray[Any], second: NDArray[Any]
    ) -> NDArray[np.uint8]:
        """Returns floors of n worlds, (n, ...): pictures, where -1 is none checkers of colours."""

        def one(i: Any, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.uint8]:
            return checker(a, b) if i == NO_PICTURE else self.picture("floor", int(i))

        return by_world(one, number, first, second)

    def skies(
        self, number: NDArray[Any], top: NDArray[Any], bottom: NDArray[Any]
    ) -> NDArray[np.uint8]:
        """Returns six faces of the skies of n worlds, (n, ...): pictures, or where -1 colours."""

        def one(i: Any, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.uint8]:
            return sky(a, b) if i == NO_PICTURE else six_faces(self.picture("background", int(i)))

        return by_world(one, number, top, bottom)

    def mean_colour(self, part: str, index: int) -> NDArray[np.float64]:
        """Returns the mean colour of a floor or a background, in 0..1."""
        if (part, index) not in self._colours:
            self._colours[part, index] = np.array(self._sets[part].mean_color(index))
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


def by_world(make: Callable[..., NDArray[Any]], *values: NDArray[Any]) -> NDArray[Any]:
    """Returns what each of n worlds' values make, (n, ...); of one world without a copy."""
    made = [make(*row) for row in zip(*values, strict=True)]
    return made[0][None] if len(made) == 1 else np.stack(made)


def six_faces(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns the same picture for every face of the sky, one below the other."""
    return np.tile(picture, (6, 1, 1))


def checker(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Returns the floor's checker in two colours, as MuJoCo draws it."""
    colours = _bytes(np.stack([first, second, _EDGE]))
    return np.take(colours, checker_parts(), axis=0)


def sky(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Returns the six faces of the sky of two colours, with its stars, as MuJoCo draws them."""
    left, corner = _heights()  # faces are symmetric: half of a side and a quarter of the top do
    half, up, down = (
        _bytes(part[..., None] * top + (1.0 - part[..., None]) * bottom)
        for part in (left, corner, 1.0 - corner)
    )
    side = np.concatenate([half, half[:, ::-1]], axis=1)
    ends = []
    for quarter in (up, down):
        upper = np.concatenate([quarter, quarter[:, ::-1]], axis=1)
        ends.append(np.concatenate([upper, upper[::-1]]))
    pixels = np.concatenate([side, side, *ends, side, side])
    pixels.reshape(-1, 3)[sky_stars()] = 255
    return pixels


@functools.cache
def _heights() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns how much of the upper colour pixels of a side face and of the top face have."""
    line = 2.0 * np.arange(PICTURE_SIZE) / (PICTURE_SIZE - 1)
    half = PICTURE_SIZE // 2
    x, y = line[None, :half] - 1.0, 1.0 - line[:, None]
    length = np.sqrt(1.0 + x * x + y * y)
    side = np.arcsin(y / length) / (0.5 * np.pi)
    up = 1.0 - np.arccos(1.0 / length[:half]) / (0.5 * np.pi)
    return _share(side), _share(up)


def _share(height: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(0.5 * (1.0 + height / np.sqrt(1.0 + height * height) * np.sqrt(2.0)), 0.0, 1.0)


def _bytes(colour: NDArray[np.float64]) -> NDArray[np.uint8]:
    return (255.0 * colour).astype(np.uint8)  # MuJoCo cuts, it does not round
