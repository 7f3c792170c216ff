"""The room itself: floor, walls with their openings, skirting, ceiling.

Walls and floor are cut into squares, for the light is worked out at the corners of triangles.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from interverse.art.meshes import Mesh, merge, moved, rotated, tiled
from interverse.art.rooms.item import Rgb, Surface
from interverse.art.rooms.prop import FABRICS, WOODS, bar, painted_surface, pick, textured
from interverse.worlds.rooms.placing import QUARTER, wall_length, wall_pose

Rng = np.random.Generator
Size = tuple[float, float, float]
_BEHIND = 0.2  # how far behind the walls the backing is, deeper than a window's niche, m
_SQUARE = 0.4  # side of the squares that walls and floors are cut into, m


class Opening(NamedTuple):
    """A hole in a wall: which wall, its middle along it, its width, its lower and upper edge."""

    wall: int
    along: float
    width: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a room is covered with."""

    wall: Surface
    accent: Surface
    """Of wall 0."""
    floor: Surface
    ceiling: Surface
    trim: Surface


_WALLS: tuple[Rgb, ...] = (
    (0.88, 0.86, 0.81),
    (0.80, 0.84, 0.82),
    (0.84, 0.78, 0.70),
    (0.72, 0.78, 0.83),
    (0.87, 0.82, 0.84),
    (0.76, 0.80, 0.70),
)


def draw_style(rng: Rng, *, wet: bool) -> Style:
    """Returns the covers of a room; `wet` rooms have tiles."""
    colour = pick(rng, _WALLS)
    wall = Surface(texture=textured(rng, "plaster", colour, contrast=0.9), specular=0.02)
    accent = wall
    if wet:
        tile = textured(
            rng,
            "tiles",
            pick(rng, ((0.9, 0.9, 0.9), (0.65, 0.75, 0.76), (0.8, 0.74, 0.64))),
            contrast=0.9,
        )
        accent = Surface(texture=tile, specular=0.4, shininess=0.7)
    elif rng.random() < 0.5:
        kind = ("wallpaper", "wallpaper", "bricks")[int(rng.integers(3))]
        tone = (
            pick(rng, FABRICS)
            if kind == "wallpaper"
            else pick(rng, ((0.68, 0.4, 0.3), (0.8, 0.75, 0.7)))
        )
        accent = Surface(texture=textured(rng, kind, tone, contrast=0.8), specular=0.02)
    return Style(
        wall=wall,
        accent=accent,
        floor=_floor(rng, wet=wet),
        ceiling=Surface(
            texture=textured(rng, "plaster", (0.93, 0.92, 0.9), contrast=0.95), specular=0.0
        ),
        trim=painted_surface(pick(rng, ((0.93, 0.92, 0.9), (0.93, 0.92, 0.9), WOODS[0], WOODS[3]))),
    )


def _floor(rng: Rng, *, wet: bool) -> Surface:
    if wet or rng.random() < 0.25:
        colour = pick(
            rng, ((0.78, 0.76, 0.72), (0.55, 0.53, 0.5), (0.68, 0.55, 0.45), (0.45, 0.5, 0.52))
        )
        return Surface(
            texture=textured(rng, "tiles", colour, contrast=0.8), specular=0.35, shininess=0.6
        )
    if rng.random() < 0.2:
        return Surface(
            texture=textured(rng, "carpet", pick(rng, FABRICS), contrast=0.8), specular=0.0
        )
    return Surface(
        texture=textured(rng, "planks", pick(rng, WOODS[:5]), contrast=0.6),
        specular=0.2,
        shininess=0.4,
    )


def shell(
    size: Size, style: Style, openings: tuple[Opening, ...]
) -> list[tuple[str, Mesh, Surface]]:
    """Returns the named parts of the shell: floor, ceiling, walls, skirting."""
    width, depth, height = size
    floor = panel(_cuts(-width / 2, width / 2), _cuts(-depth / 2, depth / 2))
    ceiling = moved(rotated(floor, (1, 0, 0), np.pi), (0, 0, height))
    parts = [
        ("floor", tiled(floor, 0.5), style.floor),
        ("ceiling", tiled(ceiling, 0.5), style.ceiling),
    ]
    plain = [_wall(size, wall, openings) for wall in (1, 2, 3)]
    parts.append(("walls", merge([tiled(mesh, 0.5) for mesh in plain]), style.wall))
    parts.append(("accent", tiled(_wall(size, 0, openings), 0.5), style.accent))
    parts.append(("skirting", merge(_skirting(size, openings)), style.trim))
    parts.append(("backing", _backing(size), painted_surface((0.25, 0.24, 0.23), gloss=0.0)))
    return parts


