"""Triangle meshes with normals and texture coordinates, made from a few numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Triangles that turn counter-clockwise seen from outside; one normal and texcoord a vertex.

    Corners that need two normals or two texture coordinates are two vertices.
    """

    vertices: Floats  # (vertex, 3), metres
    faces: NDArray[np.int64]  # (face, 3)
    normals: Floats  # (vertex, 3), unit length
    texcoords: Floats  # (vertex, 2); one texture tile is one unit

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Returns the lowest and the highest corner."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)


def merge(meshes: Iterable[Mesh]) -> Mesh:
    """Returns one mesh of all the triangles."""
    parts = list(meshes)
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    return Mesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.texcoords for part in parts]),
    )


def moved(mesh: Mesh, by: ArrayLike) -> Mesh:
    """Returns the mesh shifted by (x, y, z)."""
    return Mesh(mesh.vertices + np.asarray(by), mesh.faces, mesh.normals, mesh.texcoords)


def lifted(mesh: Mesh, by: float) -> Mesh:
    """Returns the mesh shifted upwards."""
    return moved(mesh, (0.0, 0.0, by))


def rotated(mesh: Mesh, axis: ArrayLike, angle: float, about: ArrayLike = (0.0, 0.0, 0.0)) -> Mesh:
    """Returns the mesh turned by an angle (radians) about an axis through a point."""
    turn, point = rotation(axis, angle), np.asarray(about)
    vertices = (mesh.vertices - point) @ turn.T + point
    return Mesh(vertices, mesh.faces, mesh.normals @ turn.T, mesh.texcoords)


def scaled(mesh: Mesh, by: ArrayLike) -> Mesh:
    """Returns the mesh stretched by (x, y, z), or by one number; a negative product turns faces."""
    factors = np.broadcast_to(np.asarray(by, dtype=float), (3,))
    faces = mesh.faces if factors.prod() > 0 else mesh.faces[:, ::-1]
    return Mesh(mesh.vertices * factors, faces, unit(mesh.normals / factors), mesh.texcoords)


def tiled(mesh: Mesh, by: float | Sequence[float], shift: ArrayLike = (0.0, 0.0)) -> Mesh:
    """Returns the mesh with its texture coordinates multiplied, then shifted."""
    texcoords = mesh.texcoords * np.asarray(by) + np.asarray(shift)
    return Mesh(mesh.vertices, mesh.faces, mesh.normals, texcoords)


def painted(mesh: Mesh, across: int, up: int) -> Mesh:
    """Returns the mesh with one picture laid flat over it, seen along the third axis.

    Its columns run along the axis `across` (0, 1, 2), its rows along `up`, from the bottom.
    """
    low, high = mesh.bounds
    axes = [across, up]
    texcoords = (mesh.vertices[:, axes] - low[axes]) / np.maximum(high[axes] - low[axes], 1e-9)
    return Mesh(mesh.vertices, mesh.faces, mesh.normals, texcoords)


def rotation(axis: ArrayLike, angle: float) -> Floats:
    """Returns the matrix (3, 3) that turns by an angle (radians) about an axis."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def cross(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Returns cross products along the last axis; several times faster than NumPy's on few."""
    a, b, c = first[..., 0], first[..., 1], first[..., 2]
    x, y, z = second[..., 0], second[..., 1], second[..., 2]
    return np.stack([b * z - c * y, c * x - a * z, a * y - b * x], axis=-1)


def unit(vectors: NDArray[Any]) -> Floats:
    """Returns vectors of length one along the last axis; null vectors stay null."""
    lengths = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
    return vectors / np.maximum(lengths, 1e-12)[..., None]


# ------------------------------------------------------------------------------------------ skins


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


# ----------------------------------------------------------------------------------------- solids


def bevelled_box(size: ArrayLike, bevel: float = 0.004, centre: ArrayLike = (0, 0, 0)) -> Mesh:
    """Returns a box of full sizes (x, y, z) with bevelled edges that shade as if they were round.

    Texture coordinates are metres on each side, so one texture tile is one metre: see `tiled`.
    """
    signs, axes, flat, faces = _box_template()
    half = np.asarray(size, dtype=float) / 2
    bevel = min(bevel, 0.45 * 2 * half.min())
    outward = np.eye(3)[axes]
    vertices = signs * (half - bevel * (1 - outward))
    rows = np.arange(len(flat))
    return Mesh(
        vertices + np.asarray(centre, dtype=float),
        faces,
        signs * outward,
        np.stack([vertices[rows, flat[:, 0]], vertices[rows, flat[:, 1]]], axis=1) + half[flat],
    )


