"""Results of DMC Remastered, printed from the kept runs, so that pages cannot say anything else.

Usage: python tools/dmcr_page.py [--check]; writes the table of docs/control_results.md, or exits 1
if it is not what the runs say. Files of results/dmcr hold the return of each test episode and of
each replay under a factor; a test holds the tables of its pages to them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from interverse.benchmarks.dmcr.compare import printed_returns
from interverse.benchmarks.dmcr.settings import AGENTS, TASKS
from interverse.metrics import bootstrap
from interverse.reports.attribution import INTERVAL_METHOD, Attribution
from interverse.reports.plots import style
from interverse.reports.sections import Score, markdown, pivot, with_table
from interverse.results.tables import interval_rng
from interverse.results.text import Cell, Estimate, TextTable

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "control_results.md"
RUNS = ROOT / "results" / "dmcr" / "h200.json"
_LEAST = 40_000  # decisions of a run that stands on the page
FACTORS = ("none", "light", "camera", "body", "floor", "background", "all", "pictures_b")
_AGENT_NAMES = {agent: name for name, agent in AGENTS.items()}
_COSTS = ("sky", "floor", "body", "camera", "light")  # factors of the kept explanations
_TASK_NAMES = {task: name for name, task in TASKS.items()}


def kept_table(runs: Sequence[Mapping[str, Any]], *, beside_paper: bool = True) -> TextTable:
    """Returns a row for every training run, and one for what the paper prints of its agent.

    Args:
        runs: each with its `task`, `agent`, `seed`, `decisions`, and `returns` by protocol.
        beside_paper: whether the paper's rows are shown; runs far from its settings have none.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["task"], run["agent"]), []).append(run)
    rows: list[tuple[Cell, ...]] = []
    for (task, agent), found in groups.items():
        rows += [_ours(run) for run in found]
        name = _AGENT_NAMES.get(agent, "")
        theirs = printed_returns(2, _TASK_NAMES[task], name) if beside_paper else {}
        if theirs:
            learned = printed_returns(1, _TASK_NAMES[task], name).get("train", np.nan)
            numbers = [Estimate({"none": learned, **theirs}.get(n, np.nan)) for n in FACTORS]
            rows.append((_TASK_NAMES[task], f"{name}, paper", "", "", "", *numbers))
    return TextTable(
        header=("task", "agent", "seed", "decisions", "episodes", *FACTORS),
        rows=tuple(rows),
        caption="mean return of one training run [95% interval over its test episodes: BCa "
        "bootstrap, rough below some 20 episodes; it does not tell how other training runs would "
        "do]; episodes of each column",
    )


def cost_table(explained: Sequence[Mapping[str, Any]]) -> TextTable:
    """Returns what each factor costs each policy, in percent of its return.

    Args:
        explained: what `Attribution.to_json` gives, with the `agent` and its `decisions`.
    """
    rows: list[tuple[Cell, ...]] = []
    for held in explained:
        found = Attribution.from_json(held)
        base = found.scores[()]
        about = _agent_name(held), f"{held['decisions']:,}", str(len(base)), base.mean()
        costs = [found.percent(name).shown(0) for name in _COSTS]
        may = " or ".join(found.may_cost_most())
        rows.append((_TASK_NAMES[held["task"]], *about, *costs, may))
    return TextTable(
        header=("task", "agent", "decisions", "episodes", "as it is", *_COSTS, "costs most"),
        rows=tuple(rows),
        caption="as it is: mean return in the look trained in; then the percentage of it that the "
        "same episodes lose under one factor alone, floors and skies from held-out pictures "
        f"[{INTERVAL_METHOD}]; costs most: the costliest factor and those that may cost as much, "
        "at 95% for all pairs of factors of a policy together",
    )


@style.styled
def kept_figure(runs: Sequence[Mapping[str, Any]]) -> Any:
    """Returns a map of mean returns and their intervals: a row for a run, a column for a factor."""
    figure = style.new_figure(0.9 + 0.48 * len(runs))
    panel = figure.subplots()
    numbers = [_estimates(run) for run in runs]
    means = [[number.value for number in row] for row in numbers]
    panel.imshow(means, cmap="RdYlBu", vmin=0, vmax=1000, aspect="auto")
    for row, column in np.ndindex(len(runs), len(FACTORS)):
        number = numbers[row][column]
        ink = "white" if not 150 < number.value < 850 else "black"
        words = f"{number.value:.0f}\n[{number.low:.0f}, {number.high:.0f}]"
        panel.text(column, row, words, ha="center", va="center", color=ink, size=7)
    panel.set_xticks(range(len(FACTORS)), [name.replace("_", "\n") for name in FACTORS])
    panel.set_yticks(range(len(runs)), [_label(run) for run in runs])
    panel.xaxis.tick_top()
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)
    return figure


def _label(run: Mapping[str, Any]) -> str:
    about = f"seed {run['seed']}, {run['decisions']:,} decisions"
    return f"{_TASK_NAMES[run['task']]}: {_agent_name(run)}\n{about}"


def _agent_name(run: Mapping[str, Any]) -> str:
    """Returns an agent's name, with what tells the trained one from today's of that name."""
    name = _AGENT_NAMES.get(run["agent"], run["agent"])
    return f"{name} ({run['variant']})" if "variant" in run else name


def _ours(run: Mapping[str, Any]) -> tuple[Cell, ...]:
    counts = sorted({len(returns) for name in FACTORS if (returns := run["returns"].get(name))})
    told = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "0"
    about = _agent_name(run), str(run["seed"]), f"{run['decisions']:,}", told
    return _TASK_NAMES[run["task"]], *about, *_estimates(run)


def _estimates(run: Mapping[str, Any]) -> list[Estimate]:
    """Returns the mean return under each factor with its interval over episodes."""
    address = f"{run['task']}|{run['agent']}|{run['seed']}"
    return [
        _estimate(np.array(run["returns"].get(name, ())), f"{address}|{name}") for name in FACTORS
    ]


def _estimate(returns: Any, address: str) -> Estimate:
    if not len(returns):
        return Estimate(np.nan)
    rng = interval_rng(f"dmcr|{address}")
    return Estimate.of(bootstrap.interval(returns[:, None], rng=rng, method="bca"))


def short_table() -> str:
    """Returns the mean return of the long runs on Cartpole Balance by factor, as Markdown."""
    scores = [
        Score(
            where=_agent_name(run),
            who=str(run["seed"]),
            what=factor,
            value=float(np.mean(run["returns"][factor])),
        )
        for run in json.loads(RUNS.read_text())["runs"]
        if run["task"].endswith("cartpole_balance-v1") and run["decisions"] > _LEAST
        for factor in FACTORS[:-1]
    ]
    head, *rows = pivot(scores, digits=3)
    return markdown([["agent", "seed", *head[3:]], *([*row[:2], *row[3:]] for row in rows)])


def main(arguments: Iterable[str]) -> int:
    """Writes or checks the page; returns the exit status."""
    page = with_table(PAGE, short_table())
    if "--check" in arguments:
        return int(page != PAGE.read_text())
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
