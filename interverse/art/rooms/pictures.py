"""Textures that show something: screens, pages, covers, keys, the view from a window."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.art.rooms.item import RoomTexture
from interverse.art.rooms.noise import axes, fractal, grain

Image = NDArray[np.float32]


def _canvas(size: int, colour: ArrayLike) -> Image:
    return np.broadcast_to(np.asarray(colour, np.float32), (size, size, 3)).copy()


def _fill(image: Image, box: tuple[float, float, float, float], colour: ArrayLike) -> None:
    """Paints left, bottom, right, top (0 to 1, y upwards) in a colour."""
    size = image.shape[0]
    left, bottom, right, top = (round(edge * size) for edge in box)
    image[max(size - top, 0) : max(size - bottom, 0), max(left, 0) : max(right, 0)] = colour


def _rng(texture: RoomTexture) -> np.random.Generator:
    return np.random.default_rng([texture.seed, sum(map(ord, texture.kind))])


def landscape(size: int, texture: RoomTexture) -> Image:
    """Returns sky, hills and a sun in the texture's colours: sky low, sky high, near, far."""
    rng = _rng(texture)
    low, high, near, far = (np.asarray(c, np.float32) for c in _four(texture))
    x, y = axes(size)
    image = low + (high - low) * y[..., None]
    clouds = np.clip(2.5 * (fractal(size, 3, texture.seed, 4, stretch=2) - 0.6), 0, 0.8)[..., None]
    image = image * (1 - clouds) + clouds
    sun = rng.uniform(0.2, 0.8, 2) * (1, 0.3) + (0, 0.55)
    image[np.hypot(x - sun[0], y - sun[1]) < 0.07] = (1.0, 0.95, 0.75)
    for depth, height in enumerate((0.5, 0.38, 0.22)):
        waves = rng.uniform(0, 6.28, 3)
        hill = height + sum(0.06 / k * np.sin(2 * np.pi * k * x + waves[k - 1]) for k in (1, 2, 3))
        colour = far + (near - far) * depth / 2
        image[y < hill] = colour
    return image * (0.9 + 0.2 * grain(size, texture.seed)[..., None])


def desktop(size: int, texture: RoomTexture) -> Image:
    """Returns a computer's screen: a backdrop, windows with text and a bar of icons."""
    rng = _rng(texture)
    image = landscape(size, texture)
    for _ in range(int(rng.integers(1, 4))):
        left, bottom = rng.uniform(0.05, 0.5), rng.uniform(0.14, 0.45)
        right, top = left + rng.uniform(0.3, 0.45), bottom + rng.uniform(0.3, 0.45)
        paper = (0.96, 0.96, 0.97) if rng.random() < 0.7 else (0.12, 0.13, 0.16)
        _fill(image, (left, bottom, right, top), paper)
        _fill(image, (left, top - 0.05, right, top), rng.uniform(0.2, 0.8, 3))
        ink = (0.25, 0.25, 0.3) if paper[0] > 0.5 else (0.5, 0.85, 0.6)
        for y in np.arange(bottom + 0.03, top - 0.08, 0.05):
            _fill(
                image,
                (
                    left + 0.03,
                    y,
                    left + 0.03 + rng.uniform(0.1, 0.9) * (right - left - 0.06),
                    y + 0.02,
                ),
                ink,
            )
    _fill(image, (0, 0, 1, 0.08), (0.1, 0.1, 0.13))
    for icon in range(int(rng.integers(4, 9))):
        _fill(image, (0.03 + 0.09 * icon, 0.015, 0.09 + 0.09 * icon, 0.065), rng.uniform(0.2, 1, 3))
    return image


def phone(size: int, texture: RoomTexture) -> Image:
    """Returns a telephone's screen: icons in rows over a backdrop, or a chat."""
    rng = _rng(texture)
    image = landscape(size, texture)
    if rng.random() < 0.6:
        for row in range(5):
            for column in range(4):
                left, bottom = 0.08 + 0.22 * column, 0.1 + 0.15 * row
                if row == 1:
                    continue
                _fill(image, (left, bottom, left + 0.16, bottom + 0.09), rng.uniform(0.15, 1, 3))
        _fill(image, (0.2, 0.9, 0.8, 0.95), (1, 1, 1))
    else:
        image[:] = (0.92, 0.94, 0.96)
        for number, y in enumerate(np.arange(0.1, 0.85, 0.12)):
            left = 0.06 if number % 2 else 0.35
            colour = (0.2, 0.55, 0.95) if number % 2 == 0 else (0.7, 0.72, 0.75)
            _fill(image, (left, y, left + rng.uniform(0.35, 0.58), y + 0.08), colour)
        _fill(image, (0, 0.9, 1, 1), (0.2, 0.3, 0.45))
    return image


