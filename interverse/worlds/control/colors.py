"""Colours of DMC-GB's colour modes: body, floor and sky, one of a hundred sets an episode.

DMC-GB stores its sets; these are drawn uniformly from the ranges that its hundred sets of each mode
span. The floor's second colour is its first plus 0.1, as there.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from interverse.core.rng import Noise
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import NO_PICTURE
from interverse.worlds.control.looks import Look

SETS = 100
_STEP = 0.1  # from the floor's first colour to its second
RANGES = MappingProxyType(
    {
        "color_easy": {
            "body/color": ((0.42, 0.26, 0.08), (0.96, 0.68, 0.56)),
            "floor/color_1": ((0.0, 0.0, 0.05), (0.32, 0.52, 0.51)),
            "background/color_1": ((0.19, 0.42, 0.44), (0.65, 0.92, 1.0)),
        },
        "color_hard": {
            "body/color": ((0.27, 0.0, 0.0), (1.0, 0.96, 0.76)),
            "floor/color_1": ((0.0, 0.0, 0.0), (0.64, 0.72, 0.68)),
            "background/color_1": ((0.08, 0.12, 0.31), (0.96, 1.0, 1.0)),
        },
    }
)
"""Mode -> variable -> the least and the greatest red, green and blue."""


def color_set(mode: str, number: int, domain: str) -> Look:
    """Returns the values of one set, for the variables that the domain has.

    >>> look = color_set("color_easy", 3, "walker")
    >>> bool(np.allclose(look["floor/color_2"] - look["floor/color_1"], 0.1))
    True
    """
    noise = Noise.single(seed=number)
    look: Look = {}
    for name, (low, high) in RANGES[mode].items():
        share = noise.uniform(f"{mode}/{name}", (3,))[0]
        look[name] = np.array(low) + (np.array(high) - np.array(low)) * share
    look["floor/color_2"] = np.minimum(look["floor/color_1"] + _STEP, 1.0)
    look["body/color"] = np.append(look["body/color"], 1.0)
    look |= {name: np.array(NO_PICTURE) for name in ("floor/texture", "background/texture")}
    if not DOMAINS[domain].background:
        look = {n: v for n, v in look.items() if not n.startswith("background/")}
    return look


def episode_colors(mode: str, noise: Noise, domain: str) -> Look:
    """Returns the set that an episode draws."""
    return color_set(mode, int(noise.integers(f"distraction/{mode}", SETS)[0]), domain)
