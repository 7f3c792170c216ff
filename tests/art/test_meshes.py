"""Meshes: closed, facing outwards, as large as SciPy says, with normals and texture coordinates."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from interverse.art import meshes
from interverse.art.meshes import Mesh
from interverse.art.rooms.objects.vessels import parted, shards

RNG_SEED = 5
CUP = [(0, 0), (0.1, 0), (0.1, 0.2), (0.09, 0.2), (0.09, 0.01), (0, 0.01)]
FLAT = np.stack([*np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 2, 6)), np.zeros((6, 5))], -1)
ARC = [(np.cos(t), 0.0, np.sin(t)) for t in np.linspace(0, np.pi, 12)]
CONVEX = {
    "bevelled box": meshes.bevelled_box((1, 2, 3), 0.05, (1, -1, 4)),
    "soft box": meshes.soft_box((1, 2, 3), 0.2),
    "cylinder": meshes.lathe([(0, 0), (0.5, 0), (0.5, 2), (0, 2)], 20),
    "prism": meshes.extrude(meshes.rounded_rectangle(1, 2, 0.2), 0.3),
    "sharp prism": meshes.extrude(np.array([(0, 0), (1, 0), (1, 1), (0, 1.0)]), 0.3),
    "straight tube": meshes.tube([(0, 0, 0), (0, 1, 1)], 0.1),
    "soft square": meshes.extrude(meshes.superellipse(2, 1, 4), 0.5),
    "scaled": meshes.scaled(meshes.soft_box((1, 1, 1), 0.2), (1, 2, 0.5)),
    "mirrored": meshes.scaled(meshes.bevelled_box((1, 2, 3), 0.1), (-1, 1, 1)),
    "turned": meshes.rotated(meshes.bevelled_box((1, 2, 3), 0.1), (1, 1, 0), 0.7),
}
OTHERS = {
    "cup": meshes.lathe(CUP),
    "sheet": meshes.sheet(FLAT, 0.01),
    "bent tube": meshes.tube(ARC, np.linspace(0.1, 0.2, 12)),
    "frame": meshes.frame((1, 2), 0.1, 0.05),
    "shards": shards(meshes.lathe(CUP), np.random.default_rng(RNG_SEED)),
}
ALL = CONVEX | OTHERS
CLOSED = {name: mesh for name, mesh in ALL.items() if name != "shards"}


def volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, corner]] for corner in range(3))
    return float(np.einsum("ni,ni->", a, np.cross(b, c)) / 6)


def face_normals(mesh: Mesh) -> np.ndarray:
    a, b, c = (mesh.vertices[mesh.faces[:, corner]] for corner in range(3))
    return np.cross(b - a, c - a)


@pytest.mark.parametrize("name", CONVEX)
def test_volume_of_convex_solids_is_that_of_their_hull(name):
    mesh = CONVEX[name]
    round_corners = name in ("soft box", "scaled")  # where a quad is not flat, its fold matters
    tolerance = 2e-4 if round_corners else 1e-9
    assert volume(mesh) == pytest.approx(ConvexHull(mesh.vertices).volume, rel=tolerance)


@pytest.mark.parametrize("name", CLOSED)
def test_every_edge_is_met_from_both_sides(name):
    """Each edge of a closed skin is run through once in each direction."""
    mesh = CLOSED[name]
    places, corner = np.unique(np.round(mesh.vertices, 7), axis=0, return_inverse=True)
    faces = corner.reshape(-1)[mesh.faces]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]  # triangles that end in a point
    there = np.bincount(edges[:, 0] * len(places) + edges[:, 1], minlength=len(places) ** 2)
    back = np.bincount(edges[:, 1] * len(places) + edges[:, 0], minlength=len(places) ** 2)
    np.testing.assert_array_equal(there, back)


@pytest.mark.parametrize("name", ALL)
def test_normals_are_unit_and_look_out_of_their_faces(name):
    mesh = ALL[name]
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-9)
    facing = (face_normals(mesh) * mesh.normals[mesh.faces].mean(axis=1)).sum(axis=1)
    assert (facing > -1e-12).all()
    assert mesh.faces.min() == 0
    assert mesh.faces.max() < len(mesh.vertices)
    assert np.isfinite(mesh.texcoords).all()


def test_a_lathe_of_many_segments_is_a_cylinder():
    mesh = meshes.lathe([(0, 0), (0.5, 0), (0.5, 2), (0, 2)], 400)
    assert volume(mesh) == pytest.approx(np.pi * 0.25 * 2, rel=1e-4)


def test_outlines_are_what_their_names_say():
    x, y = meshes.superellipse(2, 1, 4, 40).T
    np.testing.assert_allclose((x / 2) ** 4 + y**4, 1)
    corners = meshes.rounded_rectangle(2, 1, 0.25, corner=30)
    np.testing.assert_allclose(np.abs(corners).max(axis=0), (1, 0.5))
    area = ConvexHull(corners).volume
    assert area == pytest.approx(2 - (4 - np.pi) * 0.25**2, rel=1e-3)


def test_a_soft_box_of_full_radius_is_a_ball():
    mesh = meshes.soft_box((2, 2, 2), 1.0, 24)
    assert volume(mesh) == pytest.approx(4 / 3 * np.pi, rel=0.01)
    np.testing.assert_allclose(mesh.normals, mesh.vertices, atol=2e-3)


def test_a_bevelled_box_reaches_its_size_and_no_farther():
    low, high = meshes.bevelled_box((1, 2, 3), 0.05, (1, 0, 0)).bounds
    np.testing.assert_allclose([low, high], [(0.5, -1, -1.5), (1.5, 1, 1.5)])


def test_moving_and_turning_keep_the_shape():
    box = meshes.bevelled_box((1, 2, 3), 0.1)
    turned = meshes.rotated(meshes.moved(box, (1, 2, 3)), (0, 0, 1), np.pi / 2, about=(1, 2, 3))
    np.testing.assert_allclose(turned.bounds[1] - turned.bounds[0], (2, 1, 3), atol=1e-12)
    assert volume(turned) == pytest.approx(volume(box))


def test_merging_keeps_every_triangle():
    parts = [OTHERS["cup"], OTHERS["frame"]]
    whole = meshes.merge(parts)
    assert len(whole.faces) == sum(len(part.faces) for part in parts)
    np.testing.assert_array_equal(
        np.concatenate([part.vertices[part.faces] for part in parts]), whole.vertices[whole.faces]
    )


def test_a_painted_mesh_shows_the_whole_picture_once():
    painted = meshes.painted(OTHERS["frame"], 0, 2)
    np.testing.assert_allclose(painted.texcoords.min(axis=0), 0)
    np.testing.assert_allclose(painted.texcoords.max(axis=0), 1)
    doubled = meshes.tiled(painted, 2.0, (1, 0))
    np.testing.assert_allclose(doubled.texcoords, painted.texcoords * 2 + (1, 0))


def test_shards_are_all_of_the_mesh_in_pieces_on_the_table():
    cup = OTHERS["cup"]
    broken = shards(cup, np.random.default_rng(1), pieces=7, spread=0.6)
    areas = [np.sort(np.linalg.norm(face_normals(mesh), axis=1)) for mesh in (cup, broken)]
    np.testing.assert_allclose(*areas, atol=1e-12)
    assert broken.vertices[:, 2].min() == pytest.approx(0)
    assert broken.vertices[:, 2].max() < 0.2
    again = shards(cup, np.random.default_rng(1), pieces=7, spread=0.6)
    np.testing.assert_array_equal(broken.vertices, again.vertices)


def test_a_stump_stays_where_it_stood():
    cup = OTHERS["cup"]
    broken = shards(cup, np.random.default_rng(1), stump=0.5)
    low = cup.vertices[cup.faces][:, :, 2].max(axis=1) < 0.02  # the floor of the cup
    corners = {tuple(row) for row in np.round(cup.vertices[cup.faces][low].reshape(-1, 9), 9)}
    kept = {tuple(row) for row in np.round(broken.vertices[broken.faces].reshape(-1, 9), 9)}
    assert corners
    assert corners <= kept
    assert broken.vertices[:, 2].min() == pytest.approx(0)


def test_parted_pieces_move_outwards_and_rest_on_the_table():
    plate = meshes.lathe([(0, 0), (0.1, 0), (0.12, 0.01), (0.12, 0.014), (0, 0.005)], 24)
    broken = parted(plate, np.random.default_rng(2), pieces=6, spread=0.3)
    areas = [np.sort(np.linalg.norm(face_normals(mesh), axis=1)) for mesh in (plate, broken)]
    np.testing.assert_allclose(*areas, atol=1e-12)
    assert broken.vertices[:, 2].min() == pytest.approx(0)
    assert (broken.bounds[1] - broken.bounds[0])[:2].max() > 0.25
