"""Bars of what each factor costs, with intervals; pairs and their interactions beneath."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interverse.reports.plots import style
from interverse.results.labels import metric_label
from interverse.results.text import Estimate

if TYPE_CHECKING:
    from interverse.reports.attribution import Attribution

_ROW_INCHES = 0.34


@style.styled
def costs(found: Attribution) -> Figure:
    """Returns the costs of factors and of pairs, the costliest on top."""
    rows = found.text_table().rows
    singles = [row for row in rows if " + " not in str(row[0]) or row[0] in found.factors]
    pairs = [row for row in rows if row not in singles]
    parts = [part for part in (singles, pairs) if part]
    heights = [_ROW_INCHES * len(part) + 0.5 for part in parts]
    figure = style.new_figure(sum(heights) + 0.9)
    panels = figure.subplots(len(parts), 1, height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    for panel, part in zip(panels, parts, strict=True):
        _bars(panel, [str(row[0]) for row in part], [row[3] for row in part], 0)  # type: ignore[misc]
    panels[0].set_title(f"{found.task}: what each factor costs")
    if pairs:
        extra = [row[5] for row in pairs]
        _marks(panels[-1], extra)  # type: ignore[arg-type]
        panels[-1].legend(loc="lower right", fontsize=8)
    panels[-1].set_xlabel(f"{metric_label(found.metric)} lost, same episodes")
    return figure


def _bars(axes: Axes, names: list[str], cells: list[Estimate], index: int) -> None:
    place = np.arange(len(names))
    values = np.array([cell.value for cell in cells])
    ends = np.array([[cell.value - cell.low, cell.high - cell.value] for cell in cells]).T
    color = style.look(index).color
    axes.barh(place, values, 0.6, xerr=ends.clip(0), color=color, ecolor=style.INK, capsize=2)
    axes.axvline(0.0, color=style.INK, linewidth=0.8)
    axes.set_yticks(place, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _marks(axes: Axes, cells: list[Estimate]) -> None:
    """Adds what pairs cost beyond the sum of their factors."""
    place = np.arange(len(cells))
    values = [cell.value for cell in cells]
    look = style.look(1)
    axes.plot(values, place, look.marker, color=look.color, label="interaction", zorder=3)
