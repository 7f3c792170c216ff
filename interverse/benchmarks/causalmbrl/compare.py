"""Our numbers beside the printed ones: means over seeds, differences and their intervals.

Comparisons are JSON, and pages show them: one Markdown file, one HTML page, scatter figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from interverse.benchmarks.causalmbrl.findings import Runs, difference
from interverse.benchmarks.causalmbrl.settings import (
    TABLES,
    VARIANTS,
    Settings,
    deviation,
    printed,
    spread_is,
    world_name,
)
from interverse.benchmarks.driver import SMALL, Tables, row_file
from interverse.core.files.json_text import read_json_object
from interverse.fit.work import Record
from interverse.reports.sections import Grid, Score, Section, grouped, laid_out, pivot
from interverse.results.published import Number

Key = tuple[str, str, str]  # world, loss, model; baselines have loss "Baseline"
Records = Mapping[Key, Sequence[Mapping[str, Any]]]
Cell = Mapping[str, Any]
_HALF_DIGIT = 0.005  # printed numbers have two decimals (Tables 17 and 18: three)
_TITLES = {
    "ranking": "prediction",
    "planning": "planning",
    "zero_shot": "prediction, colours never seen",
}
_FIELDS = {
    "H@1": "published_hits",
    "MRR": "published_mrr",
    "Rec": "reconstruction",
    "Reward": "reward",
    "Success": "success",
}
_OWN_RULE = {"H@1": "hits", "MRR": "mrr"}
_OF_A_DRAW = ("world", "loss", "model", "steps", "metric", "ours", "ours_deviation", "seeds")


def compare(settings: Settings, number: int) -> dict[str, Any]:
    """Returns one table's comparison; cells without results are left out.

    Values are not rounded before they are averaged, as the original did; that moves a mean by half
    a unit of the second decimal at most, which no cell is called far off for. The cells are of draw
    0 of the world's mechanisms: another draw is another world, no further run of this one, and
    stands apart.
    """
    kind, worlds = TABLES[number]
    records = load_records(settings)
    cells = {
        draw: list(_cells(settings, number, records, draw)) for draw in range(settings.cpt_seeds)
    }
    return {
        "table": number,
        "title": f"Table {number}: {_TITLES[kind]} in {', '.join(worlds)}",
        "kind": kind,
        "budget": settings.budget,
        "epochs": settings.epochs,
        "pretrain_epochs": settings.pretrain_epochs,
        "comparable": settings.budget == "full"
        and settings.epochs is None
        and settings.pretrain_epochs is None,
        "cells": cells[0],
        "draws": [
            {"draw": draw, **{name: cell[name] for name in _OF_A_DRAW}}
            for draw, own in cells.items()
            if draw > 0
            for cell in own
        ],
        "learned": [asdict(score) for score in learned(settings, number, records)],
    }


def load_records(settings: Settings) -> dict[Key, list[dict[str, Any]]]:
    """Returns the records on disk by (world, loss, model)."""
    found: dict[Key, list[dict[str, Any]]] = {}
    asked: dict[str, tuple[Key, dict[str, Any]]] = {}
    for row in settings.rows():
        asked[row.name] = (row.world, row.loss, row.model), settings.asked(row)
    for row in settings.rows():
        made_with = {"world": row.world, "episodes": settings.budget_of(row).episodes}
        name = f"{world_name(row.world, row.cpt_seed)}.baselines"
        asked[name] = (row.world, "Baseline", ""), {**made_with, **row.options}
    for name, (key, made_with) in asked.items():
        paths = {s: row_file(settings.out, name, s) for s in range(1, settings.seeds + 1)}
        found.setdefault(key, []).extend(
            Record(path, {**made_with, "seed": seed}).content
            for seed, path in paths.items()
            if path.exists()
        )
    return found


def discovery_file(out: Path, world: str, cpt_seed: int = 0) -> Path:
    """Returns where a world's causal discovery lies, which has no seed."""
    return out / "rows" / f"{world_name(world, cpt_seed)}.discovery.json"


