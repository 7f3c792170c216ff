"""The figures of CausalWorld runs: learning curves, and scores as a radar and as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from interverse.benchmarks.causalworld.answer import Mean, half_width
from interverse.benchmarks.causalworld.records import (
    SCORE,
    Record,
    by_curriculum,
    released_scores,
)
from interverse.results import Results
from interverse.results.text import Estimate

_FEW = 8  # points of a curve that are marked


def draw_task(out: Path, task: str, records: Sequence[Record]) -> None:
    """Draws the curves of a task's runs, and the scores of the tables as a radar and as bars."""
    from interverse.reports.plots.radar import radar
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
    from interverse.reports.plots.style import styled

    return styled(_bars)(task, scores)


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
    draw_bars(axes, cells, protocols, SCORE)
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
    low, high = np.clip(mean.value + half_width(mean) * np.array([-1.0, 1.0]), 0.0, 1.0)
    return Estimate(mean.value, float(low), float(high))


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
