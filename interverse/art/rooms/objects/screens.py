"""Telephones, laptops and televisions: panes that glow while on and crack when broken; books."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from interverse.art.meshes import (
    Mesh,
    bevelled_box,
    extrude,
    frame,
    lathe,
    lifted,
    merge,
    moved,
    painted,
    rotated,
    rounded_rectangle,
    sheet,
    soft_box,
    tiled,
    tube,
)
from interverse.art.rooms.item import Drawn, Part, Rgb, RoomJoint
from interverse.art.rooms.kit import (
    CORNERS,
    SCENES,
    SIGNS,
    Draw,
    Front,
    board,
    cracked,
    flat,
    picture,
    shade,
)

BLACK: Rgb = (0.03, 0.03, 0.035)
LAPTOPS: tuple[Rgb, ...] = (
    (0.72, 0.73, 0.75),
    (0.12, 0.12, 0.13),
    (0.35, 0.36, 0.38),
    (0.85, 0.78, 0.72),
    (0.2, 0.25, 0.35),
)
CASINGS: tuple[Rgb, ...] = (
    (0.05, 0.05, 0.055),
    (0.05, 0.05, 0.055),
    (0.3, 0.31, 0.33),
    (0.85, 0.85, 0.86),
)
PAPERS: tuple[Rgb, ...] = ((0.95, 0.93, 0.87), (0.9, 0.85, 0.72), (0.97, 0.97, 0.95))
LETTERS: tuple[Rgb, ...] = ((0.95, 0.9, 0.75), (0.9, 0.72, 0.3), (0.95, 0.95, 0.95))
INK: Rgb = (0.12, 0.12, 0.13)
X, QUARTER = (1, 0, 0), np.pi / 2


def screen(draw: Draw, mesh: Mesh, kind: str, parent: str | None = None) -> Part:
    """Returns a pane that shows a picture of a kind while on, and cracks while broken."""
    lit = draw.picture(kind, *draw.one(SCENES), emission=0.75)
    dead = cracked(draw.picture("plain", BLACK, (0.05, 0.05, 0.055)))
    looks = {"on": lit, "broken": dead, "on+broken": cracked(lit)}
    off = flat((0.025, 0.027, 0.03), 0.7, 0.85)
    return Part("screen", mesh, off, alternate=looks, parent=parent)


def telephone(draw: Draw) -> Drawn:
    """Returns a telephone: a rounded slab of glass, lying or leaning in a dock."""
    width = draw(0.068, 0.085)
    length, thick = width * draw(1.95, 2.2), draw(0.008, 0.012)
    corner, border = draw(0.006, 0.013), draw(0.003, 0.006)
    body = extrude(rounded_rectangle(width, length, corner), thick, bevel=0.0025)
    at = (width / 2, length * 0.2, thick / 2)
    keys = bevelled_box((0.002, length * 0.12, thick * 0.4), 0.0005, at)
    pane = extrude(rounded_rectangle(width - 0.002, length - 0.002, corner), 0.001, bevel=0.0004)
    ear = (0, length / 2 - border * 0.5, thick + 0.0008)
    bezel = [lifted(pane, thick - 0.0004), bevelled_box((width * 0.2, 0.002, 6e-4), 2e-4, ear)]
    inner = rounded_rectangle(width - 2 * border, length - 2 * border, corner * 0.7)
    glass = painted(lifted(extrude(inner, 0.001, bevel=0.0003), thick + 0.0001), 0, 1)
    dark, pale = flat((0.08, 0.08, 0.09), 0.5, 0.6), flat((0.9, 0.9, 0.9), 0.5, 0.6)
    case = draw.one((draw.plastic(), dark, draw.metal(0, 2, 4), pale))
    parts = [
        Part("case", merge([body, keys]), case),
        Part("bezel", merge(bezel), flat(BLACK, 0.6, 0.8)),
        screen(draw, glass, "phone"),
    ]
    if draw.chance(0.35):
        return parts, "table", None
    lean, sideways = draw(0.95, 1.3), draw.chance(0.2)
    if sideways:
        width, length = length, width
    rise, turn = length / 2 * np.sin(lean) + 0.012, QUARTER if sideways else 0.0
    for number, part in enumerate(parts):
        leaning = rotated(rotated(part.mesh, (0, 0, 1), turn), X, lean)
        parts[number] = replace(part, mesh=moved(leaning, (0, 0, rise)))
    skin = draw.one((draw.wood(), flat(draw.vivid(0.3, 0.6)), draw.metal(0, 4)))
    wide, half = width * draw(0.6, 0.95), length / 2
    reach = half * np.cos(lean)
    foot = bevelled_box((wide, 0.09, 0.012), 0.004, (0, 0.012 - reach * 0.4, 0.006))
    ledge = bevelled_box((wide, 0.012, 0.026), 0.003, (0, -reach - thick * 0.9 - 0.006, 0.013))
    prop = rotated(bevelled_box((wide * 0.6, 0.008, half * 1.2), 0.003), X, lean - QUARTER)
    dock = merge([foot, ledge, moved(prop, (0, 0.008, half * 0.62))])
    return [*parts, Part("dock", dock, skin)], "table", None


def laptop(draw: Draw) -> Drawn:
    """Returns a laptop: a keyboard and a lid with a screen, which lies on it face down."""
    width = draw(0.29, 0.39)
    depth, base = width * draw(0.62, 0.74), draw(0.012, 0.024)
    colour = draw.one((*LAPTOPS, draw.vivid(0.4, 0.7)))
    skin = flat(colour, 0.5, 0.6) if draw.chance(0.6) else draw.metal(0, 1, 4)
    outline = rounded_rectangle(width, depth, draw(0.006, 0.02))
    x, y = width / 2, depth / 2
    back = y - 0.006
    barrel = tube([(-x * 0.8, back, base), (x * 0.8, back, base)], 0.005, 8)
    near, far = (-x + 0.01, -y + 0.008, base - 0.002), (x - 0.01, y - 0.022, base + 0.0012)
    caps = draw.one(((0.08, 0.08, 0.09), shade(colour, 0.5), (0.9, 0.9, 0.9)))
    keyboard = picture("keyboard", (colour, caps, (0.6, 0.6, 0.62)), 0)
    thick = draw(0.006, 0.01)
    hinge = RoomJoint("hinge", (0, y - 0.006, base + 0.003), (-1, 0, 0), draw(2.2, 2.5))
    top = lifted(extrude(outline, thick, bevel=0.002), base + 0.002)
    end = (x - 0.003, y - 0.012, base + 0.003)
    rim = board((-x + 0.003, -y + 0.003, base + 0.0012), end, 5e-4)
    end = (x - 0.01, y - 0.025, base + 0.002)
    pane = board((-x + 0.01, -y + 0.012, base + 4e-4), end, 4e-4)
    upright = tiled(painted(pane, 0, 1), (1.0, -1.0), (0.0, 1.0))  # once the lid is raised
    badge = extrude(rounded_rectangle(0.03, 0.03, 0.012), 0.001, bevel=0.0004)
    badge = lifted(badge, base + thick + 0.0018)
    parts = [
        Part("base", merge([extrude(outline, base, bevel=0.003), barrel]), skin),
        Part("keys", painted(board(near, far, 0.0005), 0, 1), keyboard),
        Part("lid", top, skin, hinge),
        Part("rim", rim, flat((0.04, 0.04, 0.045)), parent="lid"),
        screen(draw, upright, "desktop", parent="lid"),
        Part("badge", badge, flat((0.95, 0.95, 0.97), 0.8, 0.9), parent="lid"),
    ]
    return parts, "table", None


def television(draw: Draw) -> Drawn:
    """Returns a television: a flat one on feet or on the wall, or an old deep one."""
    if draw.chance(0.2):
        return _old(draw)
    width, depth = draw(0.7, 1.35), draw(0.035, 0.06)
    height = width * draw(0.55, 0.62)
    hangs = draw.chance(0.25)
    rise = 0.0 if hangs else draw(0.05, 0.11)
    place = Front(-width / 2, width / 2, rise, rise + height, -depth / 2)
    x, face, z = place.middle
    border = draw(0.01, 0.03)
    casing = flat(draw.one(CASINGS), 0.5, 0.6)
    rim = moved(frame((width, height), border, 0.012, 0.003), (x, face + 0.012, z))
    pane = painted(place.slab(-0.004, 0.009, border * 0.9, 0.001), 0, 2)
    body = merge([place.slab(-0.008, depth, bevel=0.006), rim])
    parts = [Part("casing", body, casing), screen(draw, pane, "broadcast")]
    if hangs:
        bracket = bevelled_box((width * 0.4, 0.05, height * 0.4), 0.005, (x, depth / 2 + 0.025, z))
        return [*parts, Part("bracket", bracket, flat((0.1, 0.1, 0.1)))], "wall", None
    skin = casing if draw.chance(0.6) else draw.metal(0, 1)
    if draw.chance(0.5):
        plate = bevelled_box((width * 0.35, 0.2, 0.012), 0.005, (0, 0, 0.006))
        neck = bevelled_box((width * 0.1, 0.03, rise + 0.04), 0.004, (0, 0, rise / 2 + 0.015))
        feet = [plate, neck]
    else:
        feet = [
            tube([(x, y, 0.006), (x, y * 0.15, rise + 0.02)], 0.008, 6)
            for x in (-width * 0.36, width * 0.36)
            for y in (-0.11, 0.11)
        ]
    return [*parts, Part("feet", merge(feet), skin)], "table", None


def _old(draw: Draw) -> Drawn:
    stand, width = 0.03, draw(0.5, 0.7)
    depth, height = width * draw(0.55, 0.7), width * draw(0.75, 0.85)
    colour = draw.one(((0.2, 0.2, 0.21), draw.vivid(0.5, 0.7), (0.5, 0.5, 0.52)))
    shell = draw.wood() if draw.chance(0.5) else flat(colour, 0.4, 0.5)
    pane = Front(
        -width / 2 + 0.035,
        width / 2 - width * 0.2,
        stand + 0.05,
        stand + height - 0.05,
        -depth / 2 - 0.004,
    )
    x, face, z = pane.middle
    ring = frame((pane.width + 0.03, pane.height + 0.03), 0.016, 0.014, 0.004)
    trim = [moved(ring, (x, face + 0.006, z))]
    # Beside the screen two dials and a loudspeaker's grille, on top perhaps an aerial.
    side, front = width * 0.4, -depth / 2
    dial = rotated(lathe([(0.022, 0), (0.02, 0.018), (0, 0.02)], 14), X, QUARTER)
    trim += [moved(dial, (side, front, stand + height * share)) for share in (0.75, 0.58)]
    wide = width * 0.06
    trim += [
        board((side - wide, front - 0.004, z), (side + wide, front + 0.002, z + 0.006), 0.001)
        for z in stand + height * np.linspace(0.14, 0.42, 7)
    ]
    if draw.chance(0.6):
        root, up = (0, 0, stand + height), stand + height + width * 0.4
        trim += [tube([root, (s * width * 0.3, 0, up)], 0.004, 6) for s in SIGNS]
    body = soft_box((width, depth, height), 0.025, 2, (0, 0, stand + height / 2))
    size = (width * 0.7, depth * 0.3, height * 0.7)
    back = soft_box(size, 0.04, 1, (0, depth * 0.55, stand + height * 0.5))
    feet = [
        bevelled_box((0.04, 0.04, stand), 0.004, (sx * width * 0.4, sy * depth * 0.38, stand / 2))
        for sx, sy in CORNERS
    ]
    u, v = np.meshgrid(np.linspace(-1, 1, 7), np.linspace(-1, 1, 7))
    bulge = face - 0.018 * (1 - u**2) * (1 - v**2)
    points = np.stack([x + u * (pane.width / 2), bulge, z + v * (pane.height / 2)], axis=-1)
    parts = [
        Part("casing", merge([body, back, *feet]), shell),
        Part("trim", merge(trim), draw.metal(0, 2, 4)),
        screen(draw, painted(sheet(points, 0.004), 0, 2), "broadcast"),
    ]
    return parts, "table", None


def book(draw: Draw) -> Drawn:
    """Returns a book that lies on its back: hard covers that open on a printed page."""
    edge, inset = 0.0035, 0.005  # thickness of a cover; how far the pages stay behind its edges
    width = draw(0.13, 0.21)
    x, y, thick = width / 2, width * draw(0.6, 0.75), draw(0.018, 0.055)
    cloth = draw.vivid(0.6, 0.5)
    binding = draw.leather() if draw.chance(0.2) else flat(cloth, 0.15, 0.2)
    paper = draw.one(PAPERS)
    block = flat(paper, 0.05, 0.1)
    middle = edge + (thick - 2 * edge) * draw(0.51, 0.62)
    hinge = RoomJoint("hinge", (-x, 0, middle), (0, -1, 0), np.pi * draw(0.98, 1.1))

    def pages(low: float, high: float) -> Mesh:
        near, far = (-x + 0.004, -y + inset, low), (x - inset, y - inset, high)
        return board(near, far, min(0.0008, (high - low) * 0.3))

    back = board((-x, -y, 0), (x, y, edge), 0.0012)
    spine = board((-x - 0.003, -y, 0), (-x + 0.0015, y, thick), 0.0012)
    front = painted(board((-x, -y, thick - edge), (x, y, thick), 0.0012), 0, 1)
    page = painted(pages(0.0, 0.0008), 0, 1)
    left = tiled(page, (-1.0, 1.0), (1.0, 0.0))  # it is seen from behind
    right_print, letters = draw.picture("page", paper, INK), draw.one(LETTERS)
    cover = draw.picture("cover", cloth, draw.vivid(0.6, 0.7), letters)
    left_print = draw.picture("page", paper, INK)
    parts = [
        Part("back", merge([back, spine]), binding),
        Part("low", pages(edge, middle), block),
        Part("right", lifted(page, middle - 0.0004), right_print),
        Part("front", front, cover, hinge),
        Part("high", pages(middle + 0.0002, thick - edge), block, parent="front"),
        Part("left", lifted(left, middle - 0.0002), left_print, parent="front"),
    ]
    return parts, "table", None
