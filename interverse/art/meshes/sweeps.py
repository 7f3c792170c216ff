"""Smooth skins: grids of points, profiles turned about z, tubes along a path."""

from __future__ import annotations

import functools
import math
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from interverse.art.meshes.mesh import Floats, Mesh, cross, merge, unit


def grid(points: Floats, *, closed: bool = False, texcoords: Floats | None = None) -> Mesh:
    """Returns the skin over points (row, column, 3): outside where row x column points.

    Args:
        points: where the grid lines cross.
        closed: whether the last column lies on the first, so that normals run through the seam.
        texcoords: (row, column, 2); by default each goes from 0 to 1, columns across.
    """
    rows, columns = points.shape[:2]
    # Differences along the rows and along the columns of a grid, of its own size.
    across = _slope(points.swapaxes(0, 1)).swapaxes(0, 1)
    if closed:
        across[:, 0] = across[:, -1] = (points[:, 1] - points[:, -2]) / 2
    along_row, along_column = _slope(points), across
    normals = unit(cross(along_column, along_row))
    if texcoords is None:
        texcoords = np.empty((rows, columns, 2))
        texcoords[..., 0] = np.linspace(0, 1, columns)
        texcoords[..., 1] = np.linspace(0, 1, rows)[:, None]
    faces = _grid_faces(rows, columns)
    return Mesh(points.reshape(-1, 3), faces, normals.reshape(-1, 3), texcoords.reshape(-1, 2))


def lathe(
    profile: ArrayLike, segments: int = 24, *, crease: float = 0.6, wraps: float = 1.0
) -> Mesh:
    """Returns a profile (point, 2) of radius and height turned about z.

    Going up the profile with the axis on the left, the outside is on the right.

    Args:
        profile: radius and height, from the bottom of the outside round to the inside.
        segments: around.
        crease: bend (radians) from which an edge of the profile stays sharp.
        wraps: how often a texture goes round; along the profile it goes by length.
    """
    line = np.asarray(profile, dtype=float)
    turn = np.linspace(0, 2 * np.pi, segments + 1)
    cos, sin = np.cos(turn), np.sin(turn)
    heights = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    heights *= wraps / max(2 * np.pi * line[:, 0].max(), 1e-9)
    steps = unit(np.diff(line, axis=0))
    normals_2d = np.stack([steps[:, 1], -steps[:, 0]], axis=1)
    index, normal = _creased(normals_2d, crease)
    radius, height = line[index, 0], line[index, 1]
    points = np.stack(
        [
            radius[:, None] * cos,
            radius[:, None] * sin,
            np.broadcast_to(height[:, None], (len(index), segments + 1)),
        ],
        axis=-1,
    )
    normals = np.stack(
        [
            normal[:, :1] * cos,
            normal[:, :1] * sin,
            np.broadcast_to(normal[:, 1:], (len(index), segments + 1)),
        ],
        axis=-1,
    )
    texcoords = np.stack(
        np.broadcast_arrays(turn[None] * wraps / (2 * np.pi), heights[index][:, None]), axis=-1
    )
    faces = _grid_faces(len(index), segments + 1)
    mesh = Mesh(points.reshape(-1, 3), faces, normals.reshape(-1, 3), texcoords.reshape(-1, 2))
    # The mesh without triangles of no area: at the axis, and between doubled points.
    a, b, c = (mesh.vertices[mesh.faces[:, corner]] for corner in range(3))
    area = np.abs(cross(b - a, c - a)).max(axis=1)
    return Mesh(mesh.vertices, mesh.faces[area > 1e-12], mesh.normals, mesh.texcoords)


def sheet(points: Floats, thickness: float, texcoords: Floats | None = None) -> Mesh:
    """Returns a skin (row, column, 3) with a back at a distance and closed edges."""
    front = grid(points, texcoords=texcoords)
    rows, columns = points.shape[:2]
    inner = front.vertices - thickness * front.normals
    back = Mesh(inner, front.faces[:, ::-1], -front.normals, front.texcoords)
    numbers = np.arange(rows * columns).reshape(rows, columns)
    rim = np.concatenate([numbers[0], numbers[1:, -1], numbers[-1, -2::-1], numbers[-2::-1, 0]])
    edge = np.stack([inner[rim], front.vertices[rim]])
    texture = np.stack([front.texcoords[rim], front.texcoords[rim]])
    return merge([front, back, grid(edge, closed=True, texcoords=texture)])


def tube(path: ArrayLike, radius: ArrayLike, segments: int = 10, *, capped: bool = True) -> Mesh:
    """Returns a round bar along a path (point, 3); one radius, or one a point."""
    line = np.asarray(path, dtype=float)
    radii = np.broadcast_to(np.asarray(radius, dtype=float), (len(line),))
    tangents = unit(_slope(line))
    # A vector across each tangent, turning as little as it can from one to the next.
    side = np.eye(3)[np.argmin(np.abs(tangents[0]))]
    sides = np.empty_like(tangents)
    for number, tangent in enumerate(tangents):
        side = side - (side @ tangent) * tangent
        side = side / math.sqrt(side @ side)
        sides[number] = side
    turn = np.linspace(0, 2 * np.pi, segments + 1)
    others = cross(tangents, sides)
    spokes = np.cos(turn)[:, None] * sides[:, None] + np.sin(turn)[:, None] * others[:, None]
    points = line[:, None] + radii[:, None, None] * spokes
    lengths = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    texture = np.stack(
        np.broadcast_arrays(turn[None] / (2 * np.pi), lengths[:, None] / (2 * np.pi * radii.max())),
        axis=-1,
    )
    skin = grid(points, closed=True, texcoords=texture)
    if not capped:
        return skin
    return merge([skin, _cap(points[0, :-1], upward=False), _cap(points[-1, :-1], upward=True)])


def _slope(points: Floats) -> Floats:
    """Returns differences along the first axis: central within, one-sided at the ends."""
    steps = np.diff(points, axis=0)
    return np.concatenate([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])


@functools.lru_cache(maxsize=256)
def _grid_faces(rows: int, columns: int) -> np.ndarray:
    number = np.arange(rows * columns).reshape(rows, columns)
    a, b = number[:-1, :-1].ravel(), number[:-1, 1:].ravel()
    c, d = number[1:, 1:].ravel(), number[1:, :-1].ravel()
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


def _creased(normals: Floats, crease: float) -> tuple[np.ndarray, Floats]:
    """Returns the profile's points, the sharp ones twice, and a normal for each."""
    index, found = [0], [normals[0]]
    for number, (before, after) in enumerate(pairwise(normals), start=1):
        if before @ after < np.cos(crease):
            index += [number, number]
            found += [before, after]
        else:
            index.append(number)
            found.append(unit(before + after))
    return np.array([*index, len(normals)]), np.array([*found, normals[-1]])


def _cap(ring: Floats, *, upward: bool) -> Mesh:
    """Returns a flat fan over a ring of points, lit along its mean normal."""
    centre = ring.mean(axis=0)
    around = np.roll(ring, -1, axis=0)
    normal = unit(cross(ring - centre, around - centre).sum(axis=0)) * (1 if upward else -1)
    vertices = np.concatenate([ring, centre[None]])
    count = len(ring)
    a, b = np.arange(count), (np.arange(count) + 1) % count
    first, second = (a, b) if upward else (b, a)
    faces = np.stack([first, second, np.full(count, count)], axis=1)
    flat = vertices[:, np.argsort(np.abs(normal))[:2]]
    return Mesh(vertices, faces, np.tile(normal, (count + 1, 1)), flat)
