"""Pixels of textures: those of patterns, and pictures that show something.

Screens, pages, covers, keys and the view from a window are drawn in colours of their own.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.art.rooms.item import MixedTexture, RoomTexture
from interverse.art.rooms.patterns import BUILDING, OVERLAYS, PATTERNS, Canvas, Image, Paint

LARGE = 256  # pixels a side of what covers floors and walls; one tile spans metres


@functools.lru_cache(maxsize=1152)
def pixels(texture: RoomTexture | MixedTexture, size: int = 128) -> NDArray[np.uint8]:
    """Returns the texture's picture (size, size, 3), read-only, drawn once a process.

    What rooms are built of is drawn at 256 pixels whatever the size.

    >>> pixels(RoomTexture(kind="plain", colours=((0.2, 0.4, 0.6), (0.2, 0.4, 0.6))), 8)[0, 0]
    array([ 51, 102, 153], dtype=uint8)
    """
    if isinstance(texture, MixedTexture):
        return _mixed(texture, size)
    canvas = Canvas(LARGE if texture.kind in BUILDING else size, texture)
    image: Image = {**PATTERNS, **PICTURES, **BUILDING}[texture.kind](canvas)
    if image.ndim == 2:
        image = canvas.ramp(image)
    for name in texture.overlays:
        image = OVERLAYS[name](image, texture.seed)
    found = (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)
    found.setflags(write=False)
    return found


def _mixed(texture: MixedTexture, size: int) -> NDArray[np.uint8]:
    """Returns the pictures of two surfaces, each in its colour, laid over each other."""
    ends = []
    for surface in (texture.first, texture.second):
        tint = np.array(surface.rgba[:3], np.float32)
        plain = np.full((size, size, 3), 255.0, np.float32)
        image = plain if surface.texture is None else pixels(surface.texture, size)
        ends.append(image * tint)
    found = ends[0] + np.float32(texture.share) * (ends[1] - ends[0])
    out: NDArray[np.uint8] = (np.clip(found, 0, 255) + 0.5).astype(np.uint8)
    out.setflags(write=False)
    return out


# ---------------------------------------------------------------------------------------- pictures

_BARS = np.array(
    [
        (0.8, 0.8, 0.8),
        (0.8, 0.8, 0.1),
        (0.1, 0.8, 0.8),
        (0.1, 0.8, 0.1),
        (0.8, 0.1, 0.8),
        (0.8, 0.1, 0.1),
        (0.1, 0.1, 0.8),
    ],
    np.float32,
)
_SEGMENTS = (  # of a digit: left, bottom, right, top
    (0.1, 0.9, 0.9, 1.0),
    (0.75, 0.5, 0.95, 0.95),
    (0.75, 0.05, 0.95, 0.5),
    (0.1, 0.0, 0.9, 0.1),
    (0.05, 0.05, 0.25, 0.5),
    (0.05, 0.5, 0.25, 0.95),
    (0.1, 0.45, 0.9, 0.55),
)
_DIGITS = ("012345", "12", "01346", "01236", "1256", "02356", "023456", "012", "0123456", "012356")


def _rng(c: Canvas) -> np.random.Generator:
    return np.random.default_rng([c.seed, sum(map(ord, c.texture.kind))])


def _colours(c: Canvas) -> list[NDArray[np.float32]]:
    """Returns four colours, the last repeated."""
    return [np.asarray(i, np.float32) for i in [*c.colours, *[c.colours[-1]] * 4][:4]]


def _sheet(c: Canvas, colour: ArrayLike) -> Image:
    return np.broadcast_to(np.asarray(colour, np.float32), (c.size, c.size, 3)).copy()


def _fill(image: Image, box: tuple[float, float, float, float], colour: ArrayLike) -> None:
    """Paints left, bottom, right, top (0 to 1, y upwards) in a colour."""
    size = image.shape[0]
    left, bottom, right, top = (round(edge * size) for edge in box)
    image[max(size - top, 0) : max(size - bottom, 0), max(left, 0) : max(right, 0)] = colour


def _landscape(c: Canvas) -> Image:
    """Returns sky, hills and a sun in the texture's colours: sky low, sky high, near, far."""
    rng = _rng(c)
    low, high, near, far = _colours(c)
    image: Any = low + (high - low) * c.y[..., None]
    clouds = np.clip(2.5 * (c.fractal(3, 4, 2) - 0.6), 0, 0.8)[..., None]
    image = image * (1 - clouds) + clouds
    sun = rng.uniform(0.2, 0.8, 2) * (1, 0.3) + (0, 0.55)
    image[np.hypot(c.x - sun[0], c.y - sun[1]) < 0.07] = (1.0, 0.95, 0.75)
    for depth, height in enumerate((0.5, 0.38, 0.22)):
        waves = rng.uniform(0, 6.28, 3)
        hill = height + sum(
            0.06 / k * np.sin(2 * np.pi * k * c.x + waves[k - 1]) for k in (1, 2, 3)
        )
        image[c.y < hill] = far + (near - far) * depth / 2
    return image * (0.9 + 0.2 * c.grain[..., None])


