"""Scores of policies that nobody trained: what a learned one has to be compared with.

    python tools/causalworld_baselines.py --episodes 128

writes `interverse/benchmarks/causalworld/baselines.csv`, which `interverse reproduce --benchmark
causalworld` prints below its own rows: holding still and the scripted baseline,
on the CPU engine with the contacts of the runs on a GPU. Rows that are there already stay.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import interverse as iv

_TASKS = ("pushing", "picking", "pick_and_place", "stacking2")
_FILE = Path(iv.__file__).parent / "benchmarks" / "causalworld" / "baselines.csv"
_COLUMNS = ("task", "policy", "protocol", "value", "error", "episodes")
_SCORE = "last_fractional_success"


def hold_still(observations: Any) -> Any:
    """Returns the joint positions that are seen, as the next ones to be at."""
    return np.asarray(observations)[:, 1:10]


_POLICIES = {"scripted": "scripted", "still": hold_still}


@dataclass(frozen=True)
class Baselines:
    """What is played."""

    episodes: int = 128
    """Of each protocol."""


def main(settings: Baselines) -> None:
    """Plays what the file has not, task by task."""
    rows = list(csv.DictReader(_FILE.open())) if _FILE.exists() else []
    done = {(row["task"], row["policy"]) for row in rows}
    for title, policy in _POLICIES.items():
        for task in _TASKS:
            if (task, title) not in done:
                rows += _played(policy, title, task, settings.episodes)
                _write(rows)


def _played(policy: Any, title: str, task: str, episodes: int) -> list[dict[str, Any]]:
    """Returns a row for every protocol of a task."""
    found = iv.evaluate(
        policy,
        f"trifinger/{task}-v1",
        protocols="P0-P11",
        episodes=episodes,
        skip_frame=3,
        contact="convex",
    )
    table, rows = found.to_pandas(), []
    for protocol, part in table.groupby("protocol", sort=False):
        scores = part[_SCORE].dropna().to_numpy()
        if not len(scores):  # a protocol that changes nothing the task has
            continue
        error = scores.std(ddof=1) / len(scores) ** 0.5
        numbers = f"{scores.mean():.4f}", f"{error:.4f}", len(scores)
        rows.append(dict(zip(_COLUMNS, (task, title, protocol, *numbers), strict=True)))
    return rows


def _write(rows: list[dict[str, Any]]) -> None:
    with _FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(tyro.cli(Baselines))
