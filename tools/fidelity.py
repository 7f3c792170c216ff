"""Fidelity of TriFinger to recorded episodes of CausalWorld: short windows and whole episodes.

`tests/parity/data/trifinger_windows.npz` holds eight episodes each of pushing and pick_and_place,
recorded in the original under its released policies (skip_frame 3, joint positions). A window puts
a recorded state into a world, applies the next four recorded actions (48 ms) and compares the
block. A matched-start episode applies all recorded actions from the recorded start.

    python tools/fidelity.py [--contact exact convex] [--cost [--original PYTHON]]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # `python tools/fidelity.py` starts with tools/ alone
    sys.path.insert(0, str(ROOT))

from interverse.envs import make_vec  # noqa: E402

FILE = ROOT / "tests" / "parity" / "data" / "trifinger_windows.npz"
TASKS = ("pushing", "pick_and_place")
WINDOW = 4  # steps
STEP_TIME = 0.012  # s
MOVED = 0.002  # m; windows in which the recorded block moves less say nothing
TOUCHED = 1e-4  # m; a block that has moved this far has been touched

_ORIGINAL_STEPS = 25  # of the original in one turn

Array = NDArray[np.float64]

# Where the original's normalised observation holds a value, and what -1 and 1 mean there.
_COLUMNS: dict[str, tuple[slice, Any, Any]] = {
    "joint_positions": (slice(1, 10), (-1.57, -1.2, -3.0) * 3, (1.0, 1.57, 3.0) * 3),
    "joint_velocities": (slice(10, 19), -50.0, 50.0),
    "block_0/cartesian_position": (slice(32, 35), (-0.5, -0.5, 0.0), (0.5, 0.5, 0.5)),
    "block_0/orientation": (slice(35, 39), -10.0, 10.0),
    "block_0/linear_velocity": (slice(39, 42), -0.5, 0.5),
    "block_0/angular_velocity": (slice(42, 45), -np.pi, np.pi),
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded episodes of a task: observations (E, S + 1, D) and actions (E, S, 9)."""

    observations: Array
    actions: Array

    def state(self, step: Any) -> dict[str, Array]:
        """Returns the variables of every episode at some steps, one row each."""
        seen = self.observations[:, step]
        seen = seen.reshape(-1, seen.shape[-1])
        out = {}
        for name, (columns, low, high) in _COLUMNS.items():
            low, high = np.array(low), np.array(high)
            out[name] = low + (seen[:, columns] + 1.0) / 2.0 * (high - low)
        turn = out["block_0/orientation"]
        out["block_0/orientation"] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        return out

    def block(self, step: Any) -> Array:
        """Returns where the block is at some steps, one row each."""
        return self.state(step)["block_0/cartesian_position"]


def load(task: str) -> Recorded:
    """Returns the recorded episodes of a task."""
    with np.load(FILE) as stored:
        arrays = (stored[f"{task}_{part}"].astype(np.float64) for part in "OA")
        return Recorded(*arrays)


def make(task: str, contact: str, states: dict[str, Array], **options: Any) -> Any:
    """Returns a vector environment whose worlds stand in the given states."""
    count = len(states["joint_positions"])
    options = {"skip_frame": 3, "contact": contact, **options}
    env = make_vec(f"trifinger/{task}-v1", num_envs=count, **options)
    env.reset(seed=0)
    refused = env.world.intervene(states, np.arange(count))
    if refused:
        raise ValueError(f"recorded states were refused: {refused}")
    return env


def position(env: Any) -> Array:
    """Returns where the block is in every world."""
    return np.asarray(env.world.read("block_0/cartesian_position"))


def window_errors(task: str, contact: str, stride: int = 1) -> Array:
    """Returns the block's distance from the recorded one after each window with motion, m."""
    recorded = load(task)
    starts = np.arange(0, recorded.actions.shape[1] - WINDOW + 1, stride)
    env = make(task, contact, recorded.state(starts))
    for k in range(WINDOW):
        env.step(recorded.actions[:, starts + k].reshape(-1, 9).astype(np.float32))
    end = recorded.block(starts + WINDOW)
    moved = np.linalg.norm(end - recorded.block(starts), axis=1) > MOVED
    return np.linalg.norm(position(env) - end, axis=1)[moved]


@dataclass(frozen=True, slots=True)
class Matched:
    """Matched-start episodes.

    Attributes:
        touched_there, touched_here: the step of the first touch in each episode, (E,).
        apart: the distance between the two blocks after each step, (S, E), m.
    """

    touched_there: NDArray[np.int64]
    touched_here: NDArray[np.int64]
    apart: Array


def matched_starts(task: str, contact: str, steps: int = 250) -> Matched:
    """Plays the recorded actions from the recorded starts."""
    recorded = load(task)
    env = make(task, contact, recorded.state(0))
    there = np.stack([recorded.block(k) for k in range(steps + 1)])
    here = [position(env)]
    for k in range(steps):
        env.step(recorded.actions[:, k].astype(np.float32))
        here.append(position(env))
    path = np.stack(here)
    apart = np.linalg.norm(path - there, axis=-1)[1:]
    return Matched(_first_touch(there), _first_touch(path), apart)


