"""Pages of CausalWorld runs: which curriculum does best where, tables and figures of every task."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from interverse.benchmarks.causalworld.scores import (
    HOW_TO_READ,
    ONE_START,
    RELEASED_EPISODES,
    SCORE,
    Mean,
    Record,
    answer,
    baseline_means,
    by_curriculum,
    cpu_means,
    gain,
    half_width,
    kept_mean,
    moved_mean,
    released_scores,
    run_means,
    scores_by_protocol,
    verdicts,
)
from interverse.reports.sections import grouped, markdown
from interverse.results import Results
from interverse.results.text import Estimate

_FEW = 8  # points of a curve that are marked
_USUAL = {
    "worlds": 8192,
    "brief": 0.75,
    "plain": 0.1,
    "placed": 0.0,
    "shown": 0.0,
    "initial": "",
    "max_steps": None,
}
_CURVES = (
    "The learning curves are of training's own episodes. With three quarters of the worlds on "
    "short ones (`brief` 0.75), 94% of the episodes in a curve are a fifth as long and begin "
    "somewhere in the middle: a curve shows progress, not the score of whole episodes."
)
_RELEASED = (
    f"The original's released policies were played by its own code in its own simulator, "
    f"{RELEASED_EPISODES} episodes a protocol, so they have a standard error of up to 0.11. Ours "
    "are told from them where the 95% interval of the difference is without 0, each for itself."
)
_UNTRAINED = (
    "Policies that nobody trained stand below the others, played on the CPU engine with convex "
    "contacts: `scripted` is the package's hand-written baseline, `still` holds the joints where "
    "they are. A block that overlaps its goal at the start scores without being touched."
)


def write_pages(out: Path, records: Sequence[Record]) -> None:
    """Writes summary.md, and for every task its curves, radar and bars."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "summary.md").write_text(summary(records))
    for task, mine in grouped(records, "task").items():
        draw_task(out, task, mine)


def summary(records: Sequence[Record]) -> str:
    """Returns the page: which curriculum does best where, then a table of every task."""
    tasks = grouped(records, "task")
    scores = {task: by_curriculum(mine) for task, mine in tasks.items()}
    differ = {task: unlike(mine) for task, mine in tasks.items()}
    lines = ["# CausalWorld: curricula against protocols", "", HOW_TO_READ, "", _RELEASED, ""]
    lines += [_UNTRAINED, "", _CURVES, "", *answer(scores, differ)]
    for task, mine in tasks.items():
        lines += [f"## {task}", "", *_runs(mine), "", *_table(task, mine), ""]
        # In which protocols ours are told from released and from scripted policies.
        for theirs in (found for (name, _), found in released_scores().items() if name == task):
            known = {p: kept_mean(p, v, None, RELEASED_EPISODES) for p, v in theirs.items()}
            lines += [f"Told from the released policy: {_told(known, mine)}.", ""]
        if scripted := baseline_means(task).get("scripted"):
            lines += [f"Told from the scripted baseline: {_told(scripted, mine)}.", ""]
        lines += verdicts(scores[task], differ[task])
    return "\n".join(lines).rstrip() + "\n"


def _table(task: str, records: Sequence[Record]) -> list[str]:
    """Returns the lines of a task's table: a row per curriculum, and those that are beside."""
    protocols, rows = list(scores_by_protocol(records)), _trained(records)
    for record in (record for record in records if "cpu_engine" in record):
        played = record["cpu_engine"]
        name, counts = record.get("variant", f"seed {record['seed']}"), played["episodes"]
        of = f"{record['curriculum']}, {name} on the CPU engine, {played['contact']} contacts"
        each = {ONE_START: 0, "": counts} if isinstance(counts, int) else counts
        told = {count for protocol, count in each.items() if protocol != ONE_START}
        episodes = " to ".join(str(n) for n in sorted({min(told), max(told)}))
        rows[f"{of}, {episodes} episodes"] = cpu_means(record)
        if moved := played.get("moved"):
            shift = f"its block moved by up to {moved['by_m']:g} m, {moved['episodes']} episodes"
            rows[f"{of}, not P0 itself: {shift}"] = {ONE_START: moved_mean(record)}
    untrained = {f"none: {title}": means for title, means in baseline_means(task).items()}
    theirs = [
        [
            f"{number}, released by the original",
            *(f"{s[p]:.2f}" if p in s else "" for p in protocols),
        ]
        for (name, number), s in released_scores().items()
        if name == task
    ]
    grid = [["curriculum", *protocols], *_rows(rows, protocols), *theirs]
    return markdown([*grid, *_rows(untrained, protocols)]).splitlines()


