"""Furniture and clutter: each builder draws one piece that cannot be acted on.

A piece faces -y, its footprint is centred on x = y = 0 and it stands on z = 0. Parts of one surface
are one mesh, for every mesh costs a draw call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from interverse.art.meshes import (
    Mesh,
    bevelled_box,
    frame,
    lathe,
    lifted,
    merge,
    moved,
    painted,
    rotated,
    sheet,
    soft_box,
    tiled,
    tube,
)
from interverse.art.rooms.item import RoomTexture, Surface
from interverse.art.rooms.kit import (
    RIM,
    SIGNS,
    VIVID,
    WOODS,
    Draw,
    Prop,
    Top,
    ball,
    bar,
    flat,
    grained,
    posts,
)

Span = tuple[float, float]
X, UP = (1, 0, 0), (0, 0, 1)
POTS = ((0.7, 0.4, 0.28), (0.85, 0.83, 0.8), (0.3, 0.32, 0.35))
STONES = ((0.85, 0.83, 0.8), (0.35, 0.34, 0.35), (0.65, 0.6, 0.55), (0.6, 0.45, 0.3))
TILES = ((0.92, 0.92, 0.9), (0.6, 0.72, 0.72), (0.75, 0.7, 0.6), (0.35, 0.45, 0.5))
KITCHENS = (*WOODS, (0.93, 0.92, 0.9), (0.35, 0.45, 0.45), (0.25, 0.3, 0.4))
GLASSES = ((0.1, 0.3, 0.15), (0.35, 0.2, 0.08), (0.6, 0.7, 0.75))
FRUITS = ((0.75, 0.2, 0.12), (0.9, 0.55, 0.12), (0.55, 0.68, 0.2))


def _top(width: float, depth: float, height: float, back: float = RIM) -> Top:
    """Returns the level top of a piece; at the back things may stand so near to the edge."""
    x, y = width / 2 - RIM, depth / 2
    return Top(low=(-x, -y + RIM), high=(x, y - back), height=height)


# ---------------------------------------------------------------------- plants, seats and tables


def plant(draw: Draw) -> Prop:
    """Returns a plant in a pot, as high as a hip."""
    radius, tall = draw(0.13, 0.18), draw(0.24, 0.34)
    outline = [(0, 0), (radius * 0.75, 0), (radius, tall), (radius * 1.05, tall)]
    pot = lathe([*outline, (radius * 0.95, tall - 0.02), (0, tall - 0.03)], 20)
    count, height = draw.count(12, 18), draw(0.5, 0.9)
    leaves = []
    for number in range(count):  # each rises from the pot and bends over, seen from both sides
        length = height * draw(0.6, 1.0)
        bend, lean = draw(0.6, 1.3), draw(0.25, 0.6)
        t = np.linspace(0, 1, 6)
        out, up = length * lean * t * (0.4 + t), length * (t - 0.25 * bend * t**3)
        half = 0.06 * length * np.sin(np.pi * np.clip(t * 0.93 + 0.05, 0, 1)) * 1.6
        lines = [np.stack([out, s * half, up + (tall - 0.03)], axis=1) for s in (-1.0, 0.0, 1.0)]
        rows = np.stack(lines, axis=1)
        rows[:, 1, 2] -= 0.012
        leaves.append(rotated(sheet(rows, 0.002), UP, 2.4 * number + draw(-0.4, 0.4)))
    green = draw.near((0.22, 0.42, 0.18))
    leaf = draw.textured("foliage", green, contrast=0.5).skin(0.15)
    clay = draw.textured("plain", draw.pick(POTS)).skin()
    return Prop("plant", ((pot, clay), (merge(leaves), leaf)))


def _seat(draw: Draw, name: str, most: int) -> Prop:
    """Returns an upholstered seat for one, or a bench for two or more: cushions, arms, feet."""
    places = 1 if most == 1 else draw.count(2, most + 1)
    cover, cushion, wood = draw.fabric(), draw.fabric(), draw.timber()
    arm, depth, seat = draw(0.12, 0.2), draw(0.8, 0.92), draw(0.4, 0.45)
    pitch = draw(0.56, 0.66)
    width, back = places * pitch + 2 * arm, draw(0.74, 0.9)
    x = width / 2
    size = (width - 2 * arm, depth, seat - 0.22)
    soft = [
        soft_box(size, 0.03, 2, (0, 0, (seat - 0.22) / 2 + 0.08)),
        soft_box((width, 0.2, back - 0.08), 0.07, 3, (0, depth / 2 - 0.1, (back + 0.08) / 2)),
    ]
    soft += [
        soft_box((arm, depth, seat + 0.1), 0.06, 3, (s * (x - arm / 2), 0, (seat + 0.1) / 2 + 0.08))
        for s in SIGNS
    ]
    middles = [-places * pitch / 2 + (i + 0.5) * pitch for i in range(places)]
    size = (pitch - 0.01, depth - 0.22, 0.16)
    soft += [soft_box(size, 0.05, 3, (m, -0.1, seat - 0.07)) for m in middles]
    y = depth / 2 - 0.26
    for m in middles:
        upright = soft_box((pitch - 0.02, 0.16, 0.42), 0.06, 3, (m, y, seat + 0.2))
        soft.append(rotated(upright, X, -0.15, (m, y, seat)))
    feet = merge(posts((width, depth, 0.09), 0.05, 0.05))
    parts = [(merge([tiled(m, 2.5) for m in soft]), cover), (feet, wood)]
    if places > 1 and draw.random() < 0.8:
        lean, pillows = rotated(soft_box((0.42, 0.13, 0.4), 0.06, 3), X, -0.35), []
        for s in SIGNS:
            place = (s * (x - arm - 0.22), depth / 2 - 0.42, 0)
            pillows.append(lifted(moved(rotated(lean, UP, s * 0.3), place), seat + 0.22))
        parts.append((merge([tiled(m, 2.5) for m in pillows]), cushion))
    return Prop(name, tuple(parts))


def chair(draw: Draw) -> Prop:
    """Returns a wooden chair with a back of slats."""
    wood, width, height = draw.timber(), 0.42, 0.45
    parts = posts((width, 0.42, height), 0.035, 0.01)
    parts.append(bar((-width / 2, -0.21, height - 0.03), (width / 2, 0.21, height), 0.01))
    parts += [
        bar((s * 0.185 - 0.018, 0.17, height), (s * 0.185 + 0.018, 0.205, 0.88)) for s in SIGNS
    ]
    parts += [bar((-0.19, 0.175, z), (0.19, 0.198, z + 0.05)) for z in (0.58, 0.68, 0.80)]
    pad = soft_box((width - 0.03, 0.38, 0.04), 0.018, 2, (0, -0.01, height + 0.018))
    return Prop("chair", ((merge(grained(parts)), wood), (tiled(pad, 2), draw.fabric())))


def table(draw: Draw) -> Prop:
    """Returns a dining table on four legs or on a round foot."""
    height, width, depth = 0.74, draw(1.1, 1.6), draw(0.7, 0.9)
    thick, wood = draw(0.025, 0.045), draw.timber()
    top = height - thick
    if draw.random() < 0.7:
        under = posts((width, depth, top), draw(0.05, 0.08), 0.04)
        x, y, z = (width - 0.14) / 2, (depth - 0.14) / 2, top - 0.09
        under += [bar((-x, s * y - 0.01, z), (x, s * y + 0.01, top)) for s in SIGNS]
        under += [bar((s * x - 0.01, -y, z), (s * x + 0.01, y, top)) for s in SIGNS]
    else:
        foot = [(0, 0), (0.30, 0), (0.30, 0.02), (0.05, 0.06), (0.05, top - 0.04)]
        under = [lathe([*foot, (0.30 * 0.6, top), (0, top)], 24)]
    leg = wood if draw.random() < 0.6 else draw.lacquer(((0.9, 0.9, 0.88), (0.1,) * 3))
    slab = bar((-width / 2, -depth / 2, top), (width / 2, depth / 2, height), 0.008)
    return _board_on("table", (slab, wood), (under, leg), height)


def low_table(draw: Draw) -> Prop:
    """Returns a coffee table with a board below."""
    width, depth, height = draw(0.8, 1.2), draw(0.5, 0.65), draw(0.38, 0.48)
    wood, x, y = draw.timber(), width / 2, depth / 2
    top = bar((-x, -y, height - 0.035), (x, y, height), 0.008)
    under = posts((width, depth, height - 0.035), 0.05, 0.03)
    under.append(bar((-x + 0.05, -y + 0.05, 0.12), (x - 0.05, y - 0.05, 0.14)))
    return _board_on("low table", (top, wood), (under, wood), height)


def _board_on(
    name: str, top: tuple[Mesh, Surface], under: tuple[Sequence[Mesh], Surface], height: float
) -> Prop:
    low, high = top[0].bounds
    slab, below = tiled(top[0], 1.1), merge(grained(under[0]))
    parts = [(slab, top[1]), (below, under[1])]
    if under[1] is top[1]:
        parts = [(merge([slab, below]), top[1])]
    return Prop(name, tuple(parts), (_top(high[0] - low[0], high[1] - low[1], height),))


def desk(draw: Draw) -> Prop:
    """Returns a writing desk with a block of drawers on one side."""
    width, depth, height = draw(1.1, 1.5), draw(0.6, 0.75), draw(0.72, 0.78)
    wood, front = draw.timber(), draw.timber()
    face = -depth / 2
    wooden = [bar((-width / 2, face, height - 0.03), (width / 2, depth / 2, height), 0.006)]
    side = 1 if draw.random() < 0.5 else -1
    x, far = side * (width / 2 - 0.24), -side * (width / 2 - 0.04)
    wooden.append(bar((x - 0.2, face + 0.03, 0.05), (x + 0.2, depth / 2 - 0.02, height - 0.03)))
    for y in (s * (depth / 2 - 0.05) for s in SIGNS):
        wooden.append(bar((far - 0.025, y - 0.025, 0), (far + 0.025, y + 0.025, height - 0.03)))
    rows = [
        bar((x - 0.18, face + 0.012, z), (x + 0.18, face + 0.032, 0.26 + 0.21 * i), 0.004)
        for i, z in enumerate(0.07 + 0.21 * i for i in range(3))
    ]
    knobs = [ball((x, face + 0.005, 0.17 + 0.21 * i)) for i in range(3)]
    parts = (
        (merge(grained(wooden)), wood),
        (merge(grained(rows)), front),
        (merge(knobs), draw.hardware()),
    )
    return Prop("desk", parts, (_top(width, depth, height),))


def bookshelf(draw: Draw) -> Prop:
    """Returns an open shelf full of books, a little room left on some boards."""
    width, y, height = draw(0.7, 1.1), 0.3 / 2, draw(1.4, 2.0)
    rows = int(height / 0.36)
    wood, pitch = draw.timber(), height / rows
    half = width / 2
    case = [bar((s * half - 0.01, -y, 0), (s * half + 0.01, y, height)) for s in SIGNS]
    case += [bar((-half, -y, k * pitch), (half, y, k * pitch + 0.02)) for k in range(rows)]
    case.append(bar((-half - 0.01, -y, height - 0.02), (half + 0.01, y, height)))
    case.append(bar((-half, y - 0.01, 0), (half, y, height), 0.002))
    books = []
    for row in range(rows):
        filled = draw(0.35, 1.0) * (width - 0.06)
        tall = pitch * draw(0.6, 0.8)
        at = -half + 0.02 if draw.random() < 0.5 else half - 0.02 - filled
        foot = row * pitch + 0.02
        block = bar((at, -y + 0.04, foot), (at + filled, y - 0.03, foot + tall), 0.004)
        books.append(tiled(block, (2.6, 1 / tall), (draw.uniform(), 0)))
    colours = tuple(draw.pick(VIVID) for _ in range(5))
    spines = RoomTexture(kind="spines", colours=colours, seed=draw.variant(8)).skin(0.1)
    return Prop("bookshelf", ((merge(grained(case)), wood), (merge(books), spines)))


# ------------------------------------------------------------------------------------- cupboards


_CUPBOARDS: dict[str, tuple[Span, float, Span]] = {  # width, depth and height, m
    "console": ((1.1, 1.7), 0.42, (0.48, 0.62)),  # as televisions stand on
    "nightstand": ((0.42, 0.52), 0.42, (0.48, 0.6)),
    "sideboard": ((0.9, 1.3), 0.45, (0.78, 0.9)),
    "wardrobe": ((0.9, 1.3), 0.55, (1.85, 2.1)),
}


def _cupboard(draw: Draw, name: str) -> Prop:
    """Returns a closed case on feet with doors or drawers in front."""
    wide, depth, tall = _CUPBOARDS[name]
    width, height = draw(*wide), draw(*tall)
    body = draw.timber()
    front = body if draw.random() < 0.5 else draw.lacquer((*VIVID[1:], (0.9, 0.9, 0.88)))
    x, y = width / 2, depth / 2
    case = [
        bar((-x, -y + 0.02, 0.08), (x, y, height - 0.02)),
        bar((-x - 0.01, -y, height - 0.025), (x + 0.01, y, height), 0.008),
        *posts((width, depth, 0.09), 0.04, 0.03),
    ]
    count = max(1, round(width / 0.45))
    if height > 1.5 or draw.random() < 0.5:
        at = (0.1 + height) / 2 if height > 1.5 else height - 0.12
        doors = _doors(width, count, -y, (0.1, height - 0.04))
        knobs = _handles(width, count, -y - 0.01, at)
    else:
        rows = max(2, round((height - 0.12) / 0.2))
        step = (height - 0.14) / rows
        doors, knobs = [], []
        for r in range(rows):
            doors += _doors(width, 1, -y, (0.1 + r * step, 0.092 + (r + 1) * step))
            knobs += [ball((s * width / 5, -y - 0.01, 0.1 + (r + 0.5) * step)) for s in SIGNS]
    parts = (
        (merge(grained(case)), body),
        (merge(grained(doors)), front),
        (merge(knobs), draw.hardware()),
    )
    return Prop(name, parts, (_top(width, depth, height, 0.01),) if height < 1.2 else ())


def counter(draw: Draw) -> Prop:
    """Returns a kitchen's run of base cupboards under one work top, with a splash-back."""
    units = draw.count(2, 6)
    width, depth, height = 0.6 * units, 0.62, draw(0.86, 0.92)
    x, y = width / 2, depth / 2
    front = draw.lacquer(KITCHENS)
    case = bar((-x, -y + 0.05, 0.1), (x, y, height - 0.04))
    kick = bar((-x + 0.01, -y + 0.1, 0), (x - 0.01, y, 0.1))
    doors = _doors(width, units, -y + 0.03, (0.12, height - 0.06))
    top = bar((-x - 0.01, -y, height - 0.04), (x + 0.01, y, height), 0.008)
    splash = bar((-x, y - 0.015, height), (x, y, height + 0.14), 0.003)
    stone = draw.pick(STONES)
    kind = "marble" if draw.random() < 0.5 else "speckle"
    handles = _handles(width, units, -y + 0.02, height - 0.14), draw.hardware()
    slab = draw.textured(kind, stone).skin(0.5, 0.7)
    tiling = draw.textured("tiles", draw.pick(TILES), contrast=0.85)
    parts = (
        (merge([case, *doors]), front),
        (kick, flat((0.12, 0.12, 0.12), 0.3, 0.5)),
        (merge(handles[0]), handles[1]),
        (tiled(top, 1.5), slab),
        (tiled(splash, 1.6), Surface(texture=tiling, specular=0.6, shininess=0.8)),
    )
    deep = Top(low=(-x + RIM, -y + RIM), high=(x - RIM, y - 0.02), height=height, counter=True)
    low, high = merge([case, top]).bounds
    return Prop("counter", parts, (deep,), ((low * (1, 1, 0), high), splash.bounds))


