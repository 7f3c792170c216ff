"""Laws of worlds on a device, without pytest: on Warp's CPU device in tests, on a GPU by hand.

    python -m tests.sim.device_laws cuda trifinger/pushing-v1 blocks/observed-3-v1

prints one line per world and law. Numbers are float32 there and sums on a GPU run in no fixed
order, so what must be equal on the CPU must be near here: `TOLERANCE`. What nothing touched must
still be equal bit for bit.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import interverse as iv
from interverse.core.rng import generator
from interverse.envs.snapshot import Snapshot
from interverse.envs.values import to_numpy
from interverse.worlds import WORLDS
from tests.conformance.cases import leaves, some_action

TRIFINGER = tuple(name for name in WORLDS if name.startswith("trifinger/"))
GRIDS = ("blocks/observed-3-v1", "blocks/unobserved-3-v1", "chemistry/chain-v1")
IDS = (*TRIFINGER, *GRIDS, "tutorial/slider-v1")
TOLERANCE = 2e-3  # of observations (in [-1, 1]) after a few steps in contact
_FREE = 1e-4  # of joints before contact, rad
_WORLDS, _STEPS = 4, 3
# Dozens of blocks that tumble: a last bit grows to anything within ten substeps, since contacts of
# boxes flip (on the CPU engine a billionth of a metre grows to 8 in observations; on an H200, where
# sums run in no fixed order, the same world restored twice parts by 7.6, by 2e-5 in one substep),
# and fingers touch blocks from the start. A step is one substep there, and what must be near is
# compared after one; the CPU engine not at all.
PILES = ("trifinger/stacked_blocks-v1", "trifinger/creative_stacked_blocks-v1")


def _make(name: str, device: str, count: int = _WORLDS, **options: Any) -> Any:
    if name in PILES:
        options = {"skip_frame": 1, **options}
    return iv.make_vec(name, num_envs=count, device=device, autoreset_mode="disabled", **options)


def _actions(env: Any, seed: int, step: int) -> np.ndarray:
    """Returns one action per world, the same for the same seed, world and step."""
    return np.stack([some_action(env, seed + world, step) for world in range(env.num_envs)])


def _play(env: Any, seed: int, first: int = 0, steps: int = _STEPS) -> list[Any]:
    return [env.step(_actions(env, seed, first + t))[:2] for t in range(steps)]


def _apart(one: Any, other: Any) -> float:
    """Returns the greatest difference between two observations."""
    pairs = zip(leaves(one), leaves(other), strict=True)
    gaps = [np.abs(a.astype(np.float64) - b).max(initial=0.0) for a, b in pairs]
    return max(gaps)


def _values(env: Any) -> dict[str, np.ndarray]:
    return {name: to_numpy(value) for name, value in env.unwrapped.values.items()}


def _some(env: Any) -> list[str]:
    """Returns variables that can be set and have a space to draw from, at most a dozen."""
    spaces = env.unwrapped.variables
    names = [n for n, v in spaces.items() if not v.read_only and v.space_a is not None]
    return names[:: max(1, len(names) // 12)]


def _draw(env: Any, name: str, seed: int) -> np.ndarray:
    space = env.unwrapped.variables[name].space_a
    drawn = np.asarray(space.sample(generator(seed=seed, name=name)))
    wide = (env.num_envs, *env.unwrapped.world.variables[name].shape)
    return np.broadcast_to(drawn, wide).astype(env.unwrapped.world.variables[name].dtype)


def _near(name: str) -> int:
    """Returns for how many steps two runs of a world must stay together."""
    return 1 if name in PILES else _STEPS


# --------------------------------------------------------------------------------------- laws


def law_steps(name: str, device: str) -> None:
    """Observations live on the device, rewards are finite and in range."""
    env = _make(name, device)
    seen, _ = env.reset(seed=1)
    kind = "cpu" if device in ("warp", "torch") else device
    leaf = next(iter(seen.values())) if isinstance(seen, dict) else seen
    assert leaf.device.type == kind, leaf.device
    low, high = env.unwrapped.world.reward_range
    for seen, reward in _play(env, 1):
        assert all(np.isfinite(part).all() for part in leaves(seen))
        paid = to_numpy(reward)
        assert ((low <= paid) & (paid <= high)).all(), paid
    env.close()


def law_do(name: str, device: str) -> None:
    """A do sets its variable in the worlds named, moves effects alone, and no other world."""
    env, applied = _make(name, device), 0
    env.reset(seed=2)
    for number, variable in enumerate(_some(env)):
        before = _values(env)
        asked = _draw(env, variable, number)
        outcome = env.unwrapped.do({variable: asked}, worlds=[0, 2])
        after = _values(env)
        effects = {variable} | env.unwrapped.graph.effects_now(variable)
        for other, rows in after.items():
            same = rows == before[other]
            assert same[[1, 3]].all(), f"{variable} moved {other} elsewhere"
            assert other in effects or same.all(), f"{variable} moved {other}"
        done = outcome.applied[[0, 2]]
        applied += int(done.sum())
        held, wanted = after[variable][[0, 2]][done], asked[[0, 2]][done]
        near = np.allclose(held, wanted, rtol=1e-6, atol=1e-6)  # float32 on the device
        assert near or env.unwrapped.world.same_values(variable, held, wanted).all(), variable
    assert applied, "no do was accepted"
    env.close()


def law_nothing(name: str, device: str) -> None:
    """Doing what holds changes nothing, and a malformed or refused do neither."""
    env = _make(name, device)
    env.reset(seed=3)
    _play(env, 3, steps=2)
    before = env.unwrapped.snapshot().arrays
    for variable in _some(env):
        outcome = env.unwrapped.do({variable: env.unwrapped.values[variable]})
        assert not outcome.changed, variable
    with contextlib.suppress(iv.InterverseError):
        env.unwrapped.do({"no such variable": 1.0})
    after = env.unwrapped.snapshot().arrays
    for field in before.keys() & after.keys():
        assert np.array_equal(before[field], after[field]), field
    env.close()


def law_masks(name: str, device: str) -> None:
    """A masked reset starts the named worlds as a whole reset does, and leaves the others."""
    env = _make(name, device)
    fresh, _ = env.reset(seed=5)
    fresh = leaves(fresh)
    moved = leaves(_play(env, 5)[-1][0])
    mask = np.array([True, False, False, True])
    seeds = [5, 6, 7, 8]
    seen = leaves(env.reset(seed=seeds, options={"reset_mask": mask})[0])
    for now, start, last in zip(seen, fresh, moved, strict=True):
        assert np.array_equal(now[~mask], last[~mask])
        assert np.abs(now[mask].astype(np.float64) - start[mask]).max() < 1e-5
    env.close()


def law_snapshots(name: str, device: str) -> None:
    """Snapshot, restore elsewhere: the same bits; go on: the same to tolerance."""
    env = _make(name, device)
    env.reset(seed=6)
    _play(env, 6, steps=2)
    kept, seen = env.unwrapped.snapshot(), env.unwrapped.world.observe()
    ahead = _play(env, 6, first=2, steps=_near(name))
    other = _make(name, device)
    other.reset(seed=0)
    _play(other, 0, steps=2)
    back = other.unwrapped.restore(Snapshot.from_bytes(kept.to_bytes()))
    assert _apart(back, seen) < 1e-6
    again = other.unwrapped.snapshot().arrays
    for field, rows in kept.arrays.items():
        assert np.array_equal(again[field], rows, equal_nan=True), field
    on = _play(other, 6, first=2, steps=_near(name))
    for mine, theirs in zip(ahead, on, strict=True):
        assert _apart(mine[0], theirs[0]) < TOLERANCE, _apart(mine[0], theirs[0])
    env.close()
    other.close()


def law_batch(name: str, device: str) -> None:
    """World i of a batch is the single world of seed + i, to tolerance."""
    batch, steps = _make(name, device, 3), _near(name)
    rows = [batch.reset(seed=11)[0], *(seen for seen, _ in _play(batch, 11, steps=steps))]
    single = _make(name, device, 1)
    for i in (0, 2):
        first, played = single.reset(seed=11 + i)[0], _play(single, 11 + i, steps=steps)
        alone = [first, *(seen for seen, _ in played)]
        for t, (one, many) in enumerate(zip(alone, rows, strict=True)):
            mine = [leaf[i : i + 1] for leaf in leaves(many)]
            gap = max(_apart(a, b) for a, b in zip(leaves(one), mine, strict=True))
            assert gap < TOLERANCE, (i, t, gap)
    batch.close()
    single.close()


def law_parity(name: str, device: str) -> None:
    """The CPU engine and the device go the same way: joints before contact, grids for good."""
    if name in PILES:
        return
    free = name.startswith("trifinger")
    options = {"skip_frame": 1, "contact": "convex"} if free else {}
    envs = [_make(name, where, **options) for where in ("cpu", device)]
    for env in envs:
        env.reset(seed=9)
    hold = _actions(envs[0], 9, 0)
    variable = "joint_positions" if free else None
    for step in range(1, 51):
        action = 0.02 * hold if free else _actions(envs[0], 9, step)
        seen = [env.step(action)[0] for env in envs]
        if step in (1, 10, 50):
            if variable is None:
                gap = _apart(*seen)
            else:
                gap = _apart(*(env.unwrapped.values[variable] for env in envs))
            assert gap < _FREE, (step, gap)
        if not free and step >= envs[0].unwrapped.world.max_steps - 1:
            break
    for env in envs:
        env.close()


LAWS: dict[str, Callable[[str, str], None]] = {
    name.removeprefix("law_"): law
    for name, law in list(globals().items())
    if name.startswith("law_")
}


def check(name: str, device: str) -> dict[str, str]:
    """Returns "" for each law that holds in a world, else why not."""
    out = {}
    for law, holds in LAWS.items():
        try:
            holds(name, device)
            out[law] = ""
        except Exception as error:  # every failure is a finding, whatever its kind
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
            out[law] = f"{type(error).__name__} at {where}: {error}"[:400]
    return out


def main(device: str, names: list[str]) -> int:
    """Prints one line per world and law; returns how many laws are broken."""
    broken = 0
    for name in names or list(IDS):
        begun, found = time.perf_counter(), check(name, device)
        broken += sum(bool(reason) for reason in found.values())
        seconds = round(time.perf_counter() - begun, 1)
        print(json.dumps({"id": name, "device": device, "seconds": seconds, **found}), flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1], sys.argv[2:]), 1))