def _rows(means: Mapping[str, Mapping[str, Mean]], protocols: Sequence[str]) -> list[list[str]]:
    """Returns rows of a table, one for each title: means with their 95% intervals, if any."""
    rows = []
    for title, row in means.items():
        cells = []
        for mean in (row.get(protocol) for protocol in protocols):
            half = np.nan if mean is None else half_width(mean)
            shown = "" if np.isnan(half) else f" ± {half:.2f}"
            cells.append("" if mean is None else f"{mean.value:.2f}{shown}")
        rows.append([title, *cells])
    return rows


def _trained(records: Sequence[Record]) -> dict[str, Mapping[str, Mean]]:
    """Returns the means of every curriculum and of every variant, by title."""
    rows: dict[str, Mapping[str, Mean]] = {str(n): m for n, m in by_curriculum(records).items()}
    for record in (record for record in records if "variant" in record):
        rows[f"{record['curriculum']}, {record['variant']}"] = run_means(record)
    return rows


def _told(theirs: Mapping[str, Mean], records: Sequence[Record]) -> str:
    """Returns which of ours are below or above a policy, and in which protocols."""
    told: dict[str, list[str]] = {"below": [], "above": []}
    for title, means in _trained(records).items():
        gaps = {p: gain(mean, means[p]) for p, mean in theirs.items() if p in means}
        for word, sign in (("below", -1), ("above", 1)):
            apart = [p for p, (gap, half, _) in gaps.items() if sign * gap > half]
            told[word] += [f"{title} is {word} in {', '.join(apart)}"] if apart else []
    return "; ".join([*told["below"], *told["above"]]) or "none"


def _runs(records: Sequence[Record]) -> list[str]:
    """Returns a table of the runs, the engines and contacts of training and tests, and cautions."""
    engines = sorted(
        f"{engine} with {contact} contacts"
        for engine, contact in {
            (r.get("engine", "unnamed engine"), r.get("contact", "unnamed")) for r in records
        }
    )
    grid = [["curriculum", "seed", "steps", "planned", "starts", "learned with", "commit"]]
    for r in records:
        steps = f"{r['steps']:,}" if "steps" in r else "unknown"
        if "steps" not in r and r["curve"]:  # its curve has most of them
            steps = f"{r['curve'][-1]['steps']:,} or more"
        planned = f"{r['planned_steps']:,}" if "planned_steps" in r else ""
        learned = (steps, planned, r.get("starts", ""), _settings(r), r.get("commit", "")[:7])
        grid.append([str(cell) for cell in (r["curriculum"], r["seed"], *learned)])
    lines = [
        *markdown(grid).splitlines(),
        "",
        f"Physics of training and tests: {', '.join(engines)}.",
    ]
    for text in dict.fromkeys(r["caution"] for r in records if "caution" in r):
        of = [
            f"{r['curriculum']} (seed {r['seed']}, {r.get('commit', '')[:7]})"
            for r in records
            if r.get("caution") == text
        ]
        lines += ["", f"Of the runs under {', '.join(of)}: {text}."]
    return lines


def _settings(record: Record) -> str:
    """Returns in what a run differs from the defaults of training on a device."""
    told = [record[name] for name in ("variant", "older") if name in record]
    given = {name: record.get(name, value) for name, value in _USUAL.items()}
    told += [f"{name} {value}" for name, value in given.items() if value != _USUAL[name]]
    told += [f"{name} {value}" for name, value in (record.get("ppo") or {}).items()]
    return ", ".join(told) or "the defaults"


def unlike(records: Sequence[Record]) -> dict[tuple[int, int], str]:
    """Returns in what runs of neighbouring curricula differ beside the curriculum.

    Lengths differ where one is more than a tenth above another. Planned ones matter too: how fast
    entropy and step size shrink goes by them.
    """
    runs = grouped([record for record in records if "variant" not in record], "curriculum")
    found = {}
    for one, other in itertools.pairwise(sorted(runs)):
        both = [*runs[one], *runs[other]]
        told = [
            _range([r.get("steps", 0) for r in both], "million steps"),
            _range([r.get("planned_steps", r.get("steps", 0)) for r in both], "million planned"),
            "settings or learner" if len({_settings(record) for record in both}) > 1 else "",
        ]
        found[one, other] = ", ".join(filter(None, told))
    return found