@functools.cache
def _box_template() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns for each vertex its octant, the face it lies on and its texture's two axes; faces."""
    signs: list[list[int]] = []
    axes: list[int] = []
    planes: list[int] = []
    faces: list[list[int]] = []

    def polygon(corners: list[tuple[list[int], int]], plane: int) -> None:
        start = len(signs)
        points = np.array(
            [np.array(sign) * (1.0 + 0.5 * np.eye(3)[axis]) for sign, axis in corners]
        )
        inside_out = (
            np.cross(points[1] - points[0], points[2] - points[0]) @ points.mean(axis=0) < 0
        )
        for sign, axis in reversed(corners) if inside_out else corners:
            signs.append(sign)
            axes.append(axis)
            planes.append(plane)
        faces.extend([start, start + k, start + k + 1] for k in range(1, len(corners) - 1))

    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1, 1):
            loop = []
            for su, sv in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                sign = [0, 0, 0]
                sign[axis], sign[u], sign[v] = side, su, sv
                loop.append((sign, axis))
            polygon(loop, axis)
        for su, sv in ((-1, -1), (1, -1), (1, 1), (-1, 1)):  # the four edges along `axis`
            low, high = [0, 0, 0], [0, 0, 0]
            low[axis], low[u], low[v] = -1, su, sv
            high[axis], high[u], high[v] = 1, su, sv
            polygon([(low, u), (low, v), (high, v), (high, u)], u)
    for sx in (-1, 1):
        for sy in (-1, 1):
            for sz in (-1, 1):
                polygon([([sx, sy, sz], axis) for axis in range(3)], 2)
    texture_axes = np.array([[1, 2], [0, 2], [0, 1]])[planes]
    return np.array(signs, dtype=float), np.array(axes), texture_axes, np.array(faces)


def soft_box(size: ArrayLike, radius: float, steps: int = 3, centre: ArrayLike = (0, 0, 0)) -> Mesh:
    """Returns a box with truly round edges of a radius: cushions, casings, keys."""
    half = np.asarray(size, dtype=float) / 2
    radius = min(radius, half.min() * 0.999)
    directions, octants, flat, faces = _soft_template(steps)
    vertices = octants * (half - radius) + radius * directions
    rows = np.arange(len(vertices))[:, None]
    texcoords = vertices[rows, flat] + half[flat]
    return Mesh(vertices + np.asarray(centre, dtype=float), faces, directions, texcoords)


@functools.cache
def _soft_template(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns for each vertex its normal, its octant and its texture's two axes; faces."""
    turn = np.tan(np.linspace(0, np.pi / 4, steps + 1))
    line = np.concatenate([-turn[::-1], turn])  # the middle pair spans the flat of a face
    core = np.sign(np.concatenate([-np.ones(steps + 1), np.ones(steps + 1)]))
    parts, octants, flats = [], [], []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1.0, 1.0):
            cube = np.empty((len(line), len(line), 3))
            inner = np.empty_like(cube)
            cube[..., axis] = inner[..., axis] = side
            cube[..., u], cube[..., v] = line[None] * side, line[:, None]
            inner[..., u], inner[..., v] = core[None] * side, core[:, None]
            parts.append(grid(cube + inner))
            octants.append(inner.reshape(-1, 3))
            flats.append(np.tile([[1, 2], [0, 2], [0, 1]][axis], (len(line) ** 2, 1)))
    whole, corners = merge(parts), np.concatenate(octants)
    return unit(whole.vertices - corners), corners, np.concatenate(flats), whole.faces


