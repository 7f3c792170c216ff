"""The page of one fitted world model: what it predicts, plans, and knows of causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.fit.materials import Materials
from interverse.fit.scores import SEARCHED
from interverse.fit.work import other_code
from interverse.models.ranking import HORIZONS
from interverse.models.world_model import WorldModel
from interverse.reports.sections import Grid, Section, write_summary

_EXAMPLES = 5  # episodes in the picture of predictions
_PREDICTION = (
    "The start of a test episode, its true frame after K actions, and the test frame whose encoding"
    " is nearest to the prediction. H@1: the share of episodes whose own prediction is the nearest"
    " to their true state, seen among all; episodes that end in the same picture are the same."
    " Unchanged: the score of pictures that are predicted to stay as they are, pixel by pixel."
)
_PLANNING = (
    "Mean of the last reward and share of episodes that end exactly at the target, which is as many"
    " random actions away as there are steps. Open loop: from predicted states alone."
)
_SEARCH = (
    f"Whole plans of {SEARCHED} steps, searched in the model's predictions and played without"
    " looking. The same search in the true world, noise and all, is the ceiling."
)
_GRAPH = (
    "Entry (i, j): how far object i hangs on object j. Edges are effects above 0.1. The ceiling is"
    " the score of the true world in the model's place, on the same trials. A probe reads objects"
    " off the model's states; true outcomes that it reads have what perfect predictions would have."
)
_READ = "true outcomes, read by the probe"
_COUNTERFACTUAL = (
    "The same noise, one object or paint altered. CF-H@1 and CF-MRR rank the true counterfactual"
    " among other outcomes. Effect error: how far the model's effect of the alteration on an object"
    " is from the world's. The true world with the facts' noise is the ceiling; with other noise it"
    " is what perfect mechanisms alone can give. The altered scene with nothing done is what a"
    " model gets that ignores the action. A probe reads effects off the model's states, and its"
    " mistakes count as effects: true outcomes that it reads have what perfect predictions would"
    " have."
)


def write_fit_page(
    out: Path, found: Mapping[str, Any], materials: Materials, model: WorldModel
) -> None:
    """Writes index.html, summary.md and their figures."""
    records: Sequence[Mapping[str, Any]] = found["seeds"]
    _save_figures(out, records, materials, model)
    first = records[0]
    unchanged = materials.unchanged
    ranked = _ranking_grid(records, unchanged)
    title = f"World model of {first['world']}: {first['model']}, {first['loss']}"
    sections: list[tuple[Section, str]] = [
        (
            (
                "What was fitted",
                [_in_short(found, unchanged), _made(records), *_kept(records)],
                _about(first),
            ),
            "curves.svg",
        ),
        (("Prediction", [_PREDICTION], ranked), "predictions.png"),
        (("Planning", [_PLANNING], _planning_grid(records, found["baselines"])), ""),
        (("Planning by search", [_SEARCH], _search_grid(records)), ""),
        (("The causal graph", [_GRAPH], _graph_grid(records)), "graph.svg"),
        (("What would have happened", [_COUNTERFACTUAL], _counterfactual_grid(records)), ""),
    ]
    placed = {section[0]: name for section, name in sections if name}
    write_summary(out, title, [section for section, _ in sections], placed=placed)


def _kept(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns which seeds other code scored than runs now, in words."""
    return other_code({f"seed-{record['seed']}.json": record for record in records})


def _in_short(found: Mapping[str, Any], unchanged: Mapping[str, Any]) -> str:
    """Returns the main scores, each beside what an answer without any knowledge gets."""
    each = [record["scores"]["model"] for record in found["seeds"]]
    graphs = [one["recovery"] for one in each]
    beside = graphs[0]["counterfactual_ceilings"].items()
    told = "; ".join(f"{name} {score['hits']:.1f}" for name, score in beside)
    plans = [one["planning"]["5"]["open"]["success"] for one in each]
    idle = found["baselines"]["Nothing"]["5"]["success"]
    precisions = [one["edges"]["average_precision"] for one in graphs]
    hits = [one["counterfactual"]["hits"] for one in graphs]
    return (
        f"In short: H@1 after one step {_spread([o['ranking']['1']['hits'] for o in each], 1)}"
        f" (unchanged pictures {unchanged['1']['hits']:.1f}); planning success after five"
        f" {_spread(plans, 2)} (nothing done {idle:.2f}); average precision of the graph"
        f" {_spread(precisions, 2)} (the true world 1); CF-H@1 {_spread(hits, 1)}"
        f" ({told})."
    )


def _made(records: Sequence[Mapping[str, Any]]) -> str:
    run = records[0]["runs"][-1]
    made_by = records[0]["made_by"]
    return (
        f"Seeds: {len(records)}. Made by: {run['command']}; commit {run['commit'][:12]}, source"
        f" {run['source']}, torch {made_by.get('torch', '?')}, on {run['device']}."
    )


