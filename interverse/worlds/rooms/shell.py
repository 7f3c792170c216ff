"""The room itself: covers, walls with their openings, windows, doors, rugs; and kinds of rooms.

Walls and floor are cut into squares, for the light is worked out at the corners of triangles.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from interverse.art.meshes import Mesh, frame, merge, moved, rotated, sheet, tiled
from interverse.art.rooms.item import Rgb, RoomTexture, Surface
from interverse.art.rooms.kit import FABRICS, SIGNS, VIVID, WOODS, Draw, Prop, bar, flat
from interverse.worlds.rooms.placing import QUARTER, wall_length, wall_pose

Size = tuple[float, float, float]
_BEHIND = 0.2  # how far behind the walls the backing is, deeper than a window's niche, m
_SQUARE = 0.4  # side of the squares that walls and floors are cut into, m
_REVEAL = 0.12  # depth of a window's niche, m
_WALLS: tuple[Rgb, ...] = (
    (0.88, 0.86, 0.81),
    (0.80, 0.84, 0.82),
    (0.84, 0.78, 0.70),
    (0.72, 0.78, 0.83),
    (0.87, 0.82, 0.84),
    (0.76, 0.80, 0.70),
)
_WALL_TILES = ((0.9, 0.9, 0.9), (0.65, 0.75, 0.76), (0.8, 0.74, 0.64))
_BRICKS = ((0.68, 0.4, 0.3), (0.8, 0.75, 0.7))
_STONES = ((0.78, 0.76, 0.72), (0.55, 0.53, 0.5), (0.68, 0.55, 0.45), (0.45, 0.5, 0.52))
_TRIMS = ((0.93, 0.92, 0.9), (0.93, 0.92, 0.9), WOODS[0], WOODS[3])
_STEEL = flat((0.7, 0.7, 0.72), 0.8, 0.8)


class Opening(NamedTuple):
    """A hole in a wall: which wall, its middle along it, its width, its lower and upper edge."""

    wall: int
    along: float
    width: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a room is covered with."""

    wall: Surface
    accent: Surface
    """Of wall 0."""
    floor: Surface
    ceiling: Surface
    trim: Surface


def draw_style(draw: Draw, *, wet: bool) -> Style:
    """Returns the covers of a room; `wet` rooms have tiles."""
    plaster = draw.textured("plaster", draw.pick(_WALLS), contrast=0.9)
    wall = accent = Surface(texture=plaster, specular=0.02)
    if wet:
        accent = draw.textured("tiles", draw.pick(_WALL_TILES), contrast=0.9).skin(0.4, 0.7)
    elif draw.random() < 0.5:
        kind = draw.one(("wallpaper", "wallpaper", "bricks"))
        tone = draw.pick(FABRICS if kind == "wallpaper" else _BRICKS)
        accent = draw.textured(kind, tone, contrast=0.8).skin(0.02)
    if wet or draw.random() < 0.25:
        floor = draw.textured("tiles", draw.pick(_STONES), contrast=0.8).skin(0.35, 0.6)
    elif draw.random() < 0.2:
        floor = draw.textured("carpet", draw.pick(FABRICS), contrast=0.8).skin(0.0)
    else:
        floor = draw.textured("planks", draw.pick(WOODS[:5]), contrast=0.6).skin(0.2)
    white = draw.textured("plaster", (0.93, 0.92, 0.9), contrast=0.95)
    return Style(
        wall=wall,
        accent=accent,
        floor=floor,
        ceiling=Surface(texture=white, specular=0.0),
        trim=draw.lacquer(_TRIMS),
    )


# ------------------------------------------------------------------------------- walls and floors


