"""The summary of CausalWorld runs: which curriculum does best where, and a table of every task."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from interverse.benchmarks.causalworld.answer import (
    HOW_TO_READ,
    ONE_START,
    Mean,
    answer,
    gain,
    half_width,
    verdicts,
)
from interverse.benchmarks.causalworld.figures import draw_task
from interverse.benchmarks.causalworld.records import (
    RELEASED_EPISODES,
    Record,
    baseline_means,
    by_curriculum,
    by_task,
    cpu_means,
    kept_mean,
    moved_mean,
    released_scores,
    run_means,
    scores_by_protocol,
)

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
    for task, mine in by_task(records).items():
        draw_task(out, task, mine)


def summary(records: Sequence[Record]) -> str:
    """Returns the page: which curriculum does best where, then a table of every task."""
    tasks = by_task(records)
    scores = {task: by_curriculum(mine) for task, mine in tasks.items()}
    differ = {task: unlike(mine) for task, mine in tasks.items()}
    lines = ["# CausalWorld: curricula against protocols", "", HOW_TO_READ, "", _RELEASED, ""]
    lines += [_UNTRAINED, "", _CURVES, "", *answer(scores, differ)]
    for task, mine in tasks.items():
        lines += [f"## {task}", "", *_runs(mine), "", *_table(task, mine), ""]
        lines += _comparisons(task, mine)
        lines += verdicts(scores[task], differ[task])
    return "\n".join(lines).rstrip() + "\n"


def _table(task: str, records: Sequence[Record]) -> list[str]:
    """Returns the lines of a task's table: a row per curriculum, and one of the original's."""
    protocols = list(scores_by_protocol(records))
    lines = [
        "| curriculum | " + " | ".join(protocols) + " |",
        "|---" * (len(protocols) + 1) + "|",
    ]
    rows = _trained(records)
    for record in (record for record in records if "cpu_engine" in record):
        rows[_cpu_title(record)] = cpu_means(record)
        if "moved" in record["cpu_engine"]:
            rows[_moved_title(record)] = {ONE_START: moved_mean(record)}
    lines += _rows(rows, protocols)
    for (name, number), scores in released_scores().items():
        if name == task:
            title = f"{number}, released by the original"
            lines.append(f"| {title} | " + " | ".join(_plain(scores, protocols)) + " |")
    untrained = {f"none: {title}": means for title, means in baseline_means(task).items()}
    return lines + _rows(untrained, protocols)


def _rows(means: Mapping[str, Mapping[str, Mean]], protocols: Sequence[str]) -> list[str]:
    """Returns lines of a table, a row for each title."""
    return [
        f"| {title} | " + " | ".join(_cell(row[p]) if p in row else "" for p in protocols) + " |"
        for title, row in means.items()
    ]


def _trained(records: Sequence[Record]) -> dict[str, Mapping[str, Mean]]:
    """Returns the means of every curriculum and of every variant, by title."""
    rows: dict[str, Mapping[str, Mean]] = {str(n): m for n, m in by_curriculum(records).items()}
    for record in (record for record in records if "variant" in record):
        rows[f"{record['curriculum']}, {record['variant']}"] = run_means(record)
    return rows


def _comparisons(task: str, records: Sequence[Record]) -> list[str]:
    """Returns in which protocols ours are told from released and from scripted policies."""
    lines = []
    for theirs in (found for (name, _), found in released_scores().items() if name == task):
        released = {p: kept_mean(p, value, None, RELEASED_EPISODES) for p, value in theirs.items()}
        lines += [f"Told from the released policy: {_told(released, records)}.", ""]
    if scripted := baseline_means(task).get("scripted"):
        lines += [f"Told from the scripted baseline: {_told(scripted, records)}.", ""]
    return lines


def _told(theirs: Mapping[str, Mean], records: Sequence[Record]) -> str:
    """Returns which of ours are below or above a policy, and in which protocols."""
    told: dict[str, list[str]] = {"below": [], "above": []}
    for title, means in _trained(records).items():
        gaps = {p: gain(mean, means[p]) for p, mean in theirs.items() if p in means}
        for word, sign in (("below", -1), ("above", 1)):
            apart = [p for p, (gap, half, _) in gaps.items() if sign * gap > half]
            told[word] += [f"{title} is {word} in {', '.join(apart)}"] if apart else []
    return "; ".join([*told["below"], *told["above"]]) or "none"


def _cpu_title(record: Record) -> str:
    """Returns the title of a row: whose policy, which contacts, how many episodes."""
    played = record["cpu_engine"]
    counts = played["episodes"]
    told = {counts} if isinstance(counts, int) else {n for p, n in counts.items() if p != ONE_START}
    episodes = " to ".join(str(n) for n in sorted({min(told), max(told)}))
    return f"{_on_cpu(record)}, {episodes} episodes"


def _moved_title(record: Record) -> str:
    """Returns the title of a row that is not of P0 itself."""
    moved = record["cpu_engine"]["moved"]
    return (
        f"{_on_cpu(record)}, not P0 itself: its block moved by up to {moved['by_m']:g} m, "
        f"{moved['episodes']} episodes"
    )


def _on_cpu(record: Record) -> str:
    name = record.get("variant", f"seed {record['seed']}")
    contact = record["cpu_engine"]["contact"]
    return f"{record['curriculum']}, {name} on the CPU engine, {contact} contacts"


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
    names = ("curriculum", "seed", "steps", "planned", "starts", "learned with", "commit")
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for r in records:
        planned = f"{r['planned_steps']:,}" if "planned_steps" in r else ""
        learned = (_steps(r), planned, r.get("starts", ""), _settings(r), r.get("commit", "")[:7])
        cells = (r["curriculum"], r["seed"], *learned)
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    lines += ["", f"Physics of training and tests: {', '.join(engines)}."]
    return [*lines, *_cautions(records)]


def _cautions(records: Sequence[Record]) -> list[str]:
    """Returns what is wrong with some runs, and with which."""
    lines = []
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
    runs: dict[int, list[Record]] = {}
    for record in (record for record in records if "variant" not in record):
        runs.setdefault(record["curriculum"], []).append(record)
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


def _steps(record: Record) -> str:
    """Returns the steps of a run; where none are kept, its curve has most of them."""
    if "steps" in record:
        return f"{record['steps']:,}"
    return f"{record['curve'][-1]['steps']:,} or more" if record["curve"] else "unknown"


def _cell(mean: Mean) -> str:
    """Returns a mean with its 95% interval, if it has one."""
    half = half_width(mean)
    return f"{mean.value:.2f}" + ("" if np.isnan(half) else f" ± {half:.2f}")