def _doors(width: float, count: int, y: float, rows: tuple[float, float]) -> list[Mesh]:
    pitch, left = width / count, -width / 2
    return [
        bar(
            (left + i * pitch + 0.006, y, rows[0]),
            (left + (i + 1) * pitch - 0.006, y + 0.02, rows[1]),
            0.005,
        )
        for i in range(count)
    ]


def _handles(width: float, count: int, y: float, z: float) -> list[Mesh]:
    pitch = width / count
    middles = [-width / 2 + (i + 0.5) * pitch for i in range(count)]
    return [tube([(x - 0.07, y, z), (x + 0.07, y, z)], 0.007, 6) for x in middles]


FURNITURE: dict[str, Callable[[Draw], Prop]] = {
    "armchair": partial(_seat, name="armchair", most=1),
    "bookshelf": bookshelf,
    "chair": chair,
    "console": partial(_cupboard, name="console"),
    "counter": counter,
    "desk": desk,
    "low table": low_table,
    "nightstand": partial(_cupboard, name="nightstand"),
    "plant": plant,
    "sideboard": partial(_cupboard, name="sideboard"),
    "sofa": partial(_seat, name="sofa", most=3),
    "table": table,
    "wardrobe": partial(_cupboard, name="wardrobe"),
}

# --------------------------------------------------------------------------------------- clutter


