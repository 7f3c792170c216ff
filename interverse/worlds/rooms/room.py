"""A whole room from one number: its size, covers, openings, furniture, clutter and items.

`plan_room` is a pure function. The one piece of furniture that makes the room is placed first, then
the items that stand on the floor or hang, then other furniture, then items on tops, then clutter.
Another item in the place of one (`place_item`) leaves everything else where it was.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from interverse.art.rooms.clutter import CLUTTER, painting
from interverse.art.rooms.forms import Form, formed, own_form
from interverse.art.rooms.furniture import FURNITURE
from interverse.art.rooms.item import Item
from interverse.art.rooms.objects import build_item
from interverse.art.rooms.prop import Prop
from interverse.core.errors import InterverseError, explain
from interverse.core.rng import generator
from interverse.worlds.rooms.fixtures import KINDS, RoomKind, curtains, door, draw_sky, rug, window
from interverse.worlds.rooms.placing import (
    Bounds,
    Occupancy,
    PlacedTop,
    Pose,
    against_wall,
    on_floor,
    on_top,
    union,
    wall_length,
    wall_pose,
)
from interverse.worlds.rooms.shell import Opening, Size, Style, draw_style

Rng = np.random.Generator
FEWEST = 4  # items of a room
_HANGS = {"Blinds": (1.5, 1.6), "Cabinet": (1.45, 1.6), "Television": (1.15, 1.35)}  # m, of centres
_INSTANCES = 2**31 - 1
_ATTEMPTS = 20  # at a room in which something can be acted on


class PlacingError(InterverseError, RuntimeError):
    """A room in which nothing found a place."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """A prop in its place."""

    prop: Prop
    pose: Pose


@final
@dataclass(frozen=True, slots=True, eq=False)
class Thing:
    """An item of a class and an instance, its place by the plan, and its form if not its own."""

    cls: str
    instance: int
    pose: Pose
    form: Form | None = None

    @property
    def item(self) -> Item:
        """The item itself."""
        return item_of(self.cls, self.instance, self.form)

    def bounds(self) -> Bounds:
        """Returns its box in the room, closed."""
        return self.pose.bounds(_closed_bounds(self.cls, self.instance, self.form))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Room:
    """A planned room; `things` has one entry an item that found a place."""

    seed: int
    kind: str
    size: Size
    style: Style
    openings: tuple[Opening, ...]
    standing: tuple[Standing, ...]
    things: tuple[Thing, ...]
    tops: tuple[PlacedTop, ...]
    taken: Occupancy
    """Boxes of props and openings, not of items."""

    def allows(self, cls: str, box: Bounds) -> bool:
        """Returns whether an item of a class may fill a box; blinds hang before windows."""
        taken = self.taken
        if cls == "Blinds":
            windows = [_kept_clear(self.size, o) for o in self.openings if o.low > 0]
            taken = taken.without(windows)
        return taken.free(box)


@functools.lru_cache(maxsize=512)
def item_of(cls: str, instance: int, form: Form | None = None) -> Item:
    """Returns the item of a class and an instance, in its own form or another."""
    if form is not None:
        return formed(item_of(cls, instance), form)
    return build_item(cls, generator(seed=instance, name=f"rooms/{cls}"))


@functools.lru_cache(maxsize=512)
def _closed_bounds(cls: str, instance: int, form: Form | None) -> Bounds:
    return item_of(cls, instance, form).bounds()


@functools.lru_cache(maxsize=512)
def form_of(cls: str, instance: int) -> Form:
    """Returns the form that an instance has of itself."""
    return own_form(item_of(cls, instance))


@functools.lru_cache(maxsize=512)
def reach(cls: str, instance: int, form: Form | None = None) -> Bounds:
    """Returns the box an item needs in its own frame, whatever its state."""
    item = item_of(cls, instance, form)
    states = [{}, {"open": 0.4}, {"open": 1.0}, {"broken": 1.0}, {"on": 1.0}]
    low, high = union(*(item.bounds(state) for state in states))
    if item.stand != "wall":  # what dips below its foot when wide open lies on what it stands on
        low[2] = max(low[2], 0.0)
    return low, high


@functools.lru_cache(maxsize=512)
def footprint(cls: str, instance: int) -> Bounds:
    """Returns the box of an item that must lie on a top: closed, and most of its shards."""
    item = item_of(cls, instance)
    shards = item.bounds({"broken": 1.0})
    return union(item.bounds(), (0.8 * shards[0], 0.8 * shards[1]))


@functools.lru_cache(maxsize=64)
def plan_room(seed: int, objects: int) -> Room:
    """Returns the room of a seed with at most so many items, and at least one."""
    for attempt in range(_ATTEMPTS):
        room = _plan(seed, objects, generator(seed=seed, name="rooms/plan", step=attempt))
        if len(room.things) >= min(2, objects):
            return room
    raise PlacingError(explain(f"no item found a place in room {seed}", fix="Take another seed"))


def _plan(seed: int, objects: int, rng: Rng) -> Room:
    shares = [kind.share for kind in KINDS.values()]
    name = list(KINDS)[int(rng.choice(len(KINDS), p=shares))]
    kind = KINDS[name]
    size = (rng.uniform(3.6, 5.2), rng.uniform(3.4, 4.8), rng.uniform(2.45, 2.75))
    style = draw_style(rng, wet=kind.wet)
    wanted = _wanted(rng, kind, objects)
    taken = Occupancy(size)
    openings = _openings(rng, size, taken, wanted, sill=1.08 if kind.wet else 0.85)
    things: dict[int, Thing] = {}
    furniture, tops = _furnish(rng, kind.along[:1], (), taken)
    _place_large(rng, taken, wanted, things, openings)
    later = _furnish(rng, kind.along[1:], kind.middle, taken)
    furniture, tops = furniture + later[0], tops + later[1]
    _place_small(rng, taken, wanted, things, tops)
    standing = [*furniture, *_fill(rng, taken, tops), *_hang(rng, taken)]
    standing += [
        Standing(prop, Pose(np.zeros(3), 0.0)) for prop in _fixtures(rng, size, style, openings)
    ]
    ordered = tuple(things[i] for i in sorted(things))
    props = _without_items(taken, ordered)
    return Room(
        seed=seed,
        kind=name,
        size=size,
        style=style,
        openings=openings,
        standing=tuple(standing),
        things=ordered,
        tops=tuple(tops),
        taken=props,
    )


def place_item(room: Room, index: int, cls: str, instance: int) -> Pose | None:
    """Returns where another item stands in place of the room's thing `index`, or None.

    All other things are where the plan has them. The old place is taken if the item fits there.
    """
    others = [thing for i, thing in enumerate(room.things) if i != index]
    taken = room.taken.copy()
    for thing in others:
        taken.add(thing.pose.bounds(reach(thing.cls, thing.instance)))
    rng = generator(seed=room.seed, name=f"rooms/place/{index}/{cls}", step=instance)
    item, own = item_of(cls, instance), reach(cls, instance)
    old = room.things[index] if index < len(room.things) else None
    if old is not None and old.item.stand == item.stand and taken.free(old.pose.bounds(own)):
        return old.pose
    if item.stand == "wall":
        return _hung(rng, taken, cls, own, room.openings)
    if item.stand == "floor":
        pose = against_wall(rng, taken, own, tries=150)
        return pose if pose is not None else on_floor(rng, taken, own, tries=100)
    return _on_tops(rng, taken, list(room.tops), cls, instance)


# ---------------------------------------------------------------------------- steps of a plan


def _wanted(rng: Rng, kind: RoomKind, objects: int) -> list[tuple[str, int]]:
    """Returns classes and instances of the items to place, each class once."""
    least = min(FEWEST, objects)
    count = int(rng.integers(least, objects + 1))
    names = sorted(set(kind.classes))
    weights = np.array([kind.classes.count(name) for name in names], dtype=float)
    chosen = rng.choice(
        len(names), min(count, len(names)), replace=False, p=weights / weights.sum()
    )
    return [(names[i], int(rng.integers(_INSTANCES))) for i in chosen]


def _openings(
    rng: Rng, size: Size, taken: Occupancy, wanted: Sequence[tuple[str, int]], *, sill: float
) -> tuple[Opening, ...]:
    """Returns a door and one or two windows; blinds get a window of their size."""
    door_wall = int(rng.integers(4))
    span = wall_length(size, door_wall) / 2 - 0.7
    found = [Opening(door_wall, rng.uniform(-span, span), 0.85, 0.0, 2.02)]
    others = [wall for wall in range(4) if wall != door_wall]
    rng.shuffle(others)
    blinds = [item_of(cls, instance).size for cls, instance in wanted if cls == "Blinds"]
    for number, wall in enumerate(others[: int(rng.integers(1, 3))]):
        width, low, high = (
            rng.uniform(0.9, 1.5),
            sill + rng.uniform(0, 0.12),
            rng.uniform(1.95, 2.15),
        )
        if number == 0 and blinds:
            width, tall = blinds[0][0] - 0.06, blinds[0][2] - 0.06
            high = min(2.15, size[2] - 0.15)
            low = max(0.5, high - tall)
        span = max(wall_length(size, wall) / 2 - width / 2 - 0.35, 0.01)
        found.append(Opening(wall, rng.uniform(-span, span), width, low, high))
    for opening in found:
        taken.add(_kept_clear(size, opening))
    return tuple(found)


def _kept_clear(size: Size, opening: Opening) -> Bounds:
    """Returns the box before an opening that nothing stands in: a door must open."""
    deep, wide = (0.75, 0.0) if opening.low == 0 else (0.14, 0.2)
    half = opening.width / 2 + wide
    own = np.array([-half, -deep, opening.low]), np.array([half, 0.0, opening.high])
    return wall_pose(size, opening.wall, opening.along, back=0.0).bounds(own)


def _place_large(
    rng: Rng,
    taken: Occupancy,
    wanted: Sequence[tuple[str, int]],
    things: dict[int, Thing],
    openings: tuple[Opening, ...],
) -> None:
    """Places what stands on the floor or hangs on a wall, the largest first."""
    numbered = [(i, cls, instance) for i, (cls, instance) in enumerate(wanted)]
    large = [n for n in numbered if item_of(n[1], n[2]).stand in ("floor", "wall")]
    large.sort(key=lambda n: -float(np.prod(item_of(n[1], n[2]).size)))
    for i, cls, instance in large:
        own = reach(cls, instance)
        if item_of(cls, instance).stand == "wall":
            pose = _hung(rng, taken, cls, own, openings)
        else:
            pose = against_wall(rng, taken, own, tries=80)
        if pose is not None:
            things[i] = Thing(cls, instance, pose)
            taken.add(pose.bounds(own))


def _hung(
    rng: Rng, taken: Occupancy, cls: str, own: Bounds, openings: tuple[Opening, ...]
) -> Pose | None:
    if cls == "Blinds":
        for opening in openings:
            pose = wall_pose(
                taken.size,
                opening.wall,
                opening.along,
                back=0.02,
                height=(opening.low + opening.high) / 2,
            )
            box = pose.bounds(own)
            if opening.low > 0 and taken.inside(box) and _only_meets_window(taken, box, opening):
                return pose
    return against_wall(rng, taken, own, heights=_HANGS.get(cls, (1.3, 1.5)), gap=0.0, tries=80)


def _only_meets_window(taken: Occupancy, box: Bounds, opening: Opening) -> bool:
    return not taken.without([_kept_clear(taken.size, opening)]).meets(box)


def _furnish(
    rng: Rng, along: tuple[str, ...], middle: tuple[str, ...], taken: Occupancy
) -> tuple[list[Standing], list[PlacedTop]]:
    standing: list[Standing] = []
    tops: list[PlacedTop] = []
    for name in (*middle[:1], *along, *middle[1:]):
        if name == "plant" and rng.random() < 0.4:
            continue
        found = _furniture(rng, name, taken, middle=name in middle)
        if found is not None:
            for box in found.prop.boxes:
                taken.add(found.pose.bounds(box))
            standing.append(found)
            tops += [PlacedTop(top, found.pose) for top in found.prop.tops]
    return standing, tops


def _furniture(rng: Rng, name: str, taken: Occupancy, *, middle: bool) -> Standing | None:
    """Returns a piece in a free place; another of its kind is drawn where one does not fit."""
    for attempt in range(3):
        prop = FURNITURE[name](rng)
        own = prop.bounds()
        roomy = _with_way(own) if (prop.tops or middle) and attempt < 2 and name != "chair" else own
        pose = on_floor(rng, taken, roomy) if middle else against_wall(rng, taken, roomy, gap=0.02)
        if pose is not None:
            return Standing(prop, pose)
    return None


def _with_way(own: Bounds) -> Bounds:
    """Returns the box with room in front to stand and look."""
    return own[0] - np.array([0.0, 0.55, 0.0]), own[1]


def _place_small(
    rng: Rng,
    taken: Occupancy,
    wanted: Sequence[tuple[str, int]],
    things: dict[int, Thing],
    tops: list[PlacedTop],
) -> None:
    """Places what stands on tops, several on one where they fit, for a view shows one place."""
    order = list(tops)
    rng.shuffle(order)
    for i, (cls, instance) in enumerate(wanted):
        if item_of(cls, instance).stand in ("floor", "wall"):
            continue
        pose = _on_tops(rng, taken, order, cls, instance)
        if pose is not None:
            things[i] = Thing(cls, instance, pose)
            taken.add(pose.bounds(reach(cls, instance)))


def _on_tops(
    rng: Rng, taken: Occupancy, tops: list[PlacedTop], cls: str, instance: int
) -> Pose | None:
    item, own, under = item_of(cls, instance), reach(cls, instance), footprint(cls, instance)
    work = [top for top in tops if top.top.counter]
    order = work + [top for top in tops if not top.top.counter] if item.stand == "counter" else tops
    for place in order:
        pose = on_top(rng, taken, place, under, own)
        if pose is not None:
            return pose
    return None


def _fill(rng: Rng, taken: Occupancy, tops: list[PlacedTop]) -> list[Standing]:
    """Returns clutter on tops: a few things each, where they find room."""
    found = []
    for place in tops:
        for _ in range(int(rng.integers(0, 4))):
            prop = CLUTTER[list(CLUTTER)[int(rng.integers(len(CLUTTER)))]](rng)
            own = prop.bounds()
            pose = on_top(rng, taken, place, own, own, tries=4)
            if pose is not None:
                taken.add(pose.bounds(own))
                found.append(Standing(prop, pose))
    return found


def _hang(rng: Rng, taken: Occupancy) -> list[Standing]:
    found = []
    for _ in range(int(rng.integers(1, 4))):
        prop = painting(rng)
        pose = against_wall(rng, taken, prop.bounds(), heights=(1.45, 1.65), gap=0.0, tries=6)
        if pose is not None:
            taken.add(pose.bounds(prop.bounds()))
            found.append(Standing(prop, pose))
    return found


def _fixtures(rng: Rng, size: Size, style: Style, openings: tuple[Opening, ...]) -> list[Prop]:
    sky = draw_sky(rng)
    found = []
    for opening in openings:
        if opening.low == 0:
            found.append(door(size, opening, rng, style.trim))
            continue
        found.append(window(size, opening, style.trim, sky))
        if rng.random() < 0.5:
            found.append(curtains(rng, size, opening))
    if rng.random() < 0.7:
        extent = rng.uniform(1.4, 2.2), rng.uniform(1.0, 1.6)
        middle = rng.uniform(-0.5, 0.5), rng.uniform(-0.4, 0.4)
        found.append(rug(rng, middle, extent))
    return found


def _without_items(taken: Occupancy, things: tuple[Thing, ...]) -> Occupancy:
    return taken.without([t.pose.bounds(reach(t.cls, t.instance)) for t in things])
