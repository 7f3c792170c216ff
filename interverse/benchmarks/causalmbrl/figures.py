"""Scatter figures: prediction, planning, graph recovery and knowledge of every seed.

The paper's figures 21, 22 and 27 set prediction against planning. With the true graph at hand a
third axis is possible: how much of it the model has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from interverse.benchmarks.causalmbrl.settings import FIGURES, Settings
from interverse.benchmarks.driver import Tables
from interverse.reports.plots import style

_LEAST_SEEDS = 10  # below, a correlation says nothing
_PANELS = (
    ("hits", "success", "H@1 (percent)", "planning success"),
    ("graph", "hits", "graph recovery (F1)", "H@1 (percent)"),
    ("graph", "success", "graph recovery (F1)", "planning success"),
)


class Point(NamedTuple):
    """One seed of one model at one horizon; NaN where a score is missing."""

    label: str
    steps: int
    hits: float
    success: float
    graph: float


def points(tables: Sequence[Mapping[str, Any]], worlds: Sequence[str]) -> list[Point]:
    """Returns a point per model, loss, horizon and seed."""
    found: dict[tuple[str, str, str, int, str], dict[str, float]] = {}
    for content in tables:
        if content["kind"] == "zero_shot":
            continue
        for cell in content["cells"]:
            name = {"H@1": "hits", "Success": "success"}.get(cell["metric"])
            if name and cell["world"] in worlds and cell["loss"] != "Baseline":
                for seed, value in cell.get("seeds_own_rule", cell["seeds"]).items():
                    key = (cell["world"], cell["model"], cell["loss"], cell["steps"], seed)
                    found.setdefault(key, {})[name] = value
    graphs = {
        (row["where"], row["who"], row["run"]): row["value"]
        for content in tables
        for row in content["learned"]
        if row["what"] == "F1" and row["run"]
    }
    nan, out = float("nan"), []
    for (world, model, loss, steps, seed), scores in found.items():
        graph = graphs.get((world, f"{model.lower()} {loss}", seed), nan)
        where = "" if len(worlds) == 1 else f" {world.split('/')[1].removesuffix('-v1')}"
        label = f"{model} {loss}{where}"
        out.append(Point(label, steps, scores.get("hits", nan), scores.get("success", nan), graph))
    return out


def correlation(found: Sequence[Point], x: str, y: str, steps: int) -> tuple[float, int]:
    """Returns Spearman's rank correlation over seeds of all models, and how many there are.

    It is NaN for fewer than ten seeds or where a score does not vary.
    """
    pairs = np.array([(getattr(p, x), getattr(p, y)) for p in found if p.steps == steps])
    pairs = pairs[np.isfinite(pairs).all(1)] if len(pairs) else pairs
    if len(pairs) < _LEAST_SEEDS or (pairs.std(0) == 0).any():
        return float("nan"), len(pairs)
    return float(stats.spearmanr(pairs[:, 0], pairs[:, 1])[0]), len(pairs)


def figures(_: Settings, tables: Tables) -> Iterator[tuple[str, Any]]:
    """Yields a figure, by its file, for each group of worlds that has points."""
    worlds = {cell["world"] for content in tables for cell in content["cells"]}
    wanted = {f"figure-{n}": w for n, w in FIGURES.items() if worlds & set(w)}
    covered = {world for group in wanted.values() for world in group}
    wanted |= {f"figure-{w.replace('/', '-')}": (w,) for w in sorted(worlds - covered)}
    for name, group in wanted.items():
        if found := points(tables, group):
            yield f"{name}.svg", draw(found)


@style.styled
def draw(found: Sequence[Point]) -> Any:
    """Returns the figure: a panel per pair of scores, a mark per model, smaller for more steps."""
    # The model's colour, the marker of the loss (and world).
    words = [point.label.split(" ", 1) for point in found]
    models, kinds = (sorted({pair[i] for pair in words}) for i in (0, 1))
    looks = [
        {
            "color": style.look(models.index(model)).color,
            "marker": style.look(kinds.index(kind)).marker,
        }
        for model, kind in words
    ]

    figure = style.new_figure(3.8)
    axes = figure.subplots(1, len(_PANELS))
    for panel, (x, y, x_title, y_title) in zip(axes, _PANELS, strict=True):
        listed: set[str] = set()
        for point, look in zip(found, looks, strict=True):
            panel.scatter(
                getattr(point, x),
                getattr(point, y),
                s=70 / np.sqrt(point.steps),
                label=None if point.label in listed else point.label,
                **look,
            )
            listed.add(point.label)
        each = [correlation(found, x, y, steps) for steps in (1, 5, 10)]
        most = max(count for _, count in each)
        told = f"{most} seeds: no correlation is given"
        if not all(np.isnan(value) for value, _ in each):
            values = ("-" if np.isnan(value) else f"{value:.2f}" for value, _ in each)
            told = f"rank correlation {', '.join(values)} over {most} seeds"
        panel.set_title(told, fontsize=8.5, fontweight="normal")
        panel.set_xlabel(x_title)
        panel.set_ylabel(y_title)
    figure.supxlabel("one mark per seed; 1, 5, 10 steps from large to small", fontsize=8.5)
    style.legend_above(figure, axes[0], len({point.label for point in found}))
    return figure