def _desktop(c: Canvas) -> Image:
    """Returns a computer's screen: a backdrop, windows with text and a bar of icons."""
    rng, image = _rng(c), _landscape(c)
    for _ in range(int(rng.integers(1, 4))):
        left, bottom = rng.uniform(0.05, 0.5), rng.uniform(0.14, 0.45)
        right, top = left + rng.uniform(0.3, 0.45), bottom + rng.uniform(0.3, 0.45)
        bright = rng.random() < 0.7
        _fill(
            image, (left, bottom, right, top), (0.96, 0.96, 0.97) if bright else (0.12, 0.13, 0.16)
        )
        _fill(image, (left, top - 0.05, right, top), rng.uniform(0.2, 0.8, 3))
        ink = (0.25, 0.25, 0.3) if bright else (0.5, 0.85, 0.6)
        for y in np.arange(bottom + 0.03, top - 0.08, 0.05):
            end = left + 0.03 + rng.uniform(0.1, 0.9) * (right - left - 0.06)
            _fill(image, (left + 0.03, y, end, y + 0.02), ink)
    _fill(image, (0, 0, 1, 0.08), (0.1, 0.1, 0.13))
    for icon in range(int(rng.integers(4, 9))):
        _fill(image, (0.03 + 0.09 * icon, 0.015, 0.09 + 0.09 * icon, 0.065), rng.uniform(0.2, 1, 3))
    return image


def _phone(c: Canvas) -> Image:
    """Returns a telephone's screen: icons in rows over a backdrop, or a chat."""
    rng, image = _rng(c), _landscape(c)
    if rng.random() < 0.6:
        for row in (0, 2, 3, 4):
            for column in range(4):
                left, bottom = 0.08 + 0.22 * column, 0.1 + 0.15 * row
                _fill(image, (left, bottom, left + 0.16, bottom + 0.09), rng.uniform(0.15, 1, 3))
        _fill(image, (0.2, 0.9, 0.8, 0.95), (1, 1, 1))
        return image
    image[:] = (0.92, 0.94, 0.96)
    for number, y in enumerate(np.arange(0.1, 0.85, 0.12)):
        left, colour = (0.06, (0.7, 0.72, 0.75)) if number % 2 else (0.35, (0.2, 0.55, 0.95))
        _fill(image, (left, y, left + rng.uniform(0.35, 0.58), y + 0.08), colour)
    _fill(image, (0, 0.9, 1, 1), (0.2, 0.3, 0.45))
    return image


def _broadcast(c: Canvas) -> Image:
    """Returns a television's picture: a landscape, a face or a test card, with a caption."""
    rng = _rng(c)
    style = int(rng.integers(3))
    if style == 2:
        card: Image = _BARS[np.minimum((c.x * 7).astype(int), 6)]
        _fill(card, (0, 0, 1, 0.25), (0.08, 0.1, 0.2))
        return card
    image = _landscape(c)
    if style == 1:
        image = image * 0.5 + np.asarray(c.colours[0], np.float32) * 0.5
        centre = rng.uniform(0.35, 0.65)
        body = ((c.x - centre) / 0.3) ** 2 + ((c.y - 0.0) / 0.42) ** 2 < 1
        head = ((c.x - centre) / 0.11) ** 2 + ((c.y - 0.56) / 0.18) ** 2 < 1
        image[body] = rng.uniform(0.1, 0.9, 3)
        image[head] = np.array([0.85, 0.62, 0.48]) * rng.uniform(0.5, 1.1)
    _fill(image, (0.05, 0.08, 0.75, 0.18), (0.75, 0.08, 0.1))
    _fill(image, (0.08, 0.11, 0.6, 0.15), (1, 1, 1))
    return image


def _page(c: Canvas) -> Image:
    """Returns a printed page: lines of text, now and then a picture; colours: paper, ink."""
    rng = _rng(c)
    paper, ink = _colours(c)[:2]
    image = _sheet(c, paper) * (0.94 + 0.06 * c.fractal(4, 3)[..., None])
    top = 0.92
    if rng.random() < 0.5:
        _fill(image, (0.12, 0.62, 0.88, 0.92), rng.uniform(0.2, 0.9, 3))
        _fill(image, (0.3, 0.68, 0.6, 0.82), rng.uniform(0.2, 0.9, 3))
        top = 0.57
    for y in np.arange(0.08, top, 0.055):
        end = 0.88 if rng.random() < 0.8 else rng.uniform(0.3, 0.8)
        _fill(image, (0.12, y, end, y + 0.024), ink * 0.6 + paper * 0.4)
    return image


