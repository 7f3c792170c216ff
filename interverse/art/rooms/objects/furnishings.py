"""Beds, blinds, faucets, laundry hampers and toilets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from interverse.art.meshes import (
    Mesh,
    extrude,
    frame,
    grid,
    lathe,
    lifted,
    merge,
    moved,
    painted,
    rotated,
    scaled,
    sheet,
    soft_box,
    superellipse,
    tiled,
    tube,
)
from interverse.art.rooms.item import Drawn, Floats, Part, Rgb, RoomJoint, Surface, Triple
from interverse.art.rooms.kit import (
    SCENES,
    SIGNS,
    Draw,
    Tinted,
    board,
    flat,
    legs,
    shade,
    soiled,
    tinted,
)

SHEETS: tuple[Rgb, ...] = ((0.94, 0.93, 0.9), (0.85, 0.88, 0.92), (0.92, 0.85, 0.8))
WATER = Surface(rgba=(0.68, 0.86, 0.95, 0.9), specular=0.9, shininess=0.9, emission=0.35)
POOL = Surface(rgba=(0.35, 0.6, 0.75, 1.0), specular=0.9, shininess=0.9, emission=0.1)
STRAWS: tuple[Rgb, ...] = (
    (0.7, 0.5, 0.3),
    (0.5, 0.33, 0.2),
    (0.85, 0.75, 0.6),
    (0.88, 0.86, 0.82),
    (0.4, 0.38, 0.36),
)
CHINAS: tuple[Rgb, ...] = ((0.95, 0.95, 0.94), (0.93, 0.91, 0.85), (0.95, 0.95, 0.94))
OUT = 0.055
"""How far from the wall the slats of blinds hang."""
UP, QUARTER = (0, 0, 1), np.pi / 2


def ring(outline: Floats, z: float) -> Floats:
    """Returns a closed, level ring of points at a height."""
    points = np.column_stack([outline, np.full(len(outline), z)])
    return np.concatenate([points, points[:1]])


# ---------------------------------------------------------------------------------------- beds


def bed(draw: Draw) -> Drawn:
    """Returns a bed, its head at +y: a frame, a mattress, a blanket and pillows that get dirty."""
    width = draw.one((0.9, 1.0, 1.4, 1.6)) * draw(0.95, 1.08)
    length, rise, thick = draw(1.9, 2.1), draw(0.2, 0.34), draw(0.17, 0.26)
    top = rise + thick
    body = draw.one((draw.wood(), draw.wood(), draw.paint(), draw.leather()))
    head = body
    if not draw.chance(0.6):
        head = draw.one((draw.cloth(), draw.metal(2, 4), draw.leather()))
    x, y = width / 2 + 0.03, length / 2 + 0.03
    rails = board((-x, -y, rise - 0.12), (x, y, rise + 0.02), 0.012)
    under = merge([rails, legs((width, length, rise - 0.1), 0.09, 0.06)])
    parts = [Part("frame", under, body), Part("head", _headboard(draw, width, y, top), head)]
    linen, cover = draw.cloth(draw.one(SHEETS)), draw.cloth()
    fold = length * draw(0.15, 0.24)
    mattress = soft_box((width, length, thick), 0.05, 3, (0, 0, top - thick / 2))
    turned = soft_box((width + 0.05, 0.16, 0.05), 0.024, 2, (0, fold - 0.04, top + 0.025))
    pillows = merge([*_pillows(draw, width, length, top), turned])
    for name, mesh, skin in (
        ("mattress", tiled(mattress, 2.5), linen),
        ("blanket", _blanket(draw, (width, length, top), fold), cover),
        ("pillows", tiled(pillows, 3.0), linen),
    ):
        parts.append(Part(name, mesh, skin, alternate={"dirty": soiled(skin)}))
    return parts, "floor", None


def _headboard(draw: Draw, width: float, y: float, top: float) -> Mesh:
    height, x = top + draw(0.3, 0.65), width / 2 + 0.04
    if draw.chance(0.6):
        boards = [board((-x, y, 0.1), (x, y + 0.06, height), 0.02)]
        if draw.chance(0.5):
            count = max(2, round(width / 0.4))
            pitch = 2 * x / count
            size = (pitch * 0.92, 0.06, height - top)
            places = [(-x + (k + 0.5) * pitch, y, (height + top) / 2) for k in range(count)]
            boards += [soft_box(size, 0.025, 2, place) for place in places]
        return merge(boards)
    ends = [
        board((-x, y, 0), (-x + 0.06, y + 0.06, height + 0.05), 0.012),
        board((x - 0.06, y, 0), (x, y + 0.06, height + 0.05), 0.012),
    ]
    rails = [
        board((-x, y + 0.01, z), (x, y + 0.05, z + 0.07), 0.01) for z in (top - 0.05, height - 0.07)
    ]
    slats = [
        board((t - 0.02, y + 0.015, top), (t + 0.02, y + 0.045, height - 0.05), 0.008)
        for t in np.linspace(-x + 0.15, x - 0.15, max(4, int(width / 0.16)))
    ]
    return merge([*ends, *rails, *slats])


def _blanket(draw: Draw, size: Triple, fold: float) -> Mesh:
    """Returns a cover with creases that hangs over both sides and the foot."""
    width, length, top = size
    hang = draw(0.16, 0.3)
    span = width / 2 + hang
    t = np.linspace(-length / 2 - hang * 0.9, fold, 14)
    u, v = np.meshgrid(np.linspace(-span, span, 20), t)
    edge_x, edge_y = width / 2 + 0.015, length / 2 + 0.015
    over_x, over_y = np.maximum(np.abs(u) - edge_x, 0), np.maximum(-v - edge_y, 0)
    waves = 0.012 * np.sin(7 * u + draw.uniform(0, 6)) * np.cos(5 * v + draw.uniform(0, 6))
    waves = waves + draw.normal(0, 0.004, u.shape)
    x = np.clip(u, -edge_x, edge_x) + np.sign(u) * 0.03 * np.tanh(over_x * 8)
    x = x + 0.02 * np.sign(u) * (over_x > 0) * np.sin(9 * v)
    y = np.maximum(v, -edge_y) - 0.03 * np.tanh(over_y * 8) - 0.02 * (over_y > 0) * np.sin(8 * u)
    z = top + 0.035 + waves - over_x - over_y
    points = np.stack([x, y, np.maximum(z, 0.05)], axis=-1)
    return sheet(points, 0.012, np.stack([u, v], axis=-1) * 1.2)


def _pillows(draw: Draw, width: float, length: float, top: float) -> list[Mesh]:
    count = 1 if width < 1.2 else 2
    found = []
    for number in range(count):
        wide, deep, tall = width / count * draw(0.75, 0.9), draw(0.36, 0.46), draw(0.12, 0.18)
        box = soft_box((wide, deep, tall), tall * 0.49, 3)
        puff = 1 - 0.45 * np.clip(np.abs(box.vertices[:, 0]) / (wide / 2), 0, 1) ** 3
        vertices = box.vertices * np.stack([np.ones_like(puff), np.ones_like(puff), puff], axis=1)
        pillow = Mesh(vertices, box.faces, box.normals, box.texcoords)
        lean = rotated(pillow, (1, 0, 0), draw(0.1, 0.5))
        x = (number - (count - 1) / 2) * width / count
        found.append(moved(lean, (x, length / 2 - deep * 0.62, top + tall * 0.62)))
    return found


# -------------------------------------------------------------------------------------- blinds


def blinds(draw: Draw) -> Drawn:
    """Returns a window with blinds that tilt, are drawn up, turn or fold."""
    width, height = draw(0.6, 1.2), draw(0.75, 1.3)
    x, z, front = width / 2, height / 2, -OUT - 0.03
    pale, steel = flat((0.93, 0.92, 0.88)), flat((0.75, 0.76, 0.78), 0.7, 0.7)
    colours = (pale, steel, draw.wood(), draw.paint(), flat(draw.vivid(0.4, 0.75)))
    skin = draw.one(colours)
    rail = board((-x - 0.02, front, z + 0.01), (x + 0.02, -0.01, z + 0.07), 0.008)
    cord = tube([(x - 0.03, front, z), (x - 0.03, front, -z * 0.3)], 0.004, 6)
    style = draw.one(("tilting", "tilting", "rising", "upright", "roman"))
    view = painted(board((-x, -0.008, -z), (x, 0, z), 0.002), 0, 2)
    bars = [frame((width + 2 * 0.05, height + 2 * 0.05), 0.05, 0.03)]
    bars.append(board((-0.015, -0.02, -z), (0.015, 0, z)))
    if draw.chance(0.5):
        bars.append(board((-x, -0.02, -0.012), (x, 0, 0.012)))
    trim = flat((0.92, 0.91, 0.88)) if draw.chance(0.6) else draw.wood()
    outlook = draw.picture("landscape", *draw.one(SCENES), emission=0.45)
    parts = [
        Part("view", view, outlook, outlook=True),
        Part("frame", merge(bars), trim),
        Part("rail", rail, skin),
        Part("cord", cord, flat((0.85, 0.83, 0.78))),
        *_slats(style, draw, width, height, skin),
    ]
    return parts, "wall", None


def _slat(length: float, wide: float) -> Mesh:
    """Returns a slightly arched slat along x, standing upright in the plane y = 0."""
    x, z = np.array([-length / 2, length / 2]), np.linspace(-wide / 2, wide / 2, 5)
    points = np.empty((5, 2, 3))
    points[..., 0], points[..., 2] = x[None], z[:, None]
    points[..., 1] = -0.006 * (1 - (2 * z / wide) ** 2)[:, None]
    texture = np.stack(np.broadcast_arrays(x[None] * 1.6, z[:, None] * 1.6), axis=-1)
    return sheet(points, 0.002, texture)


def _slats(style: str, draw: Draw, width: float, height: float, skin: Surface) -> list[Part]:
    """Returns slats that tilt, are drawn up or (upright) turn, or folds of cloth that slide up.

    What is drawn up gathers under the rail: the lower a slat hangs, the farther it goes.
    """
    name, share = "slat", 0.0
    if style == "tilting":
        count = int(height / draw(0.055, 0.085))
        mesh = _slat(width, height / count * 1.12)
    elif style == "rising":
        count = int(height / draw(0.06, 0.09))
        mesh, share = _slat(width, height / count * 1.1), draw(0.85, 1.0)
    elif style == "upright":
        count = int(width / draw(0.085, 0.12))
        x, z = width / count * 0.54, height / 2
        mesh = board((-x, -0.0015, -z), (x, 0.0015, z), 0.001)
    else:
        name, count = "fold", draw.count(5, 8)
        skin, x, z = draw.cloth(), width / 2, height / count * 0.52
        mesh = board((-x, -0.004, -z), (x, 0.004, z), 0.003)
    travel = 0.0
    if style in ("tilting", "upright"):
        travel = draw.one(SIGNS) * draw(1.75, 1.95)
    parts = []
    for number in range(count):
        above, pitch = count - 1 - number, height / count
        x, y, z = 0.0, -OUT, -height / 2 + (number + 0.5) * pitch
        if style == "tilting":
            joint = RoomJoint("hinge", (0, -OUT, z), (1, 0, 0), travel)
        elif style == "rising":
            y = -OUT - 0.0012 * above
            joint = RoomJoint("slide", (0, 0, 0), UP, share * above * (pitch - 0.012))
        elif style == "upright":
            x, z = -width / 2 + (number + 0.5) * (width / count), 0.0
            y = -OUT - 0.004 * (number % 2)
            joint = RoomJoint("hinge", (x, -OUT, 0), UP, travel)
        else:
            y = -OUT + 0.006 * above * 0.9 - 0.02
            joint = RoomJoint("slide", (0, 0, 0), UP, above * pitch * 1.02)
        parts.append(Part(f"{name}{number}", moved(mesh, (x, y, z)), skin, joint))
    return parts


# ------------------------------------------------------------------------------------- faucets


def faucet(draw: Draw) -> Drawn:
    """Returns a faucet over a small basin, with water while it runs."""
    half, deep, tall = draw(0.16, 0.22), draw(0.13, 0.16), draw(0.06, 0.1)
    power, level = draw.one((2.0, 2.2, 5.0, 8.0)), 0.72

    def skin(*section: tuple[float, float]) -> Mesh:
        """Returns the skin through rings of factors and of shares of the height."""
        outlines = [(superellipse(half * f, deep * f, power, 32), tall * z) for f, z in section]
        return grid(np.stack([ring(*outline) for outline in outlines]), closed=True)

    outside = ((0.7, 0.0), (0.92, 0.5), (1.0, 1.0), (0.97, 1.04), (0.94, 1.0))
    bowl = skin(*outside, (0.85, 0.6), (0.6, 0.2), (0.05, 0.12))
    chrome = draw.metal(0, 0, 2, 4, 3)
    rise, back = tall + draw(0.16, 0.27), deep + 0.03
    bends, reach = draw.one((True, True, False)), draw(0.12, 0.17)
    if bends:
        turn = np.linspace(0, np.pi * 0.95, 14)
        y, z = back - reach / 2 * (1 - np.cos(turn)), rise + reach / 2 * np.sin(turn)
        bow = np.stack([np.zeros(14), y, z], axis=1)
        mouth = bow[-1] - (0, 0, 0.03)
        spout = tube(np.array([(0, back, 0), (0, back, rise * 0.6), *bow, mouth]), 0.015, 12)
    else:
        front = back - reach
        line = [(0, back, 0), (0, back, rise * 0.5), (0, back, rise)]
        line += [(0, back - 0.012, rise + 0.015), (0, (back + front) / 2, rise + 0.02)]
        line += [(0, front + 0.01, rise + 0.016), (0, front, rise), (0, front, rise - 0.02)]
        spout, mouth = tube(line, 0.017, 8), np.array(line[-1])
    collar = lathe([(0, 0), (0.032, 0), (0.03, 0.012), (0.018, 0.02), (0, 0.02)], 18)
    drain = lathe([(0.022, 0.006), (0.02, 0.01), (0, 0.01)], 14)
    fittings = [spout, moved(collar, (0, back, 0)), moved(drain, (0, 0, tall * 0.1))]
    white = flat((0.95, 0.95, 0.94), 0.7, 0.8)
    stone = draw.pattern("marble", (0.85, 0.83, 0.8), (0.35, 0.33, 0.32)).skin(0.5, 0.6)
    china = draw.one((white, white, draw.metal(0), stone, draw.glaze()))
    fittings.append(_taps(draw, back, rise))
    count = 8
    path = np.tile(mouth, (count, 1))
    path[:, 2] = np.linspace(mouth[2], tall * level, count)
    jet = tube(path, 0.014 + 0.003 * np.sin(np.linspace(0, 9, count)), 10)
    splash = lathe([(0.05, 0), (0.028, 0.012), (0.013, 0.035), (0, 0.035)], 14)
    stream = merge([jet, moved(splash, (mouth[0], mouth[1], tall * level))])
    parts = [
        Part("basin", bowl, china),
        Part("spout", merge(fittings), chrome),
        Part("pool", skin((0.87, level), (1e-3, level)), POOL, shown_when="on"),
        Part("stream", stream, WATER, shown_when="on"),
    ]
    return parts, "counter", None


def _taps(draw: Draw, back: float, rise: float) -> Mesh:
    style = draw.one(("lever", "cross", "twin"))
    if style == "lever":
        side = draw.one(SIGNS)
        line = [(0, back, rise * 0.55), (side * 0.035, back, rise * 0.58)]
        line.append((side * 0.085, back - 0.01, rise * 0.75))
        return tube(line, [0.011, 0.008, 0.006], 8)
    post = [(0, 0), (0.022, 0), (0.012, 0.012), (0.011, 0.05), (0.018, 0.055), (0.016, 0.065)]
    tap = [lathe([*post, (0, 0.068)], 14), tube([(-0.03, 0, 0.058), (0.03, 0, 0.058)], 0.006, 6)]
    if style == "cross":
        tap.append(rotated(tap[1], UP, QUARTER))
    return merge([moved(merge(tap), (side * 0.085, back, 0)) for side in SIGNS])


# ------------------------------------------------------------------------------------- hampers


def hamper(draw: Draw) -> Drawn:
    """Returns a laundry hamper: a wicker or cloth basket with a lid, full of clothes."""
    half, height = draw(0.18, 0.27), draw(0.48, 0.72)
    power = draw.one((2.0, 6.0, 8.0))
    deep = half if power == 2.0 else draw(0.16, 0.22)
    taper = draw(0.75, 0.95)
    if draw.chance(0.3):
        skin = draw.cloth()
    else:
        tone = draw.one(STRAWS)
        skin = draw.pattern("wicker", shade(tone, 0.3), tone, shade(tone, 1.1)).skin(0.1, 0.2)
    trim = draw.one((draw.wood(), flat(draw.vivid(0.4, 0.4)), flat((0.3, 0.2, 0.12))))

    def at(factor: float, z: float) -> Floats:
        return ring(superellipse(half * factor, deep * factor, power, 32), z)

    rows = [at(taper, 0.004), at(taper, 0.0), at(1.0, height), at(0.96, height)]
    rows += [at(taper * 0.92, height * 0.3), at(0.1, height * 0.3)]
    basket = merge([grid(np.stack(pair), closed=True) for pair in pairwise(rows)])
    rims = [
        tube(at(factor, z), thick, 6, capped=False)
        for factor, z, thick in ((taper, 0.012, 0.012), (1.0, height - 0.008, 0.01))
    ]
    turn = np.linspace(-QUARTER, QUARTER, 7)
    loop = [half * 0.97 + 0.05 * np.cos(turn), 0.06 * np.sin(turn), np.full(7, height * 0.78)]
    side = tube(np.stack(loop, axis=1), 0.009, 6)
    lump, count = soft_box((1, 1, 1), 0.4, 1), 10
    clothes: list[Tinted] = []
    for number in range(count):
        spin, away = 2.4 * number, 0.55 * np.sqrt((number + 0.5) / count)
        stretch = np.array((half, deep, height)) * draw.uniform((0.5, 0.4, 0.12), (0.8, 0.7, 0.2))
        lying = rotated(scaled(lump, stretch), draw.normal(size=3), draw(0, 0.5))
        place = (half * away * np.cos(spin), deep * away * np.sin(spin), height * draw(0.78, 0.86))
        clothes.append((moved(lying, place), draw.vivid(0.5, 0.75)))
    own = skin if draw.chance(0.6) else draw.one((draw.wood(), draw.cloth()))
    shape = superellipse(half * 1.04, deep * 1.04, power, 32)
    cover = tiled(lifted(extrude(shape, 0.022, bevel=0.007), height + 0.001), 3.0)
    hinge = RoomJoint("hinge", (0, deep, height + 0.004), (-1, 0, 0), draw(2.0, 2.4))
    knob = moved(scaled(lump, (0.07, 0.025, 0.03)), (0, -deep * 0.7, height + 0.032))
    parts = [
        Part("basket", tiled(basket, (4.0, 2.5)), skin),
        Part("trim", merge([*rims, side, rotated(side, UP, np.pi)]), trim),
        tinted("clothes", clothes),
        Part("lid", cover, own, hinge),
        Part("knob", knob, trim, parent="lid"),
    ]
    return parts, "floor", None


# ------------------------------------------------------------------------------------- toilets


def toilet(draw: Draw) -> Drawn:
    """Returns a toilet: a china bowl with water, a tank, a seat and a lid that opens."""
    points, thick = 28, 0.014
    half, length, rim, power = draw(0.17, 0.2), draw(0.23, 0.27), draw(0.38, 0.44), draw(2.0, 2.6)

    def at(factor: float, z: float, back: float = 0.0) -> Floats:
        outline = superellipse(half * factor, length * factor, power, points)
        return ring(outline + np.array((0.0, back)), z)

    skin = flat(draw.one((*CHINAS, draw.vivid(0.2, 0.85))), 0.7, 0.8)
    # The tank behind the bowl, with its button.
    wide, deep = half * draw(1.9, 2.3), draw(0.15, 0.19)
    tall, y, base = draw(0.32, 0.4), length + deep / 2 - 0.01, rim - 0.02
    tank = [
        soft_box((wide, deep, tall), 0.025, 2, (0, y, base + tall / 2)),
        soft_box((wide + 0.025, deep + 0.02, 0.035), 0.012, 2, (0, y, base + tall + 0.015)),
        soft_box((half * 1.1, deep + 0.1, rim * 0.5), 0.03, 1, (0, y - 0.06, rim * 0.72)),
    ]
    button = lathe([(0.018, 0), (0.018, 0.012), (0, 0.014)], 12)
    pool = superellipse(half * 0.42, length * 0.42, power, points)
    water = lifted(extrude(pool, 0.004, bevel=0.001), rim * 0.56)
    foot = draw(0.55, 0.8)
    sizes = ((0.0, foot), (0.08, foot * 0.95), (0.4, foot * 0.9), (0.72, 0.9), (0.93, 1), (1, 0.98))
    outer = [at(s, rim * z, (1 - s) * length * 0.8) for z, s in sizes]
    hollow = ((0.98, 1.0), (0.74, 1.0), (0.66, 0.8), (0.4, 0.55), (0.3, 0.5))
    inner = [at(size, rim * z) for size, z in hollow]
    bowl = [grid(np.stack(outer), closed=True), grid(np.stack(inner), closed=True)]
    plate = draw.metal(0)
    other = draw.one((draw.wood(), flat(draw.vivid(), 0.5, 0.6)))
    own = skin if draw.chance(0.6) else other
    section = ((1.02, 0), (1.02, 0.7), (0.98, 1), (0.76, 1), (0.72, 0.7), (0.72, 0))
    seat = grid(np.stack([at(s, rim + thick * z) for s, z in section]), closed=True)
    shape = superellipse(half * 1.02, length * 1.02, power, points)
    lid = lifted(extrude(shape, thick + 0.004, bevel=0.006), rim + thick + 0.002)
    hinge = RoomJoint("hinge", (0, length * 0.93, rim + thick), (-1, 0, 0), draw(1.78, 1.88))
    parts = [
        Part("bowl", merge([*bowl, *tank]), skin),
        Part("water", water, flat((0.45, 0.62, 0.7), 0.9, 0.9)),
        Part("button", moved(button, (0, y, base + tall + 0.03)), plate),
        Part("seat", seat, own),
        Part("lid", lid, own, hinge),
    ]
    return parts, "floor", None