def shell(
    size: Size, style: Style, openings: tuple[Opening, ...]
) -> list[tuple[str, Mesh, Surface]]:
    """Returns the named parts of the shell: floor, ceiling, walls, skirting."""
    width, depth, height = size
    floor = panel(_cuts(-width / 2, width / 2), _cuts(-depth / 2, depth / 2))
    ceiling = moved(rotated(floor, (1, 0, 0), np.pi), (0, 0, height))
    plain = [tiled(_wall(size, wall, openings), 0.5) for wall in (1, 2, 3)]
    skirting = []
    for wall in range(4):
        half = wall_length(size, wall) / 2
        doors = sorted(
            (o.along - o.width / 2, o.along + o.width / 2)
            for o in openings
            if o.wall == wall and o.low < 0.1
        )
        marks = [-half, *(edge for door in doors for edge in door), half]
        for first, last in zip(marks[::2], marks[1::2], strict=True):
            board = bar((first, -0.018, 0.0), (last, 0.0, 0.09), 0.005)
            skirting.append(at_wall(board, size, wall))
    # A box around it all, seen from inside, so that no seam shows the void.
    larger = width + 2 * _BEHIND, depth + 2 * _BEHIND, height + 2 * _BEHIND
    x, y = larger[0] / 2, larger[1] / 2
    ground = panel(np.array([-x, x]), np.array([-y, y]))
    lid = moved(rotated(ground, (1, 0, 0), np.pi), (0, 0, larger[2]))
    backing = merge([ground, lid, *(_wall(larger, wall, ()) for wall in range(4))])
    return [
        ("floor", tiled(floor, 0.5), style.floor),
        ("ceiling", tiled(ceiling, 0.5), style.ceiling),
        ("walls", merge(plain), style.wall),
        ("accent", tiled(_wall(size, 0, openings), 0.5), style.accent),
        ("skirting", merge(skirting), style.trim),
        ("backing", moved(backing, (0, 0, -_BEHIND)), flat((0.25, 0.24, 0.23), 0.0, 0.5)),
    ]


def _cuts(low: float, high: float, edges: tuple[float, ...] = ()) -> np.ndarray:
    marks = sorted({low, high, *edges})
    lines = [
        np.linspace(a, b, max(2, int(np.ceil((b - a) / _SQUARE)) + 1))
        for a, b in itertools.pairwise(marks)
    ]
    return np.unique(np.concatenate(lines).round(6))


def panel(xs: np.ndarray, ys: np.ndarray, holes: tuple[tuple[float, ...], ...] = ()) -> Mesh:
    """Returns a flat sheet in the plane z = 0, seen from above, without the squares in holes."""
    x, y = np.meshgrid(xs, ys)
    points = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    number = np.arange(x.size).reshape(x.shape)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    middle_x, middle_y = (xs[:-1] + xs[1:]) / 2, (ys[:-1] + ys[1:]) / 2
    keep = np.ones(a.shape, dtype=bool)
    for low_x, high_x, low_y, high_y in holes:
        across = (middle_x > low_x) & (middle_x < high_x)
        keep &= ~(((middle_y > low_y) & (middle_y < high_y))[:, None] & across[None, :])
    quads = np.stack([a, b, c, d], axis=-1)[keep]
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return Mesh(points, faces, np.tile([0.0, 0.0, 1.0], (len(points), 1)), points[:, :2].copy())


def _wall(size: Size, wall: int, openings: tuple[Opening, ...]) -> Mesh:
    mine = [o for o in openings if o.wall == wall]
    half = wall_length(size, wall) / 2
    holes = tuple((o.along - o.width / 2, o.along + o.width / 2, o.low, o.high) for o in mine)
    xs = _cuts(-half, half, tuple(edge for h in holes for edge in h[:2]))
    ys = _cuts(0.0, size[2], tuple(edge for h in holes for edge in h[2:]))
    return at_wall(rotated(panel(xs, ys, holes), (1, 0, 0), QUARTER), size, wall)  # faces -y


def at_wall(mesh: Mesh, size: Size, wall: int, along: float = 0.0, height: float = 0.0) -> Mesh:
    """Returns a mesh whose back is y = 0 at a wall of a room."""
    pose = wall_pose(size, wall, along, back=0.0, height=height)
    return moved(rotated(mesh, (0, 0, 1), pose.yaw), pose.position)


# --------------------------------------------------------------------------------------- fixtures