def broadcast(size: int, texture: RoomTexture) -> Image:
    """Returns a television's picture: a landscape, a face or a test card, with a caption."""
    rng = _rng(texture)
    style = int(rng.integers(3))
    x, y = axes(size)
    if style == 2:
        bars = [
            (0.8, 0.8, 0.8),
            (0.8, 0.8, 0.1),
            (0.1, 0.8, 0.8),
            (0.1, 0.8, 0.1),
            (0.8, 0.1, 0.8),
            (0.8, 0.1, 0.1),
            (0.1, 0.1, 0.8),
        ]
        image = np.asarray(bars, np.float32)[np.minimum((x * 7).astype(int), 6)]
        _fill(image, (0, 0, 1, 0.25), (0.08, 0.1, 0.2))
        return image
    image = landscape(size, texture)
    if style == 1:
        image = image * 0.5 + np.asarray(texture.colours[0], np.float32) * 0.5
        centre = rng.uniform(0.35, 0.65)
        body = ((x - centre) / 0.3) ** 2 + ((y - 0.0) / 0.42) ** 2 < 1
        head = ((x - centre) / 0.11) ** 2 + ((y - 0.56) / 0.18) ** 2 < 1
        image[body] = rng.uniform(0.1, 0.9, 3)
        image[head] = np.array([0.85, 0.62, 0.48]) * rng.uniform(0.5, 1.1)
    _fill(image, (0.05, 0.08, 0.75, 0.18), (0.75, 0.08, 0.1))
    _fill(image, (0.08, 0.11, 0.6, 0.15), (1, 1, 1))
    return image


def page(size: int, texture: RoomTexture) -> Image:
    """Returns a printed page: lines of text, now and then a picture; colours: paper, ink."""
    rng = _rng(texture)
    paper, ink = (np.asarray(c, np.float32) for c in texture.colours[:2])
    image = _canvas(size, paper) * (0.94 + 0.06 * fractal(size, 4, texture.seed, 3)[..., None])
    top = 0.92
    if rng.random() < 0.5:
        _fill(image, (0.12, 0.62, 0.88, 0.92), rng.uniform(0.2, 0.9, 3))
        _fill(image, (0.3, 0.68, 0.6, 0.82), rng.uniform(0.2, 0.9, 3))
        top = 0.57
    for y in np.arange(0.08, top, 0.055):
        end = 0.88 if rng.random() < 0.8 else rng.uniform(0.3, 0.8)
        _fill(image, (0.12, y, end, y + 0.024), ink * 0.6 + paper * 0.4)
    return image


def cover(size: int, texture: RoomTexture) -> Image:
    """Returns a book's cover: a cloth, a title, a figure; colours: cloth, figure, letters."""
    rng = _rng(texture)
    cloth, figure, letters = (np.asarray(c, np.float32) for c in _four(texture)[:3])
    image = _canvas(size, cloth) * (0.85 + 0.15 * fractal(size, 32, texture.seed, 2)[..., None])
    x, y = axes(size)
    style = int(rng.integers(4))
    if style == 0:
        image[np.hypot(x - 0.5, (y - 0.4) * 1.2) < rng.uniform(0.15, 0.3)] = figure
    elif style == 1:
        _fill(image, (0, 0.1, 1, rng.uniform(0.3, 0.55)), figure)
    elif style == 2:
        image[np.abs(x - y) < rng.uniform(0.08, 0.2)] = figure
    else:
        _fill(image, (0.08, 0.08, 0.92, 0.92), figure)
        _fill(image, (0.12, 0.1, 0.88, 0.9), cloth)
    _fill(image, (0.2, 0.76, 0.8, 0.83), letters)
    _fill(image, (0.28, 0.68, 0.72, 0.73), letters)
    _fill(image, (0.35, 0.12, 0.65, 0.155), letters)
    return image


def keyboard(size: int, texture: RoomTexture) -> Image:
    """Returns rows of keys above a touch pad; colours: casing, keys, letters."""
    casing, keys, letters = (np.asarray(c, np.float32) for c in _four(texture)[:3])
    image = _canvas(size, casing)
    _fill(image, (0.06, 0.4, 0.94, 0.95), casing * 0.6)
    for row in range(5):
        count = 14 if row else 9
        for key in range(count):
            width = 0.86 / count
            left, bottom = 0.07 + key * width, 0.415 + 0.105 * row
            wide = 5 * width if row == 0 and key == 2 else width
            if row == 0 and 2 < key < 7:
                continue
            _fill(image, (left + 0.006, bottom + 0.01, left + wide - 0.006, bottom + 0.095), keys)
            middle = left + wide / 2
            _fill(image, (middle - 0.008, bottom + 0.04, middle + 0.008, bottom + 0.065), letters)
    _fill(image, (0.34, 0.05, 0.66, 0.34), casing * 0.72)
    _fill(image, (0.35, 0.06, 0.65, 0.33), casing * 0.9)
    return image