def _range(lengths: Sequence[int], unit: str) -> str:
    least, most = min(lengths), max(lengths)
    return f"{least / 1e6:.0f} to {most / 1e6:.0f} {unit}" if most > 1.1 * least else ""


def draw_task(out: Path, task: str, records: Sequence[Record]) -> None:
    """Draws the curves of a task's runs, and the scores of the tables as a radar and as bars."""
    from interverse.reports.plots.curves import radar
    from interverse.reports.plots.style import save

    save(_curves(records), out / f"{task}_curves.png")
    scores = {n: found for n, found in by_curriculum(records).items() if found}
    if not scores:
        return
    parts = []
    for number, found in scores.items():
        row = {"task": f"trifinger/{task}-v1", "seed": 0, "episode": 0, "refused": False}
        rows = [{**row, "protocol": p, SCORE: mean.value} for p, mean in found.items()]
        parts.append(Results.from_rows(rows, {}).named(f"curriculum {number}"))
    save(radar(Results.concat(parts)), out / f"{task}_radar.png")
    save(draw_bars_of(task, scores), out / f"{task}_bars.png")


def draw_bars_of(task: str, scores: Mapping[int, Mapping[str, Mean]]) -> Any:
    """Returns the figure of means and intervals by curriculum, the released policies as dots."""
    from interverse.reports.plots import style
    from interverse.reports.plots.bars import draw_bars

    names = {name for found in scores.values() for name in found}
    protocols = sorted(names, key=lambda name: (len(name), name))
    cells: dict[str, list[Estimate]] = {}
    for n, found in scores.items():
        row = cells.setdefault(f"curriculum {n}", [])
        for mean in map(found.get, protocols):
            value, half = (np.nan, np.nan) if mean is None else (mean.value, half_width(mean))
            low, high = np.clip((value - half, value + half), 0.0, 1.0)
            row.append(Estimate(value, float(low), float(high)))
    released = {k: v for k, v in released_scores().items() if k[0] == task}

    @style.styled
    def drawn() -> Any:
        figure = style.new_figure(3.2)
        axes = figure.subplots()
        draw_bars(axes, cells, protocols, SCORE)
        for (_, number), found in released.items():
            shown = [found.get(name, np.nan) for name in protocols]
            label = f"curriculum {number}, released by the original"
            axes.plot(range(len(shown)), shown, "D", color=style.INK, markersize=4, label=label)
        axes.set_title(task)
        style.legend_above(figure, axes, len(cells) + len(released))
        return figure

    return drawn()


def _curves(records: Sequence[Record]) -> Any:
    """Returns the figure of fractional success over steps: a line per run, a colour a curriculum.

    Other learners that were tried (`variant`) stand in the tables alone.
    """
    from interverse.reports.plots.style import look, new_figure

    figure = new_figure(3.0)
    axes, named = figure.subplots(), set[int]()
    records = [record for record in records if "variant" not in record]
    longest = max((row["steps"] for r in records for row in r["curve"]), default=0)
    unit, name = (1e6, "steps, millions") if longest >= 1e5 else (1.0, "steps")
    for record in records:
        number, curve = record["curriculum"], record["curve"]
        label = f"curriculum {number}" if number not in named else None
        steps = [row["steps"] / unit for row in curve]
        marker = "o" if len(curve) < _FEW else None  # a line of one point would not be seen
        shown, color = [r["fraction"] for r in curve], look(number).color
        axes.plot(steps, shown, color=color, label=label, marker=marker, clip_on=False)
        named.add(number)
    short = 5 * (brief := max((r.get("brief", 0.0) for r in records), default=0.0))
    if short:
        share = short / (short + 1 - brief)
        axes.set_title(f"{share:.0%} of these episodes are a fifth as long", fontsize="small")
    axes.set_xlabel(name)
    axes.set_xlim(left=0.0)
    axes.set_ylabel("Fractional success,\nwhile learning")
    axes.set_ylim(0.0, 1.02)
    if named:
        axes.legend(fontsize="small", loc="lower right")
    return figure