def window(size: Size, opening: Opening, trim: Surface, sky: RoomTexture) -> Prop:
    """Returns a window: niche, frame with a cross, sill, and the sky behind."""
    width, height = opening.width, opening.high - opening.low
    x, z = width / 2, height / 2
    near, far = _REVEAL - 0.04, _REVEAL - 0.005
    bars = [
        bar((-x - 0.01, 0, -z - 0.01), (-x, _REVEAL, z + 0.01), 0.001),
        bar((x, 0, -z - 0.01), (x + 0.01, _REVEAL, z + 0.01), 0.001),
        bar((-x, 0, z), (x, _REVEAL, z + 0.01), 0.001),
        bar((-x - 0.04, -0.06, -z - 0.03), (x + 0.04, _REVEAL, -z), 0.006),
        moved(frame((width, height), 0.05, 0.05), (0, _REVEAL, 0)),
        bar((-0.02, near, -z), (0.02, far, z)),
    ]
    if height > 0.9:
        bars.append(bar((-x, near, 0.18 * height), (x, far, 0.18 * height + 0.035)))
    bars.append(frame((width + 0.12, height + 0.12), 0.06, 0.015))
    pane = rotated(panel(np.array([-x, x]), np.array([-z, z])), (1, 0, 0), QUARTER)
    view = moved(tiled(pane, (1 / width, 1 / height), (0.5, 0.5)), (0, _REVEAL + 0.005, 0))
    where = size, opening.wall, opening.along, (opening.low + opening.high) / 2
    glow = Surface(texture=sky, emission=1.0, specular=0.0, shininess=0.0)
    return Prop("window", ((at_wall(merge(bars), *where), trim), (at_wall(view, *where), glow)))


def curtains(draw: Draw, size: Size, opening: Opening) -> Prop:
    """Returns two curtains that hang beside a window from a rod."""
    tall = opening.high + 0.12 - 0.12
    cover = draw.fabric()
    strips = []
    for side in SIGNS:
        u = np.linspace(0, 1, 15)
        x = side * (opening.width / 2 + 0.02 + 0.24 * u)
        y = -0.07 + 0.03 * np.sin(2 * np.pi * 3.5 * u)
        rows = [np.column_stack([x, y, np.full(15, z)]) for z in np.linspace(0.12, 0.12 + tall, 4)]
        lines = np.stack(rows) if side > 0 else np.stack(rows)[:, ::-1]
        strips.append(tiled(sheet(lines, 0.004), (1.0, 4.0)))
    reach = opening.width / 2 + 0.32
    rod = bar((-reach, -0.09, 0.14 + tall), (reach, -0.065, 0.165 + tall), 0.008)
    where, dark = (size, opening.wall, opening.along), flat((0.2, 0.18, 0.17), 0.3, 0.5)
    return Prop("curtains", ((at_wall(merge(strips), *where), cover), (at_wall(rod, *where), dark)))


def door(draw: Draw, size: Size, opening: Opening, trim: Surface) -> Prop:
    """Returns a closed door in its frame."""
    x, height = opening.width / 2, opening.high
    boards = [bar((-x, 0.02, 0), (x, 0.06, height), 0.004)]
    boards += [
        bar((s * x / 2 - x * 0.36, 0.008, a), (s * x / 2 + x * 0.36, 0.03, b), 0.012)
        for s in SIGNS
        for a, b in ((0.2, 0.85), (1.05, height - 0.18))
    ]
    posts = [
        bar((s * (x + 0.035) - 0.035, -0.02, 0), (s * (x + 0.035) + 0.035, 0.06, height + 0.07))
        for s in SIGNS
    ]
    posts.append(bar((-x - 0.07, -0.02, height), (x + 0.07, 0.06, height + 0.07)))
    handle = bar((x - 0.16, -0.045, 1.0), (x - 0.05, -0.025, 1.02), 0.006)
    plate = bar((x - 0.085, -0.03, 0.93), (x - 0.045, 0.02, 1.1), 0.004)
    where = size, opening.wall, opening.along
    wood = draw.timber() if draw.random() < 0.6 else trim
    parts = (
        (at_wall(merge([tiled(m, 1.2) for m in boards]), *where), wood),
        (at_wall(merge(posts), *where), trim),
        (at_wall(merge([handle, plate]), *where), _STEEL),
    )
    return Prop("door", parts)


