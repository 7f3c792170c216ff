"""The page of one fitted world model: what it predicts, plans, and knows of causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from interverse.core.errors import missing_extra
from interverse.fit.materials import Materials
from interverse.fit.work import other_code
from interverse.models.ranking import HORIZONS
from interverse.models.world_model import WorldModel
from interverse.reports.sections import Grid, Section, write_summary
from interverse.scoring.world_model import score_grid, score_rows, spread

_EXAMPLES = 5  # episodes in the picture of predictions
_SCORES = (
    "Planning: share of episodes that end exactly at the target, which is as many random actions"
    " away as there are steps. latent, reward: the goal is near by distance of encodings, or by a"
    " reward learned on them. open, closed, true: what follows is seen in predictions alone, in"
    " predictions from every true frame, or in the true next frames, which is the goal's ceiling.",
    "In percent: ranking is the share of episodes whose own prediction is the nearest to their true"
    " end; in_scene finds the true outcome among those of all actions in one scene; effects and"
    " graph are balanced over what moves and what does not; counterfactual finds what would have"
    " happened.",
    "Nothing predicted: the model's own encodings, left as they are. Untrained: a copy with fresh"
    " weights. True world: perfect predictions, seen through this encoder.",
)
_PICTURES = (
    "The start of a test episode, its true frame after K actions, and the test frame whose encoding"
    " is nearest to the prediction."
)
_PLOTTED = (
    ("ranking", "H@1, percent", ("nothing_predicted", "chance")),
    (
        "planning latent_closed",
        "success, latent closed",
        ("do_nothing", "untrained", "latent_true"),
    ),
)


def write_fit_page(
    out: Path, seeds: Sequence[Mapping[str, Any]], materials: Materials, model: WorldModel
) -> None:
    """Writes index.html, summary.md and their figures for a model of pictures."""
    first = seeds[0]
    head = ["stage", "transitions", "epochs", "best epoch", "its validation loss", "time"]
    rows = [
        [
            stage,
            f"{first['sizes']['train']} x 100",
            str(training["epochs"]),
            str(training["best_epoch"]),
            f"{training['best_valid']:.4g}",
            f"{training['seconds']:.0f} s",
        ]
        for stage, training in first["training"].items()
    ]
    title = f"World model of {first['world']}: {first['model']}, {first['loss']}"
    write_scores_page(out, title, seeds, [head, *rows], lambda: _predictions(materials, model))


def write_scores_page(
    out: Path,
    title: str,
    seeds: Sequence[Mapping[str, Any]],
    trained: Grid | None = None,
    predictions: Callable[[], Any] | None = None,
) -> None:
    """Writes index.html and summary.md with the curves and all scores of seeds.

    Each record of `seeds` has `history` and scores. `trained` is how training went, if more is
    known than its epochs; `predictions` draws what is predicted.
    """
    drawn: dict[str, Any] = {
        "curves.svg": lambda: _curves(seeds),
        "scores.svg": lambda: _by_horizon(seeds),
        "predictions.png": predictions,
    }
    told = _remarks(seeds)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        told.append(f"No figures: {missing_extra('matplotlib', 'report')}")
        drawn = {}
    head, *lines = score_grid([record["scores"]["model"] for record in seeds])
    scores = [head, *([*line, *[""] * (len(head) - len(line))] for line in lines)]
    epochs = [["epochs"], [str(len(seeds[0].get("history", [])))]]
    sections: list[Section] = [
        ("What was fitted", told, trained or epochs),
        ("Scores", list(_SCORES), scores),
        ("Predictions", [_PICTURES], [[""]]),
    ]
    placed = {
        name: file
        for (name, *_), (file, draw) in zip(sections, drawn.items(), strict=False)
        if draw is not None
    }
    for file in placed.values():
        from interverse.reports.plots import style

        style.save(style.styled(drawn[file])(), out / file)
    shown = [one for one in sections if one[0] in placed or one[2] != [[""]]]
    write_summary(out, title, shown, placed=placed)


def _remarks(seeds: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the main scores, who made them, and which seeds other code scored than runs now."""
    each = [record["scores"]["model"] for record in seeds]
    told = []
    for steps in ("1", "5"):  # beside what an answer without any knowledge gets
        own = [one["planning"].get("latent_closed", {}).get(steps, {}) for one in each]
        if own[0].get("success") is not None:
            success = spread([one["success"] for one in own], 2)
            told.append(f"planning {steps} {success} (nothing done {own[0]['do_nothing']:.2f})")
    if each[0]["in_scene"]["value"] is not None:
        hits = spread([one["in_scene"]["value"] for one in each], 1)
        told.append(f"in-scene H@1 {hits} (chance {each[0]['in_scene']['chance']:.1f})")
    run = seeds[0]["runs"][-1]
    made = (
        f"Seeds: {len(seeds)}. Made by: {run['command']}; commit {run['commit'][:12]}, source"
        f" {run['source']}, torch {seeds[0]['made_by'].get('torch', '?')}, on {run['device']}."
    )
    kept = other_code({f"seed-{record['seed']}.json": record for record in seeds})
    return [*([f"In short: {'; '.join(told)}."] if told else []), made, *kept]