def extrude(outline: Floats, height: float, *, bevel: float = 0.003) -> Mesh:
    """Returns a prism over an outline (star-shaped about its mean) from z = 0, with bevelled rims.

    Texture coordinates are metres: x and y on the caps, along the outline and up on the side.
    """
    bevel = min(bevel, 0.45 * height)
    ring, normal, inward = _creased_ring(outline)
    inset = ring + bevel * inward
    along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(ring, axis=0), axis=1))])
    flat = np.zeros(len(ring))
    up = np.concatenate([normal, flat[:, None]], axis=1)
    levels = [
        (inset, 0.0, -1.0),
        (ring, bevel, 0.0),
        (ring, height - bevel, 0.0),
        (inset, height, 1.0),
    ]
    points = np.stack([np.column_stack([line, flat + z]) for line, z, _ in levels])
    normals = np.stack(
        [up if not tilt else np.tile([0.0, 0.0, tilt], (len(ring), 1)) for *_, tilt in levels]
    )
    texture = np.stack([np.column_stack([along, flat + z]) for _, z, _ in levels])
    side = grid(points, texcoords=texture)
    side = Mesh(side.vertices, side.faces, normals.reshape(-1, 3), side.texcoords)
    return merge([side, _flat_cap(inset, 0.0, up=False), _flat_cap(inset, height, up=True)])


def frame(outer: ArrayLike, border: float, depth: float, bevel: float = 0.004) -> Mesh:
    """Returns a rectangular frame in the x-z plane about the origin, from y = -depth to 0."""
    width, height = np.asarray(outer, dtype=float)
    y = -depth / 2
    x, z = (width - border) / 2, (height - border) / 2
    return merge(
        [
            bevelled_box((border, depth, height), bevel, (-x, y, 0)),
            bevelled_box((border, depth, height), bevel, (x, y, 0)),
            bevelled_box((width - 2 * border, depth, border), bevel, (0, y, -z)),
            bevelled_box((width - 2 * border, depth, border), bevel, (0, y, z)),
        ]
    )


def _creased_ring(outline: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns the closed outline with sharp corners doubled, normals, and ways inward by one."""
    after = unit(np.roll(outline, -1, axis=0) - outline)
    before = np.roll(after, 1, axis=0)
    out_after = np.stack([after[:, 1], -after[:, 0]], axis=1)
    out_before = np.stack([before[:, 1], -before[:, 0]], axis=1)
    mean = unit(out_after + out_before)
    mitre = -mean / np.maximum((mean * out_after).sum(axis=1, keepdims=True), 0.3)
    sharp = (out_after * out_before).sum(axis=1) < np.cos(0.6)
    index = np.repeat(np.arange(len(outline)), 1 + sharp)
    index = np.append(index[1:] if sharp[0] else index, 0)  # a doubled first corner ends the ring
    normals = np.where(sharp[index][:, None], out_after[index], mean[index])
    ends = np.append(index[1:] == index[:-1], False) & sharp[index]  # the first of a doubled corner
    ends[-1] = sharp[0]
    normals[ends] = out_before[index[ends]]
    return outline[index], normals, mitre[index]


def _flat_cap(ring: Floats, z: float, *, up: bool) -> Mesh:
    centre = ring.mean(axis=0)
    flat = np.concatenate([ring, centre[None]])
    vertices = np.column_stack([flat, np.full(len(flat), z)])
    count = len(ring)
    a, b = np.arange(count - 1), np.arange(1, count)
    first, second = (a, b) if up else (b, a)
    faces = np.stack([first, second, np.full(count - 1, count)], axis=1)
    normals = np.tile([0.0, 0.0, 1.0 if up else -1.0], (count + 1, 1))
    return Mesh(vertices, faces, normals, flat - flat.min(axis=0))


def superellipse(a: float, b: float, power: float, points: int = 24) -> Floats:
    """Returns |x/a|^power + |y/b|^power = 1: 2 is an ellipse, 4 a box with soft corners."""
    turn = np.linspace(0, 2 * np.pi, points, endpoint=False)
    cos, sin = np.cos(turn), np.sin(turn)
    radius = (np.abs(cos) ** power + np.abs(sin) ** power) ** (-1 / power)
    return np.stack([a * radius * cos, b * radius * sin], axis=1)


def rounded_rectangle(width: float, height: float, radius: float, corner: int = 4) -> Floats:
    """Returns a rectangle about the origin with `corner` + 1 points on each rounded corner."""
    radius = min(radius, width / 2 - 1e-6, height / 2 - 1e-6)
    turn = np.linspace(0, np.pi / 2, corner + 1)
    arc = radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    x, y = width / 2 - radius, height / 2 - radius
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    corners, points = [(x, y), (-x, y), (-x, -y), (x, -y)], []
    for centre in corners:
        points.append(arc + centre)
        arc = arc @ quarter.T
    return np.concatenate(points)
