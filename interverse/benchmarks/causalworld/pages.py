"""The summary and the figures of CausalWorld runs: those just made, or those kept in files."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from interverse.benchmarks.causalworld.answer import Mean, answer, half_width, joined, verdicts
from interverse.core.files.json_text import read_json_object
from interverse.results import Results
from interverse.results.text import Estimate

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


def stored_records(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Returns the runs of result files, such as results/causalworld/h200.json, by task.

    Runs that kept the scores of their episodes have rows.
    One with a `variant`, another learner or another way to learn, is a row of its own in tables.
    """
    found = []
    for run in (run for file in files for run in read_json_object(file)["runs"]):
        task = run["task"].removeprefix("trifinger/").removesuffix("-v1")
        address = {"task": run["task"], "seed": run["seed"], "refused": False}
        rows = [
            {**address, "protocol": protocol, "episode": number, _SCORE: score}
            for protocol, scores in run.get("scores", {}).items()
            for number, score in enumerate(scores)
        ]
        found.append({**run, "task": task, "rows": rows})
    return sorted(found, key=lambda run: (run["task"], run["curriculum"], run["seed"]))


def write_pages(out: Path, records: Sequence[Record]) -> None:
    """Writes summary.md, and for every task its curves, radar and bars."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "summary.md").write_text(summary(records))
    for task, mine in _by_task(records).items():
        _draw(out, task, mine)


def summary(records: Sequence[Record]) -> str:
    """Returns the page: which curriculum does best where, then a table of every task."""
    tasks = _by_task(records)
    scores = {task: _by_curriculum(mine) for task, mine in tasks.items()}
    differ = {task: unlike(mine) for task, mine in tasks.items()}
    lines = ["# CausalWorld: curricula against protocols", "", *answer(scores, differ)]
    for task, mine in tasks.items():
        lines += [f"## {task}", "", *_runs(mine), "", *_table(task, mine), ""]
        lines += verdicts(scores[task], differ[task])
    return "\n".join(lines).rstrip() + "\n"


def _by_task(records: Sequence[Record]) -> dict[str, list[Record]]:
    tasks: dict[str, list[Record]] = {}
    for record in records:
        tasks.setdefault(record["task"], []).append(record)
    return tasks


def _by_curriculum(records: Sequence[Record]) -> dict[int, dict[str, Mean]]:
    records = [record for record in records if "variant" not in record]
    numbers = sorted({record["curriculum"] for record in records})
    return {n: scores_by_protocol([r for r in records if r["curriculum"] == n]) for n in numbers}


def scores_by_protocol(records: Sequence[Record]) -> dict[str, Mean]:
    """Returns the mean last fractional success of all episodes of all runs, by protocol."""
    parts: dict[str, list[Mean]] = {}
    for record in records:
        for protocol, mean in _means(record).items():
            parts.setdefault(protocol, []).append(mean)
    return {protocol: joined(means) for protocol, means in parts.items()}


def _means(record: Record) -> dict[str, Mean]:
    """Returns a run's means: of its rows, or those that its file keeps instead."""
    scores: dict[str, list[float]] = {}
    for row in (row for row in record["rows"] if not row["refused"]):
        scores.setdefault(row["protocol"], []).append(row[_SCORE])
    if scores:
        return {protocol: _mean(values) for protocol, values in scores.items()}
    out = {}
    for protocol, kept in record.get("protocols", {}).items():
        most = 0.5 / np.sqrt(kept["episodes"])  # of scores from 0 to 1, where no error was kept
        error = kept.get(f"{_SCORE}_error", most)
        out[protocol] = Mean(
            kept[_SCORE], float(error), int(kept["episodes"]), kept["episodes"] - 1
        )
    return out


def _mean(values: Sequence[float]) -> Mean:
    count = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else 0.0
    return Mean(float(np.mean(values)), error, count, count - 1)


def _table(task: str, records: Sequence[Record]) -> list[str]:
    """Returns the lines of a task's table: a row per curriculum, and one of the original's."""
    protocols = list(scores_by_protocol(records))
    lines = [
        "| curriculum | " + " | ".join(protocols) + " |",
        "|---" * (len(protocols) + 1) + "|",
    ]
    for number, found in _by_curriculum(records).items():
        cells = [_cell(found[name]) if name in found else "" for name in protocols]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    for record in (record for record in records if "variant" in record):
        means = _means(record)
        cells = [_cell(means[name]) if name in means else "" for name in protocols]
        title = f"{record['curriculum']}, {record['variant']}"
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    for record in (record for record in records if "cpu_engine" in record):
        name = record.get("variant", f"seed {record['seed']}")
        title = f"{record['curriculum']}, {name} on the CPU engine"
        found = record["cpu_engine"]["last_fractional_success"]
        lines.append(f"| {title} | " + " | ".join(_plain(found, protocols)) + " |")
    for (name, number), scores in released_scores().items():
        if name == task:
            title = f"{number}, released by the original"
            lines.append(f"| {title} | " + " | ".join(_plain(scores, protocols)) + " |")
    return lines


def _plain(scores: Mapping[str, float], protocols: Sequence[str]) -> list[str]:
    return [f"{scores[p]:.2f}" if p in scores else "" for p in protocols]


