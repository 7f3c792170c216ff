"""Before/after pairs, collected as the original was: a house, rounds, places, acceptance tests.

A round starts with fresh states and light; the camera then goes from place to place, and every
pair leaves its object as it is, so that what one pair opened another can close (as far as a
confounder lets it). A house is a pure
function of (seed, house): other houses, processes and restarts change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise, check_seed
from interverse.worlds import WORLDS
from interverse.worlds.rooms import camera
from interverse.worlds.rooms.acceptance import Box, Limits, box_of, refusal
from interverse.worlds.rooms.actions import possible
from interverse.worlds.rooms.confounding import preferred_objects, preferred_verbs, puts_back
from interverse.worlds.rooms.drawing import Frame, Part
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.pair import Address, Origin, Pair, Rejection
from interverse.worlds.rooms.variables import ACTION, INSTANCES, TARGET, name_of
from interverse.worlds.rooms.world import Rooms
from interverse.worlds.world import parse_options

ROUNDS = 6
ROUND_PAIRS = 5
ENOUGH = 20  # a house ends after the round in which it has more pairs
TRIES = 24  # places looked from in a round
_ONE = np.array([0])
_ITEMS: tuple[Part, ...] = ("items",)
_COLOURS: tuple[Part, ...] = ("rgb",)
_NO_BOX: Box = (0, 0, 0, 0)  # of what is not in the picture


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
    noise = noise_of(*address[:3]).at(origin.attempt + 1)
    rng, size = noise.generator("rooms/attempt"), world.options.image_size
    limits = Limits.of(size)
    present = world.present(0)
    present = _preferred(world, present, rng)
    target = present[int(rng.integers(len(present)))]
    if world.options.view == "single":
        world.focus(0, target)
    world.look(0, target, rng.random((camera.TRIES, camera.NUMBERS)))
    seen = world.frame(0, size, _ITEMS, fast=True)  # colours cost most, and many are refused
    candidates = candidates_in(world, seen, limits)
    if world.options.view == "single":
        candidates = [c for c in candidates if c.item == target]
    if len(candidates) < (1 if world.options.view == "single" else min(2, len(present))):
        return Rejection(reason="too few in view")
    if world.options.confounder:
        wanted = _preferred(world, [c.item for c in candidates], rng)
        candidates = [c for c in candidates if c.item in wanted]
    chosen = candidates[int(rng.integers(len(candidates)))]
    world.focus(0, chosen.item)
    _, verbs = class_and_verbs(world, 0)
    if world.options.confounder:
        verbs = preferred_verbs(world.hidden(0), verbs, float(rng.random()))
    verb = verbs[int(rng.integers(len(verbs)))]
    origin = replace(origin, state=world.save(_ONE))
    before = replace(seen, rgb=world.frame(0, size, _COLOURS, fast=True).rgb)
    found = _judged(world, Draft(verb, address, origin), before, limits=limits, depth=depth)
    if world.options.confounder and puts_back(world.hidden(0), float(rng.random())):
        world.load(dict(origin.state or {}), _ONE)
    return found


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


def candidates_in(world: Rooms, frame: Frame, limits: Limits) -> list[Candidate]:
    """Returns the objects in view that are large enough and that an action can change."""
    assert frame.items is not None  # asked for
    found = []
    for slot, item in enumerate(world.read("order")[0].tolist()):
        cls = int(world.read(name_of(slot, "class"))[0])
        box = box_of(frame.items == item)
        if box is None or not limits.fits(box, len(frame.items)):
            continue
        graded = world.options.states == "graded"
        if possible(cls, world.read(name_of(slot, "state"))[0], graded=graded):
            found.append(Candidate(item, box))
    return found


class Draft(NamedTuple):
    """A pair to be: its action, which object it is done to, and where it comes from."""

    verb: int
    address: Address
    origin: Origin
    slot: int = 0


def _judged(
    world: Rooms, draft: Draft, before: Frame, *, limits: Limits, depth: bool
) -> Pair | Rejection:
    """Returns the pair that an action gives, or why it gives none; then the world is as before.

    Args:
        world: whose world 0 is acted in.
        draft: the action and where the pair comes from.
        before: the quick frame of the world as it stands.
        limits: of acceptance.
        depth: whether the pair carries depth pictures.
    """
    size, item, options = world.options.image_size, _item(world, draft.slot), world.options
    assert draft.origin.state is not None  # saved just now
    was, action = dict(draft.origin.state), np.array([[draft.slot, draft.verb]])
    noise = noise_of(*draft.address[:3]).at(draft.origin.attempt + 1)
    world.act(action, _ONE, noise)
    after = world.frame(0, size, ("rgb", "items"), fast=True)
    reason = refusal(before, after, item, limits, spills=options.light_spill)
    if reason is not None:
        world.load(was, _ONE)
        return Rejection(reason=reason)
    world.load(was, _ONE)
    alike = options.quality == "fast" and not depth  # the quick frames are those of the pair
    calm = options.pair_nuisance == "none"
    drawn = (before if alike else None, after if alike and calm else None)
    pair = act_and_draw(world, draft, depth=depth, drawn=drawn)
    if options.pair_nuisance != "none" and not _kept_in_view(pair, limits, size):
        world.load(was, _ONE)
        return Rejection(reason="lost")
    world.load(_calmed(world.save(_ONE)), _ONE)
    return pair


def act_and_draw(
    world: Rooms,
    draft: Draft,
    *,
    depth: bool,
    drawn: tuple[Frame | None, Frame | None] = (None, None),
) -> Pair:
    """Returns the pair that an action gives in a world as it stands, and leaves it done.

    Args:
        world: whose world 0 is acted in.
        draft: the action and where the pair comes from.
        depth: whether the pair carries depth pictures.
        drawn: the two frames, each where it is known already.
    """
    size, item = world.options.image_size, _item(world, draft.slot)
    parts: tuple[Part, ...] = ("rgb", "items", "depth") if depth else ("rgb", "items")
    before_values = values_of(world)
    before = drawn[0] or world.frame(0, size, parts)
    noise = noise_of(*draft.address[:3]).at(draft.origin.attempt + 1)
    world.step(np.array([[draft.slot, draft.verb]]), _ONE, noise)
    after = drawn[1] or world.frame(0, size, parts)
    return pair_of(world, draft, (before, after), before_values, item)


def pair_of(
    world: Rooms,
    draft: Draft,
    frames: tuple[Frame, Frame],
    before: Mapping[str, NDArray[Any]],
    item: int,
) -> Pair:
    """Returns a pair of two frames; what the world has now is what was after.

    Args:
        world: as it is after the action.
        draft: the action and where the pair comes from.
        frames: before and after.
        before: the variables as they were before.
        item: the one acted on, by its index in the room.
    """
    after = values_of(world)
    changed = {n for n, v in after.items() if not np.array_equal(v, before[n])}
    return Pair(
        **_pictures(world, *frames, item),
        verb=draft.verb,
        cls=int(before[name_of(draft.slot, "class")]),
        factors_before=before,
        factors_after=after,
        nuisance=tuple(sorted(changed - {name_of(draft.slot, "state"), *ACTION, TARGET})),
        address=draft.address,
        origin=draft.origin,
    )


def redrawn(world: Rooms, pair: Pair, draft: Draft) -> Pair:
    """Returns a pair whose after picture is of the world as it is now."""
    depth, item = pair.depth_before is not None, _item(world, draft.slot)
    parts: tuple[Part, ...] = ("rgb", "items", "depth") if depth else ("rgb", "items")
    after = world.frame(0, world.options.image_size, parts)
    found = pair_of(world, draft, (after, after), pair.factors_before, item)
    names = ("before", "mask_before", "instances_before", "box_before", "depth_before")
    return replace(found, **{name: getattr(pair, name) for name in names})


def _kept_in_view(pair: Pair, limits: Limits, size: int) -> bool:
    return bool(pair.mask_after.any()) and limits.fits(pair.box_after, size)


def _item(world: Rooms, slot: int) -> int:
    return int(world.read("order")[0][slot])


def values_of(world: Rooms) -> dict[str, NDArray[Any]]:
    """Returns every variable of world 0."""
    return {name: world.read(name)[0] for name in world.variables}


def _calmed(state: dict[str, Any]) -> dict[str, Any]:
    """Returns a saved state before whose first action nobody has acted."""
    return state | {name: np.full_like(state[name], -1) for name in ACTION}


def _pictures(world: Rooms, before: Frame, after: Frame, item: int) -> dict[str, Any]:
    found: dict[str, Any] = {"before": before.rgb, "after": after.rgb}
    for name, frame in (("before", before), ("after", after)):
        assert frame.items is not None  # asked for
        found[f"mask_{name}"] = frame.items == item
        found[f"instances_{name}"] = world.slots(0, frame)
        found[f"box_{name}"] = box_of(frame.items == item) or _NO_BOX
        found[f"depth_{name}"] = None if frame.depth is None else frame.depth.astype(np.float16)
    return found
