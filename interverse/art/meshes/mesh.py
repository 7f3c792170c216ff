"""The mesh type, and what moves, joins and paints meshes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError, explain

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

    def __post_init__(self) -> None:
        count = len(self.vertices)
        shapes = (self.vertices.shape, self.normals.shape, self.texcoords.shape)
        if shapes != ((count, 3), (count, 3), (count, 2)):
            raise InvalidValueError(
                explain(
                    f"a mesh has vertices, normals and texcoords of shapes {shapes}",
                    allowed="(V, 3), (V, 3), (V, 2)",
                )
            )

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