def fixtures(draw: Draw, size: Size, style: Style, openings: tuple[Opening, ...]) -> list[Prop]:
    """Returns door, windows, perhaps curtains, and perhaps a rug that is one whole pattern."""
    day = ((0.86, 0.91, 0.96), (0.36, 0.58, 0.88))
    sky = RoomTexture(kind="sky", colours=day, seed=draw.variant(8))
    found = []
    for opening in openings:
        if opening.low == 0:
            found.append(door(draw, size, opening, style.trim))
            continue
        found.append(window(size, opening, style.trim, sky))
        if draw.random() < 0.5:
            found.append(curtains(draw, size, opening))
    if draw.random() < 0.7:
        wide, deep = draw(1.4, 2.2), draw(1.0, 1.6)
        middle = draw(-0.5, 0.5), draw(-0.4, 0.4)
        x, y = wide / 2, deep / 2
        pile = panel(np.linspace(-x, x, 7), np.linspace(-y, y, 7))
        pile = tiled(pile, (1 / wide, 1 / deep), (0.5, 0.5))
        colours = tuple(draw.pick((*VIVID, *FABRICS)) for _ in range(3))
        cover = RoomTexture(kind="rug", colours=colours, seed=draw.variant(12)).skin(0.0)
        found.append(Prop("rug", ((moved(pile, (*middle, 0.008)), cover),)))
    return found


# ------------------------------------------------------------------------------------------ kinds


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoomKind:
    """What a kind of room is furnished with, in the order of placing, and what is found there."""

    along: tuple[str, ...]
    middle: tuple[str, ...] = ()
    classes: tuple[str, ...]
    wet: bool = False
    share: float = 0.2
    """Of all rooms."""


def _often(text: str) -> tuple[str, ...]:
    """Returns classes, one that is likelier several times: `Toilet*3 Faucet`."""
    found = (word.partition("*") for word in text.split())
    return tuple(name for name, _, times in found for _ in range(int(times or 1)))


KINDS: dict[str, RoomKind] = {
    "bathroom": RoomKind(
        along=("counter", "sideboard", "plant"),
        classes=_often("Toilet*3 Faucet*2 LaundryHamper Candle Cabinet Blinds Mug Vase Bowl Box"),
        wet=True,
        share=0.16,
    ),
    "bedroom": RoomKind(
        along=("desk", "nightstand", "wardrobe", "nightstand", "plant"),
        middle=("chair",),
        classes=_often(
            "Bed*3 DeskLamp*2 Drawer Laptop Book CellPhone Safe LaundryHamper Blinds Television"
            " Candle FloorLamp"
        ),
        share=0.24,
    ),
    "kitchen": RoomKind(
        along=("counter", "sideboard", "plant"),
        middle=("table", "chair", "chair"),
        classes=_often(
            "Fridge*3 Microwave*3 Faucet*2 Plate*2 Pan*2 Pot*2 Bowl Mug Cabinet Drawer Box Vase"
        ),
        wet=True,
        share=0.28,
    ),
    "living room": RoomKind(
        along=("console", "sofa", "bookshelf", "armchair", "plant"),
        middle=("low table",),
        classes=_often(
            "Television*2 FloorLamp*2 Vase*2 Book Laptop CellPhone Candle Bowl Blinds Box Plate"
            " Safe"
        ),
        share=0.18,
    ),
    "study": RoomKind(
        along=("desk", "bookshelf", "sideboard", "armchair", "plant"),
        middle=("low table", "chair"),
        classes=_often(
            "DeskLamp*2 Laptop Book*2 Safe FloorLamp CellPhone Box Mug Drawer Vase Cabinet Pot Pan"
        ),
        share=0.14,
    ),
}
