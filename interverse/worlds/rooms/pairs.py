"""Before/after pairs, collected as the original was, and sequences of actions in one room.

A house has rounds, a round places. A round starts with fresh states and light; the camera then goes
from place to place, and every pair leaves its object as it is, so that what one pair opened another
can close (as far as a confounder lets it). A house is a pure function of (seed, house): other
houses, processes and restarts change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_whole
from interverse.core.rng import Noise, check_seed
from interverse.worlds import WORLDS
from interverse.worlds.rooms import camera
from interverse.worlds.rooms.actions import VERBS, possible
from interverse.worlds.rooms.confounding import preferred_objects, preferred_verbs, puts_back
from interverse.worlds.rooms.options import MOST_ACTIONS, RoomsOptions
from interverse.worlds.rooms.pair import Address, Origin, Pair, Rejection
from interverse.worlds.rooms.scene import Frame, Part
from interverse.worlds.rooms.variables import ACTION, INSTANCES, TARGET, name_of
from interverse.worlds.rooms.world import Rooms
from interverse.worlds.world import parse_options

ROUNDS = 6
ROUND_PAIRS = 5
ENOUGH = 20  # a house ends after the round in which it has more pairs
TRIES = 24  # places looked from in a round
Box = tuple[int, int, int, int]
_ONE = np.array([0])
_ITEMS: tuple[Part, ...] = ("items",)
_LOOKS = 24  # places looked from until enough objects are in view
_PUBLISHED = 672  # pixels a side of the pictures that the limits below are for
_SMALLEST, _BORDER, _LARGE, _INSIDE = 60, 20, 100, 1000
_OUTSIDE = 20


def generate_pairs(
    world_id: str,
    seed: int,
    house: int,
    *,
    options: Mapping[str, Any] | None = None,
    depth: bool = False,
) -> Iterator[Pair | Rejection]:
    """Yields the pairs of a house, at most 25, and a Rejection for each try that gave none.

    Args:
        world_id: an id of rooms.
        seed: of the data set: what states, lights and views a house is seen in.
        house: its number; it is the room's seed.
        options: of the world.
        depth: whether pairs carry depth pictures.

    >>> found = generate_pairs("rooms/multi-v1", 0, 3, options={"image_size": 64, "objects": 4})
    >>> pair = next(p for p in found if isinstance(p, Pair))
    >>> pair.before.shape, pair.address.house
    ((64, 64, 3), 3)
    """
    check_seed(seed)
    if check_seed(house, name="house") > INSTANCES:
        raise InvalidValueError(f"house is {house}", allowed=f"0 to {INSTANCES}")
    entry = WORLDS[world_id]
    parsed = parse_options(RoomsOptions, {**entry.options, **(options or {})})
    world = Rooms(num_worlds=1, options=parsed)
    count = 0
    for number in range(ROUNDS):
        world.reset(_ONE, noise_of(seed, house, number), {"room/seed": np.array([house])})
        in_round = 0
        for attempt in range(TRIES):
            address = Address(seed, house, number, count)
            origin = Origin(world_id=world_id, options=dict(options or {}), attempt=attempt)
            found = _attempt(world, address, origin, depth=depth)
            yield found
            if isinstance(found, Pair):
                count, in_round = count + 1, in_round + 1
            if in_round == ROUND_PAIRS:
                break
        if count > ENOUGH:
            return


def noise_of(seed: int, house: int, round: int) -> Noise:
    """Returns the noise of a round's start; `.at(attempt + 1)` is that of a try in it."""
    return Noise.single(seed=seed, episode=house * ROUNDS + round)


