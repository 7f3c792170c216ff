"""Surfaces drawn at random: woods, metals, cloths, glazes, plastics, and their soiled versions."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from interverse.art.rooms.item import Rgb, RoomTexture, Surface

VARIANTS = 6
"""Seeds a texture may have: few, so that its noise is drawn once a process."""

WOODS: tuple[tuple[Rgb, Rgb], ...] = (
    ((0.36, 0.20, 0.10), (0.58, 0.36, 0.20)),
    ((0.62, 0.43, 0.24), (0.82, 0.63, 0.40)),
    ((0.74, 0.58, 0.38), (0.90, 0.77, 0.58)),
    ((0.20, 0.11, 0.07), (0.37, 0.22, 0.14)),
    ((0.45, 0.22, 0.12), (0.66, 0.37, 0.21)),
    ((0.50, 0.45, 0.40), (0.70, 0.65, 0.58)),
)
METALS: tuple[tuple[Rgb, Rgb], ...] = (
    ((0.60, 0.61, 0.63), (0.82, 0.83, 0.85)),
    ((0.42, 0.43, 0.46), (0.60, 0.61, 0.64)),
    ((0.62, 0.45, 0.20), (0.88, 0.72, 0.40)),
    ((0.55, 0.30, 0.18), (0.82, 0.50, 0.34)),
    ((0.10, 0.10, 0.11), (0.24, 0.24, 0.26)),
)
PAINTS: tuple[Rgb, ...] = (
    (0.93, 0.92, 0.88),
    (0.85, 0.86, 0.84),
    (0.28, 0.38, 0.44),
    (0.36, 0.46, 0.38),
    (0.16, 0.20, 0.27),
    (0.64, 0.72, 0.74),
    (0.80, 0.74, 0.62),
    (0.55, 0.22, 0.18),
    (0.22, 0.22, 0.23),
)

T = TypeVar("T")


def uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Returns a number between two."""
    return float(rng.uniform(low, high))


