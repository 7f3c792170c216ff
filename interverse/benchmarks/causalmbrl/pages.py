"""Pages of the comparison: one Markdown file, one HTML page, scatter figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from interverse.benchmarks.causalmbrl.figures import write_figures
from interverse.benchmarks.causalmbrl.settings import Settings
from interverse.benchmarks.tidy import Score, laid_out, pivot
from interverse.reports.sections import Grid, Say, Section, write_summary

Cell = Mapping[str, Any]

_LEGEND = (
    "Each cell: ours by the published rule, then the published number in brackets; +- is the"
    " standard deviation over seeds. A star marks a difference whose 95 % interval by Welch (our"
    " seeds, their three) does not contain 0. With one seed there is no interval, and no star."
)
_OWN_RULE_LEGEND = (
    "Own rule: episodes that end in the target's own picture are the target, ties count against"
    " the model. The published rule counts them as errors and ties as hits."
)
_VARIANCES = (
    "The printed +- of Tables 17 and 18 cannot be deviations (one exceeds the largest that its mean"
    " allows); they are taken for variances, and their roots are shown and used."
)
_SMALL = "This is not the paper's budget: the published numbers stand here for orientation alone."
_REPLAYED = "Replay (the paper's Optimal)"
_REPLAY = (
    f"{_REPLAYED} repeats the actions that made the target. What they reach is drawn anew, so it"
    " often ends elsewhere; whoever paints objects in the target's own colours leaves less to"
    " chance. So it is no upper bound, and models can be above it."
)
_DRAWS_LEGEND = (
    "Ours alone, by draw of the world's mechanisms; +- is the standard deviation over seeds of one"
    " draw. The table has draw 0."
)
_LEARNED_LEGEND = (
    "Success of plans by steps: open loop follows from the first picture, closed loop looks again"
    " after every step. F1 and SHD: effects above 0.1 are edges; average precision needs no"
    " threshold. CF-H@1 and CF-MRR rank the true counterfactual among other outcomes; effect is how"
    " far the model's effect on other objects is from the world's. A probe reads graphs and effects"
    " off a model's states, and its mistakes count. The true world in a model's place is the"
    " ceiling; with other noise it is what perfect mechanisms alone can give. PC and GES see the"
    " colours at the start of the test episodes and no intervention."
)


def write_pages(settings: Settings, tables: Sequence[Mapping[str, Any]], say: Say) -> None:
    """Writes summary.md, index.html and, if matplotlib is there, figures."""
    figures = write_figures(settings.out, tables, say)
    # Tables of one world share their models: what these learned of the graph is shown once.
    every = {section[0]: section for content in tables for section in _sections(content)}
    sections = list(every.values())
    say(write_summary(settings.out, "Published tables, made again", sections, figures))


def _sections(content: Mapping[str, Any]) -> Iterator[Section]:
    """Yields heading, remarks and grid: one per world for the numbers, one for the graphs."""
    remarks = [_LEGEND] if content["comparable"] else [_LEGEND, _SMALL]
    if content["table"] in (17, 18):
        remarks.append(_VARIANCES)
    for world in dict.fromkeys(cell["world"] for cell in content["cells"]):
        cells = [cell for cell in content["cells"] if cell["world"] == world]
        title = f"{content['title'].split(':')[0]}: {content['kind']} in {world}"
        yield title, [*remarks, *replay_remark(cells), _counted(cells)], numbers(cells)
        ranked = [cell for cell in cells if "ours_own_rule" in cell]
        if ranked:
            yield f"{title}, own rule", [_OWN_RULE_LEGEND], numbers(ranked, _own_rule)
    for world in dict.fromkeys(cell["world"] for cell in content["draws"]):
        title = f"{content['title'].split(':')[0]}: {content['kind']} in {world}, other draws"
        yield title, [_DRAWS_LEGEND], _by_draw([c for c in content["draws"] if c["world"] == world])
    if content["learned"]:
        grid = pivot(Score(**row) for row in content["learned"])
        worlds = ", ".join(dict.fromkeys(row["where"] for row in content["learned"]))
        yield f"Planning and causes in {worlds}", [_LEARNED_LEGEND], grid


def _by_draw(cells: Sequence[Cell]) -> Grid:
    """Returns a grid with a line per model and draw."""
    named = [{**c, "loss": f"{c['loss']}, draw {c['draw']}", "published": None} for c in cells]
    return numbers(named)


def replay_remark(cells: Sequence[Cell]) -> list[str]:
    """Returns why models can be above what the paper calls optimal, where it is among the cells."""
    return [_REPLAY] if any(_baseline_name(cell["model"]) == _REPLAYED for cell in cells) else []


def _baseline_name(printed: str) -> str:
    """Returns a model's name for readers: the printed one, unless that says too much."""
    return _REPLAYED if printed == "Optimal" else printed


def numbers(cells: Sequence[Cell], show: Callable[[Cell], str] | None = None) -> Grid:
    """Returns the grid of a table: a row per model and loss, a column per metric and horizon."""
    show = _shown if show is None else show
    rows = list(dict.fromkeys((cell["loss"], cell["model"]) for cell in cells))
    laid = []
    for cell in sorted(cells, key=lambda c: rows.index((c["loss"], c["model"]))):
        row = f"{_baseline_name(cell['model'])} {cell['loss']}"
        laid.append(((row,), f"{cell['metric']} {cell['steps']}", show(cell)))
    return laid_out(laid, ("model",))


def _own_rule(cell: Cell) -> str:
    values = list(cell["seeds_own_rule"].values())
    spread = f" +- {float(np.std(values)):.2f}" if len(values) > 1 else ""
    return f"{float(np.mean(values)):.2f}{spread}"


def _shown(cell: Cell) -> str:
    digits = 3 if cell["metric"] == "Rec" else 2
    values = list(cell["seeds"].values())  # the mean and deviation in the cell are rounded
    ours = f"{float(np.mean(values)):.{digits}f}"
    if len(values) > 1:
        ours += f" +- {float(np.std(values)):.{digits}f}"
    if cell["published"] is None:
        return ours
    theirs = f"{cell['published']:g}"
    if cell["published_deviation"] is not None:
        theirs += f" +- {cell['published_deviation']:.2g}"
    star = " *" if cell["differs"] else ""
    return f"{ours} ({theirs}){star}"


def _counted(cells: Sequence[Cell]) -> str:
    judged = [cell for cell in cells if cell["differs"] is not None]
    differing = sum(cell["differs"] for cell in judged)
    return f"{differing} of {len(judged)} differences have an interval without 0."