def stack(draw: Draw) -> Prop:
    """Returns two to four closed magazines, one on the other."""
    sheets, height = [], 0.0
    for _ in range(draw.count(2, 5)):
        thick = draw(0.008, 0.02)
        size = (draw(0.15, 0.2), draw(0.21, 0.27), thick)
        lying = rotated(bevelled_box(size, 0.002), UP, draw(-0.3, 0.3))
        sheets.append((moved(lying, (0, 0, height + thick / 2)), draw.lacquer(VIVID)))
        height += thick
    return Prop("stack", tuple(sheets))


def bottle(draw: Draw) -> Prop:
    """Returns a bottle with a label and a cap."""
    radius, height = draw(0.03, 0.045), draw(0.2, 0.3)
    neck, shoulder = radius * 0.4, height * draw(0.55, 0.7)
    outline = [(0, 0), (radius, 0), (radius, shoulder), (neck, shoulder + 0.05)]
    glass = flat(draw.pick(GLASSES), 0.9, 0.9)
    cap = lathe([(neck * 1.1, height - 0.025), (neck * 1.1, height), (0, height)], 14)
    label = lathe([(radius * 1.01, shoulder * 0.25), (radius * 1.01, shoulder * 0.75)], 18)
    body = lathe([*outline, (neck, height - 0.02)], 18)
    coloured = [(mesh, draw.lacquer(VIVID)) for mesh in (cap, label)]
    return Prop("bottle", ((body, glass), *coloured))


