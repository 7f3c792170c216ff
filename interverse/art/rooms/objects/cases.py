"""Things with room inside: boxes, cabinets, chests of drawers, fridges, microwave ovens, safes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from interverse.art.meshes import (
    Mesh,
    bevelled_box,
    frame,
    lathe,
    merge,
    moved,
    painted,
    rotated,
    soft_box,
    tiled,
    tube,
)
from interverse.art.rooms.item import Drawn, Part, Rgb, RoomJoint, Surface, Triple
from interverse.art.rooms.kit import (
    CORNERS,
    TILE,
    Draw,
    Front,
    Tinted,
    board,
    carcass,
    flat,
    goods,
    grip,
    knob,
    legs,
    lining,
    picture,
    shade,
    tinted,
)

CARDS: tuple[Rgb, ...] = (
    (0.72, 0.54, 0.34),
    (0.62, 0.45, 0.27),
    (0.8, 0.64, 0.44),
    (0.9, 0.88, 0.84),
)
INKS: tuple[Rgb, ...] = ((0.15, 0.12, 0.1), (0.65, 0.12, 0.1), (0.1, 0.2, 0.5))
TAPES: tuple[Rgb, ...] = ((0.78, 0.66, 0.42), (0.85, 0.82, 0.75), (0.55, 0.38, 0.2))
PADDING: Rgb = (0.16, 0.11, 0.07)
WHITE: Rgb = (0.93, 0.94, 0.94)
FRIDGES: tuple[Rgb, ...] = (
    WHITE,
    WHITE,
    (0.86, 0.86, 0.82),
    (0.08, 0.08, 0.09),
    (0.7, 0.15, 0.14),
)
OVENS: tuple[Rgb, ...] = ((0.92, 0.92, 0.91), (0.1, 0.1, 0.11), (0.92, 0.92, 0.91))
BLACK: Rgb = (0.05, 0.05, 0.06)
KEYS: tuple[Rgb, ...] = ((0.15, 0.15, 0.16), (0.3, 0.3, 0.32), (0.6, 0.6, 0.62))
DIGITS: tuple[Rgb, ...] = ((0.2, 1.0, 0.5), (0.2, 0.7, 1.0), (1.0, 0.4, 0.1))
STEELS: tuple[Rgb, ...] = (
    (0.22, 0.24, 0.26),
    (0.14, 0.15, 0.16),
    (0.18, 0.28, 0.23),
    (0.38, 0.39, 0.40),
    (0.2, 0.23, 0.34),
    (0.36, 0.16, 0.14),
)
FELTS: tuple[Rgb, ...] = ((0.45, 0.06, 0.08), (0.08, 0.2, 0.12), (0.1, 0.12, 0.35))
GOLD: Rgb = (0.9, 0.68, 0.18)
NOTES: tuple[Rgb, ...] = ((0.45, 0.6, 0.4), (0.92, 0.9, 0.82))
DARK_WINDOW = picture("mesh_window", ((0.03, 0.03, 0.035), (0.12, 0.12, 0.13)), 0)
LIT_WINDOW = picture("mesh_window", ((0.12, 0.08, 0.03), (1.0, 0.72, 0.3)), 0, 0.75)
QUARTER = np.pi / 2


def box(draw: Draw) -> Drawn:
    """Returns a cardboard box: four flaps on top, tape, labels, and something packed inside."""
    wall, thin = 0.006, 0.004
    width, depth, height = draw(0.26, 0.55), draw(0.22, 0.42), draw(0.16, 0.42)
    colour = draw.one((*CARDS, draw.vivid(0.4, 0.7)))
    dark = shade(colour, 0.8)
    printed = draw.pattern("parcel", dark, colour, draw.one(INKS))
    plain = draw.pattern("cardboard", dark, colour)
    outside, card = (Surface(texture=t, specular=0.05, shininess=0.1) for t in (printed, plain))
    x, y = width / 2, depth / 2
    inner = y - wall
    walls = (  # the whole print on each
        ((-x, -y, 0), (x, -inner, height), 0),
        ((-x, inner, 0), (x, y, height), 0),
        ((-x, -inner, 0), (-x + wall, inner, height), 1),
        ((x - wall, -inner, 0), (x, inner, height), 1),
    )
    sides = [painted(board(low, high, 0.002), across, 2) for low, high, across in walls]
    ix, iy, level = x - wall, y - wall, height * 0.35
    packed: list[Tinted] = [(board((-ix, -iy, wall), (ix, iy, level)), PADDING)]
    for column in (-1, 0, 1):
        for row in (-0.5, 0.5):
            tall = height * draw(0.1, 0.45)
            centre = (column * width * 0.29, row * depth * 0.42, level + tall / 2)
            lump = soft_box((width * 0.26, depth * 0.36, tall), 0.015, 1, centre)
            packed.append((lump, draw.vivid()))
    parts = [
        Part("sides", merge(sides), outside),
        Part("bottom", board((-x, -y, 0.001), (x, y, wall), 0.002), card),
        tinted("packed", packed),
    ]
    tape = flat(draw.one(TAPES), 0.6, 0.7)
    low, high = height, height + thin + 0.001
    reach = min(y, x) * 0.98
    flaps: dict[str, tuple[Triple, Triple, Triple, Triple]] = {
        "left": ((-x, -y, low), (-x + reach, y, low + thin), (-x, 0, low), (0, -1, 0)),
        "right": ((x - reach, -y, low), (x, y, low + thin), (x, 0, low), (0, 1, 0)),
        "front": ((-x, -y, high), (x, -0.001, high + thin), (0, -y, low), (1, 0, 0)),
        "back": ((-x, 0.001, high), (x, y, high + thin), (0, y, low), (-1, 0, 0)),
    }
    for name, (near, far, origin, axis) in flaps.items():
        hinge = RoomJoint("hinge", origin, axis, draw(2.4, 3.1))
        parts.append(Part(name, board(near, far, 0.001), card, hinge))
    if draw.chance(0.7):
        for name, sign in (("front", -1), ("back", 1)):
            y0, y1 = sorted((0.0005 * sign, 0.028 * sign))
            strip = board((-x, y0, high + thin - 0.001), (x, y1, high + thin + 0.001), 0.0005)
            parts.append(Part(f"tape_{name}", strip, tape, parent=name))
    return parts, draw.one(("floor", "floor", "table")), None


def cabinet(draw: Draw) -> Drawn:
    """Returns a cabinet on the floor or the wall: panelled doors, jars and packets inside."""
    wall, thick = 0.02, 0.022
    hangs = draw.chance(0.25)
    count = 1 if draw.chance(0.3) else 2
    width = draw(0.38, 0.55) if count == 1 else draw(0.65, 1.1)
    height = draw(0.6, 0.85) if hangs else draw(0.7, 1.35)
    depth = draw(0.3, 0.45)
    stand = 0.0 if hangs else draw.one((0.06, draw(0.1, 0.2)))
    body = draw.wood() if draw.chance(0.55) else draw.paint()
    x, y, top = width / 2, depth / 2, stand + height
    case = [carcass((width, depth, height), wall, front=thick, floor=stand)]
    if not hangs:
        case.append(board((-x - 0.015, -y - 0.012, top), (x + 0.015, y, top + 0.025), 0.006))
    if stand > 0.06:
        case.append(legs((width, depth, stand), 0.05, 0.05, 0.02))
    elif stand > 0:
        case.append(board((-x + 0.01, -y + 0.04, 0), (x - 0.01, y, stand)))
    # Inside: a back, shelves and what stands on them.
    low, high = stand + wall, top - wall
    ix, y0, y1 = x - wall, -depth / 2 + thick + 0.02, y - wall
    levels = np.linspace(low, high, draw.count(2, 4) + 1)
    boards = [board((-ix, y0, z - 0.009), (ix, y1, z + 0.009)) for z in levels[1:-1]]
    back = board((-ix, y1 - 0.004, low), (ix, y1 + 0.001, high))
    things = []
    for z, above in pairwise(levels):
        near, far = (-ix + 0.02, y0 + 0.03, z + 0.009), (ix - 0.02, y1 - 0.02, above - 0.03)
        things += goods(draw, near, far, draw.count(3, 7))
    parts = [
        Part("case", merge(case), body),
        Part("back", back, flat((0.2, 0.16, 0.13), 0.1, 0.2)),
        tinted("things", things),
        Part("shelves", merge(boards), draw.wood()),
    ]
    skin = body if draw.chance(0.7) else draw.one((draw.wood(), draw.paint()))
    style = draw.one(("slab", "frame", "frame", "raised"))
    pull = knob(draw, 0.015) if draw.chance(0.5) else grip(draw, draw(0.1, 0.25), 0.03)
    metalwork, travel = draw.metal(), draw(2.0, 2.3)
    for number, (x0, x1) in enumerate(pairwise(np.linspace(-width / 2, width / 2, count + 1))):
        place = Front(x0 + 0.002, x1 - 0.002, stand + 0.003, stand + height - 0.003, -depth / 2)
        left = number == 0 if count == 2 else draw.chance(0.5)
        handle = place.right - 0.035 if left else place.left + 0.035
        at = (handle, place.face, stand + height * (0.6 if stand else 0.3))
        name, slab = f"door{number}", _panelled(style, place, thick)
        parts += [
            Part(name, slab, skin, place.hinge(thick, travel, left=left)),
            Part(f"{name}_pull", moved(pull, at), metalwork, parent=name),
        ]
    return parts, "wall" if hangs else "floor", None


def _panelled(style: str, place: Front, thick: float) -> Mesh:
    """Returns a cabinet's door: a slab, or a frame round a sunken or a raised field."""
    if style == "slab":
        return place.slab(0, thick - 0.002, bevel=0.006)
    border = min(0.07, place.width * 0.2)
    x, face, z = place.middle
    rim = frame((place.width, place.height), border, thick - 0.002, 0.005)
    sunk = -0.009 if style == "frame" else -0.001
    found = [tiled(moved(rim, (x, face + thick - 0.002, z)), TILE)]
    found.append(place.slab(sunk, thick - 0.004, border * 0.9, 0.003))
    if style == "raised":
        found.append(place.slab(0.006, 0.006, border * 1.5, 0.006))
    return merge(found)


