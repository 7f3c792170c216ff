"""A radar of score over protocols: the shape of what a policy generalises to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from interverse.reports.plots import style
from interverse.results.estimates import estimates
from interverse.results.text import Estimate, is_share

if TYPE_CHECKING:
    from interverse.results.results import Results

_COLUMNS = 3
_PANEL_INCHES, _LEGEND_INCHES = 3.9, 0.32


@style.styled
def radar(results: Results, metric: str = "last_fractional_success") -> Figure:
    """Returns one radar per task, one line per experiment (Figure 10 of the CausalWorld paper).

    A protocol without a score leaves a break in the line.
    """
    last = results.final()
    parts = [last.select(task=task) for task in last.tasks]
    parts = [part for part in parts if not np.isnan(part.scores(metric)).all()]
    if not parts:
        return style.blank(f"No episode has a score named {metric}")
    rows, columns = -(-len(parts) // _COLUMNS), min(len(parts), _COLUMNS)
    legend = _LEGEND_INCHES * (1 + len(last.experiments) // 4)
    height, width = _PANEL_INCHES * rows + legend, _PANEL_INCHES * max(columns, 1.6)
    # Laid out by hand: the automatic layout does not reckon with labels around a circle.
    figure = Figure(figsize=(width, height))
    panels = figure.subplots(rows, columns, squeeze=False, subplot_kw={"projection": "polar"})
    figure.subplots_adjust(
        left=0.08,
        right=0.92,
        bottom=0.3 / height,
        top=1 - (legend + 0.6) / height,
        wspace=0.3,
        hspace=0.35,
    )
    for axes in panels.flat[len(parts) :]:
        axes.set_visible(False)
    for part, axes in zip(parts, panels.flat, strict=False):
        _draw(axes, part, metric, last.experiments)
    style.legend_above(figure, panels[0, 0], len(last.experiments))
    return figure


def _draw(axes: PolarAxes, results: Results, metric: str, experiments: list[str]) -> None:
    found = estimates(results, metric)
    task, protocols = results.tasks[0], results.protocols
    angles = np.linspace(0, 2 * np.pi, len(protocols), endpoint=False)
    for i, experiment in enumerate(experiments):
        cells = [found.get((experiment, task, p), Estimate(np.nan)).value for p in protocols]
        look = style.look(i)
        around = [*angles, angles[0]], [*cells, cells[0]]
        axes.plot(
            *around,
            color=look.color,
            linestyle=look.line,
            marker=look.marker,
            markersize=4.5,
            linewidth=1.8,
            label=experiment,
            clip_on=False,
        )
        axes.fill(angles, np.nan_to_num(cells), color=look.color, alpha=0.08, linewidth=0)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, protocols, fontweight="bold")
    axes.spines["polar"].set_visible(False)
    axes.set_title(task, pad=16)
    if is_share(metric):
        axes.set_ylim(0, 1)
        axes.set_yticks([0.2, 0.4, 0.6, 0.8, 1.0], ["0.2", "0.4", "0.6", "0.8", "1"])
    axes.tick_params(axis="y", labelsize=7.5, labelcolor=style.SOFT)
    axes.set_rlabel_position(180 / max(len(protocols), 1))