def jar(draw: Draw) -> Prop:
    """Returns a storage jar with a lid."""
    radius, height = draw(0.04, 0.06), draw(0.1, 0.18)
    side = [(radius, 0), (radius * 1.05, height * 0.5), (radius, height)]
    rim = [(radius * 1.02, 0), (radius * 1.02, 0.02), (0.012, 0.025), (0.014, 0.045)]
    lid = moved(lathe([*rim, (0, 0.05)], 18), (0, 0, height))
    body = lathe([(0, 0), *side, (0, height)], 18)
    glaze = draw.textured("plain", draw.pick(VIVID)).skin(0.5, 0.6)
    return Prop("jar", ((body, glaze), (lid, draw.timber())))


def succulent(draw: Draw) -> Prop:
    """Returns a small plant in a pot."""
    radius, tall = draw(0.04, 0.06), draw(0.07, 0.1)
    outline = [(0, 0), (radius * 0.8, 0), (radius, tall), (radius * 0.9, tall)]
    pot = lathe([*outline, (radius * 0.85, tall - 0.01), (0, tall - 0.01)], 16)
    leaf = lathe([(0, 0), (0.012, 0.015), (0.014, 0.04), (0.008, 0.07), (0, 0.09)], 6)
    leaves = []
    for ring, lean in ((0, 0.1), (1, 0.6), (2, 1.05)):
        for k in range(4 + 3 * ring):
            turn = 2 * np.pi * k / (4 + 3 * ring) + 0.5 * ring
            upright = rotated(rotated(leaf, (0, 1, 0), lean), UP, turn)
            leaves.append(moved(upright, (0, 0, tall - 0.015)))
    green = draw.textured("foliage", draw.near((0.3, 0.5, 0.25)), contrast=0.6)
    clay = draw.lacquer(((0.85, 0.83, 0.8), *VIVID))
    return Prop("succulent", ((pot, clay), (merge(leaves), Surface(texture=green))))


