"""Bars of what each factor costs, with intervals; pairs and their interactions beneath."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interverse.reports import palette
from interverse.reports.plots import style
from interverse.results.text import Estimate, metric_label

if TYPE_CHECKING:
    from interverse.reports.attribution import Attribution

_ROW_INCHES = 0.34
_LINE_LETTERS = 118  # of the small line below the bars


@style.styled
def costs(found: Attribution) -> Figure:
    """Returns the costs of factors and of pairs, the costliest on top; free ones in one line."""
    free = found.free()
    singles: list[tuple[str, ...]] = [(name,) for name in found.by_cost() if name not in free]
    pairs = sorted(found.combined, key=lambda pair: -found.cost(*pair).value)
    parts = [part for part in (singles, pairs) if part]
    line = textwrap.fill(found.free_words(), _LINE_LETTERS)
    if not parts:
        return style.blank(line)
    heights = [_ROW_INCHES * len(part) + 0.3 for part in parts]
    figure = style.new_figure(sum(heights) + 1.1 + 0.17 * (line.count("\n") + 1))
    panels = figure.subplots(len(parts), 1, height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    for panel, part in zip(panels, parts, strict=True):
        names = [" + ".join(map(found.label, names)) for names in part]
        _bars(panel, names, [found.cost(*names) for names in part])
    panels[0].set_title(f"{found.task}: what each factor costs")
    if pairs:
        alone = [found.interaction(*pair) for pair in pairs]
        means = [float(np.nanmean(one)) if np.isfinite(one).any() else np.nan for one in alone]
        panels[-1].plot(
            means, np.arange(len(pairs)), "s", color=palette.DO, label="beyond the sum", zorder=3
        )
        panels[-1].legend(loc="lower right", fontsize=8)
    told = f"{metric_label(found.metric)}: lost by the same episodes"
    panels[-1].set_xlabel(f"{told}\n{line}" if line else told)
    return figure


def _bars(axes: Axes, names: list[str], cells: list[Estimate]) -> None:
    place = np.arange(len(names))
    values = np.array([cell.value for cell in cells])
    ends = np.array([[cell.value - cell.low, cell.high - cell.value] for cell in cells]).T
    whiskers: Any = {"ecolor": palette.INK, "capsize": 2}
    axes.barh(place, values, 0.6, xerr=ends.clip(0), color=palette.TWIN, **whiskers)
    for y, cell in zip(place, cells, strict=True):
        end = np.nanmax([cell.value, cell.high, 0.0])
        axes.annotate(
            cell.shown(2).partition(" ")[0],
            (end, y),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    axes.margins(x=0.08)
    axes.axvline(0.0, color=palette.SOFT, linewidth=0.8)
    axes.set_yticks(place, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
