"""Furniture and clutter that cannot be acted on: textured meshes, tops to stand things on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interverse.art.meshes import Mesh, bevelled_box, lathe, moved, tiled
from interverse.art.rooms.item import Rgb, RoomTexture, Surface

Floats = NDArray[np.float64]
RIM = 0.03  # nothing stands nearer to the edge of a top, m


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """A level rectangle of a prop that things can stand on, in the prop's frame."""

    low: tuple[float, float]
    high: tuple[float, float]
    height: float
    head: float = 2.0
    """Free height above it, metres."""
    counter: bool = False
    """Whether it is a work top: taps and ovens stand there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prop:
    """A piece of furniture or clutter, facing -y, its foot on z = 0 (on a wall: back at y = 0)."""

    name: str
    parts: tuple[tuple[Mesh, Surface], ...]
    tops: tuple[Top, ...] = ()
    solids: tuple[tuple[Floats, Floats], ...] = ()
    """Boxes that nothing else may meet; the one around it all by default."""

    @property
    def boxes(self) -> tuple[tuple[Floats, Floats], ...]:
        """Returns the boxes that nothing else may meet."""
        return self.solids if self.solids else (self.bounds(),)

    def bounds(self) -> tuple[Floats, Floats]:
        """Returns the lowest and the highest corner."""
        corners = [mesh.bounds for mesh, _ in self.parts]
        return np.min([a for a, _ in corners], axis=0), np.max([b for _, b in corners], axis=0)


def bar(low: Sequence[float], high: Sequence[float], bevel: float = 0.006) -> Mesh:
    """Returns a bevelled box between two corners."""
    a, b = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return bevelled_box(b - a, bevel, (a + b) / 2)


def legs(size: Sequence[float], thick: float, inset: float) -> list[Mesh]:
    """Returns four square legs under a board of width, depth and height."""
    width, depth, height = size
    x, y = width / 2 - inset - thick / 2, depth / 2 - inset - thick / 2
    half = thick / 2
    return [
        bar((sx * x - half, sy * y - half, 0), (sx * x + half, sy * y + half, height), 0.005)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]


def knob(place: Sequence[float]) -> Mesh:
    """Returns a round handle."""
    ball = lathe([(0, -0.014), (0.010, -0.010), (0.014, 0), (0.010, 0.010), (0, 0.014)], 10)
    return moved(ball, place)


def grain(meshes: Iterable[Mesh], by: float = 1.2) -> list[Mesh]:
    """Returns the meshes with their textures finer by a factor, each shifted a little."""
    return [tiled(mesh, by, (0.37 * i, 0.23 * i)) for i, mesh in enumerate(meshes)]


# ------------------------------------------------------------------------------- colours


def shade(colour: Rgb, by: float) -> Rgb:
    """Returns a colour made lighter (above one) or darker."""
    r, g, b = (min(1.0, max(0.0, c * by)) for c in colour)
    return r, g, b


def tinted(rng: np.random.Generator, colour: Rgb, spread: float = 0.06) -> Rgb:
    """Returns a colour near another one."""
    r, g, b = np.clip(np.asarray(colour) + rng.uniform(-spread, spread, 3), 0.02, 1.0).tolist()
    return r, g, b


def pick(rng: np.random.Generator, colours: Sequence[Rgb]) -> Rgb:
    """Returns one of the colours, a little changed."""
    return tinted(rng, colours[int(rng.integers(len(colours)))])


WOODS: tuple[Rgb, ...] = (
    (0.72, 0.53, 0.34),
    (0.55, 0.36, 0.21),
    (0.82, 0.66, 0.46),
    (0.36, 0.23, 0.15),
    (0.63, 0.44, 0.31),
    (0.88, 0.85, 0.80),
)
FABRICS: tuple[Rgb, ...] = (
    (0.30, 0.38, 0.46),
    (0.62, 0.56, 0.48),
    (0.45, 0.50, 0.38),
    (0.66, 0.34, 0.28),
    (0.24, 0.27, 0.33),
    (0.76, 0.72, 0.66),
    (0.53, 0.43, 0.55),
)
VIVID: tuple[Rgb, ...] = (
    (0.72, 0.22, 0.18),
    (0.18, 0.36, 0.58),
    (0.86, 0.62, 0.20),
    (0.25, 0.50, 0.36),
    (0.50, 0.28, 0.48),
    (0.90, 0.86, 0.78),
    (0.20, 0.20, 0.24),
)


def textured(
    rng: np.random.Generator, kind: str, colour: Rgb, *, scale: float = 1.0, contrast: float = 0.72
) -> RoomTexture:
    """Returns a texture that runs from a darker to a lighter shade of a colour."""
    return RoomTexture(
        kind=kind,
        colours=(shade(colour, contrast), colour, shade(colour, 1.12)),
        seed=int(rng.integers(6)),
        scale=scale,
    )


def wooden(rng: np.random.Generator, colour: Rgb | None = None) -> Surface:
    """Returns a varnished board."""
    colour = pick(rng, WOODS) if colour is None else colour
    return Surface(texture=textured(rng, "wood", colour), specular=0.25, shininess=0.4)


def cloth(rng: np.random.Generator, colour: Rgb | None = None) -> Surface:
    """Returns a woven cover."""
    colour = pick(rng, FABRICS) if colour is None else colour
    texture = textured(rng, "weave", colour, scale=1.5, contrast=0.8)
    return Surface(texture=texture, specular=0.03, shininess=0.05)


def painted_surface(colour: Rgb, *, gloss: float = 0.3) -> Surface:
    """Returns plain paint."""
    return Surface(rgba=(*colour, 1.0), specular=gloss, shininess=0.5)


def metal(rng: np.random.Generator) -> Surface:
    """Returns steel, iron or brass."""
    grey = pick(rng, ((0.75, 0.75, 0.77), (0.25, 0.24, 0.23), (0.75, 0.6, 0.35)))
    return Surface(rgba=(*grey, 1.0), specular=0.8, shininess=0.8)