def _about(record: Mapping[str, Any]) -> Grid:
    sizes, rows = record["sizes"], []
    for stage, training in record["training"].items():
        rows.append(
            [
                stage,
                f"{sizes['train']} x 100",
                str(training["epochs"]),
                str(training["best_epoch"]),
                f"{training['best_valid']:.4g}",
                f"{training['seconds']:.0f} s",
            ]
        )
    return [["stage", "transitions", "epochs", "best epoch", "its validation loss", "time"], *rows]


def _ranking_grid(records: Sequence[Mapping[str, Any]], unchanged: Mapping[str, Any]) -> Grid:
    head = ["steps", "H@1", "H@1, unchanged", "MRR", "H@1, published rule", "MRR, published rule"]
    head.append("references")
    rows = []
    for steps in HORIZONS:
        each = [r["scores"]["model"]["ranking"][str(steps)] for r in records]
        names = ("hits", "mrr", "published_hits", "published_mrr")
        values = [_spread([one[name] for one in each], 1) for name in names]
        values.insert(1, f"{unchanged[str(steps)]['hits']:.1f}")
        rows.append([str(steps), *values, str(each[0]["references"])])
    return [head, *rows]


def _planning_grid(records: Sequence[Mapping[str, Any]], baselines: Mapping[str, Any]) -> Grid:
    head = ["policy", *(f"{name}, {k} steps" for k in HORIZONS for name in ("reward", "success"))]
    plans = [r["scores"]["model"]["planning"] for r in records]
    rows = []
    for loop in ("open", "closed"):
        cells = [
            _spread([plan[str(k)][loop][name] for plan in plans], 2)
            for k in HORIZONS
            for name in ("reward", "success")
        ]
        rows.append([f"model, {loop} loop", *cells])
    for name, score in baselines.items():
        cells = [f"{score[str(k)][f]:.2f}" for k in HORIZONS for f in ("reward", "success")]
        rows.append([name.lower(), *cells])
    return [head, *rows]


def _search_grid(records: Sequence[Mapping[str, Any]]) -> Grid:
    each = [r["scores"]["model"]["search"] for r in records]
    fields = ("reward", "success")
    rows = [
        [name, *(_spread([one[name][f] for one in each], 2) for f in fields)] for name in each[0]
    ]
    return [["search", *fields], *rows]


def _graph_grid(records: Sequence[Mapping[str, Any]]) -> Grid:
    each = [r["scores"]["model"]["recovery"] for r in records]
    ceiling = each[0]["ceiling"]
    read = [one["read"] for one in each if "read" in one]  # older records lack it
    head = ["score", "model", "ceiling: the true world", *[_READ] * bool(read)]
    fields = (
        ("F1 of the edges", "fixed", "f1", 2),
        ("structural Hamming distance", "fixed", "shd", 1),
        ("average precision", "edges", "average_precision", 2),
        ("F1 of ancestors (best threshold)", "ancestors", "f1", 2),
    )
    rows = []
    for label, part, name, digits in fields:
        own, true = ([one[part][name] for one in some] for some in (each, read))
        rows.append([label, _spread(own, digits), f"{ceiling[part][name]:g}"])
        rows[-1] += [_spread(true, digits)] if read else []
    own, true = ([one["total_effect_error"] for one in some] for some in (each, read))
    last = ["total-effect error", _spread(own, 3), "0", *([_spread(true, 3)] if read else [])]
    return [head, *rows, last]


def _counterfactual_grid(records: Sequence[Mapping[str, Any]]) -> Grid:
    each = [r["scores"]["model"]["recovery"] for r in records]
    own = [one["counterfactual"] for one in each]
    objects = len(own[0]["effect_errors"])
    head = ["", "CF-H@1", "CF-MRR", "effect error", *(f"on object {i}" for i in range(objects))]
    rows = [_counterfactual_row("model", own)]
    for name, score in each[0]["counterfactual_ceilings"].items():
        rows.append(_counterfactual_row(name, [score]))
    read = [one["read"]["counterfactual"] for one in each if "read" in one]
    return [head, *rows, *([_counterfactual_row(_READ, read)] if read else [])]


def _counterfactual_row(name: str, scores: Sequence[Mapping[str, Any]]) -> list[str]:
    errors = np.array([score["effect_errors"] for score in scores]).mean(0)
    return [
        name,
        _spread([score["hits"] for score in scores], 1),
        _spread([score["mrr"] for score in scores], 1),
        _spread([score["effect_error"] for score in scores], 3),
        *(f"{error:.3f}" for error in errors),
    ]


def _spread(values: Sequence[float], digits: int) -> str:
    mean = f"{float(np.mean(values)):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} +- {float(np.std(values)):.{digits}f}"