def _attempt(world: Rooms, address: Address, origin: Origin, *, depth: bool) -> Pair | Rejection:
    """Returns what one place to look from gives; the world keeps what an accepted pair did."""
    noise, options = noise_of(*address[:3]).at(origin.attempt + 1), world.options
    rng, size, single = (
        noise.generator("rooms/attempt"),
        options.image_size,
        options.view == "single",
    )
    limits = Limits.of(size)
    present = _preferred(world, world.present(0), rng)
    target = present[int(rng.integers(len(present)))]
    if single:
        world.focus(0, target)
    world.look(0, target, rng.random((camera.TRIES, camera.NUMBERS)))
    seen = world.frame(0, size, _ITEMS, fast=True)  # colours cost most, and many are refused
    items = [item for item in items_in_view(world, seen, limits) if not single or item == target]
    if len(items) < (1 if single else min(2, len(present))):
        return Rejection(reason="too few in view")
    items = _preferred(world, items, rng)
    item = items[int(rng.integers(len(items)))]
    world.focus(0, item)
    _, verbs = class_and_verbs(world, 0)
    if options.confounder:
        verbs = preferred_verbs(world.hidden(0), verbs, float(rng.random()))
    was = world.save(_ONE)
    draft = Draft(verbs[int(rng.integers(len(verbs)))], address, replace(origin, state=was))
    before = replace(seen, rgb=world.frame(0, size, fast=True).rgb)
    found = _judged(world, draft, item, (before, limits), depth=depth)
    if isinstance(found, Rejection):
        world.load(was, _ONE)
    else:  # as if nobody had acted yet
        now = world.save(_ONE)
        world.load(now | {name: np.full_like(now[name], -1) for name in ACTION}, _ONE)
    if options.confounder and puts_back(world.hidden(0), float(rng.random())):
        world.load(was, _ONE)
    return found


def _judged(
    world: Rooms, draft: Draft, item: int, given: tuple[Frame, Limits], *, depth: bool
) -> Pair | Rejection:
    """Returns the pair that an action gives, or why it gives none; the world is as after it."""
    before, limits = given
    options, size = world.options, world.options.image_size
    state = world.save(_ONE)
    world.act(np.array([[draft.slot, draft.verb]]), _ONE, draft.noise)
    after = world.frame(0, size, ("rgb", "items"), fast=True)
    reason = refusal(before, after, item, limits, spills=options.light_spill)
    if reason is not None:
        return Rejection(reason=reason)
    world.load(state, _ONE)
    alike = options.quality == "fast" and not depth  # the quick frames are those of the pair
    calm = options.pair_nuisance == "none"
    drawn = (before if alike else None, after if alike and calm else None)
    pair = act_and_draw(world, draft, depth=depth, drawn=drawn)
    if not calm and not (pair.mask_after.any() and limits.fits(pair.box_after, size)):
        return Rejection(reason="lost")
    return pair


def _preferred(world: Rooms, items: list[int], rng: np.random.Generator) -> list[int]:
    """Returns the items to choose from: with a confounder, mostly those of its side."""
    if not world.options.confounder:
        return items
    order = world.read("order")[0].tolist()
    objects = [class_and_verbs(world, order.index(item)) for item in items]
    kept = preferred_objects(world.hidden(0), objects, float(rng.random()))
    return [items[place] for place in kept]


def class_and_verbs(world: Rooms, slot: int) -> tuple[int, list[int]]:
    """Returns the class of the object in a slot, and the actions that change it as it is."""
    cls, state = (world.read(name_of(slot, field))[0] for field in ("class", "state"))
    return int(cls), possible(int(cls), state, graded=world.options.states == "graded")


def items_in_view(world: Rooms, frame: Frame, limits: Limits) -> list[int]:
    """Returns the items in view, by slot, that are large enough and that an action can change."""
    assert frame.items is not None  # asked for
    found = []
    for slot, item in enumerate(world.read("order")[0].tolist()):
        box = box_of(frame.items == item)
        large = box is not None and limits.fits(box, len(frame.items))
        if large and class_and_verbs(world, slot)[1]:
            found.append(item)
    return found


class Draft(NamedTuple):
    """A pair to be: its action, which object it is done to, and where it comes from."""

    verb: int
    address: Address
    origin: Origin
    slot: int = 0

    @property
    def noise(self) -> Noise:
        """What moves camera and light in the pair's step."""
        return noise_of(*self.address[:3]).at(self.origin.attempt + 1)


def act_and_draw(
    world: Rooms,
    draft: Draft,
    *,
    depth: bool,
    drawn: tuple[Frame | None, Frame | None] = (None, None),
) -> Pair:
    """Returns the pair that an action gives in a world as it stands, and leaves it done.

    `drawn` are the two frames, each where it is known already.
    """
    values = values_of(world)
    before = drawn[0] or _frame(world, depth=depth)
    world.step(np.array([[draft.slot, draft.verb]]), _ONE, draft.noise)
    after = drawn[1] or _frame(world, depth=depth)
    return _pair_of(world, draft, (before, after), values)


