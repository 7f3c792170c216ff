"""Learning curves of DMC Remastered: Figure 2 by look and agent, Figures 5 to 7 by a setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from interverse.benchmarks.dmcr.compare import records
from interverse.benchmarks.dmcr.settings import RemasteredSettings
from interverse.benchmarks.dmcr.variants import (
    DmcrVariant,
    look_parts,
    sweep_variants,
    swept_tasks,
)

Lines = dict[str, list[Sequence[Mapping[str, Any]]]]  # label -> the evaluations of its runs
_SWEPT = {5: "beta", 6: "lambda", 7: "augmentation"}
_MOST_LABELS = 12


def look_curves(settings: RemasteredSettings) -> Any:
    """Returns Figure 2: a panel for each agent with a curve per look, then many looks of a task."""
    panels: dict[str, Lines] = {}
    by_agent, many = look_parts(settings.sizes())
    for variant in by_agent:
        panel = f"{variant.task}: {variant.method}"
        _add(panels, panel, f"look {variant.visual_seed}", _runs(settings, variant))
    for variant in many:
        told = "new looks" if variant.visual_seed else "default look"
        _add(panels, variant.task, f"{variant.method}, {told}", _runs(settings, variant))
    return drawn_curves(panels, "return in the look trained in")


def _add(panels: dict[str, Lines], panel: str, label: str, runs: list[Any]) -> None:
    """Adds runs to a line of a panel, where there are any."""
    if runs:
        panels.setdefault(panel, {}).setdefault(label, []).extend(runs)


def sweep_curves(settings: RemasteredSettings, number: int) -> Any:
    """Returns Figure 5, 6 or 7: a panel for each task, a curve per value of the setting."""
    sizes = settings.sizes()
    panels: dict[str, Lines] = {}
    for task in swept_tasks(number, sizes):
        found = {
            f"{_SWEPT[number]} {value.replace('_', ' ')}": _runs(settings, variant)
            for value, variant in sweep_variants(number, sizes, task).items()
        }
        panels[task] = {label: runs for label, runs in found.items() if runs}
    panels = {task: lines for task, lines in panels.items() if len(lines) > 1}
    return drawn_curves(panels, "return in the look trained in")


def _runs(settings: RemasteredSettings, variant: DmcrVariant) -> list[Any]:
    return [r["evaluations"] for r in records(settings, variant) if "evaluations" in r]


def drawn_curves(panels: Mapping[str, Lines], what: str) -> Any:
    """Returns panels of mean curves, or None if there is none."""
    if not panels:
        return None
    from interverse.reports.plots import style

    @style.styled
    def drawn() -> Any:
        columns = min(3, len(panels))
        rows = -(-len(panels) // columns)
        figure = style.new_figure(3.2 * rows)
        places = figure.subplots(rows, columns, squeeze=False)
        for place, (title, lines) in zip(places.flat, panels.items(), strict=False):
            for index, (label, runs) in enumerate(lines.items()):
                look = style.look(index)
                steps, means = mean_curve(runs)
                shown = {"color": look.color, "marker": look.marker, "label": label}
                place.plot(steps, means, look.line, markersize=3, **shown)
            place.set_title(title)
            place.set_xlabel("decisions")
            if len(lines) <= _MOST_LABELS:
                place.legend(fontsize=7)
        for place in list(places.flat)[len(panels) :]:
            place.set_visible(False)
        for row in places:
            row[0].set_ylabel(what)
        return figure

    return drawn()


def mean_curve(runs: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[list[int], Any]:
    """Returns the steps that all runs have, and the mean over runs at each.

    >>> long, short = [(5, 1.0), (9, 8.0)], [(5, 3.0)]
    >>> mean_curve([[{"step": s, "mean": m} for s, m in run] for run in (long, short)])
    ([5], array([2.]))
    """
    kept = list(runs)
    shortest = min(len(run) for run in kept)
    steps = [row["step"] for row in kept[0][:shortest]]
    return steps, np.mean([[row["mean"] for row in run[:shortest]] for run in kept], axis=0)