def choose(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Returns one of the options."""
    return options[int(rng.integers(len(options)))]


def chance(rng: np.random.Generator, probability: float) -> bool:
    """Returns whether something so likely happens."""
    return bool(rng.random() < probability)


def variant(rng: np.random.Generator) -> int:
    """Returns a texture's seed."""
    return int(rng.integers(VARIANTS))


def vivid(rng: np.random.Generator, saturation: float = 0.6, value: float = 0.75) -> Rgb:
    """Returns a colour of any hue, about so saturated and so bright."""
    s = float(np.clip(saturation + rng.uniform(-0.2, 0.2), 0, 1))
    v = float(np.clip(value + rng.uniform(-0.15, 0.15), 0, 1))
    return colorsys.hsv_to_rgb(float(rng.random()), s, v)


def shade(colour: Rgb, by: float) -> Rgb:
    """Returns a colour made darker (below one) or lighter (above)."""
    red, green, blue = (min(1.0, channel * by) for channel in colour)
    return red, green, blue


def mix(first: Rgb, second: Rgb, share: float) -> Rgb:
    """Returns the first colour moved towards the second."""
    red, green, blue = (a + (b - a) * share for a, b in zip(first, second, strict=True))
    return red, green, blue


def flat(colour: Rgb, specular: float = 0.3, shininess: float = 0.4) -> Surface:
    """Returns a surface of one colour."""
    return Surface(rgba=(*colour, 1.0), specular=specular, shininess=shininess)


def wood(rng: np.random.Generator) -> Surface:
    """Returns a varnished wood; its grain runs along the first texture coordinate."""
    colours = choose(rng, WOODS)
    texture = RoomTexture(kind="wood", colours=colours, seed=variant(rng))
    return Surface(texture=texture, specular=0.25, shininess=0.35)


def metal(rng: np.random.Generator, kinds: Sequence[int] = (0, 1, 2, 3, 4)) -> Surface:
    """Returns a brushed metal: steel 0, iron 1, brass 2, copper 3, blackened 4."""
    texture = RoomTexture(kind="brushed", colours=METALS[choose(rng, kinds)], seed=variant(rng))
    return Surface(texture=texture, specular=0.8, shininess=0.7)


def plastic(rng: np.random.Generator, colour: Rgb | None = None) -> Surface:
    """Returns a shiny plastic, by default of any colour."""
    return flat(vivid(rng) if colour is None else colour, 0.5, 0.6)


def paint(rng: np.random.Generator, colours: Sequence[Rgb] = PAINTS) -> Surface:
    """Returns a lacquer with slight unevenness."""
    colour = choose(rng, colours)
    texture = RoomTexture(kind="plain", colours=(shade(colour, 0.94), colour), seed=variant(rng))
    return Surface(texture=texture, specular=0.35, shininess=0.5)


def cloth(rng: np.random.Generator, colour: Rgb | None = None) -> Surface:
    """Returns a cloth: woven, striped, checked, dotted or with flowers."""
    colour = vivid(rng, 0.45, 0.7) if colour is None else colour
    kind = choose(rng, ("weave", "weave", "stripes", "checks", "dots", "floral", "columns"))
    other = choose(rng, (shade(colour, 0.55), (0.93, 0.91, 0.86), vivid(rng, 0.4, 0.7)))
    colours = (shade(colour, 0.75), colour) if kind == "weave" else (colour, other)
    texture = RoomTexture(
        kind=kind, colours=colours, seed=variant(rng), scale=choose(rng, (1.0, 2.0))
    )
    return Surface(texture=texture, specular=0.02, shininess=0.1)


def glaze(rng: np.random.Generator) -> Surface:
    """Returns a glazed earthenware: plain, speckled, banded, marbled, dotted or with flowers."""
    base = choose(rng, ((0.94, 0.93, 0.90), (0.90, 0.86, 0.78), vivid(rng, 0.5, 0.75)))
    other = choose(rng, (vivid(rng, 0.6, 0.6), (0.16, 0.24, 0.42), shade(base, 0.6)))
    kind = choose(rng, ("plain", "speckle", "bands", "marble", "dots", "floral", "stripes"))
    colours: tuple[Rgb, ...] = (base, other)
    if kind == "plain":
        colours = (shade(base, 0.95), base)
    elif kind == "bands":
        colours = (base, base, other, base, base)
    texture = RoomTexture(
        kind=kind, colours=colours, seed=variant(rng), scale=choose(rng, (1.0, 2.0))
    )
    return Surface(texture=texture, specular=0.6, shininess=0.75)


def enamel(rng: np.random.Generator) -> Surface:
    """Returns a cooking vessel's outside: enamel of any colour."""
    colour = vivid(rng, 0.7, 0.65)
    texture = RoomTexture(kind="plain", colours=(shade(colour, 0.8), colour), seed=variant(rng))
    return Surface(texture=texture, specular=0.7, shininess=0.8)


def leather(rng: np.random.Generator) -> Surface:
    """Returns a leather."""
    colour = choose(
        rng, ((0.35, 0.20, 0.11), (0.12, 0.11, 0.11), (0.55, 0.36, 0.2), (0.4, 0.1, 0.1))
    )
    texture = RoomTexture(kind="leather", colours=(shade(colour, 0.6), colour), seed=variant(rng))
    return Surface(texture=texture, specular=0.3, shininess=0.3)


def picture(kind: str, colours: Sequence[Rgb], seed: int, emission: float = 0.0) -> Surface:
    """Returns a screen, a page or a cover."""
    texture = RoomTexture(kind=kind, colours=tuple(colours), seed=seed)
    return Surface(texture=texture, specular=0.3, shininess=0.6, emission=emission)


def scenery(rng: np.random.Generator) -> tuple[Rgb, Rgb, Rgb, Rgb]:
    """Returns the colours of a landscape: sky low and high, near and far land."""
    return choose(
        rng,
        (
            ((0.80, 0.90, 0.97), (0.30, 0.55, 0.88), (0.14, 0.36, 0.12), (0.42, 0.58, 0.48)),
            ((0.98, 0.72, 0.42), (0.55, 0.28, 0.50), (0.20, 0.10, 0.22), (0.55, 0.26, 0.34)),
            ((0.88, 0.92, 0.95), (0.45, 0.62, 0.80), (0.68, 0.54, 0.30), (0.82, 0.70, 0.50)),
            ((0.30, 0.75, 0.85), (0.10, 0.30, 0.62), (0.90, 0.84, 0.60), (0.10, 0.45, 0.60)),
            ((0.95, 0.80, 0.90), (0.52, 0.60, 0.90), (0.40, 0.20, 0.50), (0.65, 0.45, 0.75)),
        ),
    )


def soiled(surface: Surface) -> Surface:
    """Returns the surface under dirt: stains, and no shine."""
    red, green, blue, alpha = surface.rgba
    texture = surface.texture
    if not isinstance(texture, RoomTexture):
        colour = (red, green, blue)
        texture = RoomTexture(kind="plain", colours=(shade(colour, 0.95), colour))
        surface = replace(surface, rgba=(1.0, 1.0, 1.0, alpha))
    return replace(surface, texture=texture.over("dirt"), specular=0.1, shininess=0.2)


def cracked(surface: Surface) -> Surface:
    """Returns a screen's surface behind broken glass."""
    return replace(crazed(surface), emission=max(surface.emission * 0.6, 0.25))


def crazed(surface: Surface) -> Surface:
    """Returns the surface under cracks, its light unchanged."""
    return covered(surface, "cracks")


def covered(surface: Surface, overlay: str) -> Surface:
    """Returns the surface under an overlay, its light unchanged."""
    texture = surface.texture
    if not isinstance(texture, RoomTexture):
        red, green, blue, alpha = surface.rgba
        texture = RoomTexture(kind="plain", colours=((red, green, blue), (red, green, blue)))
        surface = replace(surface, rgba=(1.0, 1.0, 1.0, alpha))
    return replace(surface, texture=texture.over(overlay))


def glowing(surface: Surface, colour: Rgb = (1.0, 0.85, 0.55), emission: float = 0.8) -> Surface:
    """Returns the surface lit from within."""
    red, green, blue, alpha = surface.rgba
    tint = (red * colour[0], green * colour[1], blue * colour[2], alpha)
    return replace(surface, rgba=tint, emission=emission)
