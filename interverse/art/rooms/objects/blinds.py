"""Blinds before a window: slats that tilt, slats that are drawn up, or upright ones that turn."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, frame, merge, moved, painted, sheet, tube
from interverse.art.rooms.item import Item, Part, RoomJoint, Surface
from interverse.art.rooms.objects.joinery import bar, finished
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    cloth,
    flat,
    paint,
    picture,
    scenery,
    uniform,
    variant,
    vivid,
    wood,
)

OUT = 0.055
"""How far from the wall the slats hang."""


def build(rng: np.random.Generator) -> Item:
    """Returns a window with blinds."""
    width, height = uniform(rng, 0.6, 1.2), uniform(rng, 0.75, 1.3)
    x, z, front = width / 2, height / 2, -OUT - 0.03
    skin = _skin(rng)
    rail = bar((-x - 0.02, front, z + 0.01), (x + 0.02, -0.01, z + 0.07), 0.008)
    cord = tube([(x - 0.03, front, z), (x - 0.03, front, -z * 0.3)], 0.004, 6)
    style = choose(rng, (_tilting, _tilting, _rising, _upright, _roman))
    parts = [
        *_window(rng, width, height),
        Part(name="rail", mesh=rail, surface=skin),
        Part(name="cord", mesh=cord, surface=flat((0.85, 0.83, 0.78))),
        *style(rng, width, height, skin),
    ]
    return finished("Blinds", parts, "wall")


def _window(rng: np.random.Generator, width: float, height: float) -> list[Part]:
    x, z, border = width / 2, height / 2, 0.05
    view = painted(bar((-x, -0.008, -z), (x, 0, z), 0.002), 0, 2)
    bars = [frame((width + 2 * border, height + 2 * border), border, 0.03)]
    bars.append(bar((-0.015, -0.02, -z), (0.015, 0, z)))
    if chance(rng, 0.5):
        bars.append(bar((-x, -0.02, -0.012), (x, 0, 0.012)))
    trim = flat((0.92, 0.91, 0.88), 0.3, 0.4) if chance(rng, 0.6) else wood(rng)
    outlook = picture("landscape", scenery(rng), variant(rng), 0.45)
    return [
        Part(name="view", mesh=view, surface=outlook, outlook=True),
        Part(name="frame", mesh=merge(bars), surface=trim),
    ]


def _skin(rng: np.random.Generator) -> Surface:
    pale, steel = flat((0.93, 0.92, 0.88), 0.3, 0.4), flat((0.75, 0.76, 0.78), 0.7, 0.7)
    return choose(rng, (pale, steel, wood(rng), paint(rng), flat(vivid(rng, 0.4, 0.75))))


def _slat(length: float, wide: float, crown: float = 0.006) -> Mesh:
    """Returns a slightly arched slat along x, standing upright in the plane y = 0."""
    x, z = np.array([-length / 2, length / 2]), np.linspace(-wide / 2, wide / 2, 5)
    points = np.empty((5, 2, 3))
    points[..., 0], points[..., 2] = x[None], z[:, None]
    points[..., 1] = -crown * (1 - (2 * z / wide) ** 2)[:, None]
    texture = np.stack(np.broadcast_arrays(x[None] * 1.6, z[:, None] * 1.6), axis=-1)
    return sheet(points, 0.002, texture)


def _tilting(rng: np.random.Generator, width: float, height: float, skin: Surface) -> list[Part]:
    count = int(height / uniform(rng, 0.055, 0.085))
    pitch = height / count
    slat = _slat(width, pitch * 1.12)
    travel = choose(rng, (-1, 1)) * uniform(rng, 1.75, 1.95)
    parts = []
    for number in range(count):
        z = -height / 2 + (number + 0.5) * pitch
        joint = RoomJoint(kind="hinge", origin=(0, -OUT, z), axis=(1, 0, 0), travel=travel)
        parts.append(
            Part(name=f"slat{number}", mesh=moved(slat, (0, -OUT, z)), surface=skin, joint=joint)
        )
    return parts


def _rising(rng: np.random.Generator, width: float, height: float, skin: Surface) -> list[Part]:
    """Slats that gather under the rail: the lower one hangs, the farther it goes."""
    count = int(height / uniform(rng, 0.06, 0.09))
    pitch = height / count
    slat, stack = _slat(width, pitch * 1.1), 0.012
    share = uniform(rng, 0.85, 1.0)
    parts = []
    for number in range(count):
        z = -height / 2 + (number + 0.5) * pitch
        above = count - 1 - number
        rise = share * above * (pitch - stack)
        joint = RoomJoint(kind="slide", origin=(0, 0, 0), axis=(0, 0, 1), travel=rise)
        y = -OUT - 0.0012 * above
        parts.append(
            Part(name=f"slat{number}", mesh=moved(slat, (0, y, z)), surface=skin, joint=joint)
        )
    return parts


def _upright(rng: np.random.Generator, width: float, height: float, skin: Surface) -> list[Part]:
    count = int(width / uniform(rng, 0.085, 0.12))
    pitch = width / count
    board = bar((-pitch * 0.54, -0.0015, -height / 2), (pitch * 0.54, 0.0015, height / 2), 0.001)
    travel = choose(rng, (-1, 1)) * uniform(rng, 1.75, 1.95)
    parts = []
    for number in range(count):
        x = -width / 2 + (number + 0.5) * pitch
        joint = RoomJoint(kind="hinge", origin=(x, -OUT, 0), axis=(0, 0, 1), travel=travel)
        y = -OUT - 0.004 * (number % 2)
        parts.append(
            Part(name=f"slat{number}", mesh=moved(board, (x, y, 0)), surface=skin, joint=joint)
        )
    return parts


def _roman(rng: np.random.Generator, width: float, height: float, _: Surface) -> list[Part]:
    """Folds of cloth that slide up behind one another."""
    count = int(rng.integers(5, 8))
    pitch = height / count
    fabric = cloth(rng)
    fold = bar((-width / 2, -0.004, -pitch * 0.52), (width / 2, 0.004, pitch * 0.52), 0.003)
    parts = []
    for number in range(count):
        above = count - 1 - number
        z = -height / 2 + (number + 0.5) * pitch
        joint = RoomJoint(
            kind="slide", origin=(0, 0, 0), axis=(0, 0, 1), travel=above * pitch * 1.02
        )
        y = -OUT + 0.006 * above * 0.9 - 0.02
        parts.append(
            Part(name=f"fold{number}", mesh=moved(fold, (0, y, z)), surface=fabric, joint=joint)
        )
    return parts
