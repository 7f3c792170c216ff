"""The original's numbers for a visual seed: two streams of Python's generator, both from the seed.

`legacy_draws=True` takes looks from here. The original's streams are correlated (its sky picture
tells where its camera stands) and nothing keeps a body from vanishing against the floor, so these
looks are for comparing with it, not for experiments.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from interverse.worlds.control.domains import DOMAINS, EULER_DEGREES, TILT, Range
from interverse.worlds.control.gallery import NO_PICTURE
from interverse.worlds.control.looks import (
    ALPHA,
    HEADLIGHT,
    LAMP,
    REFLECTANCE,
    FloatArray,
    Look,
    camera_range,
    factors,
    turn_from_degrees,
    turn_from_tilt,
)

FLOORS, BACKGROUNDS = 383, 119  # pictures of the original


def original_draws(seed: int, domain: str, *, poles: int = 1) -> Look:
    """Returns the look that the original draws for a seed other than 0, as far as numbers go.

    Which picture a number means is another matter: there it depends on the order of files on disk.
    """
    look = _shared(random.Random(seed), textured=seed > 0)
    look |= _own(random.Random(seed), domain, poles)
    return {factor.name: look.get(factor.name, factor.default) for factor in factors(domain, poles)}


def with_pictures(look: Look, counts: Mapping[str, int]) -> Look:
    """Returns a look of the original with its pictures' numbers put into sets of other sizes.

    The original's number stays where the set has it. The draw itself must not know the set's size:
    it decides how many numbers the stream gives up, and so every number after it.
    """
    out = dict(look)
    for part, drawn_from in (("floor", FLOORS), ("background", BACKGROUNDS)):
        name, count = f"{part}/texture", counts[part]
        if name in look and count < drawn_from and look[name] != NO_PICTURE:
            out[name] = np.array(int(look[name]) * count // drawn_from)
    return out


def _shared(stream: random.Random, *, textured: bool) -> Look:
    """Returns what all domains share, in the original's order."""
    look: Look = {}
    if textured:
        look["background/texture"] = np.array(stream.choice(range(BACKGROUNDS)))
        look["floor/texture"] = np.array(stream.choice(range(FLOORS)))
        look["reflectance"] = np.array(stream.uniform(*REFLECTANCE))
    else:
        for part in ("background", "floor"):
            look[f"{part}/texture"] = np.array(NO_PICTURE)
            look |= {f"{part}/color_{i}": _triple(stream) for i in (1, 2)}
    for name in ("body/color", "effector/color", "target/color"):
        alpha = stream.uniform(*ALPHA)
        look[name] = np.array([*_triple(stream), alpha])
    for name in HEADLIGHT:
        look[name] = _light(stream, *HEADLIGHT[name])
    return look


def _own(stream: random.Random, domain: str, poles: int) -> Look:
    """Returns what a domain draws for its camera and lamp."""
    has, look = DOMAINS[domain], Look()
    if has.turn == "tilt":
        look["camera/rotation"] = turn_from_tilt(stream.uniform(*TILT))
    low, high = camera_range(domain, poles)
    if domain == "ball_in_cup":  # whose ends are given in reverse there
        low[1], high[1] = high[1], low[1]
    look["camera/position"] = np.array(
        [stream.uniform(*ends) for ends in zip(low, high, strict=True)]
    )
    if has.turn == "euler":
        look["camera/rotation"] = turn_from_degrees(_in_range(stream, EULER_DEGREES))
    if has.lamp_range is not None:
        look["light/position"] = _in_range(stream, has.lamp_range)
    if has.lamp_colours:
        look |= {name: _light(stream, *LAMP[name]) for name in LAMP}
    return look


def _triple(stream: random.Random) -> FloatArray:
    return np.array([stream.uniform(0.0, 1.0) for _ in range(3)])


def _in_range(stream: random.Random, corners: Range) -> FloatArray:
    return np.array([stream.uniform(*ends) for ends in zip(*corners, strict=True)])


def _light(stream: random.Random, base: tuple[float, float], spread: float) -> FloatArray:
    middle = stream.uniform(*base)
    return np.array([middle + stream.uniform(-spread, spread) for _ in range(3)])
