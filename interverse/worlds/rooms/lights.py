"""Lights of a room: a ceiling lamp, a fill that keeps the ceiling from black, the sky."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.rooms.shell import Opening

Floats = NDArray[np.float64]
NUMBERS = 5  # uniform numbers a light takes
_CEILING, _FILL, _WINDOW, _AMBIENT = 0.56, 0.28, 0.26, 0.26
SATURATION = {"soft": (0.02, 0.24), "original": (0.5, 1.0)}
"""How colourful lamps are, by option; the published set has the second."""
_NIGHT = np.array([0.05, 0.07, 0.14])
_DUSK = np.array([1.0, 0.66, 0.42])
_DAY = np.array([1.0, 1.0, 1.0])


def draw_light(
    room_hue: float, numbers: Floats, lamps: str = "soft"
) -> tuple[Floats, float, float]:
    """Returns colour, brightness and time of day for uniform numbers (5,).

    A room has lamps of its own hue; two thirds of the draws stay near to it.
    """
    hue = room_hue + (numbers[0] - 0.5) * 0.2 if numbers[4] < 0.66 else numbers[0]
    low, high = SATURATION[lamps]
    color = np.array(colorsys.hsv_to_rgb(hue % 1.0, low + numbers[1] * (high - low), 1.0))
    return color, 0.9 + 0.5 * float(numbers[2]), 7.0 + 11.0 * float(numbers[3])


def shift_light(
    color: Floats, brightness: float, time: float, numbers: Floats
) -> tuple[Floats, float, float]:
    """Returns another light, near the given one, for uniform numbers (5,)."""
    tint = np.clip(color * (1 + 0.3 * (numbers[:3] - 0.5)), 0.0, 1.0)
    bright = float(np.clip(brightness * (0.75 + 0.5 * numbers[3]), 0.1, 2.0))
    return tint, bright, float(np.clip(time + 4.0 * (numbers[4] - 0.5), 0.0, 24.0))


def sky_color(time: float) -> Floats:
    """Returns what the time of day makes of a daylight sky, rgb.

    >>> sky_color(12.0).tolist()
    [1.0, 1.0, 1.0]
    """
    hours = [0.0, 5.0, 6.5, 8.5, 16.5, 18.5, 20.5, 24.0]
    tones = np.stack([_NIGHT, _NIGHT, _DUSK, _DAY, _DAY, _DUSK, _NIGHT, _NIGHT])
    return np.array([np.interp(time, hours, tones[:, k]) for k in range(3)])


def light_edits(
    color: Floats, brightness: float, time: float, windows: tuple[Opening, ...]
) -> dict[str, Any]:
    """Returns the strength of the three lights, their directions and the ambient light."""
    sky = sky_color(time)
    day = float(sky.mean())
    outside = sky * _WINDOW * brightness
    ambient = (_AMBIENT * (0.55 + 0.45 * day)) * brightness * (0.5 * color + 0.5)
    # The way of the light that falls in through the first window.
    wall = next((o.wall for o in windows if o.low > 0), 0)
    normal = np.array([[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])[wall]
    along = np.array([-normal[1], normal[0]]) * (time - 12.5) / 8.0
    way = np.array([*(normal + along), -0.7])
    return {
        "light_diffuse": np.stack(
            [_CEILING * brightness * color, _FILL * brightness * color, outside]
        ),
        "light_dir": np.stack([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0], (way / np.linalg.norm(way))]),
        "headlight_ambient": ambient,
    }