def _runs(records: Sequence[Record]) -> list[str]:
    """Returns a table of the runs, and the engines and contacts of training and tests."""
    engines = sorted(
        f"{engine} with {contact} contacts"
        for engine, contact in {
            (r.get("engine", "unnamed engine"), r.get("contact", "unnamed")) for r in records
        }
    )
    lines = []
    for r in records:
        cells = (r["curriculum"], r["seed"], _steps(r), _settings(r), r.get("commit", ""))
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return [
        "| curriculum | seed | steps | learned with | commit |",
        "|---|---|---|---|---|",
        *lines,
        "",
        f"Physics of training and tests: {', '.join(engines)}.",
        "Intervals (Student's t) are over episodes, or over runs where these are wider."
        " A curriculum with one run has its episodes alone: another run may differ by more.",
    ]


def _settings(record: Record) -> str:
    """Returns in what a run differs from the defaults of training on a device."""
    usual = {"brief": 0.75, "plain": 0.1, "placed": 0.0, "shown": 0.0, "initial": ""}
    given = {name: record.get(name, value) for name, value in usual.items()}
    told = [record[name] for name in ("variant", "older") if name in record]
    told += [f"{name} {value}" for name, value in given.items() if value != usual[name]]
    told += [f"{name} {value}" for name, value in (record.get("ppo") or {}).items()]
    return ", ".join(told) or "the defaults"


def unlike(records: Sequence[Record]) -> dict[tuple[int, int], str]:
    """Returns in what runs of neighbouring curricula differ beside the curriculum.

    Lengths differ where one is more than a tenth above another.
    """
    runs: dict[int, list[Record]] = {}
    for record in (record for record in records if "variant" not in record):
        runs.setdefault(record["curriculum"], []).append(record)
    found = {}
    for one, other in itertools.pairwise(sorted(runs)):
        both = [*runs[one], *runs[other]]
        lengths = [record.get("steps", 0) / 1e6 for record in both]
        told = []
        if max(lengths) > 1.1 * min(lengths):
            told.append(f"{min(lengths):.0f} to {max(lengths):.0f} million steps")
        if len({_settings(record) for record in both}) > 1:
            told.append("settings")
        found[one, other] = " and ".join(told)
    return found


def _steps(record: Record) -> str:
    """Returns the steps of a run; where none are kept, its curve has most of them."""
    if "steps" in record:
        return f"{record['steps']:,}"
    return f"{record['curve'][-1]['steps']:,} or more" if record["curve"] else "unknown"


def _cell(mean: Mean) -> str:
    """Returns a mean over episodes with its 95% interval; one episode has none."""
    return f"{mean.value:.2f}" + (f" ± {half_width(mean):.2f}" if mean.episodes > 1 else "")


def _draw(out: Path, task: str, records: Sequence[Record]) -> None:
    """Draws the curves of a task's runs, and the scores of the tables as a radar and as bars."""
    from interverse.reports.plots.radar import radar
    from interverse.reports.plots.style import save, styled

    save(_curves(records), out / f"{task}_curves.png")
    scores = {n: found for n, found in _by_curriculum(records).items() if found}
    if not scores:
        return
    parts = []
    for number, found in scores.items():
        row = {"task": f"trifinger/{task}-v1", "seed": 0, "episode": 0, "refused": False}
        rows = [{**row, "protocol": p, _SCORE: mean.value} for p, mean in found.items()]
        parts.append(Results.from_rows(rows, {}).named(f"curriculum {number}"))
    save(radar(Results.concat(parts)), out / f"{task}_radar.png")
    save(styled(_bars)(task, scores), out / f"{task}_bars.png")


def _bars(task: str, scores: Mapping[int, Mapping[str, Mean]]) -> Any:
    """Returns the figure of means and intervals by curriculum, the released policies as dots."""
    from interverse.reports.plots.bars import draw_bars
    from interverse.reports.plots.style import INK, legend_above, new_figure

    names = {name for found in scores.values() for name in found}
    protocols = sorted(names, key=lambda name: (len(name), name))
    cells = {
        f"curriculum {n}": [_estimate(found.get(name)) for name in protocols]
        for n, found in scores.items()
    }
    figure = new_figure(3.2)
    axes = figure.subplots()
    draw_bars(axes, cells, protocols, _SCORE)
    released = {k: v for k, v in released_scores().items() if k[0] == task}
    for (_, number), found in released.items():
        shown = [found.get(name, np.nan) for name in protocols]
        label = f"curriculum {number}, released by the original"
        axes.plot(range(len(protocols)), shown, "D", color=INK, markersize=4, label=label)
    axes.set_title(task)
    legend_above(figure, axes, len(cells) + len(released))
    return figure


def _estimate(mean: Mean | None) -> Estimate:
    if mean is None:
        return Estimate(np.nan)
    half = half_width(mean) if mean.episodes > 1 else np.nan
    return Estimate(mean.value, max(mean.value - half, 0.0), min(mean.value + half, 1.0))


def _curves(records: Sequence[Record]) -> Any:
    """Returns the figure of fractional success over steps: a line per run, a colour a curriculum.

    Other learners that were tried (`variant`) stand in the tables alone.
    """
    from interverse.reports.plots.style import look, new_figure

    figure = new_figure(3.0)
    axes, named = figure.subplots(), set[int]()
    for record in (r for r in records if "variant" not in r):
        number, curve = record["curriculum"], record["curve"]
        label = f"curriculum {number}" if number not in named else None
        steps = [row["steps"] / 1e6 for row in curve]
        axes.plot(steps, [r["fraction"] for r in curve], color=look(number).color, label=label)
        named.add(number)
    axes.set_xlabel("steps, millions")
    axes.set_ylabel("Fractional success,\nwhile learning")
    axes.set_ylim(0.0, 1.02)
    if named:
        axes.legend(fontsize="small", loc="lower right")
    return figure
