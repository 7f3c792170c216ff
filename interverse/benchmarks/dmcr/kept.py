"""Runs that were kept with the project: returns by factor from every episode, beside the paper's.

A file of `results/dmcr` holds the return of each test episode. The table of its README is printed
from them, so it cannot say anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from interverse.benchmarks.dmcr.compare import published
from interverse.benchmarks.dmcr.published import AGENTS, TASKS
from interverse.metrics import bootstrap
from interverse.results.tables import interval_rng
from interverse.results.text import Cell, Estimate, TextTable

FACTORS = ("none", "light", "camera", "body", "floor", "background", "all", "pictures_b")
_AGENT_NAMES = {agent: name for name, agent in AGENTS.items()} | {
    "drq_v2": "DrQ-v2",
    "svea": "SVEA",
    "tdmpc2": "TD-MPC2",
}
_TASK_NAMES = {task: name for name, task in TASKS.items()}


def kept_table(runs: Sequence[Mapping[str, Any]]) -> TextTable:
    """Returns a row for every training run, and one for what the paper prints of its agent.

    Args:
        runs: each with its `task`, `agent`, `seed`, `decisions`, and `returns` by protocol.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["task"], run["agent"]), []).append(run)
    rows: list[tuple[Cell, ...]] = []
    for (task, agent), found in groups.items():
        rows += [_ours(run) for run in found]
        name = _AGENT_NAMES.get(agent, "")
        theirs = published(2, _TASK_NAMES[task], name)
        if theirs:
            learned = published(1, _TASK_NAMES[task], name).get("train", np.nan)
            numbers = [Estimate({"none": learned, **theirs}.get(n, np.nan)) for n in FACTORS]
            rows.append((_TASK_NAMES[task], f"{name}, paper", "", "", "", *numbers))
    return TextTable(
        header=("task", "agent", "seed", "decisions", "episodes", *FACTORS),
        rows=tuple(rows),
        caption="mean return of one training run [95% interval over its test episodes; it does "
        "not tell how other training runs would do]; episodes of each column",
    )


def _ours(run: Mapping[str, Any]) -> tuple[Cell, ...]:
    task, agent = run["task"], run["agent"]
    by_factor = {name: np.array(run["returns"].get(name, ())) for name in FACTORS}
    counts = sorted({len(returns) for returns in by_factor.values() if len(returns)})
    told = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "0"
    about = _AGENT_NAMES.get(agent, agent), str(run["seed"]), f"{run['decisions']:,}", told
    address = f"{task}|{agent}|{run['seed']}"
    numbers = [_estimate(returns, f"{address}|{n}") for n, returns in by_factor.items()]
    return _TASK_NAMES[task], *about, *numbers


def _estimate(returns: Any, address: str) -> Estimate:
    if not len(returns):
        return Estimate(np.nan)
    rng = interval_rng(f"dmcr|{address}")
    return Estimate.of(bootstrap.interval(returns[:, None], rng=rng, method="bca"))
