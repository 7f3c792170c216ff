"""Bars of score per protocol, with what each protocol varies in a grid beneath."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from interverse.reports.plots import style
from interverse.results.estimates import Unit, estimates
from interverse.results.text import Estimate, decimals, is_share, metric_label

if TYPE_CHECKING:
    from interverse.results.results import Results
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from interverse.results.tables import space_labels

_MOST_ROWS = 8
VARIED = "\N{BULLET}"  # varied, in a space we are not told


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of variables, columns of protocols; a cell is the space's name, or empty."""

    protocols: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # label, one cell per protocol


def protocol_grid(results: Results) -> Grid:
    """Returns which variables each protocol of the results draws, and from which space."""
    protocols = results.protocols
    cells: dict[str, dict[str, str]] = {}
    for protocol in protocols:
        for variable, space in _varied(results, protocol).items():
            cells.setdefault(variable, {})[protocol] = space
    patterns: dict[tuple[str, ...], list[str]] = {}
    for variable, row in cells.items():
        patterns.setdefault(tuple(row.get(p, "") for p in protocols), []).append(variable)
    rows = [(_label(names), pattern) for pattern, names in patterns.items()]
    # The rows that tell most protocols apart come first; the paper's grid is short too.
    kept = sorted(rows, key=lambda row: -sum(map(bool, row[1])))[:_MOST_ROWS]
    return Grid(tuple(protocols), tuple(row for row in rows if row in kept))


def _varied(results: Results, protocol: str) -> dict[str, str]:
    """Returns variable -> space for one protocol."""
    declared = results.provenance.get("protocols", {}).get(protocol)
    if declared is not None:
        named = declared.get("variables") or {}
        if not isinstance(named, Mapping):
            named = dict.fromkeys(named, declared.get("space") or VARIED)
        everything = declared.get("everything")
        named = dict(named) | ({"everything": everything} if everything else {})
        named |= dict.fromkeys(declared.get("grid") or {}, VARIED)
        return {_plain(name): str(space) for name, space in named.items()}
    part = results.select(protocol=protocol)
    found: dict[str, str] = {}
    for variable in part.variables:
        values = part.values(variable)
        if _varies(values):
            found[_plain(variable)] = _space(values, results.about(variable))
    return found


def _varies(values: Any) -> bool:
    known = values[~np.isnan(values).any(axis=1)]
    return len(known) > 1 and bool(np.ptp(known, axis=0).any())


def _space(values: Any, spaces: Mapping[str, Any]) -> str:
    if not spaces:
        return VARIED
    labels = set(space_labels(values[~np.isnan(values).any(axis=1)], spaces))
    return labels.pop() or VARIED if len(labels) == 1 else "A_B" if labels == {"A", "B"} else VARIED


def _plain(name: str) -> str:
    """Returns a variable's or pattern's name for readers: `block_*/mass` is "block mass".

    >>> _plain("block_0/cylindrical_position"), _plain("goal_*/size")
    ('block cylindrical position', 'goal size')
    """
    return re.sub(r"[_/*]+", " ", re.sub(r"_[\d*]+(?=/|$)", "", name)).strip()