def redrawn(world: Rooms, pair: Pair, draft: Draft) -> Pair:
    """Returns a pair whose after picture is of the world as it is now."""
    after = _frame(world, depth=pair.depth_before is not None)
    found = _pair_of(world, draft, (after, after), pair.factors_before)
    names = ("before", "mask_before", "instances_before", "box_before", "depth_before")
    return replace(found, **{name: getattr(pair, name) for name in names})


def _frame(world: Rooms, *, depth: bool) -> Frame:
    parts: tuple[Part, ...] = ("rgb", "items", "depth") if depth else ("rgb", "items")
    return world.frame(0, world.options.image_size, parts)


def _pair_of(
    world: Rooms, draft: Draft, frames: tuple[Frame, Frame], before: Mapping[str, NDArray[Any]]
) -> Pair:
    """Returns a pair of two frames; `before` was, and what the world has now is what was after."""
    after = values_of(world)
    changed = {n for n, v in after.items() if not np.array_equal(v, before[n])}
    item = int(world.read("order")[0][draft.slot])
    shown: dict[str, Any] = {}
    for name, frame in zip(("before", "after"), frames, strict=True):
        assert frame.items is not None  # asked for
        shown[name] = frame.rgb
        shown[f"mask_{name}"] = frame.items == item
        shown[f"instances_{name}"] = world.slots(0, frame)
        shown[f"box_{name}"] = box_of(frame.items == item) or (0, 0, 0, 0)
        shown[f"depth_{name}"] = None if frame.depth is None else frame.depth.astype(np.float16)
    return Pair(
        **shown,
        verb=draft.verb,
        cls=int(before[name_of(draft.slot, "class")]),
        factors_before=before,
        factors_after=after,
        nuisance=tuple(sorted(changed - {name_of(draft.slot, "state"), *ACTION, TARGET})),
        address=draft.address,
        origin=draft.origin,
    )


def values_of(world: Rooms) -> dict[str, NDArray[Any]]:
    """Returns every variable of world 0."""
    return {name: world.read(name)[0] for name in world.variables}


# --------------------------------------------------------------------------------------- sequences


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoomSequence:
    """T actions in a room and the T + 1 frames around them.

    Attributes:
        images: uint8 (T + 1, S, S, 3). instances: int16 (T + 1, S, S), the slot at each pixel, or
            -1.
        factors: every variable of the world by name, (T + 1, ...).
        actions: (T, 2), the slot of the object acted on and the verb.
        targets: bool (T, slots, 4), which component of which object's state each action was to set.
        seed, house: where it comes from; the same two give the same sequence.
    """

    images: NDArray[np.uint8]
    instances: NDArray[np.int16]
    factors: Mapping[str, NDArray[Any]]
    actions: NDArray[np.int64]
    targets: NDArray[np.bool_]
    seed: int
    house: int


def generate_sequence(
    world_id: str,
    seed: int,
    house: int,
    *,
    actions: int = 8,
    options: Mapping[str, Any] | None = None,
) -> RoomSequence:
    """Returns a sequence of actions, each of which changes an object that is in view.

    Args:
        world_id: an id of rooms.
        seed: of the data set.
        house: its number; it is the room's seed.
        actions: how many. A sequence ends sooner where nothing in view can change any more.
        options: of the world; with `pair_nuisance`, camera or light change in every step too.

    >>> found = generate_sequence("rooms/multi-v1", 0, 3, actions=2, options={"image_size": 32})
    >>> found.images.shape, found.factors["object/state"].shape, found.actions.shape
    ((3, 32, 32, 3), (3, 4), (2, 2))
    """
    check_seed(seed)
    check_seed(house, name="house")
    check_whole(actions, "actions", MOST_ACTIONS)
    asked = {**WORLDS[world_id].options, **(options or {}), "actions": actions}
    world = Rooms(num_worlds=1, options=parse_options(RoomsOptions, asked))
    noise = noise_of(seed, house, 0)
    world.reset(_ONE, noise, {"room/seed": np.array([house])})
    rng = noise.generator("rooms/sequence")
    slots = _in_view(world, rng)

    def frame() -> tuple[NDArray[np.uint8], NDArray[np.int16], dict[str, NDArray[Any]]]:
        seen = world.frame(0, world.options.image_size, ("rgb", "items"))
        assert seen.rgb is not None  # asked for
        return seen.rgb, world.slots(0, seen), values_of(world)

    frames, done = [frame()], []
    for step in range(actions):
        choices = [(slot, verb) for slot in slots for verb in class_and_verbs(world, slot)[1]]
        if not choices:
            break
        done.append(choices[int(rng.integers(len(choices)))])
        world.step(np.array([done[-1]]), _ONE, noise.at(step + 1))
        frames.append(frame())
    if not done:
        raise InvalidValueError(
            f"house {house}: no object in view can be acted on", fix="Take another house"
        )
    images, instances, factors = zip(*frames, strict=True)
    targets = np.zeros((len(done), world.options.objects, 4), dtype=bool)
    for step, (slot, verb) in enumerate(done):
        targets[step, slot, VERBS[verb].component] = True
    return RoomSequence(
        images=np.stack(images),
        instances=np.stack(instances),
        factors={name: np.stack([row[name] for row in factors]) for name in factors[0]},
        actions=np.array(done, dtype=np.int64),
        targets=targets,
        seed=seed,
        house=house,
    )


