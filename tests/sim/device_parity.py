"""Scores of trained and scripted policies on the CPU engine and on a device, from the same starts.

    python -m tests.sim.device_parity cuda 512 [FILE]
    python -m tests.sim.device_parity exact 256 [FILE]

prints a table with one line per policy and protocol, and a verdict; FILE gets the same as JSON. All
worlds have the device's convex contacts; the second command leaves the engine and changes the
contacts: it plays the CPU engine with convex contacts beside the CPU engine with exact ones. Two
engines agree where the Kolmogorov-Smirnov test tells no two distributions apart, at 5% over all
lines together, and the means are within `WITHIN`. After contact two engines part ways, in float32
all the more, so distributions are compared, not episodes. Scores are rounded to `RESOLUTION` first:
solved episodes end with the block at rest in its goal, where one engine has one number and the
other has another in the seventh decimal, and a test of ranks would see two distributions in that.
Episodes whose physics broke down on the device are left out on both sides and counted; more than
`BROKEN` of them is a difference too.

P0 is one start, which on the CPU is one path however often it is played, and on a GPU, where sums
run in no fixed order, as many as episodes. Its blocks are moved by up to `SPREAD` on both, and the
lines say so: they are not of P0 itself. There, and moved by micrometres, the engines are told apart
(`pick_and_place_2`: p = 6.8e-132 unmoved, 4.6e-58 moved by 1e-6 m), since scores there depend on
the micrometre, on either engine (results/causalworld/h200_parity.json).
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

import interverse as iv
from interverse.agents.batch.starts import Starts, make_arena
from interverse.agents.policies import trained_policy
from interverse.protocols.on_device import REFUSED, play, starts_of
from interverse.protocols.protocol import select_protocols
from interverse.rollouts.exported import ExportedPolicy

Scores = Mapping[str, np.ndarray]
RESOLUTION = 1e-4
SPREAD = 1e-3  # m
WITHIN = 0.05  # of fractional success
BROKEN = 0.01  # of the episodes
PAIRS = (  # a policy, its task, a protocol
    ("pick_and_place_2", "pick_and_place", "P0"),
    ("pick_and_place_2", "pick_and_place", "P5"),
    ("picking_1", "picking", "P0"),
    ("picking_2", "picking", "P0"),
    ("picking_2", "picking", "P6"),
    ("picking_2", "picking", "P10"),
    ("scripted", "picking", "P4"),
    ("pushing_1", "pushing", "P0"),
    ("pushing_2", "pushing", "P0"),
    ("pushing_2", "pushing", "P5"),
    ("pushing_1", "pushing", "P7"),
    ("reaching_1", "reaching", "P5"),
    ("scripted", "pushing", "P5"),
)
_AT_ONCE = 4  # processes; most of the time goes to compiling kernels and to the CPU engine


def compare(pair: tuple[str, str, str], device: str, episodes: int, **more: Any) -> dict[str, Any]:
    """Returns mean scores on MuJoCo and on a device, and the Kolmogorov-Smirnov test of both."""
    policy, name, protocol = pair
    task, options = f"trifinger/{name}-v1", {"skip_frame": 3, **more}
    other = ("torch", "exact") if device == "exact" else (device, "convex")
    played = []
    for where, contact in (("torch", "convex"), other):
        options["contact"] = contact
        chosen = select_protocols(task, protocol)
        starts = starts_of(task, chosen, episodes=episodes, options=options)
        moved = SPREAD if protocol == "P0" else 0.0
        starts = spread(starts) if moved else starts
        arena = make_arena(
            task, starts, num_worlds=len(starts), device=where, groups=1, options=options
        )
        scores = play(_acting(policy, task, arena.device, options), arena)
        arena.close()  # raises if contacts did not fit
        played.append({name: rows[~starts.rows[REFUSED]] for name, rows in scores.items()})
    found = {"policy": policy, "task": name, "protocol": protocol, "contact": other[1]}
    return found | {"moved_by_m": moved} | beside(*played)


def _acting(policy: str, task: str, device: torch.device, options: dict[str, Any]) -> Any:
    """Returns what gives actions for observations on a device."""
    if policy != "scripted":
        return ExportedPolicy.load(trained_policy(policy)).on(device)
    env: Any = iv.make(task, **options)
    scripted = env.unwrapped.world.scripted_policy()
    env.close()
    return lambda seen: torch.as_tensor(scripted(seen.double().cpu().numpy())).to(seen)


def spread(starts: Starts) -> Starts:
    """Returns starts with the first block moved a little, each otherwise."""
    physics = starts.rows["physics"].copy()
    there = slice(10, 12)  # behind time and nine joints
    physics[:, there] += np.random.default_rng(0).uniform(-SPREAD, SPREAD, (len(starts), 2))
    return Starts({**starts.rows, "physics": physics})


def beside(one: Scores, other: Scores) -> dict[str, Any]:
    """Returns `two_samples` of what `play` gave twice, without episodes that broke down in either.

    `diverged` says how many these were.
    """
    broke = one["diverged"] | other["diverged"]
    name = "last_fractional_success"
    return {**two_samples(one[name][~broke], other[name][~broke]), "diverged": int(broke.sum())}


def two_samples(one: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    """Returns the means of two samples, the standard error of their gap, and the test of both."""
    test = stats.ks_2samp(*(np.round(part / RESOLUTION) for part in (one, other)))
    error = np.hypot(one.std(ddof=1), other.std(ddof=1)) / np.sqrt(len(one))
    return {
        "cpu": round(float(one.mean()), 4),
        "device": round(float(other.mean()), 4),
        "standard_error": round(float(error), 4),
        "ks": round(float(test.statistic), 4),
        "p": round(float(test.pvalue), 4),
        "episodes": len(one),
    }


def agrees(row: dict[str, Any], lines: int = len(PAIRS)) -> bool:
    """Returns whether a line shows no difference of engines."""
    whole = row.get("diverged", 0) <= BROKEN * (row["episodes"] + row.get("diverged", 0))
    alike = row["p"] * lines >= 0.05 and abs(row["cpu"] - row["device"]) <= WITHIN
    return bool(whole and alike)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the lines of a table and the verdict."""
    lines = [f"{'policy':22} {'protocol':8} {'n':>4} {'CPU':>6} {'device':>6} {'gap':>14} {'p':>6}"]
    notes = {True: [f"P0*: the block is moved by up to {SPREAD * 1e3:g} mm"], False: []}
    for r in rows:
        name = f"{r['policy']} {r['task']}" if r["policy"] == "scripted" else r["policy"]
        gap = f"{r['device'] - r['cpu']:+.3f} +- {r['standard_error']:.3f}"
        protocol = r["protocol"] + ("*" if r["moved_by_m"] else "")
        line = f"{name:22} {protocol:8} {r['episodes']:4} {r['cpu']:6.3f} {r['device']:6.3f}"
        broke = f", {r['diverged']} more broke down" if r["diverged"] else ""
        lines.append(f"{line} {gap:>14} {r['p']:6.3f}  {'agree' if agrees(r) else 'APART'}{broke}")
    good = sum(agrees(row) for row in rows)
    moved = any(row["moved_by_m"] for row in rows)
    return "\n".join([*lines, *notes[moved], f"{good} of {len(rows)} agree"])


def main(device: str, episodes: int, file: str = "") -> int:
    """Prints the table; returns the exit status, 0 where all agree."""
    command, count = f"python -m tests.sim.device_parity {device} {episodes}", len(PAIRS)
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(_AT_ONCE, multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(compare, PAIRS, [device] * count, [episodes] * count):
            rows.append(row)
            if file:  # a run cut short leaves what it found
                found = json.dumps({"command": command, "pairs": rows})
                Path(file).write_text(found, encoding="utf-8")
    print(table(rows), flush=True)
    return 0 if all(agrees(row) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4]))
