"""Records of CausalWorld runs, those just made and those kept in files, and their mean scores."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.benchmarks.causalworld.answer import ONE_START, Mean, joined, one_start, sampled
from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import read_json_object

Record = Mapping[str, Any]
SCORE = "last_fractional_success"
RELEASED_EPISODES = 20
_NEEDED = {"task", "curriculum", "seed", "curve"}


def baseline_means(task: str) -> dict[str, dict[str, Mean]]:
    """Returns what policies that nobody trained score in a task, by policy and protocol.

    `tools/causalworld_baselines.py` played them on the CPU engine with convex contacts, seed 0, at
    commit 45a307d6.
    """
    found: dict[str, dict[str, Mean]] = {}
    for row in _table("baselines.csv"):
        if row["task"] == task:
            mean = kept_mean(
                row["protocol"], float(row["value"]), float(row["error"]), int(row["episodes"])
            )
            found.setdefault(row["policy"], {})[row["protocol"]] = mean
    return found


def released_scores() -> dict[tuple[str, int], dict[str, float]]:
    """Returns the scores of the original's released policies, by task and curriculum.

    They were measured with the original's own code, `RELEASED_EPISODES` a protocol, seed 0; the
    paper prints bars without numbers.
    """
    out: dict[tuple[str, int], dict[str, float]] = {}
    for row in _table("released.csv"):
        key = row["task"], int(row["curriculum"])
        out.setdefault(key, {})[row["protocol"]] = float(row["value"])
    return out


def _table(name: str) -> list[dict[str, str]]:
    """Returns the rows of a table that comes with the package."""
    text = files("interverse.benchmarks.causalworld").joinpath(name).read_text()
    return list(csv.DictReader(text.splitlines()))


def stored_records(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Returns the runs of result files, such as results/causalworld/h200.json, by task.

    Runs that kept the scores of their episodes have rows; all were tested on the draws of seed 0,
    by the code of their commit: a run with other draws says so in `older`.
    One with a `variant`, another learner or another way to learn, is a row of its own in tables.
    """
    found = []
    for file in files:
        for run in _kept_runs(file):
            task = run["task"].removeprefix("trifinger/").removesuffix("-v1")
            rows = [
                {"protocol": protocol, "episode": number, "refused": False, SCORE: score}
                for protocol, scores in run.get("scores", {}).items()
                for number, score in enumerate(scores)
            ]
            found.append({**run, "task": task, "rows": rows})
    return sorted(found, key=lambda run: (run["task"], run["curriculum"], run["seed"]))


def _kept_runs(file: Path) -> list[dict[str, Any]]:
    """Returns the runs of a result file, or raises if it is none of CausalWorld's."""
    runs = read_json_object(file).get("runs")
    if not isinstance(runs, list) or not all(
        isinstance(run, dict) and run.keys() >= _NEEDED for run in runs
    ):
        raise FileFormatError(
            explain(
                f"{file} is no result file of CausalWorld runs",
                allowed=f"an object with runs, each with {', '.join(sorted(_NEEDED))}",
                fix="Give a file such as results/causalworld/h200.json",
            )
        )
    return runs


def by_task(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Returns the records of each task."""
    tasks: dict[str, list[Record]] = {}
    for record in records:
        tasks.setdefault(record["task"], []).append(record)
    return tasks


def by_curriculum(records: Sequence[Record]) -> dict[int, dict[str, Mean]]:
    """Returns the mean scores of the runs of each curriculum, by protocol; no variants."""
    records = [record for record in records if "variant" not in record]
    numbers = sorted({record["curriculum"] for record in records})
    return {n: scores_by_protocol([r for r in records if r["curriculum"] == n]) for n in numbers}


def scores_by_protocol(records: Sequence[Record]) -> dict[str, Mean]:
    """Returns the mean last fractional success of all episodes of all runs, by protocol."""
    parts: dict[str, list[Mean]] = {}
    played: dict[str, list[Mapping[int, float]]] = {}
    for record in records:
        scores = _episodes(record)
        for protocol, mean in run_means(record).items():
            parts.setdefault(protocol, []).append(mean)
            played.setdefault(protocol, []).append(scores.get(protocol, {}))
    return {
        protocol: joined(means, None if protocol == ONE_START else _together(played[protocol]))
        for protocol, means in parts.items()
    }


def _together(runs: Sequence[Mapping[int, float]]) -> NDArray[np.float64] | None:
    """Returns the scores of episodes that all runs have, (runs, episodes); None if they are few."""
    common = sorted(set(runs[0]).intersection(*runs[1:]))
    few = len(common) < 0.9 * max(len(run) for run in runs) or len(common) < 2
    return None if few else np.array([[run[k] for k in common] for run in runs])


def _episodes(record: Record) -> dict[str, dict[int, float]]:
    """Returns the scores of a run's episodes by protocol and number, where they are kept."""
    scores: dict[str, dict[int, float]] = {}
    for row in (row for row in record["rows"] if not row["refused"]):
        scores.setdefault(row["protocol"], {})[row["episode"]] = row[SCORE]
    return scores


def run_means(record: Record) -> dict[str, Mean]:
    """Returns a run's means: of its rows, or those that its file keeps instead."""
    scores = {name: list(found.values()) for name, found in _episodes(record).items()}
    if scores:
        return {
            name: _mean(name, float(np.mean(values)), _spread(values), len(values))
            for name, values in scores.items()
        }
    return {
        name: kept_mean(name, kept[SCORE], kept.get(f"{SCORE}_error"), kept["episodes"])
        for name, kept in record.get("protocols", {}).items()
    }


def cpu_means(record: Record) -> dict[str, Mean]:
    """Returns what a run's policy scored on the CPU engine, by protocol."""
    played = record["cpu_engine"]
    errors, counts = played.get("standard_error", {}), played["episodes"]
    return {
        name: kept_mean(
            name, value, errors.get(name), counts if isinstance(counts, int) else counts[name]
        )
        for name, value in played[SCORE].items()
    }


def kept_mean(protocol: str, value: float, error: float | None, episodes: int) -> Mean:
    """Returns a mean that a file keeps; without an error it has the most that shares can have."""
    most = (value * (1 - value)) ** 0.5
    spread = most if error is None else error * episodes**0.5
    return _mean(protocol, value, spread, episodes)


def moved_mean(record: Record) -> Mean:
    """Returns what a run's policy scored on the CPU engine with the block of P0 moved a little."""
    moved = record["cpu_engine"]["moved"]
    return sampled(moved[SCORE], moved["standard_error"], moved["episodes"])


def _spread(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _mean(protocol: str, value: float, spread: float, episodes: int) -> Mean:
    if protocol == ONE_START:
        return one_start(value)
    return sampled(value, spread / episodes**0.5, episodes)
