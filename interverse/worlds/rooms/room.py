"""A whole room from one number: its size, covers, openings, furniture, clutter and items.

`plan_room` is a pure function. The one piece of furniture that makes the room is placed first, then
the items that stand on the floor or hang, then other furniture, then items on tops, then clutter.
Another item in the place of one (`place_item`) leaves everything else where it was.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from interverse.art.rooms.forms import Form, formed, own_form
from interverse.art.rooms.furniture import CLUTTER, FURNITURE, painting
from interverse.art.rooms.item import Item
from interverse.art.rooms.kit import Draw, Prop
from interverse.art.rooms.objects import build_item
from interverse.core.errors import InterverseError, explain
from interverse.core.rng import generator
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
from interverse.worlds.rooms.shell import KINDS, Opening, Size, Style, draw_style, fixtures

Rng = np.random.Generator
FEWEST = 4  # items of a room
_HANGS = {"Blinds": (1.5, 1.6), "Cabinet": (1.45, 1.6), "Television": (1.15, 1.35)}  # m, of centres
_INSTANCES = 2**31 - 1
_ATTEMPTS = 20  # at a room in which something can be acted on


class PlacingError(InterverseError, RuntimeError):
    """A room in which nothing found a place."""


class Standing(NamedTuple):
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
def _footprint(cls: str, instance: int) -> Bounds:
    """Returns the box of an item that must lie on a top: closed, and most of its shards."""
    low, high = item_of(cls, instance).bounds({"broken": 1.0})
    return union(_closed_bounds(cls, instance, None), (0.8 * low, 0.8 * high))


@functools.lru_cache(maxsize=64)
def plan_room(seed: int, objects: int) -> Room:
    """Returns the room of a seed with at most so many items, and at least one."""
    for attempt in range(_ATTEMPTS):
        draw = Draw.of(generator(seed=seed, name="rooms/plan", step=attempt))
        room = _Planner(draw, objects).room(seed)
        if len(room.things) >= min(2, objects):
            return room
    raise PlacingError(explain(f"no item found a place in room {seed}", fix="Take another seed"))


class _Planner:
    """A room in the making: what it is furnished with so far, and where room is left."""

    def __init__(self, draw: Draw, objects: int) -> None:
        self.draw = draw
        shares = [kind.share for kind in KINDS.values()]
        self.name = list(KINDS)[int(draw.choice(len(KINDS), p=shares))]
        self.kind = KINDS[self.name]
        self.size = (draw(3.6, 5.2), draw(3.4, 4.8), draw(2.45, 2.75))
        self.style = draw_style(draw, wet=self.kind.wet)
        self.taken = Occupancy(self.size)
        # Classes and instances of the items to place, each class once.
        count = draw.count(min(FEWEST, objects), objects + 1)
        names = sorted(set(self.kind.classes))
        weights = np.array([self.kind.classes.count(name) for name in names], dtype=float)
        chosen = draw.choice(
            len(names), min(count, len(names)), replace=False, p=weights / weights.sum()
        )
        self.wanted = [(names[i], int(draw.integers(_INSTANCES))) for i in chosen]
        self.openings = self._openings()
        self.standing: list[Standing] = []
        self.tops: list[PlacedTop] = []
        self.things: dict[int, Thing] = {}

    def room(self, seed: int) -> Room:
        """Returns the room, furnished."""
        draw, items = self.draw, [item_of(*wanted) for wanted in self.wanted]
        self._furnish(self.kind.along[:1], ())
        # What stands on the floor or hangs on a wall, the largest first.
        large = [i for i, item in enumerate(items) if item.stand in ("floor", "wall")]
        for i in sorted(large, key=lambda i: -float(np.prod(items[i].size))):
            own = reach(*self.wanted[i])
            if items[i].stand == "wall":
                pose = _hung(draw, self.taken, self.wanted[i][0], own, self.openings)
            else:
                pose = against_wall(draw, self.taken, own, tries=80)
            self._keep(i, pose)
        self._furnish(self.kind.along[1:], self.kind.middle)
        # What stands on tops, several on one where they fit: a view shows one place.
        order = list(self.tops)
        draw.shuffle(order)
        for i, wanted in enumerate(self.wanted):
            if i not in large:
                self._keep(i, _on_tops(draw, self.taken, order, *wanted))
        # A few small things on each top, where they find room, and pictures on the walls.
        for place in self.tops:
            for _ in range(draw.count(0, 4)):
                prop = CLUTTER[draw.one(list(CLUTTER))](draw)
                own = prop.bounds()
                self._stand(prop, on_top(draw, self.taken, place, own, own, tries=4))
        for _ in range(draw.count(1, 4)):
            prop, heights = painting(draw), (1.45, 1.65)
            own = prop.bounds()
            pose = against_wall(draw, self.taken, own, heights=heights, gap=0.0, tries=6)
            self._stand(prop, pose)
        nowhere = Pose(np.zeros(3), 0.0)
        for prop in fixtures(draw, self.size, self.style, self.openings):
            self.standing.append(Standing(prop, nowhere))
        things = tuple(self.things[i] for i in sorted(self.things))
        boxes = [t.pose.bounds(reach(t.cls, t.instance)) for t in things]
        return Room(
            seed=seed,
            kind=self.name,
            size=self.size,
            style=self.style,
            openings=self.openings,
            standing=tuple(self.standing),
            things=things,
            tops=tuple(self.tops),
            taken=self.taken.without(boxes),
        )

    def _openings(self) -> tuple[Opening, ...]:
        """Returns a door and one or two windows; blinds get a window of their size."""
        draw, size = self.draw, self.size
        door_wall = draw.count(0, 4)
        span = wall_length(size, door_wall) / 2 - 0.7
        found = [Opening(door_wall, draw(-span, span), 0.85, 0.0, 2.02)]
        others = [wall for wall in range(4) if wall != door_wall]
        draw.shuffle(others)
        blinds = [item_of(cls, i).size for cls, i in self.wanted if cls == "Blinds"]
        sill = 1.08 if self.kind.wet else 0.85
        for number, wall in enumerate(others[: draw.count(1, 3)]):
            width, low, high = draw(0.9, 1.5), sill + draw(0, 0.12), draw(1.95, 2.15)
            if number == 0 and blinds:
                width, tall = blinds[0][0] - 0.06, blinds[0][2] - 0.06
                high = min(2.15, size[2] - 0.15)
                low = max(0.5, high - tall)
            span = max(wall_length(size, wall) / 2 - width / 2 - 0.35, 0.01)
            found.append(Opening(wall, draw(-span, span), width, low, high))
        for opening in found:
            self.taken.add(_kept_clear(size, opening))
        return tuple(found)

    def _stand(self, prop: Prop, pose: Pose | None) -> bool:
        """Puts a prop into its place, if there is one."""
        if pose is not None:
            for box in prop.boxes:
                self.taken.add(pose.bounds(box))
            self.standing.append(Standing(prop, pose))
        return pose is not None

    def _furnish(self, along: tuple[str, ...], middle: tuple[str, ...]) -> None:
        """Places furniture along the walls and in the middle of the floor."""
        for name in (*middle[:1], *along, *middle[1:]):
            if name == "plant" and self.draw.random() < 0.4:
                continue
            for attempt in range(3):  # another of its kind where one does not fit
                prop = FURNITURE[name](self.draw)
                own = prop.bounds()
                if (prop.tops or name in middle) and attempt < 2 and name != "chair":
                    own = own[0] - np.array([0.0, 0.55, 0.0]), own[1]  # room to stand and look
                if name in middle:
                    pose = on_floor(self.draw, self.taken, own)
                else:
                    pose = against_wall(self.draw, self.taken, own, gap=0.02)
                if self._stand(prop, pose):
                    self.tops += [PlacedTop(top, self.standing[-1].pose) for top in prop.tops]
                    break

    def _keep(self, index: int, pose: Pose | None) -> None:
        if pose is not None:
            self.things[index] = Thing(*self.wanted[index], pose)
            self.taken.add(pose.bounds(reach(*self.wanted[index])))


def place_item(room: Room, index: int, cls: str, instance: int) -> Pose | None:
    """Returns where another item stands in place of the room's thing `index`, or None.

    All other things are where the plan has them. The old place is taken if the item fits there.
    """
    taken = room.taken.copy()
    for i, thing in enumerate(room.things):
        if i != index:
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
    return _on_tops(rng, taken, room.tops, cls, instance)


def _kept_clear(size: Size, opening: Opening) -> Bounds:
    """Returns the box before an opening that nothing stands in: a door must open."""
    deep, wide = (0.75, 0.0) if opening.low == 0 else (0.14, 0.2)
    half = opening.width / 2 + wide
    own = np.array([-half, -deep, opening.low]), np.array([half, 0.0, opening.high])
    return wall_pose(size, opening.wall, opening.along, back=0.0).bounds(own)


def _hung(
    rng: Rng, taken: Occupancy, cls: str, own: Bounds, openings: tuple[Opening, ...]
) -> Pose | None:
    """Returns a free pose on a wall; blinds hang before a window if one of their size is free."""
    for opening in openings if cls == "Blinds" else ():
        height = (opening.low + opening.high) / 2
        pose = wall_pose(taken.size, opening.wall, opening.along, back=0.02, height=height)
        rest = taken.without([_kept_clear(taken.size, opening)])
        if opening.low > 0 and rest.free(pose.bounds(own)):
            return pose
    return against_wall(rng, taken, own, heights=_HANGS.get(cls, (1.3, 1.5)), gap=0.0, tries=80)


def _on_tops(
    rng: Rng, taken: Occupancy, tops: Sequence[PlacedTop], cls: str, instance: int
) -> Pose | None:
    """Returns a free pose on one of the tops: work tops come first for what stands on counters."""
    under, own = _footprint(cls, instance), reach(cls, instance)
    if item_of(cls, instance).stand == "counter":
        tops = sorted(tops, key=lambda place: not place.top.counter)
    for place in tops:
        pose = on_top(rng, taken, place, under, own)
        if pose is not None:
            return pose
    return None
