"""Performance profiles: which share of episodes scores above each level."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from interverse.core.rng import generator
from interverse.metrics import bootstrap, statistics, student
from interverse.reports.plots import style
from interverse.results.estimates import Unit, seeds_of, units
from interverse.results.tables import independent, score_matrix
from interverse.results.text import is_share, metric_label

if TYPE_CHECKING:
    from interverse.results.results import Results

_LEVELS = 101
_COLUMNS = 2
_RESAMPLES = 500  # a band, drawn: its edge need not be exact to a pixel


@style.styled
def profiles(
    results: Results, metric: str = "last_fractional_success", unit: Unit | None = None
) -> Figure:
    """Returns the share of episodes above each score, averaged over protocols, with 95% bands.

    A curve that lies above another everywhere belongs to the better policy, whatever the aggregate.
    Bands are over the seeds of several trainings, else over episodes, unless a unit is given.
    """
    last = results.final()
    parts = [last.select(task=task) for task in last.tasks]
    parts = [part for part in parts if np.isfinite(part.scores(metric)).any()]
    if not parts:
        return style.blank(f"No episode has a score named {metric}")
    columns = min(len(parts), _COLUMNS)
    rows = -(-len(parts) // columns)
    figure = style.new_figure(3.1 * rows + 0.4)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes in panels.flat[len(parts) :]:
        axes.set_visible(False)
    for part, axes in zip(parts, panels.flat, strict=False):
        levels = _levels(part, metric)
        for i, experiment in enumerate(last.experiments):
            own = part.select(experiment=experiment)
            if not np.isfinite(own.scores(metric)).any():
                continue
            band = _band(own, metric, levels, unit)
            look = style.look(i)
            axes.fill_between(
                levels, band.low, band.high, color=look.color, alpha=0.18, linewidth=0
            )
            line = {"color": look.color, "linestyle": look.line, "linewidth": 1.8}
            axes.plot(levels, band.estimate, label=experiment, **line)
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
        band = student.t_interval(np.stack(known, axis=-1))
        low, high = np.clip(band.low, 0, 1), np.clip(band.high, 0, 1)
        return bootstrap.Interval(estimate=band.estimate, low=low, high=high)
    return bootstrap.interval(
        score_matrix(results, metric),
        profile,
        rng=generator(seed=0, name=f"report|profile|{'|'.join(key)}|{metric}"),
        resamples=_RESAMPLES,
        independent=independent(results, metric),
    )


def _levels(results: Results, metric: str) -> np.ndarray:
    if is_share(metric):
        return np.linspace(0, 1, _LEVELS)
    scores = results.scores(metric)
    known = scores[np.isfinite(scores)]
    return np.linspace(known.min(), known.max(), _LEVELS)
