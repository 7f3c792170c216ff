"""Tables, counters, shelves, seats and plants: each builder draws one piece from a generator.

A piece faces -y, its footprint is centred on x = y = 0 and it stands on z = 0. Parts of one surface
are one mesh, for every mesh costs a draw call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from interverse.art.meshes import Mesh, lathe, lifted, merge, moved, rotated, sheet, soft_box, tiled
from interverse.art.rooms.cupboards import console, counter, nightstand, sideboard, wardrobe
from interverse.art.rooms.item import RoomTexture, Surface
from interverse.art.rooms.prop import (
    RIM,
    VIVID,
    Prop,
    Top,
    bar,
    cloth,
    grain,
    knob,
    legs,
    metal,
    painted_surface,
    pick,
    textured,
    tinted,
    wooden,
)


def plant(rng: Rng) -> Prop:
    """Returns a plant in a pot, as high as a hip."""
    radius, tall = rng.uniform(0.13, 0.18), rng.uniform(0.24, 0.34)
    pot = lathe(
        [
            (0, 0),
            (radius * 0.75, 0),
            (radius, tall),
            (radius * 1.05, tall),
            (radius * 0.95, tall - 0.02),
            (0, tall - 0.03),
        ],
        20,
    )
    count, height = int(rng.integers(12, 18)), rng.uniform(0.5, 0.9)
    leaves = [
        _leaf(rng, 2.4 * i, height * rng.uniform(0.6, 1.0), tall - 0.03) for i in range(count)
    ]
    green = tinted(rng, (0.22, 0.42, 0.18))
    leaf = Surface(texture=textured(rng, "foliage", green, contrast=0.5), specular=0.15)
    clay = Surface(
        texture=textured(
            rng, "plain", pick(rng, ((0.7, 0.4, 0.28), (0.85, 0.83, 0.8), (0.3, 0.32, 0.35)))
        )
    )
    return Prop(name="plant", parts=((pot, clay), (merge(leaves), leaf)))


def _leaf(rng: Rng, turn: float, length: float, base: float) -> Mesh:
    """Returns a leaf that rises from the pot and bends over, seen from both sides."""
    bend, lean = rng.uniform(0.6, 1.3), rng.uniform(0.25, 0.6)
    t = np.linspace(0, 1, 6)
    out, up = length * lean * t * (0.4 + t), length * (t - 0.25 * bend * t**3)
    half = 0.06 * length * np.sin(np.pi * np.clip(t * 0.93 + 0.05, 0, 1)) * 1.6
    rows = np.stack(
        [np.stack([out, s * half, up + base], axis=1) for s in (-1.0, 0.0, 1.0)], axis=1
    )
    rows[:, 1, 2] -= 0.012
    return rotated(sheet(rows, 0.002), (0, 0, 1), turn + rng.uniform(-0.4, 0.4))


def sofa(rng: Rng) -> Prop:
    """Returns an upholstered bench for two or three."""
    return _seat(rng, "sofa", int(rng.integers(2, 4)))


def armchair(rng: Rng) -> Prop:
    """Returns an upholstered chair."""
    return _seat(rng, "armchair", 1)


def chair(rng: Rng) -> Prop:
    """Returns a wooden chair with a back of slats."""
    wood, width, height = wooden(rng), 0.42, 0.45
    parts = legs((width, 0.42, height), 0.035, 0.01)
    parts.append(bar((-width / 2, -0.21, height - 0.03), (width / 2, 0.21, height), 0.01))
    posts = [
        bar((s * 0.185 - 0.018, 0.17, height), (s * 0.185 + 0.018, 0.205, 0.88)) for s in (-1, 1)
    ]
    slats = [bar((-0.19, 0.175, z), (0.19, 0.198, z + 0.05)) for z in (0.58, 0.68, 0.80)]
    pad = soft_box((width - 0.03, 0.38, 0.04), 0.018, 2, (0, -0.01, height + 0.018))
    return Prop(
        name="chair",
        parts=((merge(grain(parts + posts + slats)), wood), (tiled(pad, 2), cloth(rng))),
    )


def _seat(rng: Rng, name: str, places: int) -> Prop:
    """Returns an upholstered seat: base, back, arms, cushions, feet."""
    cover, cushion, wood = cloth(rng), cloth(rng), wooden(rng)
    arm, depth, seat = rng.uniform(0.12, 0.2), rng.uniform(0.8, 0.92), rng.uniform(0.4, 0.45)
    pitch = rng.uniform(0.56, 0.66)
    width, back = places * pitch + 2 * arm, rng.uniform(0.74, 0.9)
    x = width / 2
    soft = [
        soft_box((width - 2 * arm, depth, seat - 0.22), 0.03, 2, (0, 0, (seat - 0.22) / 2 + 0.08)),
        soft_box((width, 0.2, back - 0.08), 0.07, 3, (0, depth / 2 - 0.1, (back + 0.08) / 2)),
    ]
    soft += [
        soft_box((arm, depth, seat + 0.1), 0.06, 3, (s * (x - arm / 2), 0, (seat + 0.1) / 2 + 0.08))
        for s in (-1, 1)
    ]
    middles = [-places * pitch / 2 + (i + 0.5) * pitch for i in range(places)]
    soft += [
        soft_box((pitch - 0.01, depth - 0.22, 0.16), 0.05, 3, (m, -0.1, seat - 0.07))
        for m in middles
    ]
    soft += [
        rotated(
            soft_box((pitch - 0.02, 0.16, 0.42), 0.06, 3, (m, depth / 2 - 0.26, seat + 0.2)),
            (1, 0, 0),
            -0.15,
            (m, depth / 2 - 0.26, seat),
        )
        for m in middles
    ]
    pillows = []
    if places > 1 and rng.random() < 0.8:
        pillow = soft_box((0.42, 0.13, 0.4), 0.06, 3)
        pillows = [
            lifted(
                moved(
                    rotated(rotated(pillow, (1, 0, 0), -0.35), (0, 0, 1), s * 0.3),
                    (s * (x - arm - 0.22), depth / 2 - 0.42, 0),
                ),
                seat + 0.22,
            )
            for s in (-1, 1)
        ]
    feet = legs((width, depth, 0.09), 0.05, 0.05)
    parts = [(merge([tiled(m, 2.5) for m in soft]), cover), (merge(feet), wood)]
    if pillows:
        parts.append((merge([tiled(m, 2.5) for m in pillows]), cushion))
    return Prop(name=name, parts=tuple(parts))


Rng = np.random.Generator


def table(rng: Rng, *, height: float = 0.74, wide: tuple[float, float] = (1.1, 1.6)) -> Prop:
    """Returns a dining table on four legs or on a round foot."""
    width, depth = rng.uniform(*wide), rng.uniform(0.7, 0.9)
    board, wood = rng.uniform(0.025, 0.045), wooden(rng)
    top = bar((-width / 2, -depth / 2, height - board), (width / 2, depth / 2, height), 0.008)
    if rng.random() < 0.7:
        under = legs((width, depth, height - board), rng.uniform(0.05, 0.08), 0.04)
        under += _apron(width - 0.14, depth - 0.14, height - board)
    else:
        under = [_foot(0.30, 0.05, height - board)]
    leg = wood if rng.random() < 0.6 else painted_surface(pick(rng, ((0.9, 0.9, 0.88), (0.1,) * 3)))
    return _board_on("table", (top, wood), (under, leg), height)


def low_table(rng: Rng) -> Prop:
    """Returns a coffee table with a board below."""
    width, depth, height = rng.uniform(0.8, 1.2), rng.uniform(0.5, 0.65), rng.uniform(0.38, 0.48)
    wood = wooden(rng)
    top = bar((-width / 2, -depth / 2, height - 0.035), (width / 2, depth / 2, height), 0.008)
    under = legs((width, depth, height - 0.035), 0.05, 0.03)
    under.append(
        bar(
            (-width / 2 + 0.05, -depth / 2 + 0.05, 0.12), (width / 2 - 0.05, depth / 2 - 0.05, 0.14)
        )
    )
    return _board_on("low table", (top, wood), (under, wood), height)


def desk(rng: Rng) -> Prop:
    """Returns a writing desk with a block of drawers on one side."""
    width, depth, height = rng.uniform(1.1, 1.5), rng.uniform(0.6, 0.75), rng.uniform(0.72, 0.78)
    wood, front = wooden(rng), wooden(rng)
    top = bar((-width / 2, -depth / 2, height - 0.03), (width / 2, depth / 2, height), 0.006)
    side = 1 if rng.random() < 0.5 else -1
    x = side * (width / 2 - 0.24)
    block = bar((x - 0.2, -depth / 2 + 0.03, 0.05), (x + 0.2, depth / 2 - 0.02, height - 0.03))
    far = -side * (width / 2 - 0.04)
    frame = [
        bar(
            (far - 0.025, s * (depth / 2 - 0.05) - 0.025, 0),
            (far + 0.025, s * (depth / 2 - 0.05) + 0.025, height - 0.03),
        )
        for s in (-1, 1)
    ]
    rows = [
        bar(
            (x - 0.18, -depth / 2 + 0.012, 0.07 + 0.21 * i),
            (x + 0.18, -depth / 2 + 0.032, 0.26 + 0.21 * i),
            0.004,
        )
        for i in range(3)
    ]
    knobs = [knob((x, -depth / 2 + 0.005, 0.17 + 0.21 * i)) for i in range(3)]
    parts = (
        (merge(grain([top, block, *frame])), wood),
        (merge(grain(rows)), front),
        (merge(knobs), metal(rng)),
    )
    return Prop(name="desk", parts=parts, tops=(_whole_top(width, depth, height),))


def bookshelf(rng: Rng) -> Prop:
    """Returns an open shelf full of books, a little room left on some boards."""
    width, depth, height = rng.uniform(0.7, 1.1), 0.3, rng.uniform(1.4, 2.0)
    rows = int(height / 0.36)
    wood, pitch = wooden(rng), height / rows
    half = width / 2
    case = [
        bar((s * half - 0.01, -depth / 2, 0), (s * half + 0.01, depth / 2, height)) for s in (-1, 1)
    ]
    case += [
        bar((-half, -depth / 2, k * pitch), (half, depth / 2, k * pitch + 0.02))
        for k in range(rows)
    ]
    case += [
        bar((-half - 0.01, -depth / 2, height - 0.02), (half + 0.01, depth / 2, height)),
        bar((-half, depth / 2 - 0.01, 0), (half, depth / 2, height), 0.002),
    ]
    books = []
    for row in range(rows):
        filled = rng.uniform(0.35, 1.0) * (width - 0.06)
        tall = pitch * rng.uniform(0.6, 0.8)
        at = -half + 0.02 if rng.random() < 0.5 else half - 0.02 - filled
        block = bar(
            (at, -depth / 2 + 0.04, row * pitch + 0.02),
            (at + filled, depth / 2 - 0.03, row * pitch + 0.02 + tall),
            0.004,
        )
        books.append(tiled(block, (2.6, 1 / tall), (rng.uniform(), 0)))
    colours = tuple(pick(rng, VIVID) for _ in range(5))
    spines = Surface(
        texture=RoomTexture(kind="spines", colours=colours, seed=int(rng.integers(8))), specular=0.1
    )
    return Prop(name="bookshelf", parts=((merge(grain(case)), wood), (merge(books), spines)))


FURNITURE: dict[str, Callable[[Rng], Prop]] = {
    "armchair": armchair,
    "bookshelf": bookshelf,
    "chair": chair,
    "console": console,
    "counter": counter,
    "desk": desk,
    "low table": low_table,
    "nightstand": nightstand,
    "plant": plant,
    "sideboard": sideboard,
    "sofa": sofa,
    "table": table,
    "wardrobe": wardrobe,
}


# ---------------------------------------------------------------------------------- parts


def _whole_top(width: float, depth: float, height: float) -> Top:
    x, y = width / 2 - RIM, depth / 2 - RIM
    return Top(low=(-x, -y), high=(x, y), height=height)


def _board_on(
    name: str, top: tuple[Mesh, Surface], under: tuple[Iterable[Mesh], Surface], height: float
) -> Prop:
    low, high = top[0].bounds
    board = (tiled(top[0], 1.1), top[1])
    below = merge(grain(under[0]))
    parts = (
        (board, (below, under[1]))
        if under[1] is not top[1]
        else ((merge([board[0], below]), top[1]),)
    )
    return Prop(
        name=name, parts=parts, tops=(_whole_top(high[0] - low[0], high[1] - low[1], height),)
    )


def _apron(width: float, depth: float, top: float) -> list[Mesh]:
    x, y, z = width / 2, depth / 2, top - 0.09
    long = [bar((-x, s * y - 0.01, z), (x, s * y + 0.01, top)) for s in (-1, 1)]
    return long + [bar((s * x - 0.01, -y, z), (s * x + 0.01, y, top)) for s in (-1, 1)]


def _foot(radius: float, stem: float, height: float) -> Mesh:
    return lathe(
        [
            (0, 0),
            (radius, 0),
            (radius, 0.02),
            (stem, 0.06),
            (stem, height - 0.04),
            (radius * 0.6, height),
            (0, height),
        ],
        24,
    )
