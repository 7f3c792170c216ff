"""Worlds by themselves: the MuJoCo template, grid worlds in a batch, rooms and their pairs."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from interverse.bench.measure import (
    CPU,
    Row,
    best_pair,
    best_seconds,
    plays,
    rate_row,
    resident_mb,
    time_row,
)
from interverse.envs import make, make_vec
from interverse.rollouts.policy import RandomPolicy
from interverse.worlds.rooms import room
from interverse.worlds.rooms.pair import Pair
from interverse.worlds.rooms.pairs import generate_pairs
from interverse.worlds.rooms.room import plan_room
from interverse.worlds.rooms.scene import cast_of, staged
from interverse.worlds.tutorial.scene import SUBSTEPS, build_scene

_SLIDERS = 1024
_GRIDS = 4096
_STEPS = 10
_ROOMS = "rooms/multi-v1"
_OBJECTS = 8
_WANTED = {224: 60, 672: 15}  # pairs measured, by pixels a side


def slider() -> list[Row]:
    """Returns the overhead of `step` over `Batch.step` and the cost of `do` on 1,024 masses."""
    venv = make_vec("tutorial/slider-v1", num_envs=_SLIDERS, threads=1, max_steps=10**6)
    venv.reset(seed=0)
    bare = _bare_boxes(venv)
    push = np.full((_SLIDERS, 2), 0.5, dtype=np.float32)
    ours, theirs = best_pair(lambda: venv.step(push), lambda: bare.step(nstep=SUBSTEPS), repeats=15)
    masses = iter(np.random.default_rng(0).uniform(0.3, 0.6, (64, _SLIDERS)))
    edit, derive = best_pair(
        lambda: venv.unwrapped.do({"box/mass": next(masses)}), bare.set_const, repeats=15
    )
    step, do = "seconds, 1024 worlds, one thread", "milliseconds, 1024 worlds"
    alone = {"baseline": "mujoco.batch.Batch.step", "target": "ratio under 1.3"}
    told = {"baseline": "Batch.set_const alone", "target": "under 6 ms"}
    return [
        time_row("tutorial/slider-v1 step", step, ours, theirs, "s", **alone),
        time_row("tutorial/slider-v1 do(box/mass)", do, edit, derive, **told),
    ]


def _bare_boxes(venv: Any) -> Batch:
    """Returns the engine alone with the same boxes in the same places under the same push."""
    world = venv.unwrapped.world
    scene = build_scene(world.variables)
    batch = Batch(mujoco.MjModel.from_xml_string(scene.model), _SLIDERS, nthread=1)
    batch.expand("body_mass")
    batch.reset()
    batch.bind("qpos")[:] = world.read("box/position")
    batch.bind("xfrc_applied")[:, -1, :2] = 0.5 * world.read("push")[:, None]
    return batch


def blocks() -> list[Row]:
    """Returns frames a second and memory of 4,096 worlds of three blocks."""
    return steps_with_images("blocks/observed-3-v1", target="at least 100,000 frames/s")


def chemistry() -> list[Row]:
    """Returns frames a second and memory of 4,096 chemistry worlds."""
    return steps_with_images("chemistry/chain-v1", target="at least 100,000 frames/s")


def steps_with_images(world_id: str, *, target: str) -> list[Row]:
    """Returns frames a second of a grid world in a batch, and the memory the batch takes."""
    make_vec(world_id, num_envs=1).reset(seed=0)  # the code is loaded before memory is read
    before = resident_mb()
    venv = make_vec(world_id, num_envs=_GRIDS, max_steps=10**6)
    venv.reset(seed=0)
    policy = RandomPolicy(venv.unwrapped.world.action_space)
    policy.reset(np.ones(_GRIDS, dtype=bool), np.arange(_GRIDS))
    seconds = best_seconds(plays(venv, [policy(np.zeros(_GRIDS)) for _ in range(_STEPS)]))
    memory, rate = resident_mb() - before, _GRIDS * _STEPS / seconds
    return [
        rate_row(world_id, "frames per second, batch of 4096", rate, target=target),
        Row(world_id, "memory of 4096 worlds", memory, "MB", target="under 300 MB"),
    ]


def rooms() -> list[Row]:
    """Returns the CPU time of making a room, and pairs a CPU second with their acceptance rate."""
    rows = [_construction(), _picture()]
    for size, target in ((224, "2 or more: 4 a second on two cores"), (672, "0.5 or more")):
        # Pairs a CPU second, and the share of tries that are accepted.
        found, tries, start = 0, 0, CPU()
        for house in itertools.count(2000):
            for item in generate_pairs(_ROOMS, 0, house, options={"image_size": size}):
                tries += 1
                found += isinstance(item, Pair)
            if found >= _WANTED[size]:
                break
        rate, name = found / (CPU() - start), f"{_ROOMS} pairs, {size} pixels"
        rows.append(rate_row(name, "accepted pairs a CPU second", rate, target=target))
        rows.append(Row(name, "accepted of all tries", found / tries, "share"))
    return rows


def _construction() -> Row:
    """Measures rooms with warm textures, as all but the first few of a collection are."""
    seeds = itertools.count(1000)

    def build() -> None:
        seed = next(seeds)
        things = plan_room(seed, _OBJECTS).things
        cast = cast_of(things, np.zeros((len(things), 4)))
        staged(seed, _OBJECTS, cast, spill=False, high=False)

    value = float(np.median([best_seconds(build, repeats=1, warm=0) for _ in range(15)]))
    room.plan_room.cache_clear()
    metric = "median CPU milliseconds of 15 rooms"
    return time_row(f"{_ROOMS} construction", metric, value, target="under 700 ms")


def _picture() -> Row:
    env = make(_ROOMS, image_size=224)
    env.reset(seed=0)
    both, shape = (
        best_seconds(functools.partial(env.world.frame, 0, 224, parts))
        for parts in (("rgb", "items"), ("items",))
    )
    env.close()
    name = f"{_ROOMS} picture and mask, 224 pixels"
    return time_row(name, "CPU milliseconds", both, shape, baseline="the mask alone")
