"""Colours of DMC-GB's colour modes: body, floor and sky, one of a hundred sets an episode.

DMC-GB stores its sets. Their moments and the shares that lie at 0 and 1 are those of normal draws
around the suite's own colours, cut at 0 and 1; these are such draws, not its very sets. The floor's
second colour is its first plus 0.1, as there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from interverse.core.rng import Noise
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import NO_PICTURE
from interverse.worlds.control.looks import Look

SETS = 100
DEVIATIONS = MappingProxyType({"color_easy": 0.1, "color_hard": 0.2})
"""Mode -> the standard deviation of red, green and blue before they are cut."""
MEANS = MappingProxyType(
    {
        "body/color": (0.7, 0.5, 0.3),
        "floor/color_1": (0.1, 0.2, 0.3),
        "background/color_1": (0.4, 0.6, 0.8),
    }
)
"""Variable -> the suite's own red, green and blue."""
_STEP = 0.1  # from the floor's first colour to its second


@functools.cache
def all_sets(mode: str) -> Mapping[str, NDArray[np.float64]]:
    """Returns the colours of a mode's sets by variable, each (set, 3)."""
    noise, drawn = Noise.single(seed=0), {}
    for name, mean in MEANS.items():
        away = DEVIATIONS[mode] * noise.normal(f"{mode}/{name}", (SETS, 3))[0]
        drawn[name] = np.clip(np.array(mean) + away, 0.0, 1.0)
    return drawn


def color_set(mode: str, number: int, domain: str) -> Look:
    """Returns the values of one set, for the variables that the domain has.

    >>> look = color_set("color_easy", 3, "walker")
    >>> bool(np.allclose(look["floor/color_2"] - look["floor/color_1"], 0.1))
    True
    """
    look: Look = {name: colors[number].copy() for name, colors in all_sets(mode).items()}
    look["floor/color_2"] = np.minimum(look["floor/color_1"] + _STEP, 1.0)
    look["body/color"] = np.append(look["body/color"], 1.0)
    look |= {name: np.array(NO_PICTURE) for name in ("floor/texture", "background/texture")}
    if not DOMAINS[domain].background:
        look = {n: v for n, v in look.items() if not n.startswith("background/")}
    return look


def episode_colors(mode: str, noise: Noise, domain: str) -> Look:
    """Returns the set that an episode draws."""
    return color_set(mode, int(noise.integers(f"distraction/{mode}", SETS)[0]), domain)