def _backing(size: Size) -> Mesh:
    """Returns a box around it all, seen from inside, so that no seam shows the void."""
    larger = size[0] + 2 * _BEHIND, size[1] + 2 * _BEHIND, size[2] + 2 * _BEHIND
    x, y = larger[0] / 2, larger[1] / 2
    floor = panel(np.array([-x, x]), np.array([-y, y]))
    lid = moved(rotated(floor, (1, 0, 0), np.pi), (0, 0, larger[2]))
    walls = [_wall(larger, wall, ()) for wall in range(4)]
    return moved(merge([floor, lid, *walls]), (0, 0, -_BEHIND))


def _cuts(low: float, high: float, edges: tuple[float, ...] = ()) -> np.ndarray:
    marks = sorted({low, high, *edges})
    lines = [
        np.linspace(a, b, max(2, int(np.ceil((b - a) / _SQUARE)) + 1))
        for a, b in itertools.pairwise(marks)
    ]
    return np.unique(np.concatenate(lines).round(6))


def panel(xs: np.ndarray, ys: np.ndarray, holes: tuple[tuple[float, ...], ...] = ()) -> Mesh:
    """Returns a flat sheet in the plane z = 0, seen from above, without the squares in holes."""
    x, y = np.meshgrid(xs, ys)
    points = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    number = np.arange(x.size).reshape(x.shape)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    middle_x, middle_y = (xs[:-1] + xs[1:]) / 2, (ys[:-1] + ys[1:]) / 2
    keep = np.ones(a.shape, dtype=bool)
    for low_x, high_x, low_y, high_y in holes:
        across = (middle_x > low_x) & (middle_x < high_x)
        keep &= ~(((middle_y > low_y) & (middle_y < high_y))[:, None] & across[None, :])
    quads = np.stack([a, b, c, d], axis=-1)[keep]
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return Mesh(points, faces, np.tile([0.0, 0.0, 1.0], (len(points), 1)), points[:, :2].copy())


def _wall(size: Size, wall: int, openings: tuple[Opening, ...]) -> Mesh:
    mine = [o for o in openings if o.wall == wall]
    half = wall_length(size, wall) / 2
    holes = tuple((o.along - o.width / 2, o.along + o.width / 2, o.low, o.high) for o in mine)
    xs = _cuts(-half, half, tuple(edge for h in holes for edge in h[:2]))
    ys = _cuts(0.0, size[2], tuple(edge for h in holes for edge in h[2:]))
    upright = rotated(panel(xs, ys, holes), (1, 0, 0), QUARTER)  # faces -y
    return at_wall(upright, size, wall, 0.0, 0.0)


def at_wall(mesh: Mesh, size: Size, wall: int, along: float, height: float) -> Mesh:
    """Returns a mesh whose back is y = 0 at a wall of a room."""
    pose = wall_pose(size, wall, along, back=0.0, height=height)
    return moved(rotated(mesh, (0, 0, 1), pose.yaw), pose.position)


def _skirting(size: Size, openings: tuple[Opening, ...]) -> list[Mesh]:
    found = []
    for wall in range(4):
        half = wall_length(size, wall) / 2
        doors = sorted(
            (o.along - o.width / 2, o.along + o.width / 2)
            for o in openings
            if o.wall == wall and o.low < 0.1
        )
        marks = [-half, *(edge for door in doors for edge in door), half]
        for first, last in zip(marks[::2], marks[1::2], strict=True):
            board = bar((first, -0.018, 0.0), (last, 0.0, 0.09), 0.005)
            found.append(at_wall(board, size, wall, 0.0, 0.0))
    return found