def _cells(
    settings: Settings, number: int, records: Records, draw: int
) -> Iterator[dict[str, Any]]:
    """Yields the cells of a table that there are records for, of one draw of the mechanisms.

    After the printed ones come those that the paper leaves out: doing nothing, and chemistry's
    fine-tuned models.
    """
    beside = {("Baseline", "Random"): ("Baseline", "Nothing")}
    if number in (17, 18):
        names = ("AE", "GNN", "Modular", "VAE")
        beside |= {("NLL", name): ("NLL Finetuned", name) for name in names}
    left_out = [
        Number(at={**entry.at, "loss": loss, "model": model}, value=math.nan, spread=None)
        for entry in printed(number)
        if (entry["loss"], entry["model"]) in beside
        for loss, model in [beside[entry["loss"], entry["model"]]]
    ]
    kind, _ = TABLES[number]
    for entry in (*printed(number), *left_out):
        values = _values(entry, kind, _FIELDS[entry["metric"]], records, draw)
        if entry["world"] not in settings.worlds(number) or not values:
            continue
        ours, spread = _mean(values)
        cell = {
            **{name: entry[name] for name in ("world", "loss", "model")},
            "steps": int(entry["steps"]),
            "metric": entry["metric"],
            "ours": ours,
            "ours_deviation": spread,
            "seeds": values,
        }
        # The printed number and how far ours is from it; None where nothing is printed.
        here, printed_spread = not math.isnan(entry.value), deviation(number, entry)
        every, interval = list(values.values()), None
        if here and printed_spread is not None:
            interval = difference_interval(every, entry.value, printed_spread)
        differs = interval and (interval[0] > _HALF_DIGIT or interval[1] < -_HALF_DIGIT)
        cell |= {
            "published": entry.value if here else None,
            "published_plus_minus": entry.spread,
            "published_plus_minus_is": spread_is(number),
            "published_deviation": printed_spread,
            "difference": round(float(np.mean(every)) - entry.value, 4) if here else None,
            "difference_interval": interval and [round(end, 4) for end in interval],
            "differs": differs,
        }
        if entry["metric"] in _OWN_RULE:
            own = _values(entry, kind, _OWN_RULE[entry["metric"]], records, draw)
            if own:
                cell |= {"ours_own_rule": _mean(own)[0], "seeds_own_rule": own}
        yield cell


def difference_interval(
    ours: Sequence[float], mean: float, spread: float
) -> tuple[float, float] | None:
    """Returns the 95 % interval of our mean minus theirs; None where we have one value only.

    Ours are values by seed, theirs a printed mean and the deviation of the population of seeds.

    >>> low, high = difference_interval([1.0, 2.0, 3.0], 2.0, 1.0)
    >>> round(low, 2), round(high, 2)
    (-2.58, 2.58)
    """
    if len(ours) < 2:
        return None
    found = difference(Runs.of(ours), Runs.printed(mean, spread))
    return found.low, found.high


def _values(entry: Number, kind: str, field: str, records: Records, draw: int) -> dict[str, float]:
    """Returns our value of every seed, on one draw of the world's mechanisms."""
    world, variant, model = entry["world"], entry["loss"], entry["model"]
    key = (world, "contrastive" if variant == "Contrastive" else "nll", model.lower())
    if variant == "Baseline":
        key, variant = (world, "Baseline", ""), model
    out = {}
    for record in records.get(key, ()):
        score = record["scores"].get(variant, {}).get(kind)
        if score is not None and record.get("cpt_seed", 0) == draw:
            at = score[entry["steps"]]
            value = at.get("open", at).get(field)
            if value is not None:
                out[_seed_name(record)] = value
    return out


def _seed_name(record: Mapping[str, Any]) -> str:
    """Returns a record's seed, with the draw of the world's mechanisms where there is one."""
    draw = record.get("cpt_seed")
    return str(record["seed"]) if draw is None else f"{draw}/{record['seed']}"


def learned(settings: Settings, number: int, records: Records) -> Iterator[Score]:
    """Yields planning both ways and what models know of causes, after their yardsticks.

    The true world in a model's place is the ceiling; PC and GES see true states, where asked for.
    """
    worlds = settings.worlds(number)
    for (world, loss, model), found in sorted(records.items()):
        if loss == "Baseline" or world not in worlds:
            continue
        for record in found:
            where = _place(world, record.get("cpt_seed", 0))
            for variant in VARIANTS[loss]:
                scores = record["scores"].get(variant, {})
                for who, values in _known(f"{model} {variant}", scores):
                    run = _seed_name(record) if who.startswith(model) else ""
                    for what, value in values.items():
                        yield Score(where=where, who=who, what=what, value=value, run=run)
    for world in worlds:
        for draw in settings.draws(world):
            path = discovery_file(settings.out, world, draw)
            where = _place(world, draw)
            for who, own in read_json_object(path)["scores"].items() if path.exists() else ():
                for what, field in _DISCOVERED.items():
                    yield Score(where=where, who=f"{who} on states", what=what, value=own[field])


def _place(world: str, draw: int) -> str:
    return f"{world}, draw {draw}" if draw else world


_GRAPH = {
    "F1": ("fixed", "f1"),
    "SHD": ("fixed", "shd"),
    "average precision": ("edges", "average_precision"),
    "ancestors F1": ("ancestors", "f1"),
}
_DISCOVERED = {"F1": "f1", "SHD": "shd", "skeleton F1": "skeleton_f1"}