# ------------------------------------------------------------------------- figures


def _save_figures(
    out: Path, records: Sequence[Mapping[str, Any]], materials: Materials, model: WorldModel
) -> None:
    from interverse.reports.plots import style

    style.save(style.styled(_curves)(records), out / "curves.svg")
    graph = records[0]["scores"]["model"]["recovery"]
    style.save(style.styled(_matrices)(graph), out / "graph.svg")
    style.save(style.styled(_predictions)(materials, model), out / "predictions.png")


def _curves(records: Sequence[Mapping[str, Any]]) -> Any:
    """Returns training and validation loss by epoch, a panel per stage."""
    from interverse.reports.plots import style

    stages = list(dict.fromkeys(row["stage"] for row in records[0]["history"]))
    figure = style.new_figure(2.6)
    panels = figure.subplots(1, len(stages), squeeze=False)[0]
    for panel, stage in zip(panels, stages, strict=True):
        for record in records:
            rows = [row for row in record["history"] if row["stage"] == stage]
            epochs = [row["epoch"] for row in rows]
            for index, name in enumerate(("train", "valid")):
                look = style.look(index)
                label = name if record is records[0] else None
                values = [row[name] for row in rows]
                panel.plot(epochs, values, color=look.color, marker=look.marker, label=label)
        panel.set_title(stage, fontsize=9)
        panel.set_xlabel("epoch")
        panel.set_yscale("log")
    panels[0].set_ylabel("loss")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _matrices(recovery: Mapping[str, Any]) -> Any:
    """Returns the effects in the world, its edges in bold, and those in the model."""
    from interverse.reports.plots import style

    figure = style.new_figure(2.9)
    edges = np.array(recovery["graph"], dtype=bool)
    true = recovery.get("true_direct_effects", recovery["true_total_effects"])
    axes = figure.subplots(1, 2)
    titles = ("effects in the world, edges in bold", "effects in the model")
    for panel, values, title in zip(axes, (true, recovery["direct_effects"]), titles, strict=True):
        matrix = np.array(values, dtype=float)
        np.fill_diagonal(matrix, np.nan)
        panel.imshow(matrix, cmap="Blues", vmin=0.0, vmax=max(0.5, np.max(true)))
        for i, j in np.argwhere(np.isfinite(matrix)):
            ink = "white" if matrix[i, j] > 0.35 else "black"
            look = {"color": ink, "fontsize": 8, "weight": "bold" if edges[i, j] else "normal"}
            panel.text(j, i, f"{matrix[i, j]:.2g}", ha="center", va="center", **look)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("cause")
        panel.set_ylabel("effect")
        panel.set_xticks(range(len(matrix)))
        panel.set_yticks(range(len(matrix)))
        panel.grid(visible=False)
    return figure


def _predictions(materials: Materials, model: WorldModel) -> Any:
    """Returns pictures: start, truth and nearest to the prediction, for some test episodes."""
    from interverse.reports.plots import style

    rows = ["start", *(f"{what} after {k}" for k in HORIZONS for what in ("truth", "model"))]
    pictures = _retrieved(materials, model)
    figure = style.new_figure(1.15 * len(rows) * 0.82, width=1.5 * _EXAMPLES)
    axes = figure.subplots(len(rows), _EXAMPLES)
    for line, label in zip(axes, rows, strict=True):
        for panel, picture in zip(line, pictures[label], strict=True):
            panel.imshow(picture, interpolation="nearest")
            panel.set_xticks([])
            panel.set_yticks([])
            panel.grid(visible=False)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    return figure


@torch.no_grad()
def _retrieved(materials: Materials, model: WorldModel) -> dict[str, NDArray[Any]]:
    """Returns images by the label of their row."""
    source = materials.test
    episodes = torch.arange(source.num_episodes, device=source.device)
    shown = episodes[:_EXAMPLES]
    length = source.num_steps + 1

    def frames(step: int, chosen: torch.Tensor) -> torch.Tensor:
        return source.frames(chosen * length + step)

    steps = torch.arange(max(HORIZONS), device=source.device)
    numbers = shown[:, None] * source.num_steps + steps
    actions = source.actions(numbers.flatten()).unflatten(0, numbers.shape)
    predicted = model.rollout(model.encode(frames(0, shown)), actions)
    out = {"start": _pictures(frames(0, shown))}
    for k in HORIZONS:
        encoded = torch.cat([model.encode(frames(k, part)) for part in episodes.split(512)])
        nearest = torch.cdist(predicted[k - 1].flatten(1), encoded.flatten(1)).argmin(1)
        out[f"truth after {k}"] = _pictures(frames(k, shown))
        out[f"model after {k}"] = _pictures(frames(k, nearest))
    return out


def _pictures(frames: torch.Tensor) -> NDArray[Any]:
    return np.asarray(frames.movedim(1, -1).cpu())
