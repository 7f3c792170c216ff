"""The kit that objects and furniture are made of: random draws, surfaces, boards, cases, goods."""

from __future__ import annotations

import colorsys
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from interverse.art.meshes import (
    Mesh,
    bevelled_box,
    lathe,
    merge,
    moved,
    rotated,
    scaled,
    tiled,
    tube,
)
from interverse.art.rooms.item import Floats, Part, Rgb, RoomJoint, RoomTexture, Surface, Triple

VARIANTS = 6
"""Seeds a texture may have: few, so that its noise is drawn once a process."""
TILE = 1.6
"""Texture tiles a metre, for the wood and cloth of objects."""
RIM = 0.03  # nothing stands nearer to the edge of a prop's top, m
SIGNS = (-1, 1)
CORNERS = tuple((sx, sy) for sx in SIGNS for sy in SIGNS)

# ------------------------------------------------------------------------------------- colours

GRAINS: tuple[tuple[Rgb, Rgb], ...] = (
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
SCENES: tuple[tuple[Rgb, Rgb, Rgb, Rgb], ...] = (  # sky low and high, near and far land
    ((0.80, 0.90, 0.97), (0.30, 0.55, 0.88), (0.14, 0.36, 0.12), (0.42, 0.58, 0.48)),
    ((0.98, 0.72, 0.42), (0.55, 0.28, 0.50), (0.20, 0.10, 0.22), (0.55, 0.26, 0.34)),
    ((0.88, 0.92, 0.95), (0.45, 0.62, 0.80), (0.68, 0.54, 0.30), (0.82, 0.70, 0.50)),
    ((0.30, 0.75, 0.85), (0.10, 0.30, 0.62), (0.90, 0.84, 0.60), (0.10, 0.45, 0.60)),
    ((0.95, 0.80, 0.90), (0.52, 0.60, 0.90), (0.40, 0.20, 0.50), (0.65, 0.45, 0.75)),
)
LEATHERS: tuple[Rgb, ...] = (
    (0.35, 0.20, 0.11),
    (0.12, 0.11, 0.11),
    (0.55, 0.36, 0.2),
    (0.4, 0.1, 0.1),
)
GROCERIES: tuple[Rgb, ...] = (
    (0.9, 0.88, 0.82),
    (0.75, 0.12, 0.1),
    (0.9, 0.7, 0.15),
    (0.2, 0.4, 0.2),
)

T = TypeVar("T")
Tinted = tuple[Mesh, Rgb]


def shade(colour: Rgb, by: float) -> Rgb:
    """Returns a colour made darker (below one) or lighter (above)."""
    red, green, blue = (min(1.0, channel * by) for channel in colour)
    return red, green, blue


def flat(colour: Rgb, specular: float = 0.3, shininess: float = 0.4) -> Surface:
    """Returns a surface of one colour."""
    return Surface(rgba=(*colour, 1.0), specular=specular, shininess=shininess)


def picture(kind: str, colours: tuple[Rgb, ...], seed: int, emission: float = 0.0) -> Surface:
    """Returns a screen, a page or a cover."""
    texture = RoomTexture(kind=kind, colours=colours, seed=seed)
    return Surface(texture=texture, specular=0.3, shininess=0.6, emission=emission)


class Draw(np.random.Generator):
    """A generator that also draws sizes, choices, colours and surfaces: `Draw.of(rng)`."""

    @classmethod
    def of(cls, rng: np.random.Generator) -> Draw:
        """Returns a generator that goes on where another one is, and takes it along."""
        return cls(rng.bit_generator)

    def __call__(self, low: float, high: float) -> float:
        """Returns a number between two."""
        return float(self.uniform(low, high))

    def one(self, options: Sequence[T]) -> T:
        """Returns one of the options."""
        return options[int(self.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        """Returns whether something so likely happens."""
        return bool(self.random() < probability)

    def count(self, low: int, high: int) -> int:
        """Returns a whole number from low to high - 1."""
        return int(self.integers(low, high))

    def variant(self, count: int = VARIANTS) -> int:
        """Returns a texture's seed."""
        return int(self.integers(count))

    def vivid(self, saturation: float = 0.6, value: float = 0.75) -> Rgb:
        """Returns a colour of any hue, about so saturated and so bright."""
        s = float(np.clip(saturation + self.uniform(-0.2, 0.2), 0, 1))
        v = float(np.clip(value + self.uniform(-0.15, 0.15), 0, 1))
        return colorsys.hsv_to_rgb(float(self.random()), s, v)

    def near(self, colour: Rgb, spread: float = 0.06) -> Rgb:
        """Returns a colour near another one."""
        change = self.uniform(-spread, spread, 3)
        r, g, b = np.clip(np.asarray(colour) + change, 0.02, 1.0).tolist()
        return r, g, b

    def pick(self, colours: Sequence[Rgb]) -> Rgb:
        """Returns one of the colours, a little changed."""
        return self.near(colours[int(self.integers(len(colours)))])

    # ------------------------------------------------------------------ surfaces of objects

    def pattern(self, kind: str, *colours: Rgb, scale: float = 1.0) -> RoomTexture:
        """Returns a variant of a texture."""
        return RoomTexture(kind=kind, colours=colours, seed=self.variant(), scale=scale)

    def picture(self, kind: str, *colours: Rgb, emission: float = 0.0) -> Surface:
        """Returns a variant of a screen, a page or a cover."""
        return picture(kind, colours, self.variant(), emission)

    def wood(self) -> Surface:
        """Returns a varnished wood; its grain runs along the first texture coordinate."""
        return self.pattern("wood", *self.one(GRAINS)).skin(0.25, 0.35)

    def metal(self, *kinds: int) -> Surface:
        """Returns a brushed metal: steel 0, iron 1, brass 2, copper 3, blackened 4; default any."""
        return self.pattern("brushed", *METALS[self.one(kinds or (0, 1, 2, 3, 4))]).skin(0.8, 0.7)

    def plastic(self) -> Surface:
        """Returns a shiny plastic of any colour."""
        return flat(self.vivid(), 0.5, 0.6)

    def paint(self) -> Surface:
        """Returns a lacquer with slight unevenness."""
        colour = self.one(PAINTS)
        return self.pattern("plain", shade(colour, 0.94), colour).skin(0.35, 0.5)

    def cloth(self, colour: Rgb | None = None) -> Surface:
        """Returns a cloth: woven, striped, checked, dotted or with flowers."""
        colour = self.vivid(0.45, 0.7) if colour is None else colour
        kind = self.one(("weave", "weave", "stripes", "checks", "dots", "floral", "columns"))
        other = self.one((shade(colour, 0.55), (0.93, 0.91, 0.86), self.vivid(0.4, 0.7)))
        colours = (shade(colour, 0.75), colour) if kind == "weave" else (colour, other)
        return Surface(texture=self._sized(kind, colours), specular=0.02, shininess=0.1)

    def glaze(self) -> Surface:
        """Returns a glazed earthenware: plain, speckled, banded, marbled, dotted or flowered."""
        base = self.one(((0.94, 0.93, 0.90), (0.90, 0.86, 0.78), self.vivid(0.5, 0.75)))
        other = self.one((self.vivid(0.6, 0.6), (0.16, 0.24, 0.42), shade(base, 0.6)))
        kind = self.one(("plain", "speckle", "bands", "marble", "dots", "floral", "stripes"))
        colours: tuple[Rgb, ...] = (base, other)
        if kind == "plain":
            colours = (shade(base, 0.95), base)
        elif kind == "bands":
            colours = (base, base, other, base, base)
        return Surface(texture=self._sized(kind, colours), specular=0.6, shininess=0.75)

    def _sized(self, kind: str, colours: tuple[Rgb, ...]) -> RoomTexture:
        seed = self.variant()
        return RoomTexture(kind=kind, colours=colours, seed=seed, scale=self.one((1.0, 2.0)))

    def enamel(self) -> Surface:
        """Returns a cooking vessel's outside: enamel of any colour."""
        colour = self.vivid(0.7, 0.65)
        return self.pattern("plain", shade(colour, 0.8), colour).skin(0.7, 0.8)

    def leather(self) -> Surface:
        """Returns a leather."""
        colour = self.one(LEATHERS)
        return self.pattern("leather", shade(colour, 0.6), colour).skin(0.3, 0.3)

    # ------------------------------------------------------------------ surfaces of furniture

    def textured(
        self, kind: str, colour: Rgb, *, scale: float = 1.0, contrast: float = 0.72
    ) -> RoomTexture:
        """Returns a texture that runs from a darker to a lighter shade of a colour."""
        return self.pattern(kind, shade(colour, contrast), colour, shade(colour, 1.12), scale=scale)

    def timber(self) -> Surface:
        """Returns a varnished board."""
        return self.textured("wood", self.pick(WOODS)).skin(0.25, 0.4)

    def fabric(self) -> Surface:
        """Returns a woven cover."""
        return self.textured("weave", self.pick(FABRICS), scale=1.5, contrast=0.8).skin(0.03, 0.05)

    def hardware(self) -> Surface:
        """Returns steel, iron or brass."""
        grey = self.pick(((0.75, 0.75, 0.77), (0.25, 0.24, 0.23), (0.75, 0.6, 0.35)))
        return flat(grey, 0.8, 0.8)

    def lacquer(self, colours: Sequence[Rgb], gloss: float = 0.3) -> Surface:
        """Returns plain paint in about one of the colours."""
        return flat(self.pick(colours), gloss, 0.5)


def soiled(surface: Surface) -> Surface:
    """Returns the surface under dirt: stains, and no shine."""
    return replace(covered(surface, "dirt", 0.95), specular=0.1, shininess=0.2)


def cracked(surface: Surface) -> Surface:
    """Returns a screen's surface behind broken glass."""
    return replace(covered(surface, "cracks"), emission=max(surface.emission * 0.6, 0.25))


def covered(surface: Surface, overlay: str, dark: float = 1.0) -> Surface:
    """Returns the surface under an overlay, its light unchanged."""
    texture = surface.texture
    if not isinstance(texture, RoomTexture):
        red, green, blue, alpha = surface.rgba
        colour = (red, green, blue)
        texture = RoomTexture(kind="plain", colours=(shade(colour, dark), colour))
        surface = replace(surface, rgba=(1.0, 1.0, 1.0, alpha))
    return replace(surface, texture=texture.over(overlay))


# -------------------------------------------------------------------------------------- boards


def bar(low: Sequence[float], high: Sequence[float], bevel: float = 0.006) -> Mesh:
    """Returns a bevelled box between two corners."""
    a, b = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return bevelled_box(b - a, bevel, (a + b) / 2)


def board(low: Sequence[float], high: Sequence[float], bevel: float = 0.004) -> Mesh:
    """Returns a bevelled box between two corners, the texture along its longest side."""
    mesh = tiled(bar(low, high, bevel), TILE)
    if np.argmax(np.asarray(high, dtype=float) - np.asarray(low, dtype=float)) < 2:
        return mesh
    return Mesh(mesh.vertices, mesh.faces, mesh.normals, mesh.texcoords[:, ::-1])


class Front(NamedTuple):
    """An upright rectangle that looks to -y: its edges in x and z, and where its face is."""

    left: float
    right: float
    low: float
    high: float
    face: float

    @property
    def middle(self) -> Triple:
        """The middle of the face."""
        return (self.left + self.right) / 2, self.face, (self.low + self.high) / 2

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From low to high."""
        return self.high - self.low

    def slab(self, out: float, back: float, inset: float = 0.0, bevel: float = 0.004) -> Mesh:
        """Returns a board over it, `out` before the face and `back` behind it, inset all round."""
        low = (self.left + inset, self.face - out, self.low + inset)
        return board(low, (self.right - inset, self.face + back, self.high - inset), bevel)

    def hinge(self, thickness: float, travel: float, *, left: bool) -> RoomJoint:
        """Returns an upright hinge on one side, behind a door of a thickness."""
        origin = (self.left if left else self.right, self.face + thickness, 0.0)
        return RoomJoint("hinge", origin, (0, 0, -1 if left else 1), travel)


def carcass(size: Sequence[float], wall: float, *, front: float = 0.0, floor: float = 0.0) -> Mesh:
    """Returns an open-fronted case about x = 0: two sides, a back, a bottom and a top.

    Args:
        size: width, depth, height; the case goes from y = -depth / 2 to depth / 2.
        wall: thickness of the boards.
        front: how far the case stays behind the front, for doors that lie on it.
        floor: height of its underside.
    """
    width, depth, height = size
    x, back, face = width / 2, depth / 2, -depth / 2 + front
    top = floor + height
    boards = [
        board((-x, face, floor), (-x + wall, back, top)),
        board((x - wall, face, floor), (x, back, top)),
        board((-x + wall, back - wall, floor), (x - wall, back, top)),
        board((-x + wall, face, floor), (x - wall, back - wall, floor + wall)),
        board((-x + wall, face, top - wall), (x - wall, back - wall, top)),
    ]
    return merge(boards)


def lining(size: Sequence[float], wall: float, *, front: float = 0.0, floor: float = 0.0) -> Mesh:
    """Returns the inside of such a case as five thin plates just inside its boards."""
    width, depth, height = size
    inner = (width - 2 * wall, depth - wall - front, height - 2 * wall)
    return moved(carcass(inner, 0.002, floor=floor + wall), (0.0, (front - wall) / 2, 0.0))


def grip(draw: Draw, length: float, reach: float = 0.03) -> Mesh:
    """Returns an upright handle about the origin that stands out to -y."""
    half = length / 2
    if draw.chance(0.5):
        bent = 0.15 * length
        path = [(0, 0, -half), (0, -reach * 0.8, -half + bent * 0.3), (0, -reach, -half + bent)]
        path += [(0, -reach, half - bent), (0, -reach * 0.8, half - bent * 0.3), (0, 0, half)]
        return tube(path, draw(0.006, 0.011), 8)
    thick = draw(0.012, 0.022)
    post = thick * 0.7
    bars = [
        board((-thick / 2, -reach, -half), (thick / 2, -reach + thick * 0.6, half), 0.003),
        board((-post / 2, -reach, -half * 0.8), (post / 2, 0, -half * 0.8 + post), 0.002),
        board((-post / 2, -reach, half * 0.8 - post), (post / 2, 0, half * 0.8), 0.002),
    ]
    return merge(bars)


def knob(draw: Draw, radius: float) -> Mesh:
    """Returns a round knob about the origin that stands out to -y."""
    neck = radius * draw(0.4, 0.7)
    out = radius * draw(1.4, 2.0)
    profile = [(neck, 0), (neck, out * 0.45), (radius, out * 0.6), (radius * 0.95, out * 0.9)]
    return rotated(lathe([*profile, (radius * 0.6, out), (0, out)], 12), (1, 0, 0), np.pi / 2)


def ball(place: Sequence[float]) -> Mesh:
    """Returns the round handle of furniture."""
    profile = [(0, -0.014), (0.010, -0.010), (0.014, 0), (0.010, 0.010), (0, 0.014)]
    return moved(lathe(profile, 10), place)


def legs(size: Sequence[float], thick: float, inset: float, splay: float = 0.0) -> Mesh:
    """Returns four tapered legs under a case of width, depth; size[2] is their height."""
    width, depth, height = size
    found = []
    for sx, sy in CORNERS:
        x, y = sx * (width / 2 - inset), sy * (depth / 2 - inset)
        foot = (x + sx * splay, y + sy * splay, 0.0)
        found.append(tube([foot, (x, y, height)], [thick * 0.35, thick * 0.5], 8))
    return merge(found)


def posts(size: Sequence[float], thick: float, inset: float) -> list[Mesh]:
    """Returns four square legs under a board of width, depth and height."""
    width, depth, height = size
    half = thick / 2
    x, y = width / 2 - inset - thick / 2, depth / 2 - inset - thick / 2
    return [
        bar((sx * x - half, sy * y - half, 0), (sx * x + half, sy * y + half, height), 0.005)
        for sx, sy in CORNERS
    ]


def grained(meshes: Iterable[Mesh], by: float = 1.2) -> list[Mesh]:
    """Returns the meshes with their textures finer by a factor, each shifted a little."""
    return [tiled(mesh, by, (0.37 * i, 0.23 * i)) for i, mesh in enumerate(meshes)]


# --------------------------------------------------------------------------------------- goods


@functools.cache
def _bottle(style: int) -> Mesh:
    """Returns a bottle, a jar or a tin of radius and height one."""
    profiles = (
        [(0, 0), (1, 0), (1, 0.6), (0.4, 0.78), (0.4, 1), (0, 1)],
        [(0, 0), (0.9, 0), (1, 0.1), (1, 0.8), (0.85, 0.84), (0.85, 1), (0, 1)],
        [(0, 0), (1, 0), (1, 0.97), (0.9, 1), (0, 0.98)],
    )
    return lathe(profiles[style], 9)


def goods(draw: Draw, low: Triple, high: Triple, count: int) -> list[Tinted]:
    """Returns things side by side on a shelf between two corners: packets, tins and bottles."""
    (x0, y0, z0), (x1, y1, z1) = low, high
    pitch = (x1 - x0) / count
    found: list[Tinted] = []
    for number in range(count):
        if draw.chance(0.15):
            continue
        x = x0 + (number + 0.5) * pitch
        height = (z1 - z0) * draw(0.45, 0.85)
        width = pitch * draw(0.55, 0.9)
        depth = min(y1 - y0, width * draw(0.7, 1.4))
        y = draw(y0 + depth / 2, max(y0 + depth / 2 + 0.001, (y0 + y1) / 2))
        if draw.chance(0.5):
            corner = (x - width / 2, y - depth / 2, z0)
            mesh = board(corner, (x + width / 2, y + depth / 2, z0 + height), 0.003)
        else:
            radius = min(width, depth) / 2
            mesh = moved(scaled(_bottle(draw.count(0, 3)), (radius, radius, height)), (x, y, z0))
        plain = draw.one(GROCERIES)
        found.append((mesh, plain if draw.chance(0.6) else draw.vivid()))
    return found


def tinted(name: str, pieces: Sequence[Tinted], **placing: Any) -> Part:
    """Returns one part of meshes in a colour each; `placing` are further fields of the part.

    The colours lie side by side in one small texture, so that many things are one geom.
    """
    colours = tuple(dict.fromkeys(colour for _, colour in pieces))
    meshes = []
    for mesh, colour in pieces:
        place = (colours.index(colour) + 0.5) / len(colours)
        texcoords = np.broadcast_to((place, 0.5), mesh.texcoords.shape)
        meshes.append(Mesh(mesh.vertices, mesh.faces, mesh.normals, texcoords))
    return Part(name, merge(meshes), RoomTexture(kind="swatch", colours=colours).skin(), **placing)


# --------------------------------------------------------------------------------------- props


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """A level rectangle of a prop that things can stand on, in the prop's frame."""

    low: tuple[float, float]
    high: tuple[float, float]
    height: float
    counter: bool = False
    """Whether it is a work top: taps and ovens stand there."""


@dataclass(frozen=True, slots=True, eq=False)
class Prop:
    """A piece of furniture or clutter that cannot be acted on.

    It faces -y, its foot on z = 0 (on a wall: its back at y = 0).
    """

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
