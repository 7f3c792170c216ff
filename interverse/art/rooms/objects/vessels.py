"""Bowls, mugs, plates, pans, pots and vases: profiles turned about z, that get dirty or break."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from interverse.art.meshes import (
    Floats,
    Mesh,
    lathe,
    merge,
    moved,
    painted,
    rotated,
    rotation,
    scaled,
    soft_box,
    tube,
    unit,
)
from interverse.art.rooms.item import Drawn, Part, Rgb, Surface
from interverse.art.rooms.kit import Draw, Tinted, board, flat, soiled, tinted

FOODS: tuple[tuple[Rgb, ...], ...] = (
    ((0.62, 0.13, 0.06), (0.85, 0.55, 0.15), (0.25, 0.42, 0.10)),
    ((0.36, 0.22, 0.09), (0.72, 0.52, 0.25), (0.55, 0.12, 0.08)),
    ((0.30, 0.38, 0.10), (0.80, 0.72, 0.45), (0.45, 0.25, 0.10)),
)
DRINKS: tuple[Rgb, ...] = ((0.16, 0.08, 0.04), (0.5, 0.32, 0.18), (0.55, 0.3, 0.06))
GREENS: tuple[Rgb, ...] = ((0.18, 0.38, 0.12), (0.28, 0.45, 0.18), (0.15, 0.30, 0.16))
BLACK = flat((0.08, 0.08, 0.09), 0.4, 0.5)
UP, QUARTER = (0, 0, 1), np.pi / 2
_GOLDEN = 2.4  # radians: turns by it space places round a centre evenly


def washable(name: str, mesh: Mesh, surface: Surface) -> Part:
    """Returns a part that shows dirt."""
    return Part(name, mesh, surface, alternate={"dirty": soiled(surface)})


def vessel(whole: Mesh, broken: Mesh, glaze: Surface) -> list[Part]:
    """Returns a vessel and its shards, each with a dirty look."""
    return [
        replace(washable("whole", whole, glaze), hidden_when="broken"),
        replace(washable("shards", broken, glaze), shown_when="broken"),
    ]


def leftovers(draw: Draw, radius: float, height: float) -> Part:
    """Returns remains of a meal on a round floor of a radius at a height, seen while dirty."""
    colours = draw.one(FOODS)
    pieces = []
    for number in range(9):
        turn, away = draw.uniform(0, 2 * np.pi), radius * np.sqrt(draw.uniform(0, 0.8))
        wide = radius * draw(0.12, 0.3)
        crumb = scaled(soft_box((1, 1, 1), 0.45, 1), (wide, wide * draw(0.5, 1), wide * 0.35))
        place = (away * np.cos(turn), away * np.sin(turn), height + wide * 0.1)
        pieces.append((moved(crumb, place), colours[number % len(colours)]))
    return tinted("leftovers", pieces, shown_when="dirty")


def bowl(draw: Draw) -> Drawn:
    """Returns a bowl."""
    radius = draw(0.075, 0.145)
    height = radius * draw(0.62, 0.95)
    foot, rise = radius * draw(0.38, 0.55), draw(0.004, 0.014)
    wall, power = draw(0.004, 0.008), draw(1.7, 3.0)
    turn = np.linspace(0, 1, 9)
    sides = foot + (radius - foot) * (1 - (1 - turn) ** power) ** (1 / power)
    outer = np.stack([sides, rise + (height - rise) * turn], axis=1)
    inner = outer[::-1] - (wall, 0)
    inner[-1, 1] += wall
    flare = draw(0, 0.008)
    rim = [(radius + flare, height), (radius + flare - wall / 2, height + wall / 2)]
    base = [(0, 0.002), (foot * 0.85, 0.002), (foot * 0.9, 0), (foot, 0), (foot, rise)]
    floor = [(foot - wall, rise + wall), (0, rise + wall)]
    mesh = lathe([*base, *outer[1:-1], *rim, *inner[:-1], *floor], 32, wraps=3)
    glazed = draw.wood() if draw.chance(0.15) else draw.glaze()
    broken = shards(mesh, draw, pieces=8, spread=0.5, stump=draw(0.4, 0.6))
    food = leftovers(draw, radius * 0.6, rise + height * 0.22)
    return [*vessel(mesh, broken, glazed), food], "table", None


def mug(draw: Draw) -> Drawn:
    """Returns a mug."""
    radius, height = draw(0.036, 0.05), draw(0.078, 0.125)
    wall = draw(0.003, 0.0045)
    taper, bulge = draw(-0.12, 0.18), draw(-0.03, 0.12)
    share = np.linspace(0, 1, 8)
    sides = radius * (1 + taper * (share - 0.5) + bulge * np.sin(np.pi * share))
    outer = np.stack([sides, 0.004 + (height - 0.004) * share], axis=1)
    inner = outer[::-1] - (wall, 0)
    inner[-1, 1] += 0.006
    profile = [(0, 0.002), (sides[0] - 0.006, 0.002), (sides[0] - 0.003, 0), *outer]
    profile += [(sides[-1] - wall / 2, height + wall / 3), *inner, (0, inner[-1, 1])]
    # The handle: a bow from low to high, more or less square.
    out, low, high = draw(0.022, 0.034), height * draw(0.16, 0.3), height * draw(0.74, 0.88)
    turn = np.linspace(-QUARTER, QUARTER, 11)
    squareness = draw(0.55, 1.0)
    side = float(np.interp(0.5, share, sides))
    x = side * 0.93 + out * np.abs(np.cos(turn)) ** squareness * 1.2
    z = (low + high) / 2 + (high - low) / 2 * np.sign(turn) * np.abs(np.sin(turn)) ** squareness
    handle = tube(np.stack([x, np.zeros_like(x), z], axis=1), draw(0.0045, 0.007), 8)
    mesh = merge([lathe(profile, 28, wraps=2), handle])
    mesh = rotated(mesh, UP, draw(-1.0, 1.0) - draw.one((0.0, np.pi)))
    broken = shards(mesh, draw, pieces=7, spread=0.5, stump=draw(0.4, 0.55))
    parts = vessel(mesh, broken, draw.glaze())
    if draw.chance(0.5):
        level = 0.75 * height
        wet = float(np.interp(0.75, share, sides)) - wall
        top = lathe([(wet, level - 0.001), (wet, level), (0, level)], 20)
        parts.append(Part("drink", top, flat(draw.one(DRINKS), 0.7, 0.8), hidden_when="broken"))
    return parts, "table", None


def plate(draw: Draw) -> Drawn:
    """Returns a plate."""
    radius = draw(0.105, 0.155)
    foot, height = radius * draw(0.5, 0.66), draw(0.014, 0.03)
    well = radius * draw(0.62, 0.78)
    wall, lip = draw(0.004, 0.006), 0.4 * height
    profile = [(0, 0.003), (foot * 0.94, 0.003), (foot, 0), (foot * 1.04, 0.003), (well, lip)]
    profile += [(radius, height - 0.002), (radius, height), (radius - 0.004, height + 0.001)]
    profile += [(well, lip + wall), (well * 0.9, 0.003 + wall), (0, 0.003 + wall)]
    mesh = lathe(profile, 36)
    if draw.chance(0.25):  # drawn out to a square with soft corners
        power = draw(4, 8)
        turn = np.arctan2(mesh.vertices[:, 1], mesh.vertices[:, 0])
        factor = (np.abs(np.cos(turn)) ** power + np.abs(np.sin(turn)) ** power) ** (-1 / power)
        square = np.stack([factor, factor, np.ones_like(factor)], axis=1)
        vertices = mesh.vertices * square * (0.85, 0.85, 1)
        mesh = Mesh(vertices, mesh.faces, mesh.normals, mesh.texcoords)
    mesh = painted(mesh, 0, 1)
    broken = parted(mesh, draw, pieces=draw.count(5, 9), spread=draw(0.25, 0.45))
    food = leftovers(draw, well * 0.85, 0.003 + wall)
    return [*vessel(mesh, broken, draw.glaze()), food], "table", None


def pan(draw: Draw) -> Drawn:
    """Returns a frying pan: shallow, dark or bright, with one long handle."""

    def nonstick() -> Surface:
        return draw.pattern("iron", (0.05, 0.05, 0.055), (0.19, 0.19, 0.2)).skin(0.5, 0.4)

    radius, height = draw(0.105, 0.165), draw(0.032, 0.055)
    base, wall, low = radius * draw(0.74, 0.88), 0.004, height * 0.4
    bend = base + (radius - base) * 0.6
    outside = lathe([(0, 0), (base, 0), (bend, low), (radius, height)], 36)
    rim = [(radius, height), (radius - wall * 0.3, height + 0.002), (radius - wall, height)]
    inside = lathe([*rim, (bend - wall, low), (base - wall, 0.005), (0, 0.005)], 36)
    handle = draw.one((BLACK, draw.wood(), draw.metal(0, 1)))
    outer = draw.one((nonstick(), draw.metal(0, 3), draw.enamel()))
    inner = draw.one((nonstick(), draw.metal(0, 1)))
    yaw = draw(-np.pi, np.pi)
    length, rise = radius * draw(1.0, 1.5), draw(0.01, 0.05)
    end, z = radius + length, height * 0.75
    if draw.chance(0.6):
        middle = (radius + length * 0.4, 0, z + rise * 0.7)
        grip = tube([(radius * 0.97, 0, z), middle, (end, 0, z + rise)], [0.007, 0.011, 0.013], 10)
    else:
        half = draw(0.01, 0.015)
        far = (radius + length * 0.3, half * 0.6, z + 0.008)
        neck = board((radius * 0.96, -half * 0.6, z), far)
        hold = ((radius + length * 0.25, -half, z - 0.005), (end, half, z + 0.013))
        grip = merge([neck, board(*hold, 0.007)])
    parts = [
        washable("outside", rotated(outside, UP, yaw), outer),
        washable("inside", rotated(painted(inside, 0, 1), UP, yaw), inner),
        Part("handle", rotated(grip, UP, yaw), handle),
    ]
    return [*parts, leftovers(draw, base * 0.85, 0.005)], "table", None


def pot(draw: Draw) -> Drawn:
    """Returns a cooking pot: deep and straight, two side handles, with or without a lid."""
    radius = draw(0.095, 0.15)
    height = radius * draw(0.95, 1.5)
    wall, belly = 0.004, draw(0.0, 0.06)
    share = np.linspace(0, 1, 7)
    sides = radius * (1 + belly * np.sin(np.pi * share))
    outer = np.stack([sides, 0.008 + (height - 0.008) * share], axis=1)
    inner = outer[::-1] - (wall, 0)
    rim = [(radius + 0.004, height), (radius + 0.004, height + 0.003)]
    rim.append((radius - wall, height + 0.003))
    profile = [(0, 0), (radius * 0.94, 0), *outer, *rim, *inner[1:], (0, 0.012)]
    skin = draw.one((draw.metal(0, 1, 3), draw.metal(0), draw.enamel(), draw.enamel()))
    grips = draw.one((skin, flat((0.07, 0.07, 0.08), 0.4, 0.5), draw.metal(0, 2)))
    yaw = draw(-0.6, 0.6)
    parts = [washable("body", rotated(lathe(profile, 36, wraps=2), UP, yaw), skin)]
    out, wide, thick = draw(0.03, 0.05), draw(0.035, 0.055), draw(0.005, 0.009)
    z = height * draw(0.7, 0.88)
    turn = np.linspace(-QUARTER, QUARTER, 9)
    bow = [radius * 0.96 + out * np.cos(turn) ** 0.6, wide * np.sin(turn), np.full(9, z)]
    one = tube(np.stack(bow, axis=1), thick, 8)
    parts.append(Part("handles", rotated(merge([one, rotated(one, UP, np.pi)]), UP, yaw), grips))
    if draw.chance(0.5):
        rise, z = radius * draw(0.1, 0.3), height + 0.003
        turn = np.linspace(0, QUARTER, 7)
        dome = np.stack([radius * np.cos(turn), z + 0.006 + rise * np.sin(turn)], axis=1)
        cover = lathe([(0, z), (radius + 0.003, z), (radius + 0.003, z + 0.006), *dome], 32)
        top, size = z + 0.006 + rise, radius * draw(0.12, 0.2)
        stem = [(size * 0.5, top - 0.003), (size * 0.5, top + size * 0.6), (size, top + size)]
        stem += [(size * 0.9, top + size * 1.5), (0, top + size * 1.6)]
        parts += [washable("lid", cover, skin), Part("knob", lathe(stem, 14), grips)]
    return parts, "table", None


def vase(draw: Draw) -> Drawn:
    """Returns a vase: tall and necked, some with flowers."""
    height = draw(0.2, 0.42)
    belly = height * draw(0.2, 0.34)
    foot, neck = belly * draw(0.45, 0.75), belly * draw(0.25, 0.5)
    lip = neck * draw(1.15, 1.9)
    at, throat = draw(0.25, 0.5), draw(0.72, 0.86)
    share = np.linspace(0, 1, 15)
    knots = np.array([0, at * 0.5, at, (at + throat) / 2, throat, 1.0])
    radii = np.array([foot, (foot + 2 * belly) / 3, belly, (belly * 0.9 + neck) / 1.9, neck, lip])
    # Between the knots without corners.
    fine, weights = np.linspace(-0.15, 1.15, 131), np.hanning(15)
    raw = np.interp(fine, knots, radii)
    sides = np.interp(share, fine, np.convolve(raw, weights / weights.sum(), mode="same"))
    wall = 0.006
    outer = np.stack([sides, 0.003 + height * share], axis=1)
    inner = outer[:8:-1] - (wall, 0)
    profile = [(0, 0.0), (foot - 0.004, 0), *outer, (lip - wall / 2, height + 0.006), *inner]
    mesh = lathe(profile, 28, wraps=2)
    glazed = draw.glaze()
    broken = shards(mesh, draw, pieces=9, spread=draw(0.6, 0.9), stump=draw(0.25, 0.4))
    parts = [
        Part("whole", mesh, glazed, hidden_when="broken"),
        Part("shards", broken, glazed, shown_when="broken"),
    ]
    if draw.chance(0.55):
        flowers = _bouquet(draw, height, neck)
        parts.append(tinted("flowers", flowers, hidden_when="broken"))
        fallen = []
        for piece, colour in flowers:
            down = rotated(scaled(piece, (1, 0.5, 0.7)), (0, 1, 0), 1.45)
            low = 0.004 - float(down.vertices[:, 2].min())
            fallen.append((moved(down, (-belly * 2.2, 0, low)), colour))
        parts.append(tinted("fallen", fallen, shown_when="broken"))
    return parts, "table", None


def _bouquet(draw: Draw, height: float, neck: float) -> list[Tinted]:
    green = draw.one(GREENS)
    petals, heart = draw.vivid(0.7, 0.85), draw.one(((0.9, 0.75, 0.2), (0.3, 0.18, 0.08)))
    size = draw(0.022, 0.045)
    unit_leaf, blossom = _flower()
    found: list[Tinted] = []
    for number in range(draw.count(3, 8)):
        turn = 2.4 * number + draw(0, 0.5)
        lean = draw(0.15, 0.42) * (0.4 if number == 0 else 1)
        length = draw(0.06, 0.16)
        way = np.array([np.cos(turn) * np.sin(lean), np.sin(turn) * np.sin(lean), np.cos(lean)])
        root = np.array([way[0] * neck, way[1] * neck, height * 0.7])
        tip = root + way * (length + height * 0.3)
        leaf = rotated(scaled(rotated(unit_leaf, (0, 1, 0), -0.5), 0.06), UP, turn)
        leaf = moved(leaf, root + way * (height * 0.3 + length * 0.45))
        found += [(tube([root, tip], 0.003, 4), green), (leaf, green)]
        axis, angle = np.cross(UP, way), float(np.arccos(np.clip(way[2], -1, 1)))
        for mesh, colour in zip(blossom, (petals, heart), strict=True):
            found.append((moved(rotated(scaled(mesh, size), axis, angle), tip), colour))
    return found


@functools.cache
def _flower() -> tuple[Mesh, tuple[Mesh, Mesh]]:
    """Returns a leaf of length one along x; petals and heart of radius one that look up."""
    leaf = scaled(lathe([(0, -0.5), (0.5, 0), (0, 0.5)], 6), (1.0, 0.34, 0.1))
    petal = scaled(lathe([(0, -0.5), (0.8, 0.1), (0, 0.5)], 5), (0.6, 0.36, 0.3))
    petal = moved(petal, (0.52, 0, 0.12))
    petals = merge([rotated(petal, UP, 2 * np.pi * k / 6) for k in range(6)])
    heart = lathe([(0, -0.5), (0.5, 0), (0.3, 0.4), (0, 0.5)], 7)
    return leaf, (petals, scaled(heart, (0.7, 0.7, 0.6)))


# ------------------------------------------------------------------------------------- shards


def shards(
    mesh: Mesh,
    rng: np.random.Generator,
    *,
    pieces: int = 9,
    spread: float = 0.6,
    stump: float = 0.0,
) -> Mesh:
    """Returns the triangles of a thin-walled mesh in pieces that lie on z = 0 about its centre.

    `spread` is how far they lie, in parts of half the mesh's width; `stump` the share of the
    height, about, below which the mesh still stands in one piece.
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

    `spread` is how far a piece goes, in parts of its distance from the centre.
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
