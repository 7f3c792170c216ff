"""Rooms: what a room, a picture and a pair cost."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from interverse.bench.measure import CPU, Row, best_seconds
from interverse.envs import make
from interverse.worlds.rooms import drawing, room
from interverse.worlds.rooms.pair import Pair
from interverse.worlds.rooms.pairs import generate_pairs
from interverse.worlds.rooms.room import plan_room

_ID = "rooms/multi-v1"
_OBJECTS = 8
_WANTED = {224: 60, 672: 15}  # pairs measured, by pixels a side


def rooms() -> list[Row]:
    """Returns the CPU time of making a room, and pairs a CPU second with their acceptance rate."""
    rows = [_construction(), _picture()]
    for size, target in ((224, "2 or more: 4 a second on two cores"), (672, "0.5 or more")):
        rate, accepted = _pairs(size, _WANTED[size])
        rows.append(
            Row(
                name=f"{_ID} pairs, {size} pixels",
                metric="accepted pairs a CPU second",
                value=rate,
                unit="1/s",
                target=target,
            )
        )
        rows.append(
            Row(
                name=f"{_ID} pairs, {size} pixels",
                metric="accepted of all tries",
                value=accepted,
                unit="share",
            )
        )
    return rows


def _construction() -> Row:
    """Measures rooms with warm textures, as all but the first few of a collection are."""
    seeds = itertools.count(1000)

    def build() -> None:
        seed = next(seeds)
        things = plan_room(seed, _OBJECTS).things
        cast = drawing.cast_of(things, np.zeros((len(things), 4)))
        drawing.staged(seed, _OBJECTS, cast, spill=False, high=False)

    value = np.median([best_seconds(build, repeats=1, warm=0, clock=CPU) for _ in range(15)])
    room.plan_room.cache_clear()
    return Row(
        name=f"{_ID} construction",
        metric="median CPU milliseconds of 15 rooms",
        value=1e3 * float(value),
        unit="ms",
        target="under 700 ms",
    )


def _picture() -> Row:
    env = make(_ID, image_size=224)
    env.reset(seed=0)
    both, shape = (
        best_seconds(functools.partial(env.world.frame, 0, 224, parts))
        for parts in (("rgb", "items"), ("items",))
    )
    env.close()
    return Row(
        name=f"{_ID} picture and mask, 224 pixels",
        metric="CPU milliseconds",
        value=1e3 * both,
        unit="ms",
        ratio=both / shape,
        baseline="the mask alone",
    )


def _pairs(size: int, wanted: int) -> tuple[float, float]:
    """Returns accepted pairs a CPU second and the share of tries that are accepted."""
    found, tries, start = 0, 0, CPU()
    for house in itertools.count(2000):
        for item in generate_pairs(_ID, 0, house, options={"image_size": size}):
            tries += 1
            found += isinstance(item, Pair)
        if found >= wanted:
            break
    return found / (CPU() - start), found / tries