def _known(label: str, scores: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields scores of one run by name: the model's, then the ceilings' that stand in its row."""
    found = scores.get("recovery", {})
    told: dict[str, dict[str, float]] = {label: {}}
    told |= {name: {} for name in found.get("counterfactual_ceilings", {})}
    for steps, ways in scores.get("planning", {}).items():
        told[label] |= {f"{way} loop {steps}": one["success"] for way, one in ways.items()}
    for who, part in ((label, found), ("true world", found.get("ceiling", {}))):
        values = {w: part[p[0]][p[1]] for w, p in _GRAPH.items() if p[0] in part}
        told.setdefault(who, {}).update(values)
    if "counterfactual" in found:
        judged = {label: found["counterfactual"], **found["counterfactual_ceilings"]}
        for who, one in judged.items():
            values = {"CF-H@1": one["hits"], "CF-MRR": one["mrr"], "effect": one["effect_error"]}
            told[who].update(values)
    if "read" in found:
        error = found["read"]["counterfactual"]["effect_error"]
        told["true outcomes, read by the probe"] = {"effect": error}
    yield from ((who, values) for who, values in told.items() if values)


def _mean(values: Mapping[str, float]) -> tuple[float, float]:
    array = np.array(list(values.values()))
    return round(float(array.mean()), 4), round(float(array.std()), 4)


# -------------------------------------------------------------------------------------- the pages

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


def sections(_: Settings, tables: Tables, figures: Sequence[str]) -> Iterator[Section]:
    """Yields one part per world for the numbers of a table, one for the graphs.

    Tables of one world share their models, so they say the same of the graph.
    """
    for content in tables:
        remarks = [_LEGEND] if content["comparable"] else [_LEGEND, SMALL]
        if content["table"] in (17, 18):
            remarks.append(_VARIANCES)
        head = f"Table {content['table']}: {content['kind']} in "
        for world, cells in grouped(content["cells"], "world").items():
            judged = [cell["differs"] for cell in cells if cell["differs"] is not None]
            counted = f"{sum(judged)} of {len(judged)} differences have an interval without 0."
            yield head + world, [*remarks, *replay_remark(cells), counted], numbers(cells)
            ranked = [cell for cell in cells if "ours_own_rule" in cell]
            if ranked:
                shown = numbers(ranked, lambda cell: _told(cell["seeds_own_rule"], 2))
                yield f"{head}{world}, own rule", [_OWN_RULE_LEGEND], shown
        for world, cells in grouped(content["draws"], "world").items():
            named = [
                {**c, "loss": f"{c['loss']}, draw {c['draw']}", "published": None} for c in cells
            ]
            yield f"{head}{world}, other draws", [_DRAWS_LEGEND], numbers(named)
        if content["learned"]:
            grid = pivot(Score(**row) for row in content["learned"])
            worlds = ", ".join(dict.fromkeys(row["where"] for row in content["learned"]))
            yield f"Planning and causes in {worlds}", [_LEARNED_LEGEND], grid


def replay_remark(cells: Sequence[Cell]) -> list[str]:
    """Returns why models can be above what the paper calls optimal, where it is among the cells."""
    return [_REPLAY] if any(cell["model"] == "Optimal" for cell in cells) else []


def numbers(cells: Sequence[Cell], show: Callable[[Cell], str] | None = None) -> Grid:
    """Returns the grid of a table: a row per model and loss, a column per metric and horizon."""
    rows = list(dict.fromkeys((cell["loss"], cell["model"]) for cell in cells))
    laid = []
    for cell in sorted(cells, key=lambda c: rows.index((c["loss"], c["model"]))):
        model = _REPLAYED if cell["model"] == "Optimal" else cell["model"]
        column = f"{cell['metric']} {cell['steps']}"
        laid.append(((f"{model} {cell['loss']}",), column, (show or _shown)(cell)))
    return laid_out(laid, ("model",))


def _shown(cell: Cell) -> str:
    ours = _told(cell["seeds"], 3 if cell["metric"] == "Rec" else 2)
    if cell["published"] is None:
        return ours
    theirs = f"{cell['published']:g}"
    if cell["published_deviation"] is not None:
        theirs += f" +- {cell['published_deviation']:.2g}"
    return f"{ours} ({theirs})" + (" *" if cell["differs"] else "")


def _told(seeds: Mapping[str, float], digits: int) -> str:
    """Returns mean and deviation of the seeds' values: those that cells have are rounded."""
    values = list(seeds.values())
    spread = f" +- {float(np.std(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{float(np.mean(values)):.{digits}f}{spread}"