def fruit(draw: Draw) -> Prop:
    """Returns two or three apples or oranges."""
    radius = draw(0.033, 0.042)
    turn = np.linspace(-np.pi / 2, np.pi / 2, 9)
    profile = [np.abs(radius * np.cos(turn)), radius * 0.92 * (1 + np.sin(turn))]
    one = lathe(np.column_stack(profile), 16)
    spots = [(0, 0), (0.085, 0.01), (0.035, -0.075)][: draw.count(2, 4)]
    fruits = merge([moved(one, (x, y, 0)) for x, y in spots])
    return Prop("fruit", ((fruits, draw.lacquer(FRUITS, 0.4)),))


def photo(draw: Draw) -> Prop:
    """Returns a small picture in a frame that leans on its foot."""
    width, height = draw(0.12, 0.2), draw(0.15, 0.22)
    rim = moved(frame((width, height), 0.018, 0.015), (0, 0, height / 2))
    x = width / 2 - 0.015
    card = painted(bar((-x, -0.008, 0.015), (x, -0.004, height - 0.015), 0.001), 0, 2)
    back = bar((-0.02, 0.0, 0.0), (0.02, 0.07, 0.01), 0.002)
    colours = tuple(draw.pick(VIVID) for _ in range(4))
    art = draw.pattern("landscape", *colours).skin()
    casing = merge([rotated(rim, X, -0.2), back])
    return Prop("photo", ((casing, draw.timber()), (rotated(card, X, -0.2), art)))


def painting(draw: Draw) -> Prop:
    """Returns a picture for the wall: back at y = 0, centre at the origin."""
    width, height = draw(0.4, 0.9), draw(0.35, 0.7)
    rim = frame((width, height), draw(0.025, 0.05), 0.03)
    x, z = width / 2 - 0.02, height / 2 - 0.02
    canvas = painted(bar((-x, -0.015, -z), (x, -0.01, z), 0.001), 0, 2)
    colours = tuple(draw.pick((*VIVID, *WOODS)) for _ in range(5))
    kind = draw.one(("landscape", "landscape", "marble", "floral", "bands"))
    art = draw.pattern(kind, *colours).skin(0.1)
    if draw.random() < 0.6:
        edge = draw.timber()
    else:
        edge = draw.lacquer(((0.1, 0.1, 0.1), (0.9, 0.88, 0.85)))
    return Prop("painting", ((tiled(rim, 1.5), edge), (canvas, art)))


CLUTTER: dict[str, Callable[[Draw], Prop]] = {
    "bottle": bottle,
    "fruit": fruit,
    "jar": jar,
    "photo": photo,
    "stack": stack,
    "succulent": succulent,
}
"""What stands on tops; `painting` hangs on walls."""
