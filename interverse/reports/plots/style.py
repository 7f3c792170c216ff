"""Style of every plot: colours all can tell apart, marks that do not need colour, one font.

Colours are Okabe and Ito's. From the eighth experiment on they repeat with another line and hatch,
so any number can be told apart in print too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interverse.reports import palette

if TYPE_CHECKING:
    from interverse.results.results import Results

Parameters = ParamSpec("Parameters")

COLORS = palette.POLICIES
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", ":", "-.")
HATCHES = ("", "///", "...", "xxx")
INK, SOFT, GRID = palette.INK, palette.SOFT, palette.GRID
SPACE_COLORS = {"A": palette.SPACE_A, "B": palette.SPACE_B, "A_B": palette.SPACE_A_B}
WIDTH = 9.0  # inches: a full-width figure on the page, and across two columns of a paper

_SETTINGS: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": SOFT,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same picture on every machine
    "font.size": 9.5,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # type 3 fonts are refused by some publishers
    "svg.hashsalt": "interverse",  # equal figures give equal files
    "text.color": INK,
    "xtick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.color": SOFT,
    "ytick.labelcolor": INK,
}


@final
@dataclass(frozen=True, slots=True)
class Look:
    """How one experiment is drawn, in every plot."""

    color: str
    marker: str
    line: str
    hatch: str

    def of_line(self, *, marker: bool = True) -> dict[str, Any]:
        """Returns what `Axes.plot` takes for a line."""
        told = {"color": self.color, "linestyle": self.line, "linewidth": 1.8}
        return told | ({"marker": self.marker} if marker else {})


def look(index: int) -> Look:
    """Returns the look of the index-th experiment."""
    turn, place = divmod(index, len(COLORS))
    return Look(
        color=COLORS[place],
        marker=MARKERS[place],
        line=LINES[turn % len(LINES)],
        hatch=HATCHES[turn % len(HATCHES)],
    )


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Returns the plot function with the house's settings in force while it draws."""

    @functools.wraps(draw)
    def drawn(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with mpl.rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return drawn


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Returns an empty figure that lays itself out; pyplot and its global state are not used."""
    return Figure(figsize=(width, height), layout="constrained")


def panels(count: int, columns: int, inches: float, *, sharey: bool = True) -> tuple[Figure, Any]:
    """Returns a figure and (row, column) axes for so many panels, each row of a height."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = new_figure(inches * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    for unused in axes.flat[count:]:
        unused.set_visible(False)
    return figure, axes


def bare(axes: Axes) -> None:
    """Takes ticks and grid from axes that show a picture."""
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)


def band(axes: Axes, at: Any, low: Any, high: Any, color: str) -> None:
    """Shades what lies between two lines, as intervals about a curve are drawn."""
    axes.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)


def by_task(results: Results, metric: str) -> list[Results]:
    """Returns the results of each task that has a score."""
    parts = [results.select(task=task) for task in results.tasks]
    return [part for part in parts if not np.isnan(part.scores(metric)).all()]


def blank(message: str) -> Figure:
    """Returns a figure that says why there is nothing to draw."""
    figure = new_figure(1.6)
    figure.text(0.5, 0.5, message, ha="center", va="center", color=SOFT, fontsize=11)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Writes a figure as SVG, PDF or PNG, by the path's suffix; equal figures give equal files."""
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {})
    with mpl.rc_context(_SETTINGS):
        figure.savefig(path, metadata=undated, dpi=150)


def legend_above(figure: Figure, axes: Axes | Iterable[Axes], count: int) -> None:
    """Puts one legend of one or more axes above the figure; none for a single experiment."""
    several = [axes] if isinstance(axes, Axes) else axes
    parts = [one.get_legend_handles_labels() for one in several]
    known = {label: handle for part in parts for handle, label in zip(*part, strict=True)}
    labels, handles = list(known), list(known.values())
    if count > 1 and handles:
        place: Any = "outside " * (figure.get_layout_engine() is not None) + "upper left"
        figure.legend(handles, labels, loc=place, ncols=min(count, 4))
