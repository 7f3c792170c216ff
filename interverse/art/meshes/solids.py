"""Solids with edges that catch the light: boxes, prisms, frames."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import ArrayLike

from interverse.art.meshes.mesh import Floats, Mesh, merge, unit
from interverse.art.meshes.sweeps import grid


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
