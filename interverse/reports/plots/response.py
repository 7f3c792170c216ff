"""Scores by variable: against the value it was set to, of which they need not be the doing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from interverse.core.rng import generator
from interverse.metrics import bootstrap
from interverse.reports.plots import style
from interverse.results.text import component_names, is_share, metric_label

if TYPE_CHECKING:
    from interverse.results.results import Results

_COLUMNS = 3
_MOST_BINS, _FEWEST_IN_BIN = 8, 8
_MOST_PANELS = 12
_MOST_DOTS = 400


@final
@dataclass(frozen=True, slots=True)
class _Component:
    """One number of one variable over all rows."""

    label: str
    values: NDArray[np.float64]
    spaces: dict[str, tuple[float, float]]  # "A", "B" -> low, high


@style.styled
def response(
    results: Results,
    metric: str = "last_fractional_success",
    *,
    variables: list[str] | None = None,
) -> Figure:
    """Returns score against the value of each variable that was set, one panel per component.

    Dots are episodes; lines are means of equally filled bins with 95% intervals. The spaces A and B
    are shaded. Without `variables`, up to 12 components are drawn: those that most protocols set,
    in the order the world declares them, so that none is singled out by how it goes with the score.
    Protocols move variables together: a slope here is no effect. `interverse.attribute` has those.
    """
    last = results.final()
    scores = last.scores(metric)
    names = last.variables if variables is None else variables
    every = [c for name in names for c in _components(last, name)]
    known = [c.values[~np.isnan(c.values) & ~np.isnan(scores)] for c in every]
    components = [c for c, seen in zip(every, known, strict=True) if np.unique(seen).size > 1]
    if not components:
        return style.blank("No variable was set to more than one value in a scored episode")
    if variables is None:
        protocol = last.column("protocol")
        often = {id(c): len(set(protocol[~np.isnan(c.values)])) for c in components}
        kept = sorted(components, key=lambda c: -often[id(c)])[:_MOST_PANELS]
        components = [c for c in components if any(c is k for k in kept)]
    figure, panels = style.panels(len(components), _COLUMNS, 2.5)
    for component, axes in zip(components, panels.flat, strict=False):
        _draw(axes, last, scores, component)
    for axes in panels[:, 0]:
        axes.set_ylabel(metric_label(metric).replace(", ", ",\n"))
    if is_share(metric):
        panels[0, 0].set_ylim(-0.04, 1.08)
    style.legend_above(figure, panels.flat, len(last.experiments))
    return figure


def _components(results: Results, variable: str) -> list[_Component]:
    values = results.values(variable)
    about = results.about(variable)
    if about.get("listed"):
        return []  # a seed is a name, not a quantity
    width = values.shape[1]
    units = str(about.get("unit") or "").split(", ")  # "m, rad, m" where components differ
    units = units if len(units) == width else units[:1] * width
    found = []
    for i, (label, unit) in enumerate(zip(component_names(variable, width), units, strict=True)):
        spaces = {}
        for name in ("A", "B"):
            space = about.get(f"space_{name.lower()}")
            if space is not None:
                low, high = (np.ravel(np.asarray(end, dtype=np.float64)) for end in space)
                spaces[name] = (float(low[i % len(low)]), float(high[i % len(high)]))
        title = f"{label} ({unit})" if unit else label
        found.append(_Component(label=title, values=values[:, i], spaces=spaces))
    return found


def _bins(values: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """Returns row numbers in bins of about equal size, in order of value; few values, few bins."""
    distinct = np.unique(values)
    count = max(1, min(_MOST_BINS, len(values) // _FEWEST_IN_BIN))
    if len(distinct) <= count:
        return [np.flatnonzero(values == value) for value in distinct]
    edges = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="right")
    return [np.flatnonzero(place == i) for i in range(len(edges) + 1) if np.any(place == i)]


def _draw(axes: Axes, results: Results, scores: NDArray[np.float64], component: _Component) -> None:
    experiment, alike = results.column("experiment"), results.first_alike
    for i, name in enumerate(results.experiments):
        known = (experiment == name) & ~np.isnan(component.values) & np.isfinite(scores)
        if not known.any():
            continue
        look = style.look(i)
        x, y = component.values[known], scores[known]
        every = max(1, len(x) // _MOST_DOTS)
        axes.scatter(
            x[::every], y[::every], s=5, color=look.color, alpha=0.18, linewidth=0, rasterized=True
        )
        bins = _bins(x)
        rng = generator(seed=0, name=f"report|response|{name}|{component.label}")
        sizes = [np.unique(alike[known][b]).size for b in bins]
        found = [
            bootstrap.interval(y[b][:, None], rng=rng, resamples=500, independent=[size])
            for b, size in zip(bins, sizes, strict=True)
        ]
        middle, mean = [x[b].mean() for b in bins], [float(f.estimate) for f in found]
        ends = np.array([[float(f.low), float(f.high)] for f in found]).T
        line = look.of_line() | {"markersize": 4, "linewidth": 1.6}
        axes.plot(middle, mean, label=name, **line)
        axes.vlines(middle, ends[0], ends[1], color=look.color, linewidth=1.1)
    limits = axes.get_xlim()  # spaces are shaded in the drawn range and named along the top
    for name, low, high in _stretches(component.spaces):
        left, right = max(low, limits[0]), min(high, limits[1])
        if left < right:
            color = style.SPACE_COLORS[name]
            axes.axvspan(left, right, color=color, alpha=0.55, linewidth=0, zorder=0)
            axes.text(
                (left + right) / 2,
                0.985,
                name.replace("_", "+"),
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="top",
                fontsize=8,
                fontweight="bold",
                color=style.SOFT,
            )
    axes.set_xlim(limits)
    axes.set_xlabel(component.label)


def _stretches(spaces: dict[str, tuple[float, float]]) -> list[tuple[str, float, float]]:
    """Returns (space, low, high) without overlap; what both hold is A_B.

    >>> _stretches({"A": (0.0, 2.0), "B": (1.0, 3.0)})
    [('A', 0.0, 1.0), ('A_B', 1.0, 2.0), ('B', 2.0, 3.0)]
    """
    edges = sorted({edge for ends in spaces.values() for edge in ends})
    found = []
    for low, high in itertools.pairwise(edges):
        names = [n for n, (start, end) in spaces.items() if start <= low and high <= end]
        if names:
            found.append(("_".join(names), low, high))
    return found
