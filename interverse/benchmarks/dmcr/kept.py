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
_AGENT_NAMES = {agent: name for name, agent in AGENTS.items()} | {"svea": "SVEA"}
_TASK_NAMES = {task: name for name, task in TASKS.items()}


def kept_table(runs: Sequence[Mapping[str, Any]]) -> TextTable:
    """Returns a row for every task, agent and length, and one for what the paper prints of it.

    Args:
        runs: each with its `task`, `agent`, `seed`, `decisions`, and `returns` by protocol.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["task"], run["agent"]), []).append(run)
    rows: list[tuple[Cell, ...]] = []
    for (task, agent), found in groups.items():
        rows.append(_ours(task, agent, found))
        name = _AGENT_NAMES.get(agent, "")
        theirs = published(2, _TASK_NAMES[task], name)
        learned = published(1, _TASK_NAMES[task], name).get("train", np.nan)
        if theirs:
            theirs = {"none": learned, **theirs}
            numbers = [Estimate(theirs.get(factor, np.nan)) for factor in FACTORS]
            rows.append((_TASK_NAMES[task], f"{name}, paper", "", "", *numbers))
    return TextTable(
        header=("task", "agent", "decisions of each seed", "episodes", *FACTORS),
        rows=tuple(rows),
        caption="mean return [95% interval over test episodes, all seeds together; it does not "
        "tell how other training runs would do]; episodes of each column",
    )


def _ours(task: str, agent: str, found: Sequence[Mapping[str, Any]]) -> tuple[Cell, ...]:
    lengths = ", ".join(f"{run['decisions']:,}" for run in found)
    by_factor = {
        name: np.array([r for run in found for r in run["returns"].get(name, ())])
        for name in FACTORS
    }
    counts = sorted({len(returns) for returns in by_factor.values() if len(returns)})
    told = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "0"
    numbers = [_estimate(returns, f"{task}|{agent}|{n}") for n, returns in by_factor.items()]
    return _TASK_NAMES[task], _AGENT_NAMES.get(agent, agent), lengths, told, *numbers


def _estimate(returns: Any, address: str) -> Estimate:
    if not len(returns):
        return Estimate(np.nan)
    rng = interval_rng(f"dmcr|{address}")
    return Estimate.of(bootstrap.interval(returns[:, None], rng=rng, method="bca"))
