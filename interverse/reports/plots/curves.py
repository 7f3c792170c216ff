"""Learning curves: score against training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from interverse.core.rng import generator
from interverse.metrics import bootstrap, statistics, student
from interverse.reports.plots import style
from interverse.results.text import is_share, metric_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from interverse.results.results import Results

_COLUMNS = 2


@style.styled
def curves(results: Results, metric: str = "last_fractional_success") -> Figure:
    """Returns mean score against training steps, one panel per task, one line per experiment.

    As Figure 5 of the CausalWorld paper. A thin line is a seed; the band is the 95% interval over
    seeds (Student's t), or over episodes where there is one seed (bootstrap).
    """
    steps = results.column("step").astype(np.float64)
    drawable = ~np.isnan(steps) & ~np.isnan(results.scores(metric))
    tasks = [task for task in results.tasks if drawable[results.column("task") == task].any()]
    if not tasks:
        return style.blank("No results hold training steps (the column `step`)")
    columns = min(len(tasks), _COLUMNS)
    rows = -(-len(tasks) // columns)
    figure = style.new_figure(3.1 * rows + 0.4)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes in panels.flat[len(tasks) :]:
        axes.set_visible(False)
    for task, axes in zip(tasks, panels.flat, strict=False):
        part = results.select(task=task)
        for i, experiment in enumerate(results.experiments):
            _draw(axes, part.select(experiment=experiment), metric, i)
        axes.set(title=task, xlabel="Training steps")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if is_share(metric):
            axes.set_ylim(-0.02, 1.02)
    for axes in panels[:, 0]:
        axes.set_ylabel(metric_label(metric))
    style.legend_above(figure, panels.flat, len(results.experiments))
    return figure


def _draw(axes: Axes, results: Results, metric: str, index: int) -> None:
    table, steps, seeds = _by_step(results, metric)
    if not len(steps):
        return
    look = style.look(index)
    per_seed = statistics.mean_known(table, axis=1)  # (step, seed)
    if len(seeds) > 1:
        band = student.t_interval(per_seed)
        axes.plot(steps, per_seed, color=look.color, linewidth=0.6, alpha=0.45)
    else:
        name = f"report|curve|{results.experiments[0]}|{results.tasks[0]}|{metric}"
        band = bootstrap.interval(table, rng=generator(seed=0, name=name))
    axes.fill_between(steps, band.low, band.high, color=look.color, alpha=0.18, linewidth=0)
    axes.plot(
        steps,
        band.estimate,
        color=look.color,
        linestyle=look.line,
        marker=look.marker,
        markersize=4,
        linewidth=1.8,
        label=results.experiments[0],
    )


def _by_step(
    results: Results, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Returns (step, episode, seed) scores, NaN where there is none, and the steps and seeds."""
    at = results.column("step").astype(np.float64)
    scores, seed = results.scores(metric), results.column("seed")
    known = ~np.isnan(at) & ~np.isnan(scores)
    steps, seeds = np.unique(at[known]), np.unique(seed[known])
    cells = [[scores[known & (at == t) & (seed == s)] for s in seeds] for t in steps]
    most = max((len(cell) for row in cells for cell in row), default=0)
    table = np.full((len(steps), most, len(seeds)), np.nan)
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            table[i, : len(cell), j] = cell
    return table, steps, seeds