def _label(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return (
        unique[0]
        if len(unique) == 1
        else f"{unique[0]}, {unique[1]}" + (f" + {len(unique) - 2} more" if len(unique) > 2 else "")
    )


_BARS_INCHES, _ROW_INCHES = 2.6, 0.23
_MOST_PRINTED = 26  # bars above which printed values would overlap


@style.styled
def bars(
    results: Results, metric: str = "last_fractional_success", unit: Unit | None = None
) -> Figure:
    """Returns mean scores as bars with 95% intervals: one panel per task, one group per protocol.

    As Figures 6 and 11 of the CausalWorld paper: the letters beneath a protocol name the space from
    which it draws each variable. Intervals are over the seeds of several trainings, else over
    episodes, unless a unit is given; medians, where a score is infinite, are named.
    """
    last = results.final()
    parts = [last.select(task=task) for task in last.tasks]
    parts = [part for part in parts if not np.isnan(part.scores(metric)).all()]
    if not parts:
        return style.blank(f"No episode has a score named {metric}")
    grids = [protocol_grid(part) for part in parts]
    heights = [h for g in grids for h in (_BARS_INCHES, _ROW_INCHES * max(len(g.rows), 0.2))]
    figure = style.new_figure(sum(heights) + 0.75 * len(parts) + 0.3)
    panels = figure.subplots(2 * len(parts), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, grid, upper, lower in zip(parts, grids, panels[::2], panels[1::2], strict=True):
        draw_bars(upper, _cells(part, metric, last.experiments, unit), part.protocols, metric)
        upper.set_title(part.tasks[0])
        _draw_grid(lower, grid)
    style.legend_above(figure, panels[0], len(last.experiments))
    return figure


def _cells(
    results: Results, metric: str, experiments: list[str], unit: Unit | None
) -> dict[str, list[Estimate]]:
    found, task = estimates(results, metric, unit), results.tasks[0]
    return {
        experiment: [found.get((experiment, task, p), Estimate(np.nan)) for p in results.protocols]
        for experiment in experiments
    }


def draw_bars(
    axes: Axes,
    experiments: Mapping[str, Sequence[Estimate]],
    protocols: Sequence[str],
    metric: str,
) -> None:
    """Draws a bar for every experiment and protocol.

    Args:
        axes: where.
        experiments: estimates by name, one a protocol.
        protocols: their names, in order.
        metric: what is estimated.
    """
    width = 0.84 / len(experiments)
    for i, (experiment, cells) in enumerate(experiments.items()):
        x = np.arange(len(protocols)) + (i - (len(experiments) - 1) / 2) * width
        look = style.look(i)
        axes.bar(
            x,
            [c.value for c in cells],
            width=0.94 * width,
            yerr=np.transpose([_whisker(c) for c in cells]),
            color=look.color,
            hatch=look.hatch,
            edgecolor="white",
            linewidth=0.4,
            error_kw={"ecolor": style.INK, "elinewidth": 0.9, "capsize": min(3.0, 14 * width)},
            label=experiment,
        )
        if len(experiments) * len(protocols) <= _MOST_PRINTED:
            _print_values(axes, x, cells)
    axes.set_xticks(range(len(protocols)), protocols, fontweight="bold")
    axes.set_xlim(-0.6, len(protocols) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel(metric_label(metric).replace(", ", ",\n"))
    if is_share(metric):
        axes.set(ylim=(0, 1.12), yticks=np.linspace(0, 1, 6))
    else:
        axes.margins(y=0.1)  # room for the numbers


def _whisker(cell: Estimate) -> tuple[float, float]:
    """Returns the lengths below and above the estimate; NaN, not drawn, if an end is not known."""
    low, high = cell.value - cell.low, cell.high - cell.value
    return (max(low, 0.0), max(high, 0.0)) if np.isfinite([low, high]).all() else (np.nan, np.nan)


def _print_values(axes: Axes, x: np.ndarray, cells: Sequence[Estimate]) -> None:
    for place, cell in zip(x, cells, strict=True):
        if np.isfinite(cell.value):
            hangs = cell.value < 0  # a bar below zero has its number below it
            end = cell.low if hangs else cell.high
            text = f"{cell.value:.{min(decimals(cell.value), 2)}f}"
            text += f"\n{cell.statistic}" if cell.statistic else ""
            axes.annotate(
                text,
                (place, cell.value if np.isnan(end) else end),
                (0, -2 if hangs else 2),
                textcoords="offset points",
                ha="center",
                va="top" if hangs else "bottom",
                fontsize=7.5,
            )


def _draw_grid(axes: Axes, grid: Grid) -> None:
    """Draws one coloured letter per variable and protocol."""
    for y, (_, cells) in enumerate(grid.rows):
        axes.axhline(y + 0.5, color=style.GRID, linewidth=0.6)
        for x, space in enumerate(cells):
            if space:
                color = style.SPACE_COLORS.get(space, style.GRID)
                axes.add_patch(Rectangle((x - 0.42, y - 0.4), 0.84, 0.8, color=color, linewidth=0))
                letters = space.replace("_", "+")
                axes.text(x, y, letters, ha="center", va="center", fontsize=8, fontweight="bold")
    axes.set_xlim(-0.6, len(grid.protocols) - 0.4)
    axes.set_ylim(max(len(grid.rows), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(grid.rows)), [label for label, _ in grid.rows], fontsize=8)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
