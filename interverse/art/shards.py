"""Meshes broken into pieces: scattered about a stump that still stands, or moved apart."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Floats, Mesh, merge, moved, rotated, rotation, unit

_GOLDEN = 2.4  # radians: turns by it space places round a centre evenly


def shards(
    mesh: Mesh,
    rng: np.random.Generator,
    *,
    pieces: int = 9,
    spread: float = 0.6,
    stump: float = 0.0,
) -> Mesh:
    """Returns the triangles of a thin-walled mesh in pieces that lie on z = 0 about its centre.

    Args:
        mesh: what is broken; a triangle goes to the piece whose seed is nearest.
        rng: draws the seeds and how the pieces fall.
        pieces: at most so many, for a seed may be nearest to nothing.
        spread: how far pieces lie from the centre, in parts of half the mesh's width.
        stump: share of the height, about, below which the mesh still stands in one piece.
    """
    hearts = _hearts(mesh)
    low, high = mesh.bounds
    middle = np.append((low[:2] + high[:2]) / 2, low[2])
    turn = np.arctan2(hearts[:, 1] - middle[1], hearts[:, 0] - middle[0])
    jag = 1 + 0.35 * np.sin(2 * turn + rng.uniform(0, 6)) + 0.2 * np.sin(5 * turn)
    stands = hearts[:, 2] - low[2] < stump * jag * (high[2] - low[2])
    found = [_piece(mesh, mesh.faces[stands])] if stands.any() else []
    reach = (high - low)[:2].max() / 2
    start = rng.uniform(0, 2 * np.pi)
    for number, faces in enumerate(_groups(mesh.faces[~stands], hearts[~stands], rng, pieces)):
        turn = start + _GOLDEN * number + rng.uniform(-0.3, 0.3)
        share = np.sqrt((number + 0.5) / pieces)
        away = reach * (spread * 1.3 * share + (0.55 if stump > 0 else 0.0))
        place = middle + away * np.array([np.cos(turn), np.sin(turn), 0.0])
        found.append(_lying(_piece(mesh, faces), place, rng))
    return merge(found)


def parted(mesh: Mesh, rng: np.random.Generator, *, pieces: int = 7, spread: float = 0.3) -> Mesh:
    """Returns the triangles of a flat mesh in pieces, each pushed outwards and a little turned.

    Args:
        mesh: what is broken.
        rng: draws the seeds of the pieces and how they turn.
        pieces: at most so many.
        spread: how far a piece goes, in parts of its distance from the centre.
    """
    low, high = mesh.bounds
    middle = np.append((low[:2] + high[:2]) / 2, low[2])
    found = []
    for faces in _groups(mesh.faces, _hearts(mesh), rng, pieces):
        piece = _piece(mesh, faces)
        centre = piece.vertices.mean(axis=0)
        tilt = rotated(piece, (*rng.normal(size=2), 0.0), rng.uniform(0.05, 0.2), about=centre)
        turned = rotated(tilt, (0, 0, 1), rng.uniform(-0.5, 0.5), about=centre)
        away = (centre - middle) * (1, 1, 0) * spread * rng.uniform(0.6, 1.4)
        away[2] = low[2] - turned.vertices[:, 2].min()
        found.append(moved(turned, away))
    return merge(found)


def _groups(
    faces: np.ndarray, hearts: Floats, rng: np.random.Generator, pieces: int
) -> list[np.ndarray]:
    """Returns the faces in groups, each about a seed drawn among their hearts."""
    pieces = min(pieces, len(faces))
    seeds = hearts[rng.choice(len(faces), size=pieces, replace=False)]
    owner = np.argmin(((hearts[:, None] - seeds) ** 2).sum(axis=2), axis=1)
    groups = [faces[owner == number] for number in range(pieces)]
    return [group for group in groups if len(group) > 0]


def _hearts(mesh: Mesh) -> Floats:
    """Returns the middle of each triangle's longest edge: the two halves of a quad share it."""
    corners = mesh.vertices[mesh.faces]
    after = np.roll(corners, -1, axis=1)
    longest = np.argmax(((after - corners) ** 2).sum(axis=2), axis=1)
    rows = np.arange(len(corners))
    return (corners[rows, longest] + after[rows, longest]) / 2


def _piece(mesh: Mesh, faces: np.ndarray) -> Mesh:
    used, numbers = np.unique(faces, return_inverse=True)
    return Mesh(
        mesh.vertices[used],
        numbers.reshape(-1, 3),
        mesh.normals[used],
        mesh.texcoords[used],
    )


def _lying(piece: Mesh, place: Floats, rng: np.random.Generator) -> Mesh:
    """Returns the piece on its flattest side, turned at random, its lowest point on the place."""
    centred = piece.vertices - piece.vertices.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    if np.linalg.det(axes) < 0:
        axes = -axes
    tilt = rotation(unit(rng.normal(size=3)), rng.uniform(0.0, 0.35))
    turn = tilt @ rotation((0, 0, 1), rng.uniform(0, 2 * np.pi)) @ axes
    vertices = centred @ turn.T
    vertices[:, 2] -= vertices[:, 2].min()
    return Mesh(vertices + place, piece.faces, piece.normals @ turn.T, piece.texcoords)
