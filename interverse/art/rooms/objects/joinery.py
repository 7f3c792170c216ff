"""Joinery of many objects: boards, carcasses, doors, handles, legs, jars."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from interverse.art.rooms.item import (
    Item,
    Part,
    Rgb,
    RoomJoint,
    RoomTexture,
    Stand,
    Surface,
    Triple,
)
from interverse.art.rooms.objects.traits import TRAITS
from interverse.art.rooms.surfaces import choose, uniform, vivid

Tinted = tuple[Mesh, Rgb]

TILE = 1.6
"""Texture tiles a metre, for wood and cloth."""


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

    def slab(self, out: float, back: float, inset: float = 0.0, bevel: float = 0.004) -> Mesh:
        """Returns a board over it, `out` before the face and `back` behind it, inset all round."""
        low = (self.left + inset, self.face - out, self.low + inset)
        return bar(low, (self.right - inset, self.face + back, self.high - inset), bevel)


def bar(low: Sequence[float], high: Sequence[float], bevel: float = 0.004) -> Mesh:
    """Returns a bevelled box between two corners, the texture along its longest side."""
    a, b = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    mesh = tiled(bevelled_box(b - a, bevel, (a + b) / 2), TILE)
    return turned(mesh) if np.argmax(b - a) == 2 else mesh


def turned(mesh: Mesh) -> Mesh:
    """Returns the mesh with its texture turned by a quarter."""
    return Mesh(mesh.vertices, mesh.faces, mesh.normals, mesh.texcoords[:, ::-1])


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
    return merge(
        [
            bar((-x, face, floor), (-x + wall, back, top)),
            bar((x - wall, face, floor), (x, back, top)),
            bar((-x + wall, back - wall, floor), (x - wall, back, top)),
            bar((-x + wall, face, floor), (x - wall, back - wall, floor + wall)),
            bar((-x + wall, face, top - wall), (x - wall, back - wall, top)),
        ]
    )


def lining(size: Sequence[float], wall: float, *, front: float = 0.0, floor: float = 0.0) -> Mesh:
    """Returns the inside of such a case as five thin plates just inside its boards."""
    width, depth, height = size
    thin = 0.002
    inner = (width - 2 * wall, depth - wall - front, height - 2 * wall)
    mesh = carcass(inner, thin, floor=floor + wall)
    return moved(mesh, (0.0, (front - wall) / 2, 0.0))


def hinged(place: Front, thickness: float, travel: float, *, left: bool) -> RoomJoint:
    """Returns an upright hinge on one side of a front, behind a door of a thickness."""
    x = place.left if left else place.right
    origin = (x, place.face + thickness, 0.0)
    return RoomJoint(kind="hinge", origin=origin, axis=(0, 0, -1 if left else 1), travel=travel)


def grip(rng: np.random.Generator, length: float, reach: float = 0.03) -> Mesh:
    """Returns an upright handle about the origin that stands out to -y."""
    half = length / 2
    if rng.random() < 0.5:
        bent = 0.15 * length
        path = [(0, 0, -half), (0, -reach * 0.8, -half + bent * 0.3), (0, -reach, -half + bent)]
        path += [(0, -reach, half - bent), (0, -reach * 0.8, half - bent * 0.3), (0, 0, half)]
        return tube(path, uniform(rng, 0.006, 0.011), 8)
    thick = uniform(rng, 0.012, 0.022)
    post = thick * 0.7
    return merge(
        [
            bar((-thick / 2, -reach, -half), (thick / 2, -reach + thick * 0.6, half), 0.003),
            bar((-post / 2, -reach, -half * 0.8), (post / 2, 0, -half * 0.8 + post), 0.002),
            bar((-post / 2, -reach, half * 0.8 - post), (post / 2, 0, half * 0.8), 0.002),
        ]
    )


def knob(rng: np.random.Generator, radius: float) -> Mesh:
    """Returns a round knob about the origin that stands out to -y."""
    neck = radius * uniform(rng, 0.4, 0.7)
    out = radius * uniform(rng, 1.4, 2.0)
    profile = [(neck, 0), (neck, out * 0.45), (radius, out * 0.6), (radius * 0.95, out * 0.9)]
    profile += [(radius * 0.6, out), (0, out)]
    return rotated(lathe(profile, 12), (1, 0, 0), np.pi / 2)


def legs(size: Sequence[float], thick: float, inset: float, splay: float = 0.0) -> Mesh:
    """Returns four tapered legs under a case of width, depth; size[2] is their height."""
    width, depth, height = size
    found = []
    for sx in (-1, 1):
        for sy in (-1, 1):
            x, y = sx * (width / 2 - inset), sy * (depth / 2 - inset)
            foot = (x + sx * splay, y + sy * splay, 0.0)
            found.append(tube([foot, (x, y, height)], [thick * 0.35, thick * 0.5], 8))
    return merge(found)


def bottle(rng: np.random.Generator, height: float, radius: float) -> Mesh:
    """Returns a bottle, a jar or a tin on z = 0."""
    return scaled(_unit_bottle(int(rng.integers(3))), (radius, radius, height))


@functools.cache
def _unit_bottle(style: int) -> Mesh:
    """Returns a bottle of radius and height one."""
    profiles = (
        [(0, 0), (1, 0), (1, 0.6), (0.4, 0.78), (0.4, 1), (0, 1)],
        [(0, 0), (0.9, 0), (1, 0.1), (1, 0.8), (0.85, 0.84), (0.85, 1), (0, 1)],
        [(0, 0), (1, 0), (1, 0.97), (0.9, 1), (0, 0.98)],
    )
    return lathe(profiles[style], 9)


def goods(
    rng: np.random.Generator, low: Sequence[float], high: Sequence[float], count: int
) -> list[Tinted]:
    """Returns things side by side on a shelf between two corners: packets, tins and bottles."""
    x0, y0, z0 = low
    x1, y1, z1 = high
    pitch = (x1 - x0) / count
    found: list[Tinted] = []
    for number in range(count):
        if rng.random() < 0.15:
            continue
        x = x0 + (number + 0.5) * pitch
        height = (z1 - z0) * uniform(rng, 0.45, 0.85)
        width = pitch * uniform(rng, 0.55, 0.9)
        depth = min(y1 - y0, width * uniform(rng, 0.7, 1.4))
        y = uniform(rng, y0 + depth / 2, max(y0 + depth / 2 + 0.001, (y0 + y1) / 2))
        if rng.random() < 0.5:
            low = (x - width / 2, y - depth / 2, z0)
            mesh = bar(low, (x + width / 2, y + depth / 2, z0 + height), 0.003)
        else:
            mesh = moved(bottle(rng, height, min(width, depth) / 2), (x, y, z0))
        found.append((mesh, _grocery(rng)))
    return found


def _grocery(rng: np.random.Generator) -> Rgb:
    plain = choose(rng, ((0.9, 0.88, 0.82), (0.75, 0.12, 0.1), (0.9, 0.7, 0.15), (0.2, 0.4, 0.2)))
    return plain if rng.random() < 0.6 else vivid(rng)


def tinted(name: str, pieces: Sequence[Tinted], **placing: Any) -> Part:
    """Returns one part of meshes in a colour each; `placing` are further fields of the part.

    The colours lie side by side in one small texture, so that many things are one geom.
    """
    colours = tuple(dict.fromkeys(colour for _, colour in pieces))
    texture = RoomTexture(kind="swatch", colours=colours)
    meshes = []
    for mesh, colour in pieces:
        place = (colours.index(colour) + 0.5) / len(colours)
        texcoords = np.broadcast_to((place, 0.5), mesh.texcoords.shape)
        meshes.append(Mesh(mesh.vertices, mesh.faces, mesh.normals, texcoords))
    surface = Surface(texture=texture, specular=0.3, shininess=0.4)
    return Part(name=name, mesh=merge(meshes), surface=surface, **placing)


def finished(cls: str, parts: Sequence[Part], stand: Stand, *, light: Triple | None = None) -> Item:
    """Returns an item of the parts, shifted to where items of its stand are centred."""
    item = Item(cls=cls, parts=tuple(parts), size=(1, 1, 1), stand=stand, properties=TRAITS[cls])
    low, high = item.bounds()
    middle = (low + high) / 2
    shift = -middle
    if stand == "wall":
        shift[1] = -high[1]
    else:
        shift[2] = -low[2]
    width, depth, height = (float(side) for side in high - low)
    return Item(
        cls=cls,
        parts=tuple(_shifted(part, shift) for part in parts),
        size=(width, depth, height),
        stand=stand,
        properties=TRAITS[cls],
        light=None if light is None else _sum(light, shift),
    )


def _shifted(part: Part, by: NDArray[np.float64]) -> Part:
    joint = part.joint
    if joint is not None:
        joint = replace(joint, origin=_sum(joint.origin, by))
    return replace(part, mesh=moved(part.mesh, by), joint=joint)


def _sum(point: Triple, by: NDArray[np.float64]) -> Triple:
    x, y, z = (float(value) for value in np.asarray(point) + by)
    return x, y, z