def _first_touch(path: Array) -> NDArray[np.int64]:
    return np.argmax(np.linalg.norm(path - path[0], axis=-1) > TOUCHED, axis=0)


# Plays the original's pushing with random actions: a line with a number of steps on standard input
# is answered with the CPU seconds they took.
_ORIGINAL = """
import sys, time
import numpy as np
np.bool, np.float, np.int = bool, float, int  # names that newer NumPys do not have
from causal_world.envs.causalworld import CausalWorld
from causal_world.task_generators.task import generate_task
env = CausalWorld(task=generate_task("pushing"), skip_frame=10, seed=0, enable_visualization=False)
env.reset()
draw = np.random.default_rng(0)
for line in sys.stdin:
    actions = draw.uniform(-1.0, 1.0, (int(line), 9))
    start = time.process_time()
    for action in actions:
        env.step(action)
    print(time.process_time() - start, flush=True)
"""


def original_seconds(python: str) -> Iterator[float]:
    """Yields the CPU seconds of one step of the original, again and again, in a process of its own.

    Args:
        python: an interpreter with `causal-world` 1.2 installed.
    """
    run = [python, "-W", "ignore", "-c", _ORIGINAL]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process: Any = subprocess.Popen(run, text=True, bufsize=1, **pipes)
    with process:
        try:
            while True:
                process.stdin.write(f"{_ORIGINAL_STEPS}\n")
                answer = process.stdout.readline()
                while answer and not _is_number(answer):  # engines greet on standard output
                    answer = process.stdout.readline()
                if not answer:
                    raise SystemExit(f"{python} cannot play causal-world 1.2")
                yield float(answer) / _ORIGINAL_STEPS
        finally:
            process.kill()


def _is_number(text: str) -> bool:
    return text.strip().replace(".", "", 1).replace("e-", "", 1).isdigit()


def rates(
    modes: list[str], worlds: int = 256, steps: int = 25, original: str | None = None
) -> dict[str, float]:
    """Returns steps a second of CPU time by contact: pushing, random actions, modes in turns.

    Args:
        modes: contacts.
        worlds: in a batch, on one thread.
        steps: of every world.
        original: an interpreter with the original, which is played one world at a time.
    """
    envs = {m: make_vec("trifinger/pushing-v1", worlds, contact=m, threads=1) for m in modes}
    spent = dict.fromkeys((*modes, *(["original"] if original else [])), 0.0)
    other = original_seconds(original) if original else iter(())
    for env in envs.values():
        env.reset(seed=0)
    for k in range(-3, steps):  # the first few fill caches
        action = envs[modes[0]].action_space.sample()
        for mode in modes[:: 1 if k % 2 else -1]:
            start = time.process_time()
            envs[mode].step(action)
            spent[mode] += (time.process_time() - start) * (k >= 0)
        if original:
            spent["original"] += worlds * next(other) * (k >= 0)
    return {mode: worlds * steps / seconds for mode, seconds in spent.items()}


def main() -> None:
    """Writes both tables as Markdown, or what the contacts cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contact", nargs="+", default=["exact", "convex"])
    parser.add_argument("--cost", action="store_true", help="print steps a second instead")
    parser.add_argument("--original", help="with --cost: a Python that has causal-world 1.2")
    asked = parser.parse_args()
    modes = asked.contact
    if asked.cost:
        found = rates(modes, original=asked.original)
        print({mode: round(rate) for mode, rate in found.items()})
        if asked.original:
            print(
                {f"{mode} / original": round(found[mode] / found["original"], 1) for mode in modes}
            )
        return
    print("| task | contact | windows | mean, mm | median | 90% |\n|---|---|---|---|---|---|")
    for task in TASKS:
        for contact in modes:
            e = 1e3 * window_errors(task, contact)
            row = f"{e.mean():.2f} | {np.median(e):.2f} | {np.quantile(e, 0.9):.2f}"
            print(f"| {task} | {contact} | {len(e)} | {row} |")
    times = (0.12, 0.24, 0.48, 1.0, 3.0)
    print("\n| task | contact | first touch off by | " + " | ".join(f"{t} s" for t in times) + " |")
    print("|---|---|---|" + "---|" * len(times))
    for task in TASKS:
        for contact in modes:
            run = matched_starts(task, contact)
            off = np.abs(run.touched_here - run.touched_there)
            apart = [1e3 * np.median(run.apart[round(t / STEP_TIME) - 1]) for t in times]
            cells = " | ".join(f"{a:.1f}" for a in apart)
            print(f"| {task} | {contact} | {off.mean():.1f} steps, at most {off.max()} | {cells} |")


if __name__ == "__main__":
    main()
