"""Sequences of actions in one room, with every factor of every frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_whole, explain
from interverse.core.rng import check_seed
from interverse.worlds import WORLDS
from interverse.worlds.rooms.actions import VERBS
from interverse.worlds.rooms.options import MOST_ACTIONS, RoomsOptions
from interverse.worlds.rooms.pairs import (
    Limits,
    class_and_verbs,
    items_in_view,
    noise_of,
    values_of,
)
from interverse.worlds.rooms.scene import Part
from interverse.worlds.rooms.world import Rooms
from interverse.worlds.world import parse_options

_ONE = np.array([0])
_ITEMS: tuple[Part, ...] = ("items",)
_LOOKS = 24  # places looked from until enough objects are in view


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
            explain(f"house {house}: no object in view can be acted on", fix="Take another house")
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