# ------------------------------------------------------------------------- figures


def _by_horizon(seeds: Sequence[Mapping[str, Any]]) -> Any:
    """Returns H@1 and planning by horizon beside their yardsticks, a panel each."""
    from interverse.reports.plots import style

    figure = style.new_figure(2.6)
    for panel, (name, label, beside) in zip(figure.subplots(1, 2), _PLOTTED, strict=True):
        rows = [
            [row for row in score_rows(one["scores"]["model"]) if row["score"] == name]
            for one in seeds
        ]
        lines = {
            "model": [
                np.mean([r["value"] for r in same])
                for same in zip(*rows, strict=True)
                if same[0]["value"] is not None
            ]
        }
        planned = seeds[0]["scores"]["model"]["planning"]
        for yardstick in beside:
            if yardstick in planned and yardstick.startswith("latent") and lines["model"]:
                lines["its ceiling"] = [one["success"] for one in planned[yardstick].values()]
            else:
                found = [row[yardstick] for row in rows[0] if row.get(yardstick) is not None]
                lines[yardstick.replace("_", " ")] = found
        for index, (told, values) in enumerate(lines.items()):
            if values:
                look, steps = style.look(index), [row["steps"] for row in rows[0]][: len(values)]
                panel.plot(steps, values, color=look.color, marker=look.marker, label=told)
        panel.set_title(label, fontsize=9)
        panel.set_xlabel("steps")
        panel.set_ylim(0, 1.35 * panel.get_ylim()[1])  # room for the legend
        if panel.get_lines():
            panel.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")
    return figure


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


@torch.no_grad()
def _predictions(materials: Materials, model: WorldModel) -> Any:
    """Returns pictures: start, truth and nearest to the prediction, for some test episodes."""
    from interverse.reports.plots import style

    source = materials.source("test")
    every = torch.arange(source.num_episodes, device=source.device)
    shown, length = every[:_EXAMPLES], source.num_steps + 1
    steps = torch.arange(max(HORIZONS), device=source.device)
    numbers = shown[:, None] * source.num_steps + steps
    actions = source.actions(numbers.flatten()).unflatten(0, numbers.shape)
    start = source.frames(shown * length)
    predicted = model.rollout(model.encode(start), actions)
    rows = {"start": start}
    for k in HORIZONS:
        parts = [model.encode(source.frames(part * length + k)) for part in every.split(512)]
        encoded = torch.cat(parts).flatten(1)
        nearest = torch.cdist(predicted[k - 1].flatten(1), encoded).argmin(1)
        rows[f"truth after {k}"] = source.frames(shown * length + k)
        rows[f"model after {k}"] = source.frames(nearest * length + k)
    figure = style.new_figure(1.15 * len(rows) * 0.82, width=1.5 * _EXAMPLES)
    axes = figure.subplots(len(rows), _EXAMPLES)
    for line, (label, frames) in zip(axes, rows.items(), strict=True):
        for panel, picture in zip(line, frames.movedim(1, -1).cpu().numpy(), strict=True):
            panel.imshow(picture, interpolation="nearest")
            panel.set_xticks([])
            panel.set_yticks([])
            panel.grid(visible=False)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    return figure
