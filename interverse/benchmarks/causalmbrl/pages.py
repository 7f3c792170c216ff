"""Pages of the comparison: one Markdown file, one HTML page, scatter figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from interverse.benchmarks.causalmbrl.figures import write_figures
from interverse.benchmarks.causalmbrl.settings import Settings
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
_GRAPH_LEGEND = (
    "Means over seeds. Edges are effects above 0.1, a threshold fixed beforehand; average precision"
    " has none, so it can order effects that are too small to matter. Behind the stroke stands the"
    " ceiling: the score of the true world in the model's place."
)
_DISCOVERY_LEGEND = (
    "From the colours at the start of the test episodes; no intervention is seen, so some edges"
    " have no direction."
)
_COUNTERFACTUAL_LEGEND = (
    "Counterfactual trials: the same noise, one object or paint altered. CF-H@1 and CF-MRR rank the"
    " true counterfactual among other outcomes; the effect error is how far the model's effect of"
    " the alteration on the other objects is from the world's. The true world with the facts' noise"
    " is the ceiling; with other noise it is what perfect mechanisms alone can give. A probe reads"
    " effects off a model's states, and its mistakes count as effects: behind the stroke stands the"
    " error of true outcomes that the same probe reads, where it was measured."
)
_GRAPH_FIELDS = (
    ("f1", "F1 / ceiling"),
    ("shd", "SHD / ceiling"),
    ("average_precision", "average precision"),
    ("ancestors_f1", "ancestors F1 (best threshold)"),
    ("total_effect_error", "total-effect error"),
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
    yield from _graph_sections(content["recovery"])
    if content["discovery"]:
        head = ["method", "F1", "SHD", "F1 of the skeleton"]
        rows = [
            [
                f"{e['method']} {e['world']} draw {e['draw']}",
                *(f"{e[k]:.3g}" for k in ("f1", "shd", "skeleton_f1")),
            ]
            for e in content["discovery"]
        ]
        yield "Causal discovery on true states", [_DISCOVERY_LEGEND], [head, *rows]


def _graph_sections(entries: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """Yields what was learned of the graph, one section per world and draw of its mechanisms."""
    for world, draw in dict.fromkeys((e["world"], e.get("draw", 0)) for e in entries):
        found = [e for e in entries if (e["world"], e.get("draw", 0)) == (world, draw)]
        where = f"{world}, draw {draw}" if draw else world
        yield f"What was learned of the graph of {where}", [_GRAPH_LEGEND], _graph_grid(found)
        if any(entry["counterfactual"] for entry in found):
            title = f"What would have happened in {where}"
            yield title, [_COUNTERFACTUAL_LEGEND], _counterfactual_grid(found)


def _by_draw(cells: Sequence[Cell]) -> Grid:
    """Returns a grid with a line per model and draw."""
    named = [{**c, "loss": f"{c['loss']}, draw {c['draw']}", "published": None} for c in cells]
    return numbers(named)


def _graph_grid(found: Sequence[Mapping[str, Any]]) -> Grid:
    head = ["model", *(name for _, name in _GRAPH_FIELDS)]
    rows = [
        [f"{e['model']} {e['loss']}", *(_graph_value(e, field) for field, _ in _GRAPH_FIELDS)]
        for e in found
    ]
    return [head, *rows]


def _counterfactual_grid(found: Sequence[Mapping[str, Any]]) -> Grid:
    head = ["model", "CF-H@1", "CF-MRR", "effect error"]
    known = [entry for entry in found if entry["counterfactual"]]
    rows = {f"{e['model']} {e['loss']}": e["counterfactual"]["model"] for e in known}
    rows |= {name: own for name, own in known[0]["counterfactual"].items() if name != "model"}
    return [
        head,
        *(
            [name, f"{s['hits']:.1f}", f"{s['mrr']:.1f}", _effect_error(s)]
            for name, s in rows.items()
        ),
    ]


def _effect_error(score: Mapping[str, float]) -> str:
    read = score.get("effect_error_read")
    return f"{score['effect_error']:.3f}" + ("" if read is None else f" / {read:.3f}")


def _graph_value(entry: Mapping[str, Any], field: str) -> str:
    ceiling = entry.get(f"{field}_ceiling")
    return f"{entry[field]:.3g}" + ("" if ceiling is None else f" / {ceiling:.3g}")


def replay_remark(cells: Sequence[Cell]) -> list[str]:
    """Returns why models can be above what the paper calls optimal, where it is among the cells."""
    return [_REPLAY] if any(_baseline_name(cell["model"]) == _REPLAYED for cell in cells) else []


def _baseline_name(printed: str) -> str:
    """Returns a model's name for readers: the printed one, unless that says too much."""
    return _REPLAYED if printed == "Optimal" else printed


def numbers(cells: Sequence[Cell], show: Callable[[Cell], str] | None = None) -> Grid:
    """Returns the grid of a table: a row per model and loss, a column per metric and horizon."""
    shown = _shown if show is None else show
    columns = list(dict.fromkeys((cell["metric"], cell["steps"]) for cell in cells))
    rows = dict.fromkeys((cell["loss"], cell["model"]) for cell in cells)
    at = {(c["loss"], c["model"], c["metric"], c["steps"]): c for c in cells}
    head = ["model", *(f"{metric} {steps}" for metric, steps in columns)]
    return [
        head,
        *(
            [
                f"{_baseline_name(model)} {loss}",
                *(
                    shown(at[loss, model, *column]) if (loss, model, *column) in at else ""
                    for column in columns
                ),
            ]
            for loss, model in rows
        ),
    ]


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