def _cover(c: Canvas) -> Image:
    """Returns a book's cover: a cloth, a title, a figure; colours: cloth, figure, letters."""
    rng = _rng(c)
    cloth, figure, letters, _ = _colours(c)
    image = _sheet(c, cloth) * (0.85 + 0.15 * c.fractal(32, 2)[..., None])
    style = int(rng.integers(4))
    if style == 0:
        image[np.hypot(c.x - 0.5, (c.y - 0.4) * 1.2) < rng.uniform(0.15, 0.3)] = figure
    elif style == 1:
        _fill(image, (0, 0.1, 1, rng.uniform(0.3, 0.55)), figure)
    elif style == 2:
        image[np.abs(c.x - c.y) < rng.uniform(0.08, 0.2)] = figure
    else:
        _fill(image, (0.08, 0.08, 0.92, 0.92), figure)
        _fill(image, (0.12, 0.1, 0.88, 0.9), cloth)
    for box in ((0.2, 0.76, 0.8, 0.83), (0.28, 0.68, 0.72, 0.73), (0.35, 0.12, 0.65, 0.155)):
        _fill(image, box, letters)
    return image


def _keyboard(c: Canvas) -> Image:
    """Returns rows of keys above a touch pad; colours: casing, keys, letters."""
    casing, keys, letters, _ = _colours(c)
    image = _sheet(c, casing)
    _fill(image, (0.06, 0.4, 0.94, 0.95), casing * 0.6)
    for row in range(5):
        count = 14 if row else 9
        for key in range(count):
            if row == 0 and 2 < key < 7:  # under the space bar
                continue
            width = 0.86 / count
            left, bottom = 0.07 + key * width, 0.415 + 0.105 * row
            wide = 5 * width if row == 0 and key == 2 else width
            _fill(image, (left + 0.006, bottom + 0.01, left + wide - 0.006, bottom + 0.095), keys)
            middle = left + wide / 2
            _fill(image, (middle - 0.008, bottom + 0.04, middle + 0.008, bottom + 0.065), letters)
    _fill(image, (0.34, 0.05, 0.66, 0.34), casing * 0.72)
    _fill(image, (0.35, 0.06, 0.65, 0.33), casing * 0.9)
    return image


def _clock(c: Canvas) -> Image:
    """Returns an appliance's panel: digits above rows of buttons; colours: panel, keys, digits."""
    panel, keys, digits, _ = _colours(c)
    image = _sheet(c, panel)
    _fill(image, (0.12, 0.74, 0.88, 0.94), (0.02, 0.03, 0.03))
    for place, number in enumerate(_rng(c).integers(0, 10, 4)):
        x = 0.18 + 0.16 * place + (0.05 if place > 1 else 0)
        for segment in map(int, _DIGITS[int(number)]):
            left, low, right, high = _SEGMENTS[segment]
            box = (x + 0.12 * left, 0.77 + 0.14 * low, x + 0.12 * right, 0.77 + 0.14 * high)
            _fill(image, box, digits)
    for row in range(4):
        for column in range(3):
            x, y = 0.16 + 0.25 * column, 0.1 + 0.155 * row
            _fill(image, (x, y, x + 0.19, y + 0.11), keys)
            _fill(image, (x + 0.06, y + 0.04, x + 0.13, y + 0.07), digits * 0.5 + panel * 0.5)
    return image


def _mesh_window(c: Canvas) -> Image:
    """Returns a dark pane with a screen of fine holes; colours: pane, holes."""
    pane, holes = _colours(c)[:2]
    u, v = (c.x * 24) % 1 - 0.5, (c.y * 24) % 1 - 0.5
    share = np.clip(6 * (0.4 - np.hypot(u, v)), 0, 1)[..., None]
    border = np.minimum(np.minimum(c.x, 1 - c.x), np.minimum(c.y, 1 - c.y)) < 0.06
    return np.where(border[..., None], pane, pane * (1 - share) + holes * share)


def _parcel(c: Canvas) -> Image:
    """Returns cardboard with a label and a printed mark; colours: dark, light, print."""
    rng = _rng(c)
    dark, light, ink, _ = _colours(c)
    image = dark + (light - dark) * (0.6 * c.fractal(4) + 0.4 * c.grain)[..., None]
    left, bottom = rng.uniform(0.08, 0.5), rng.uniform(0.08, 0.4)
    _fill(image, (left, bottom, left + 0.34, bottom + 0.22), (0.93, 0.93, 0.9))
    for y in np.arange(bottom + 0.04, bottom + 0.2, 0.05):
        _fill(image, (left + 0.03, y, left + rng.uniform(0.12, 0.3), y + 0.02), ink)
    for x in np.arange(0.08, 0.4, 0.03):
        _fill(image, (1 - x, 0.8, 1 - x + rng.uniform(0.005, 0.02), 0.93), ink)
    return image


PICTURES: dict[str, Paint] = {
    "broadcast": _broadcast,
    "clock": _clock,
    "cover": _cover,
    "desktop": _desktop,
    "keyboard": _keyboard,
    "landscape": _landscape,
    "mesh_window": _mesh_window,
    "page": _page,
    "parcel": _parcel,
    "phone": _phone,
}
KINDS = tuple(sorted({*PATTERNS, *PICTURES}))
"""What the texture of an object may be; those of rooms are `BUILDING` too."""
