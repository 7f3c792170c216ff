"""Before/after pairs, collected as the original was: a house, rounds, places, acceptance tests.

A round starts with fresh states and light; the camera then goes from place to place, and every
pair leaves its object as it is, so that what one pair opened another can close. A house is a pure
function of (seed, house): other houses, processes and restarts change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.errors import InvalidValueError, explain
from interverse.rng import Noise, check_seed
from interverse.worlds import WORLDS
from interverse.worlds.rooms import camera
from interverse.worlds.rooms.actions import possible
from interverse.worlds.rooms.drawing import Frame, Part
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.pair import Address, Pair, Rejection
from interverse.worlds.rooms.variables import ACTION, INSTANCES, name_of
from interverse.worlds.rooms.world import Rooms
from interverse.worlds.world import parse_options

Box = tuple[int, int, int, int]
ROUNDS = 6
ROUND_PAIRS = 5
ENOUGH = 20  # a house ends after the round in which it has more pairs
TRIES = 24  # places looked from in a round
_PUBLISHED = 672  # pixels a side of the pictures that the limits below are for
_SMALLEST, _BORDER, _LARGE, _INSIDE = 60, 20, 100, 1000
_OUTSIDE = 20
_ONE = np.array([0])


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
        width, height = box[2] - box[0], box[3] - box[1]
        if min(width, height) < self.smallest:
            return False
        near = min(box[0], box[1], size - box[2], size - box[3]) <= self.border
        return not near or min(width, height) > self.large


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """An object that could be acted on: its index in the room and its box."""

    item: int
    box: Box


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
        raise InvalidValueError(explain(f"house is {house}", allowed=f"0 to {INSTANCES}"))
    entry = WORLDS[world_id]
    parsed = parse_options(RoomsOptions, {**entry.options, **(options or {})})
    world = Rooms(num_worlds=1, options=parsed)
    count = 0
    for number in range(ROUNDS):
        start = Noise.single(seed=seed, episode=house * ROUNDS + number)
        world.reset(_ONE, start, {"room/seed": np.array([house])})
        in_round = 0
        for attempt in range(TRIES):
            address = Address(seed, house, number, count)
            found = _attempt(world, start.at(attempt + 1), address, depth=depth)
            yield found
            if isinstance(found, Pair):
                count, in_round = count + 1, in_round + 1
            if in_round == ROUND_PAIRS:
                break
        if count > ENOUGH:
            return


def _attempt(world: Rooms, noise: Noise, address: Address, *, depth: bool) -> Pair | Rejection:
    """Returns what one place to look from gives; the world keeps what an accepted pair did."""
    rng, size = noise.generator("rooms/attempt"), world.options.image_size
    limits = Limits.of(size)
    present = world.present(0)
    target = present[int(rng.integers(len(present)))]
    if world.options.view == "single":
        world.focus(0, target)
    world.look(0, target, rng.random((camera.TRIES, camera.NUMBERS)))
    seen = world.frame(0, size, ("items",))
    candidates = _candidates(world, seen, limits)
    if world.options.view == "single":
        candidates = [c for c in candidates if c.item == target]
    if len(candidates) < (1 if world.options.view == "single" else min(2, len(present))):
        return Rejection(reason="too few in view")
    chosen = candidates[int(rng.integers(len(candidates)))]
    world.focus(0, chosen.item)
    state = world.read(name_of(0, "state"))[0]
    verbs = possible(int(world.read(name_of(0, "class"))[0]), state)
    verb = verbs[int(rng.integers(len(verbs)))]
    return _pair(world, noise, address, verb, limits=limits, depth=depth)


def _candidates(world: Rooms, frame: Frame, limits: Limits) -> list[Candidate]:
    """Returns the objects in view that are large enough and that an action can change."""
    assert frame.items is not None  # asked for
    found = []
    for slot, item in enumerate(world.read("order")[0].tolist()):
        cls = int(world.read(name_of(slot, "class"))[0])
        box = box_of(frame.items == item)
        if box is None or not limits.fits(box, len(frame.items)):
            continue
        if possible(cls, world.read(name_of(slot, "state"))[0]):
            found.append(Candidate(item, box))
    return found


def _pair(
    world: Rooms, noise: Noise, address: Address, verb: int, *, limits: Limits, depth: bool
) -> Pair | Rejection:
    size, item = world.options.image_size, int(world.read("order")[0][0])
    parts: tuple[Part, ...] = ("rgb", "items", "depth") if depth else ("rgb", "items")
    was, before_values, action = world.save(_ONE), _values(world), np.array([[0, verb]])
    before = world.frame(0, size, parts, fast=True)
    world.act(action, _ONE)
    after = world.frame(0, size, parts, fast=True)
    reason = _refusal(before, after, item, limits, spills=world.options.light_spill)
    if reason is None and (world.options.pair_nuisance, world.options.quality) != ("none", "fast"):
        world.load(was, _ONE)  # judged by the object alone; now all else moves, and is drawn well
        before = world.frame(0, size, parts)
        world.step(action, _ONE, noise)
        after = world.frame(0, size, parts)
        box = box_of(after.items == item)
        reason = None if box is not None and limits.fits(box, size) else "lost"
    if reason is not None:
        world.load(was, _ONE)
        return Rejection(reason=reason)
    after_values = _values(world)
    world.load(_calmed(world.save(_ONE)), _ONE)
    changed = {n for n, v in after_values.items() if not np.array_equal(v, before_values[n])}
    return Pair(
        **_pictures(world, before, after, item),
        verb=verb,
        cls=int(before_values["object/class"]),
        factors_before=before_values,
        factors_after=after_values,
        nuisance=tuple(sorted(changed - {name_of(0, "state"), *ACTION})),
        address=address,
    )


def _refusal(before: Frame, after: Frame, item: int, limits: Limits, *, spills: bool) -> str | None:
    """Returns why two pictures that differ by an action make no pair, or None."""
    boxes = [box_of(frame.items == item) for frame in (before, after)]
    if boxes[0] is None or boxes[1] is None:
        return "lost"
    differs = np.any(before.rgb != after.rgb, axis=-1)
    both = np.logical_and(*(_filled(box, len(differs)) for box in boxes))
    either = np.logical_or(*(_filled(box, len(differs)) for box in boxes))
    if int(np.sum(differs & both)) <= limits.inside:
        return "little changed"
    if not spills and int(np.sum(differs & ~either)) >= limits.outside:
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


def _filled(box: Box | None, size: int) -> NDArray[np.bool_]:
    found = np.zeros((size, size), dtype=bool)
    if box is not None:
        found[box[1] : box[3], box[0] : box[2]] = True
    return found


def _values(world: Rooms) -> dict[str, NDArray[Any]]:
    return {name: world.read(name)[0] for name in world.variables}


def _calmed(state: dict[str, Any]) -> dict[str, Any]:
    """Returns a saved state before whose first action nobody has acted."""
    return state | {name: np.full_like(state[name], -1) for name in ACTION}


def _pictures(world: Rooms, before: Frame, after: Frame, item: int) -> dict[str, Any]:
    found: dict[str, Any] = {"before": before.rgb, "after": after.rgb}
    for name, frame in (("before", before), ("after", after)):
        found[f"mask_{name}"] = frame.items == item
        found[f"instances_{name}"] = world.slots(0, frame)
        found[f"box_{name}"] = box_of(frame.items == item)
        found[f"depth_{name}"] = None if frame.depth is None else frame.depth.astype(np.float16)
    return found