def _in_view(world: Rooms, rng: np.random.Generator) -> list[int]:
    """Returns the slots of the objects in view, after looking for a place that shows two."""
    size = world.options.image_size
    enough = 1 if world.options.view == "single" else min(2, len(world.present(0)))
    found: list[int] = []
    for _ in range(_LOOKS):
        seen = world.frame(0, size, _ITEMS)
        order = world.read("order")[0].tolist()
        found = [order.index(item) for item in items_in_view(world, seen, Limits.of(size))]
        if world.options.view == "single":
            found = [slot for slot in found if slot == 0]
        if len(found) >= enough:
            break
        target = rng.choice(world.present(0))
        world.look(0, int(target), rng.random(world.hidden(0)["u/camera"].shape))
    return found


# -------------------------------------------------------------------------------------- acceptance


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """Acceptance limits for pictures of a size, those of the original scaled with it."""

    smallest: float
    border: float
    large: float
    inside: float
    outside: int

    @classmethod
    def of(cls, size: int) -> Limits:
        """Returns the limits for pictures of so many pixels a side."""
        by = size / _PUBLISHED
        return cls(_SMALLEST * by, _BORDER * by, _LARGE * by, _INSIDE * by * by, _OUTSIDE)

    def fits(self, box: Box, size: int) -> bool:
        """Returns whether a box is large enough, and away from the border or larger still."""
        least = min(box[2] - box[0], box[3] - box[1])
        near = min(box[0], box[1], size - box[2], size - box[3]) <= self.border
        return least >= self.smallest and (not near or least > self.large)


def refusal(before: Frame, after: Frame, item: int, limits: Limits, *, spills: bool) -> str | None:
    """Returns why two pictures that differ by an action make no pair, or None."""
    found = (box_of(np.asarray(frame.items) == item) for frame in (before, after))
    boxes = [box for box in found if box is not None]
    if len(boxes) < 2:
        return "lost"
    differs = np.any(np.asarray(before.rgb) != np.asarray(after.rgb), axis=-1)
    covers = np.zeros((2, *differs.shape), dtype=bool)
    for cover, (left, top, right, bottom) in zip(covers, boxes, strict=True):
        cover[top:bottom, left:right] = True
    if int(np.sum(differs & covers.all(axis=0))) <= limits.inside:
        return "little changed"
    if not spills and int(np.sum(differs & ~covers.any(axis=0))) >= limits.outside:
        return "changed outside"
    return None


def box_of(mask: NDArray[np.bool_]) -> Box | None:
    """Returns xmin, ymin, xmax, ymax of a mask and the pixel around it, None for an empty one.

    The pixel around belongs to it: edges are drawn soft, and a mask has the pixels' centres only.

    >>> box_of(np.eye(8, dtype=bool)[2:5])
    (1, 0, 6, 3)
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if len(rows) == 0:
        return None
    height, width = mask.shape
    return (
        max(int(columns[0]) - 1, 0),
        max(int(rows[0]) - 1, 0),
        min(int(columns[-1]) + 2, width),
        min(int(rows[-1]) + 2, height),
    )