def clock(size: int, texture: RoomTexture) -> Image:
    """Returns an appliance's panel: digits above rows of buttons; colours: panel, keys, digits."""
    rng = _rng(texture)
    panel, keys, digits = (np.asarray(c, np.float32) for c in _four(texture)[:3])
    image = _canvas(size, panel)
    _fill(image, (0.12, 0.74, 0.88, 0.94), (0.02, 0.03, 0.03))
    for place, number in enumerate(rng.integers(0, 10, 4)):
        left = 0.18 + 0.16 * place + (0.05 if place > 1 else 0)
        for segment, box in enumerate(_SEGMENTS):
            if str(segment) in _DIGITS[int(number)]:
                a, b, c, d = box
                _fill(
                    image,
                    (left + 0.12 * a, 0.77 + 0.14 * b, left + 0.12 * c, 0.77 + 0.14 * d),
                    digits,
                )
    for row in range(4):
        for column in range(3):
            left, bottom = 0.16 + 0.25 * column, 0.1 + 0.155 * row
            _fill(image, (left, bottom, left + 0.19, bottom + 0.11), keys)
            _fill(
                image,
                (left + 0.06, bottom + 0.04, left + 0.13, bottom + 0.07),
                digits * 0.5 + panel * 0.5,
            )
    return image


def mesh_window(size: int, texture: RoomTexture) -> Image:
    """Returns a dark pane with a screen of fine holes; colours: pane, holes."""
    pane, holes = (np.asarray(c, np.float32) for c in texture.colours[:2])
    x, y = axes(size)
    u, v = (x * 24) % 1 - 0.5, (y * 24) % 1 - 0.5
    share = np.clip(6 * (0.4 - np.hypot(u, v)), 0, 1)[..., None]
    border = (np.minimum(np.minimum(x, 1 - x), np.minimum(y, 1 - y)) < 0.06)[..., None]
    return np.where(border, pane, pane * (1 - share) + holes * share)


def parcel(size: int, texture: RoomTexture) -> Image:
    """Returns cardboard with a band of tape and a printed mark; colours: dark, light, print."""
    rng = _rng(texture)
    dark, light, ink = (np.asarray(c, np.float32) for c in _four(texture)[:3])
    field = (0.6 * fractal(size, 4, texture.seed, 4) + 0.4 * grain(size, texture.seed))[..., None]
    image = dark + (light - dark) * field
    left, bottom = rng.uniform(0.08, 0.5), rng.uniform(0.08, 0.4)
    _fill(image, (left, bottom, left + 0.34, bottom + 0.22), (0.93, 0.93, 0.9))
    for y in np.arange(bottom + 0.04, bottom + 0.2, 0.05):
        _fill(image, (left + 0.03, y, left + rng.uniform(0.12, 0.3), y + 0.02), ink)
    for x in np.arange(0.08, 0.4, 0.03):
        _fill(image, (1 - x, 0.8, 1 - x + rng.uniform(0.005, 0.02), 0.93), ink)
    return image


def _four(texture: RoomTexture) -> list[tuple[float, float, float]]:
    """Returns four colours, the last repeated."""
    return [*texture.colours, *[texture.colours[-1]] * 4][:4]


_SEGMENTS = (
    (0.1, 0.9, 0.9, 1.0),
    (0.75, 0.5, 0.95, 0.95),
    (0.75, 0.05, 0.95, 0.5),
    (0.1, 0.0, 0.9, 0.1),
    (0.05, 0.05, 0.25, 0.5),
    (0.05, 0.5, 0.25, 0.95),
    (0.1, 0.45, 0.9, 0.55),
)
_DIGITS = ("012345", "12", "01346", "01236", "1256", "02356", "023456", "012", "0123456", "012356")

PICTURES: dict[str, Callable[[int, RoomTexture], Image]] = {
    "broadcast": broadcast,
    "clock": clock,
    "cover": cover,
    "desktop": desktop,
    "keyboard": keyboard,
    "landscape": landscape,
    "mesh_window": mesh_window,
    "page": page,
    "parcel": parcel,
    "phone": phone,
}