def drawer(draw: Draw) -> Drawn:
    """Returns a chest of drawers: rows of fronts, one or two of which slide out."""
    wall = thick = 0.02
    rows = draw.count(2, 6)
    columns = 2 if draw.chance(0.25) else 1
    width = draw(0.42, 0.62) * (1.5 if columns == 2 else 1.0)
    depth, height = draw(0.38, 0.5), rows * draw(0.16, 0.23) + 2 * wall
    stand = draw(0.08, 0.18) if draw.chance(0.5) else 0.03
    body = draw.wood() if draw.chance(0.6) else draw.paint()
    pull, pulls = knob(draw, draw(0.012, 0.02)), draw.one((1, 2))
    if draw.chance(0.5):
        pull, pulls = rotated(grip(draw, draw(0.1, 0.2), 0.025), (0, 1, 0), QUARTER), 1
    skin = body if draw.chance(0.7) else draw.one((draw.wood(), draw.paint()))
    metalwork = draw.metal() if draw.chance(0.7) else draw.wood()
    inset = draw(0.0, 0.03)  # of a raised field; without one below 0.012
    edges = np.linspace(-width / 2 + wall / 2, width / 2 - wall / 2, columns + 1)
    levels = np.linspace(stand + wall, stand + height - wall, rows + 1)
    fronts = [
        Front(x0 + 0.003, x1 - 0.003, z0 + 0.003, z1 - 0.003, -depth / 2)
        for z0, z1 in pairwise(levels)
        for x0, x1 in pairwise(edges)
    ]
    faces = []  # of each drawer, and what one pulls it by
    for front in fronts:
        slab = front.slab(0, thick, bevel=0.005)
        if inset > 0.012:
            slab = merge([slab, front.slab(0.006, 0.002, inset, 0.005)])
        x, face, z = front.middle
        apart = front.width * 0.28
        places = [x] if pulls == 1 else [x - apart, x + apart]
        faces.append((slab, merge([moved(pull, (place, face, z)) for place in places])))
    upper = np.arange(len(fronts) // 2, len(fronts))  # where one can see into them
    moving = draw.choice(upper, size=min(len(upper), 1 + int(draw.chance(0.4))), replace=False)
    x, y, top = width / 2, depth / 2, stand + height
    case = [carcass((width, depth, height), wall, front=thick, floor=stand)]
    case.append(board((-x - 0.012, -y - 0.01, top), (x + 0.012, y, top + 0.022), 0.006))
    if stand > 0.05:
        case.append(legs((width, depth, stand), 0.05, 0.05))
    else:
        case.append(board((-x + 0.01, -y + 0.03, 0), (x - 0.01, y, stand)))
    parts = [Part("case", merge(case), body)]
    still = [faces[n] for n in range(len(fronts)) if n not in moving]
    if still:
        slabs, handles = zip(*still, strict=True)
        parts += [Part("fronts", merge(slabs), skin), Part("pulls", merge(handles), metalwork)]
    tray = draw.wood()
    for number in moving:
        front, (slab, handle), name = fronts[number], faces[number], f"drawer{number}"
        slide = RoomJoint("slide", (0, 0, 0), (0, -1, 0), depth * draw(0.75, 0.95))
        parts += [
            Part(name, slab, skin, slide),
            Part(f"{name}_tray", _tray(front, thick, depth), tray, parent=name),
            tinted(f"{name}_clothes", _clothes(draw, front, depth), parent=name),
            Part(f"{name}_pull", handle, metalwork, parent=name),
        ]
    return parts, "floor", None


def _tray(front: Front, thick: float, depth: float) -> Mesh:
    a, b = front.left + 0.015, front.right - 0.015
    y0, y1 = front.face + thick, depth / 2 - 0.04
    low, top = front.low + 0.01, front.low + front.height * 0.75
    boards = [
        board((a, y0, low), (b, y1, low + 0.01)),
        board((a, y0, low), (a + 0.01, y1, top)),
        board((b - 0.01, y0, low), (b, y1, top)),
        board((a, y1 - 0.01, low), (b, y1, top)),
    ]
    return merge(boards)


def _clothes(draw: Draw, front: Front, depth: float) -> list[Tinted]:
    count = max(2, int(front.width / 0.16))
    pitch = (front.width - 0.06) / count
    found = []
    for number in range(count):
        x = front.left + 0.03 + (number + 0.5) * pitch
        for layer in range(2):
            size = (pitch * 0.92, depth * draw(0.55, 0.8), front.height * draw(0.2, 0.3))
            z = front.low + 0.022 + (layer + 0.5) * front.height * 0.28
            found.append((soft_box(size, 0.02, 1, (x, -0.02, z)), draw.vivid(0.45, 0.75)))
    return found


def fridge(draw: Draw) -> Drawn:
    """Returns a fridge: one door, a freezer above or below, or two doors; shelves with food."""
    thick, wall, plinth = 0.055, 0.035, 0.04
    width, depth, top = draw(0.55, 0.85), draw(0.58, 0.7), draw(1.35, 1.95)
    if draw.chance(0.12):
        width, top = draw(0.5, 0.56), draw(0.8, 0.95)
    if draw.chance(0.35):
        skin = draw.metal(0, 0, 1)
    else:
        skin = flat(draw.one((*FRIDGES, draw.vivid(0.35, 0.8))), 0.6, 0.6)
    chrome = draw.metal(0, 0, 4)
    style = draw.one(("whole", "above", "below", "double"))
    freezer = (top - plinth) * draw(0.26, 0.36)
    low = plinth + (freezer if style == "below" else 0.0)
    high = top - (freezer if style == "above" else 0.0)
    front = Front(-width / 2, width / 2, low + 0.003, high - 0.003, -depth / 2)
    on_left = draw.chance(0.5)
    hollow = lining((width, depth, high - low), wall, front=thick, floor=low)
    foot = board(
        (-(width / 2 - 0.02), -depth / 2 + thick, 0), (width / 2 - 0.02, depth / 2, plinth)
    )
    case = carcass((width, depth, top - plinth), wall, front=thick, floor=plinth)
    parts = [
        Part("case", case, skin),
        Part("lining", hollow, flat(WHITE)),
        Part("plinth", foot, flat((0.1, 0.1, 0.11))),
    ]
    shelf, lid = low + wall, high - wall
    levels = np.linspace(shelf, lid, max(2, int((lid - shelf) / draw(0.24, 0.34))) + 1)
    x, y0, y1 = width / 2 - wall - 0.004, -depth / 2 + thick + 0.03, depth / 2 - wall - 0.004
    boards = [board((-x, y0, z - 0.006), (x, y1, z + 0.006)) for z in levels[1:-1]]
    food: list[Tinted] = []
    for z, above in pairwise(levels):
        near, far = (-x + 0.01, y0 + 0.04, z + 0.008), (x - 0.01, y1 - 0.02, above - 0.02)
        food += goods(draw, near, far, draw.count(3, 6))
    glass = Surface(rgba=(0.75, 0.85, 0.86, 1.0), specular=0.6, shininess=0.7)
    parts += [Part("shelves", merge(boards), glass), tinted("food", food)]

    def panel(place: Front) -> Mesh:
        x, face, z = place.middle
        size = (place.width, thick - 0.004, place.height)
        return soft_box(size, 0.018, 2, (x, face + (thick - 0.004) / 2, z))

    def pull(place: Front, share: float, *, left: bool) -> Mesh:
        """Returns a handle on the side away from the hinge."""
        x = place.right - 0.055 if left else place.left + 0.055
        z = place.low + place.height * (0.62 if place.low < 0.4 else 0.4)
        return moved(grip(draw, min(0.6, place.height * share), 0.045), (x, place.face, z))

    halves, travel = [front], draw(1.9, 2.15)
    if style == "double":
        halves = [front._replace(right=-0.002), front._replace(left=0.002)]
    for number, place in enumerate(halves):
        left = number == 0 if style == "double" else on_left
        name, back = f"door{number}", place.face + thick
        x0, x1 = place.left + 0.06, place.right - 0.06
        racks, food = [place.slab(0.004 - thick, thick + 0.004, 0.05)], []
        for z in np.arange(place.low + 0.12, place.high - 0.25, draw(0.3, 0.4)):
            racks.append(board((x0, back, z), (x1, back + 0.09, z + 0.012)))
            racks.append(board((x0, back + 0.08, z), (x1, back + 0.09, z + 0.07)))
            near, far = (x0 + 0.01, back + 0.01, z + 0.012), (x1 - 0.01, back + 0.08, z + 0.25)
            food += goods(draw, near, far, max(2, int((x1 - x0) / 0.12)))
        handle = pull(place, draw(0.25, 0.6), left=left)
        parts += [
            Part(name, panel(place), skin, place.hinge(thick, travel, left=left)),
            Part(f"{name}_pull", handle, chrome, parent=name),
            Part(f"{name}_racks", merge(racks), flat(WHITE), parent=name),
        ]
        if food:
            parts.append(tinted(f"{name}_food", food, parent=name))
    if style in ("above", "below"):
        z0, z1 = (high, top) if style == "above" else (plinth, low)
        place = front._replace(low=z0 + 0.003, high=z1 - 0.003)
        parts.append(Part("freezer", panel(place), skin))
        parts.append(Part("freezer_pull", pull(place, 0.5, left=on_left), chrome))
    return parts, "floor", None


def microwave(draw: Draw) -> Drawn:
    """Returns a microwave oven: a dark window, a panel with a clock, a lit turntable inside."""
    thick, wall, foot = 0.03, 0.022, 0.012
    width, depth, height = size = (draw(0.43, 0.56), draw(0.31, 0.4), draw(0.25, 0.33))
    colour = draw.one((*OVENS, draw.vivid(0.4, 0.75)))
    skin = draw.metal(0, 1) if draw.chance(0.35) else flat(colour, 0.5, 0.6)
    split = width / 2 - width * draw(0.2, 0.28)
    low, high = foot + 0.004, foot + height - 0.004
    door = Front(-width / 2, split - 0.002, low, high, -depth / 2)
    panel = Front(split + 0.002, width / 2, low, high, -depth / 2)
    case = [carcass(size, wall, front=thick, floor=foot), panel.slab(0, thick, bevel=0.006)]
    x, y = width / 2 - 0.04, depth / 2 - 0.04
    feet = [
        bevelled_box((0.03, 0.03, foot), 0.003, (sx * x, sy * y, foot / 2)) for sx, sy in CORNERS
    ]
    # The cavity, which is lit while the oven runs, a glass dish and a bowl on it.
    hollow = lining(size, wall, front=thick, floor=foot)
    near, far = (split, -depth / 2 + thick, foot + 0.01), (split + 0.012, depth / 2 - 0.01)
    side = board(near, (*far, foot + height - 0.01))
    dish = lathe([(0, 0), (0.12, 0), (0.125, 0.006), (0.118, 0.01), (0, 0.006)], 20)
    rim = [(0.075, 0.06), (0.07, 0.06), (0.045, 0.02), (0, 0.02)]
    bowl = lathe([(0, 0.01), (0.05, 0.01), *rim], 16)
    middle = ((split - width / 2) / 2, 0.02, foot + wall + 0.004)
    glow = Surface(rgba=(1.0, 0.85, 0.55, 1.0), emission=0.55)
    grey, glass = flat((0.78, 0.76, 0.72)), flat((0.7, 0.78, 0.8), 0.7, 0.8)
    parts = [
        Part("case", merge([*case, merge(feet)]), skin),
        Part("lining", merge([hollow, side]), grey, alternate={"on": glow}),
        Part("dish", moved(dish, middle), glass),
        Part("bowl", moved(bowl, middle), flat(draw.vivid(), 0.5, 0.6)),
    ]
    keys = draw.one(KEYS)
    seed = draw.variant()
    dark = picture("clock", (BLACK, keys, (0.1, 0.22, 0.14)), seed)
    lit = picture("clock", (BLACK, keys, draw.one(DIGITS)), seed, 0.7)
    face = painted(panel.slab(0.002, 0.004, 0.012, 0.001), 0, 2)
    parts.append(Part("panel", face, dark, alternate={"on": lit}))
    border = draw(0.03, 0.05)
    hole = door._replace(right=door.right - border * 0.5)
    panes = [hole.slab(0.003, 0.003, border, 0.002), hole.slab(4e-3 - thick, thick, border, 0.002)]
    pull = grip(draw, door.height * draw(0.55, 0.8), 0.03)
    pull = moved(pull, (door.right - 0.02, door.face, door.middle[2]))
    hinge = door.hinge(thick, draw(1.9, 2.2), left=True)
    window = painted(merge(panes), 0, 2)
    parts += [
        Part("door", door.slab(0, thick - 0.002, bevel=0.006), skin, hinge),
        Part("window", window, DARK_WINDOW, parent="door", alternate={"on": LIT_WINDOW}),
        Part("pull", pull, draw.metal(0, 4), parent="door"),
    ]
    return parts, "counter", None


def safe(draw: Draw) -> Drawn:
    """Returns a safe: thick-walled steel with a wheel or a keypad; gold and papers inside."""
    wall, foot = 0.045, 0.02
    width, depth, height = size = (draw(0.36, 0.55), draw(0.36, 0.48), draw(0.36, 0.75))
    colour = draw.one(STEELS)
    skin = draw.pattern("iron", shade(colour, 0.75), shade(colour, 1.15)).skin(0.5, 0.4)
    gap = wall * 0.55
    x = width / 2 - gap
    door = Front(-x, x, foot + gap, foot + height - gap, -depth / 2)
    left = draw.chance(0.5)
    slab = [door.slab(0, 0.02, bevel=0.007), door.slab(-0.015, 0.05, 0.025, 0.005)]
    slab.append(door.slab(0.006, 0.002, 0.03, 0.006))
    hinge = door.hinge(0.004, draw(1.9, 2.2), left=left)
    edge = door.left if left else door.right
    pins = [
        tube([(edge, door.face, z), (edge, door.face, z + 0.06)], 0.012, 8)
        for z in (door.low + 0.04, door.high - 0.1)
    ]
    fittings = merge([_wheel(draw, door, left=left), merge(pins)])
    bright = draw.metal(0, 2, 2)
    x, y = width / 2 - 0.06, depth / 2 - 0.06
    feet = [
        board((sx * x - 0.025, sy * y - 0.025, 0), (sx * x + 0.025, sy * y + 0.025, foot))
        for sx, sy in CORNERS
    ]
    middle, x = foot + height * 0.5, width / 2 - wall
    hollow = lining(size, wall, front=0.07, floor=foot)
    shelf = board((-x, -depth / 2 + 0.08, middle - 0.006), (x, depth / 2 - wall, middle + 0.006))
    felt = flat(draw.one(FELTS), 0.05, 0.1)

    def piles(z: float, deep: float, tall: float, colour: Rgb) -> list[Tinted]:
        """Returns bars or bundles in piles, side by side at a height."""
        wide, y = 0.09, -depth / 2 + 0.14
        found: list[Tinted] = []
        for column in range(int((2 * x - 0.03) / (wide * 1.12))):
            near = -x + 0.02 + column * wide * 1.12
            for layer in range(draw.count(1, 4)):
                low = (near, y, z + layer * tall)
                high = (near + wide, y + deep, z + (layer + 0.93) * tall)
                found.append((board(low, high, 0.003), colour))
        return found

    treasure = piles(foot + wall + 0.004, 0.045, 0.026, GOLD)
    treasure += piles(middle + 0.008, 0.1, 0.022, draw.one(NOTES))
    parts = [
        Part("case", merge([carcass(size, wall, front=0.012, floor=foot), *feet]), skin),
        Part("lining", merge([hollow, shelf]), felt),
        tinted("treasure", treasure),
        Part("door", merge(slab), skin, hinge),
        Part("fittings", fittings, bright, parent="door"),
    ]
    if draw.chance(0.5):
        x, face, _ = door.middle
        near = (x - 0.05, face - 0.016, door.high - 0.17)
        pad = painted(board(near, (x + 0.05, face - 0.004, door.high - 0.045)), 0, 2)
        keys = ((0.06, 0.06, 0.07), (0.75, 0.75, 0.77), (0.2, 0.9, 0.4))
        parts.append(Part("pad", pad, draw.picture("clock", *keys, emission=0.1), parent="door"))
    return parts, "floor", None


def _wheel(draw: Draw, door: Front, *, left: bool) -> Mesh:
    x, face, z = door.middle
    size = min(door.width, door.height) * draw(0.17, 0.24)
    hub = lathe([(size * 0.35, 0), (size * 0.35, 0.02), (size * 0.25, 0.035), (0, 0.037)], 16)
    found, spokes = [hub], draw.one((3, 4, 5))
    end = lathe([(0, -0.012), (0.012, 0), (0, 0.012)], 8)
    for turn in 2 * np.pi * np.arange(spokes) / spokes + 0.3:
        tip = (size * np.cos(turn), size * np.sin(turn), 0.028)
        found += [tube([(0, 0, 0.028), tip], 0.007, 6), moved(end, tip)]
    if draw.chance(0.5):
        turn = np.linspace(0, 2 * np.pi, 21)
        ring = np.stack([size * np.cos(turn), size * np.sin(turn), np.full(21, 0.028)], axis=1)
        found.append(tube(ring, 0.008, 6))
    aside = door.width * (0.08 if left else -0.08)
    return moved(rotated(merge(found), (1, 0, 0), QUARTER), (x + aside, face - 0.006, z - 0.03))
