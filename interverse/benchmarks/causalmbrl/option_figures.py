"""Figures 24 and 26 made again: scores by one option of chemistry, a mark per seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np

from interverse.benchmarks.causalmbrl.compare import LEVEL
from interverse.benchmarks.causalmbrl.yardsticks import yardstick_file
from interverse.metrics.student import t_reach
from interverse.models.checkpoint import read_json
from interverse.reports.sections import Section

_SCORES = ("H@1 after 1", "H@1 after 1, published rule", "planning success")


class OptionRow(Protocol):
    """The scores of one model and seed, as far as these figures read them."""

    @property
    def world(self) -> str:
        """The world's id."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """The world's options that are not its defaults."""
        ...

    @property
    def label(self) -> str:
        """Model, loss and epochs."""
        ...

    def value(self, name: str) -> float:
        """Returns a score by its short name."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptionFigure:
    """A printed figure that varies one option, and its values in the order of the figure."""

    number: int
    option: str
    values: tuple[str, ...]
    title: str

    def rows(self, rows: Sequence[OptionRow]) -> list[OptionRow]:
        """Returns the rows that belong to it; none unless at least two values are there."""
        mine = [row for row in rows if set(row.options) == {self.option}]
        return mine if len({row.options[self.option] for row in mine}) > 1 else []

    def shown(self, rows: Sequence[OptionRow]) -> list[str]:
        """Returns the values that rows have, in the figure's order."""
        return [value for value in self.values if any(_is(row, self, value) for row in rows)]

    @property
    def file(self) -> str:
        """The picture's name beside the page."""
        return f"images/world_models_{self.number}.svg"


OPTION_FIGURES = (
    OptionFigure(
        number=24,
        option="skewness",
        # Mean conditional entropy in the chain: 1.30, 1.05, 0.71, 0.53, 0.26, 0.19 nats.
        values=(
            "orthogonal-1.5",
            "orthogonal-2.5",
            "uniform-1.2",
            "orthogonal-3.5",
            "uniform-2.0",
            "uniform-2.5",
        ),
        title="Figure 24: skewness of the chances, from even to skewed",
    ),
    OptionFigure(
        number=26,
        option="movement",
        values=("static", "dynamic"),
        title="Figure 26: objects that stay, and objects in new cells each episode",
    ),
)


def option_section(rows: Sequence[OptionRow], figure: OptionFigure, yardsticks: Path) -> Section:
    """Returns H@1 by both rules and planning by the values of the option."""
    grid = [["value", "model", "runs", *_SCORES]]
    mine = figure.rows(rows)
    worlds = sorted({row.world for row in mine})
    for value in figure.values:
        for world in worlds:
            path = yardstick_file(yardsticks, world, {figure.option: value})
            if path.exists():
                found = read_json(path)["scores"]["unchanged"]["1"]
                hits = (found["hits"], found["published_hits"])
                grid.append([value, "unchanged pictures", "", *(f"{h:.3g}" for h in hits), ""])
        for label in sorted({row.label for row in mine}):
            own = [r for r in mine if _is(r, figure, value) and r.label == label]
            if own:
                cells = [mean_text([row.value(name) for row in own]) for name in _SCORES]
                grid.append([value, label, str(len(own)), *cells])
    remark = (
        f"{', '.join(worlds)}, option `{figure.option}`; +- is the deviation over seeds. In the"
        " figure a mark is a seed, a bar the mean and its 95 % interval by Student's t. Unchanged"
        " pictures are what a model gets that predicts no change: near it, H@1 tells nothing."
    )
    missing = [value for value in figure.values if value not in figure.shown(mine)]
    if missing:
        remark += f" Not run: {', '.join(missing)}."
    return figure.title, [remark], grid


def mean_text(values: Sequence[float]) -> str:
    """Returns mean and deviation of the finite values, as text."""
    kept = np.array([value for value in values if np.isfinite(value)])
    if not len(kept):
        return ""
    spread = f" +- {kept.std().round(9):.2g}" if len(kept) > 1 else ""
    return f"{kept.mean():.3g}{spread}"


def write_option_figures(page: Path, rows: Sequence[OptionRow]) -> None:
    """Draws every figure that has rows, beside a page."""
    from interverse.reports.plots import style

    for figure in OPTION_FIGURES:
        if figure.rows(rows):
            path = page.parent / figure.file
            path.parent.mkdir(parents=True, exist_ok=True)
            style.save(_drawn(figure.rows(rows), figure), path)


def _drawn(rows: Sequence[OptionRow], figure: OptionFigure) -> Any:
    """Returns a panel per score: the option's values from left to right, a colour per model."""
    from interverse.reports.plots import style

    labels, values = sorted({row.label for row in rows}), figure.shown(rows)

    @style.styled
    def drawn() -> Any:
        canvas = style.new_figure(3.6)
        axes = canvas.subplots(1, len(_SCORES))
        for panel, name in zip(axes, _SCORES, strict=True):
            for index, label in enumerate(labels):
                _marks(panel, [r for r in rows if r.label == label], figure, (index, name, values))
            panel.set_xticks(range(len(values)), values, rotation=35, ha="right")
            panel.set_xlim(-0.5, len(values) - 0.5)
            panel.set_title(name, fontsize=9.5)
            panel.set_ylim(bottom=0)
        style.legend_above(canvas, axes[0], len(labels))
        return canvas

    return drawn()


def _marks(
    panel: Any, rows: Sequence[OptionRow], figure: OptionFigure, what: tuple[int, str, list[str]]
) -> None:
    """Draws the seeds of one label; `what` is its place, the score's name and the values shown."""
    from interverse.reports.plots import style

    index, name, values = what
    look, label = style.look(index), rows[0].label.partition(",")[0]  # the table has the training
    for place, value in enumerate(values):
        found = np.array([row.value(name) for row in rows if _is(row, figure, value)])
        found = found[np.isfinite(found)]
        at = place + 0.16 * (index - 0.5)
        panel.scatter(
            np.full(len(found), at),
            found,
            s=16,
            color=look.color,
            marker=look.marker,
            alpha=0.55,
            label=label if place == 0 else None,
        )
        if len(found) > 1:
            reach = float(t_reach(found, LEVEL))
            panel.errorbar(at, found.mean(), reach, color=look.color, capsize=3, fmt="_")


def _is(row: OptionRow, figure: OptionFigure, value: str) -> bool:
    return str(row.options[figure.option]) == value
