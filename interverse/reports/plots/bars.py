"""Bars: score per protocol, with what each varies in a grid beneath; and what each factor costs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from interverse.reports import palette
from interverse.reports.plots import style
from interverse.results.estimates import Unit, estimates
from interverse.results.tables import space_labels
from interverse.results.text import Estimate, decimals, is_share, metric_label

if TYPE_CHECKING:
    from interverse.reports.attribution import Attribution
    from interverse.results.results import Results

_MOST_ROWS = 8
VARIED = "\N{BULLET}"  # varied, in a space we are not told
_BARS_INCHES, _ROW_INCHES, _COST_INCHES = 2.6, 0.23, 0.34
_MOST_PRINTED = 26  # bars above which printed values would overlap
_LINE_LETTERS = 118  # of the small line below the costs


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
    rows = []
    for pattern, names in patterns.items():
        first, *others = dict.fromkeys(names)
        more = f" + {len(others) - 1} more" if len(others) > 1 else ""
        rows.append((f"{first}, {others[0]}{more}" if others else first, pattern))
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
        known = values[~np.isnan(values).any(axis=1)]
        if len(known) < 2 or not np.ptp(known, axis=0).any():
            continue
        spaces = results.about(variable)
        labels = set(space_labels(known, spaces)) if spaces else set()
        one = labels.pop() if len(labels) == 1 else "A_B" if labels == {"A", "B"} else ""
        found[_plain(variable)] = one or VARIED
    return found


def _plain(name: str) -> str:
    """Returns a variable's or pattern's name for readers: `block_*/mass` is "block mass".

    >>> _plain("block_0/cylindrical_position"), _plain("goal_*/size")
    ('block cylindrical position', 'goal size')
    """
    return re.sub(r"[_/*]+", " ", re.sub(r"_[\d*]+(?=/|$)", "", name)).strip()


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
    parts = style.by_task(last, metric)
    if not parts:
        return style.blank(f"No episode has a score named {metric}")
    grids = [protocol_grid(part) for part in parts]
    heights = [h for g in grids for h in (_BARS_INCHES, _ROW_INCHES * max(len(g.rows), 0.2))]
    figure = style.new_figure(sum(heights) + 0.75 * len(parts) + 0.3)
    panels = figure.subplots(2 * len(parts), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, grid, upper, lower in zip(parts, grids, panels[::2], panels[1::2], strict=True):
        found, task = estimates(part, metric, unit), part.tasks[0]
        cells = {
            name: [found.get((name, task, p), Estimate(np.nan)) for p in part.protocols]
            for name in last.experiments
        }
        draw_bars(upper, cells, part.protocols, metric)
        upper.set_title(part.tasks[0])
        _draw_grid(lower, grid)
    style.legend_above(figure, panels[0], len(last.experiments))
    return figure


def draw_bars(
    axes: Axes,
    experiments: Mapping[str, Sequence[Estimate]],
    protocols: Sequence[str],
    metric: str,
) -> None:
    """Draws a bar for every experiment and protocol: estimates by name, in the protocols' order."""
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
        few = len(experiments) * len(protocols) <= _MOST_PRINTED
        known = [pair for pair in zip(x, cells, strict=True) if np.isfinite(pair[1].value)]
        for place, cell in known if few else ():
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
    heights = [_COST_INCHES * len(part) + 0.3 for part in parts]
    figure = style.new_figure(sum(heights) + 1.1 + 0.17 * (line.count("\n") + 1))
    panels = figure.subplots(len(parts), 1, height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    for panel, part in zip(panels, parts, strict=True):
        place, cells = np.arange(len(part)), [found.cost(*names) for names in part]
        whiskers: Any = {"ecolor": palette.INK, "capsize": 2}
        whiskers["xerr"] = np.transpose([_whisker(cell) for cell in cells])
        panel.barh(place, [c.value for c in cells], 0.6, color=palette.TWIN, **whiskers)
        for y, cell in zip(place, cells, strict=True):
            end, told = np.nanmax([cell.value, cell.high, 0.0]), cell.shown(2).partition(" ")[0]
            beside: Any = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}
            panel.annotate(told, (end, y), (4, 0), **beside)
        panel.margins(x=0.08)
        panel.axvline(0.0, color=palette.SOFT, linewidth=0.8)
        panel.set_yticks(place, [" + ".join(map(found.label, names)) for names in part])
        panel.invert_yaxis()
        panel.grid(visible=False, axis="y")
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
