"""The summary and the figures of a CausalWorld run."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from interverse.results import Results

Record = Mapping[str, Any]
_SCORE = "last_fractional_success"


def released_scores() -> dict[tuple[str, int], dict[str, float]]:
    """Returns the scores of the original's released policies, by task and curriculum.

    They were measured with the original's own code, 20 episodes a protocol, seed 0; the paper
    prints bars without numbers.
    """
    text = files("interverse.benchmarks.causalworld").joinpath("released.csv").read_text()
    out: dict[tuple[str, int], dict[str, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        key = row["task"], int(row["curriculum"])
        out.setdefault(key, {})[row["protocol"]] = float(row["value"])
    return out


def write_pages(out: Path, records: Sequence[Record]) -> None:
    """Writes summary.md, and for every task its curves, radar and bars."""
    out.mkdir(parents=True, exist_ok=True)
    lines = ["# CausalWorld: curricula against protocols", ""]
    for task in dict.fromkeys(record["task"] for record in records):
        mine = [record for record in records if record["task"] == task]
        lines += [f"## {task}", "", *_table(task, mine), ""]
        _draw(out, task, mine)
    (out / "summary.md").write_text("\n".join(lines) + "\n")


def scores_by_protocol(records: Sequence[Record]) -> dict[str, list[float]]:
    """Returns the last fractional successes of all episodes, by protocol."""
    out: dict[str, list[float]] = {}
    for record in records:
        for row in (row for row in record["rows"] if not row["refused"]):
            out.setdefault(row["protocol"], []).append(row[_SCORE])
    return out


def _table(task: str, records: Sequence[Record]) -> list[str]:
    """Returns the lines of a task's table: a row per curriculum, and one of the original's."""
    protocols = list(scores_by_protocol(records))
    lines = [
        "| curriculum | " + " | ".join(protocols) + " |",
        "|---" * (len(protocols) + 1) + "|",
    ]
    for number in sorted({record["curriculum"] for record in records}):
        found = scores_by_protocol([r for r in records if r["curriculum"] == number])
        cells = [_cell(found[name]) for name in protocols]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    for (name, number), scores in released_scores().items():
        if name == task:
            cells = [f"{scores[p]:.2f}" if p in scores else "" for p in protocols]
            lines.append(f"| {number}, released by the original | " + " | ".join(cells) + " |")
    return lines


def _cell(values: Sequence[float]) -> str:
    """Returns a mean over episodes with its 95% interval."""
    scores = np.array(values)
    half = 1.96 * scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return f"{scores.mean():.2f} ± {half:.2f}"


def _draw(out: Path, task: str, records: Sequence[Record]) -> None:
    from interverse.reports.plots.bars import bars
    from interverse.reports.plots.radar import radar
    from interverse.reports.plots.style import save

    parts = []
    for number in sorted({record["curriculum"] for record in records}):
        rows = [row for r in records if r["curriculum"] == number for row in r["rows"]]
        parts.append(Results.from_rows(rows, {}).named(f"curriculum {number}"))
    results = Results.concat(parts)
    save(radar(results), out / f"{task}_radar.png")
    save(bars(results), out / f"{task}_bars.png")
    save(_curves(records), out / f"{task}_curves.png")


def _curves(records: Sequence[Record]) -> Any:
    """Returns the figure of fractional success over steps, a line per run."""
    from interverse.reports.plots.style import look, new_figure

    figure = new_figure(3.0)
    axes = figure.subplots()
    for record in records:
        number, curve = record["curriculum"], record["curve"]
        style = look(number)
        label = f"curriculum {number}, seed {record['seed']}"
        steps = [row["steps"] / 1e6 for row in curve]
        axes.plot(steps, [row["fraction"] for row in curve], color=style.color, label=label)
    axes.set_xlabel("steps, millions")
    axes.set_ylabel("fractional success at the end, while learning")
    axes.set_ylim(0.0, 1.02)
    if records:
        axes.legend(fontsize="small")
    return figure
