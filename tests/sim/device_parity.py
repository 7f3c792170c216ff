"""Scores of trained policies on the CPU engine and on a device, from the same starts.

    python -m tests.sim.device_parity cuda 128

prints one line per policy and protocol. After contact two engines part ways, in float32 all the
more, so distributions are compared, not episodes. Scores are rounded to `RESOLUTION` first: solved
episodes end with the block at rest in its goal, where one engine has one number and the other has
another in the seventh decimal, and a test of ranks would see two distributions in that alone.

P0 is one start, which on the CPU is one path however often it is played, and on a GPU, where sums
run in no fixed order, as many as episodes. Its blocks are moved by up to `SPREAD` on both; by
micrometres would not do, since scores there depend on the micrometre, on either engine
(results/causalworld/h200_parity.json).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from scipy import stats

from interverse.agents.policies import trained_policy
from interverse.learning.evaluation import play, starts_of
from interverse.learning.starts import REFUSED, Starts, make_arena
from interverse.protocols.select import select_protocols
from interverse.rollouts.exported import ExportedPolicy

RESOLUTION = 1e-4
SPREAD = 1e-3  # m
PAIRS = (
    ("pick_and_place_2", "P0"),
    ("pushing_2", "P5"),
    ("pushing_1", "P7"),
    ("picking_2", "P6"),
    ("picking_2", "P10"),
    ("pick_and_place_2", "P5"),
)


def compare(policy: str, protocol: str, device: str, episodes: int, **more: Any) -> dict[str, Any]:
    """Returns mean scores on MuJoCo and on a device, and the Kolmogorov-Smirnov test of both."""
    task, options = f"trifinger/{policy[:-2]}-v1", {"skip_frame": 3, **more}
    starts = starts_of(task, select_protocols(task, protocol), episodes=episodes, options=options)
    if protocol == "P0":
        starts = spread(starts)
    played = []
    for where in ("torch", device):
        arena = make_arena(
            task, starts, num_worlds=len(starts), device=where, groups=1, options=options
        )
        acting = ExportedPolicy.load(trained_policy(policy)).on(arena.device)
        scores = play(acting, arena)["last_fractional_success"]
        played.append(scores[~starts.rows[REFUSED]])
        arena.close()
    return {"policy": policy, "protocol": protocol, "contact": "convex", **two_samples(*played)}


def spread(starts: Starts) -> Starts:
    """Returns starts with the first block moved a little, each otherwise."""
    physics = starts.rows["physics"].copy()
    there = slice(10, 12)  # behind time and nine joints
    physics[:, there] += np.random.default_rng(0).uniform(-SPREAD, SPREAD, (len(starts), 2))
    return Starts({**starts.rows, "physics": physics})


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


def main(device: str, episodes: int) -> None:
    """Prints one line per policy and protocol."""
    for policy, protocol in PAIRS:
        print(json.dumps(compare(policy, protocol, device, episodes)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
