"""Lines of experiments: learning curves, performance profiles, and a radar over protocols."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import EngFormatter

from interverse.core.rng import generator
from interverse.metrics import bootstrap, statistics
from interverse.reports.plots import style
from interverse.results.estimates import Unit, estimates, seeds_of, units
from interverse.results.tables import independent, score_matrix
from interverse.results.text import Estimate, is_share, metric_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from interverse.results.results import Results

_COLUMNS = 2
_LEVELS = 101
_RESAMPLES = 500  # a band, drawn: its edge need not be exact to a pixel
_RADARS, _RADAR_INCHES, _LEGEND_INCHES = 3, 3.9, 0.32


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
    figure, panels = style.panels(len(tasks), _COLUMNS, 3.1)
    for task, axes in zip(tasks, panels.flat, strict=False):
        part = results.select(task=task)
        for i, experiment in enumerate(results.experiments):
            _draw_curve(axes, part.select(experiment=experiment), metric, i)
        axes.set(title=task, xlabel="Training steps")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if is_share(metric):
            axes.set_ylim(-0.02, 1.02)
    for axes in panels[:, 0]:
        axes.set_ylabel(metric_label(metric))
    style.legend_above(figure, panels.flat, len(results.experiments))
    return figure


def _draw_curve(axes: Axes, results: Results, metric: str, index: int) -> None:
    at = results.column("step").astype(np.float64)
    scores, seed = results.scores(metric), results.column("seed")
    known = ~np.isnan(at) & ~np.isnan(scores)
    steps, seeds = np.unique(at[known]), np.unique(seed[known])
    if not len(steps):
        return
    cells = [[scores[known & (at == t) & (seed == s)] for s in seeds] for t in steps]
    most = max(len(cell) for row in cells for cell in row)
    table: NDArray[np.float64] = np.full((len(steps), most, len(seeds)), np.nan)
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            table[i, : len(cell), j] = cell
    color = style.look(index).color
    if len(seeds) > 1:
        per_seed = statistics.mean_known(table, axis=1)  # (step, seed)
        band = bootstrap.t_interval(per_seed)
        axes.plot(steps, per_seed, color=color, linewidth=0.6, alpha=0.45)
    else:
        name = f"report|curve|{results.experiments[0]}|{results.tasks[0]}|{metric}"
        band = bootstrap.interval(table, rng=generator(seed=0, name=name))
    style.band(axes, steps, band.low, band.high, color)
    line = style.look(index).of_line() | {"markersize": 4}
    axes.plot(steps, band.estimate, label=results.experiments[0], **line)


@style.styled
def profiles(
    results: Results, metric: str = "last_fractional_success", unit: Unit | None = None
) -> Figure:
    """Returns the share of episodes above each score, averaged over protocols, with 95% bands.

    A curve that lies above another everywhere belongs to the better policy, whatever the aggregate.
    Bands are over the seeds of several trainings, else over episodes, unless a unit is given.
    """
    last = results.final()
    parts = [p for p in style.by_task(last, metric) if np.isfinite(p.scores(metric)).any()]
    if not parts:
        return style.blank(f"No episode has a score named {metric}")
    figure, panels = style.panels(len(parts), _COLUMNS, 3.1)
    for part, axes in zip(parts, panels.flat, strict=False):
        scores = part.scores(metric)
        known = scores[np.isfinite(scores)]
        ends = (0, 1) if is_share(metric) else (known.min(), known.max())
        levels = np.linspace(ends[0], ends[1], _LEVELS)
        for i, experiment in enumerate(last.experiments):
            own = part.select(experiment=experiment)
            if not np.isfinite(own.scores(metric)).any():
                continue
            band = _band(own, metric, levels, unit)
            look = style.look(i)
            style.band(axes, levels, band.low, band.high, look.color)
            axes.plot(levels, band.estimate, label=experiment, **look.of_line(marker=False))
        axes.set(title=part.tasks[0], xlabel=f"{metric_label(metric)}: level", ylim=(-0.02, 1.02))
    for axes in panels[:, 0]:
        axes.set_ylabel("Share of episodes above")
    style.legend_above(figure, panels.flat, len(last.experiments))
    return figure


def _band(
    results: Results, metric: str, levels: np.ndarray, unit: Unit | None
) -> bootstrap.Interval:
    """Returns the profile of one experiment and task with its band."""
    profile = functools.partial(statistics.performance_profile, thresholds=levels)
    (key, over), *_ = units(results, unit).items()
    if over == "seed":
        tables = [score_matrix(one, metric) for one in seeds_of(results)]
        known = [profile(table) for table in tables if not np.isnan(table).all()]
        band = bootstrap.t_interval(np.stack(known, axis=-1))
        low, high = np.clip(band.low, 0, 1), np.clip(band.high, 0, 1)
        return bootstrap.Interval(estimate=band.estimate, low=low, high=high)
    return bootstrap.interval(
        score_matrix(results, metric),
        profile,
        rng=generator(seed=0, name=f"report|profile|{'|'.join(key)}|{metric}"),
        resamples=_RESAMPLES,
        independent=independent(results, metric),
    )


@style.styled
def radar(results: Results, metric: str = "last_fractional_success") -> Figure:
    """Returns one radar per task, one line per experiment (Figure 10 of the CausalWorld paper).

    A protocol without a score leaves a break in the line.
    """
    last = results.final()
    parts = style.by_task(last, metric)
    if not parts:
        return style.blank(f"No episode has a score named {metric}")
    rows, columns = -(-len(parts) // _RADARS), min(len(parts), _RADARS)
    legend = _LEGEND_INCHES * (1 + len(last.experiments) // 4)
    height, width = _RADAR_INCHES * rows + legend, _RADAR_INCHES * max(columns, 1.6)
    # Laid out by hand: the automatic layout does not reckon with labels around a circle.
    figure = Figure(figsize=(width, height))
    panels = figure.subplots(rows, columns, squeeze=False, subplot_kw={"projection": "polar"})
    sides = {"left": 0.08, "right": 0.92, "bottom": 0.3 / height, "wspace": 0.3, "hspace": 0.35}
    figure.subplots_adjust(**sides, top=1 - (legend + 0.6) / height)
    for axes in panels.flat[len(parts) :]:
        axes.set_visible(False)
    for part, axes in zip(parts, panels.flat, strict=False):
        _draw_radar(axes, part, metric, last.experiments)
    style.legend_above(figure, panels[0, 0], len(last.experiments))
    return figure


def _draw_radar(axes: PolarAxes, results: Results, metric: str, experiments: list[str]) -> None:
    found = estimates(results, metric)
    task, protocols = results.tasks[0], results.protocols
    angles = np.linspace(0, 2 * np.pi, len(protocols), endpoint=False)
    for i, experiment in enumerate(experiments):
        cells = [found.get((experiment, task, p), Estimate(np.nan)).value for p in protocols]
        line = style.look(i).of_line() | {"markersize": 4.5, "clip_on": False}
        axes.plot([*angles, angles[0]], [*cells, cells[0]], label=experiment, **line)
        axes.fill(angles, np.nan_to_num(cells), color=line["color"], alpha=0.08, linewidth=0)
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
