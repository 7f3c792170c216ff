"""Scatter figures: do models that know the graph predict and plan better?

The paper's figures 21, 22 and 27 set prediction against planning. With the true graph at hand a
third axis is possible: how much of it the model has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from interverse.reproduce.published import FIGURES

Say = Callable[[str], None]
_PANELS = (
    ("hits", "success", "H@1 (percent)", "planning success"),
    ("graph", "hits", "graph recovery (F1)", "H@1 (percent)"),
    ("graph", "success", "graph recovery (F1)", "planning success"),
)


class Point(NamedTuple):
    """One model: means over seeds, NaN where a score is missing."""

    label: str
    steps: int
    hits: float
    success: float
    graph: float


def points(tables: Sequence[Mapping[str, Any]], worlds: Sequence[str]) -> list[Point]:
    """Returns a point per model, loss and horizon that has at least two of the three scores."""
    found: dict[tuple[str, str, str, int], dict[str, float]] = {}
    for content in tables:
        for cell in content["cells"]:
            name = {"H@1": "hits", "Success": "success"}.get(cell["metric"])
            if name and cell["world"] in worlds and content["kind"] != "zero_shot":
                if cell["loss"] == "Baseline":
                    continue
                key = (cell["world"], cell["model"], cell["loss"], cell["steps"])
                found.setdefault(key, {})[name] = cell["ours"]
    graphs = {
        (entry["world"], entry["model"], entry["loss"]): entry["f1"]
        for content in tables
        for entry in content["recovery"]
    }
    nan = float("nan")
    out = []
    for (world, model, loss, steps), scores in found.items():
        graph = graphs.get((world, model.lower(), loss), nan)
        label = f"{model} {loss}" if len(worlds) == 1 else f"{model} {world.split('/')[1]}"
        out.append(Point(label, steps, scores.get("hits", nan), scores.get("success", nan), graph))
    return out


def correlation(found: Sequence[Point], x: str, y: str, steps: int) -> float:
    """Returns Pearson's correlation over models; NaN for fewer than three or no variation."""
    pairs = np.array([(getattr(p, x), getattr(p, y)) for p in found if p.steps == steps])
    pairs = pairs[np.isfinite(pairs).all(1)] if len(pairs) else pairs
    if len(pairs) < 3 or (pairs.std(0) == 0).any():
        return float("nan")
    return float(np.corrcoef(pairs.T)[0, 1])


def write_figures(out: Path, tables: Sequence[Mapping[str, Any]], say: Say) -> list[str]:
    """Writes an SVG per figure that has points; returns their names."""
    worlds = {cell["world"] for content in tables for cell in content["cells"]}
    wanted = {f"figure-{n}": w for n, w in FIGURES.items() if worlds & set(w)}
    covered = {world for group in wanted.values() for world in group}
    wanted |= {f"figure-{w.replace('/', '-')}": (w,) for w in sorted(worlds - covered)}
    try:
        from interverse.reports.plots import style
    except ImportError:
        say("no figures: pip install 'interverse[report]' brings matplotlib")
        return []
    names = []
    for name, group in wanted.items():
        found = points(tables, group)
        if found:
            style.save(draw(found), out / f"{name}.svg")
            names.append(f"{name}.svg")
    return names


def draw(found: Sequence[Point]) -> Any:
    """Returns the figure: a panel per pair of scores, a mark per model, smaller for more steps."""
    from interverse.reports.plots import style

    @style.styled
    def drawn() -> Any:
        figure = style.new_figure(3.8)
        axes = figure.subplots(1, len(_PANELS))
        for panel, (x, y, x_title, y_title) in zip(axes, _PANELS, strict=True):
            for point, look in zip(found, _looks(found), strict=True):
                panel.scatter(
                    getattr(point, x),
                    getattr(point, y),
                    s=70 / np.sqrt(point.steps),
                    label=point.label if point.steps == 1 else None,
                    **look,
                )
            told = (f"{correlation(found, x, y, k):.2f}" for k in (1, 5, 10))
            panel.set_title("r: " + ", ".join(told), fontsize=8.5)
            panel.set_xlabel(x_title)
            panel.set_ylabel(y_title)
        figure.supxlabel("marks: 1, 5, 10 steps from large to small; r at each", fontsize=8.5)
        style.legend_above(figure, axes[0], len({point.label for point in found}))
        return figure

    return drawn()


def _looks(found: Sequence[Point]) -> list[dict[str, str]]:
    """Returns colour and marker of each point: the model's colour, the loss's (graph's) marker."""
    from interverse.reports.plots import style

    words = [point.label.split(" ", 1) for point in found]
    models, kinds = (sorted({pair[i] for pair in words}) for i in (0, 1))
    return [
        {
            "color": style.look(models.index(model)).color,
            "marker": style.look(kinds.index(kind)).marker,
        }
        for model, kind in words
    ]
