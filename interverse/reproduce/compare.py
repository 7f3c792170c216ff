"""Our numbers beside the printed ones: means over seeds, differences, and which are far off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from interverse.models.checkpoint import read_json, write_json
from interverse.reproduce.published import Printed, printed, table
from interverse.reproduce.rows import Record, Row, baselines_name, discovery_file, row_file
from interverse.reproduce.settings import Settings
from interverse.reproduce.train import asked

Records = Mapping[tuple[str, str, str], Sequence[Mapping[str, Any]]]

_HALF_DIGIT = 0.005  # printed numbers have two decimals (Tables 17 and 18: three)
_FIELDS = {
    "H@1": "hits",
    "MRR": "mrr",
    "Rec": "reconstruction",
    "Reward": "reward",
    "Success": "success",
}
_GUARDED = {"H@1": "guarded_hits", "MRR": "guarded_mrr"}


def compare(settings: Settings, number: int) -> dict[str, Any]:
    """Returns one table's comparison and writes it as JSON; cells without results are left out.

    Values are not rounded before they are averaged, as the original did; that moves a mean by half
    a unit of the second decimal at most, which no cell is called far off for.
    """
    about = table(number)
    records = load_records(settings)
    cells = [
        cell
        for entry in (*printed(number), *_unprinted(number))
        if entry.world in settings.worlds(number)
        if (cell := _cell(entry, about.kind, records))
    ]
    content = {
        "table": number,
        "title": about.title,
        "kind": about.kind,
        "budget": settings.budget,
        "epochs": settings.epochs,
        "comparable": settings.budget == "full" and settings.epochs is None,
        "cells": cells,
        "recovery": _recovery(settings.worlds(number), records),
        "discovery": _discovery(settings, number),
    }
    write_json(settings.out / f"table-{number:02d}.json", content)
    return content


def load_records(settings: Settings) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Returns the records on disk by (world, loss, model); baselines have loss "Baseline"."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in settings.rows():
        own = _read(settings, row.name, asked(settings, row))
        found[row.world, row.loss, row.model] = own
        episodes = settings.budget_of(row).episodes
        found[row.world, "Baseline", ""] = _read(
            settings, baselines_name(row.world), {"world": row.world, "episodes": episodes}
        )
    return found


def _read(settings: Settings, name: str, made_with: Mapping[str, Any]) -> list[dict[str, Any]]:
    seeds = range(1, settings.seeds + 1)
    paths = {seed: row_file(settings.out, name, seed) for seed in seeds}
    return [
        Record(path, {**made_with, "seed": seed}).content
        for seed, path in paths.items()
        if path.exists()
    ]


def _cell(entry: Printed, kind: str, records: Records) -> dict[str, Any] | None:
    """Returns our numbers for a printed one, or None where there are none."""
    field = _FIELDS[entry.metric]
    seeds = _values(entry, kind, field, records)
    if not seeds:
        return None
    ours, spread = _mean(seeds)
    cell = {
        "world": entry.world,
        "loss": entry.loss,
        "model": entry.model,
        "steps": entry.steps,
        "metric": entry.metric,
        "ours": ours,
        "ours_deviation": spread,
        "seeds": seeds,
        **_published(entry, ours),
    }
    if entry.metric in _GUARDED:
        cell["ours_guarded"] = _mean(_values(entry, kind, _GUARDED[entry.metric], records))[0]
    return cell


def _published(entry: Printed, ours: float) -> dict[str, Any]:
    """Returns the printed number and how far ours is from it; None where nothing is printed."""
    told = not math.isnan(entry.mean)
    deviation, difference = entry.deviation, ours - entry.mean
    far = None if deviation is None else abs(difference) > 2 * deviation + _HALF_DIGIT
    return {
        "published": entry.mean if told else None,
        "published_plus_minus": entry.plus_minus,
        "published_deviation": deviation,
        "difference": round(difference, 4) if told else None,
        "beyond_two_deviations": far,
    }


def _values(entry: Printed, kind: str, field: str, records: Records) -> dict[str, float]:
    """Returns our value of every seed."""
    if entry.loss == "Baseline":
        found, variant = records.get((entry.world, "Baseline", ""), ()), entry.model
    else:
        loss = "contrastive" if entry.loss == "Contrastive" else "nll"
        found = records.get((entry.world, loss, entry.model.lower()), ())
        variant = entry.loss
    out = {}
    for record in found:
        score = record["scores"].get(variant, {}).get(kind)
        if score is not None:
            at = score[str(entry.steps)]
            out[str(record["seed"])] = at.get("open", at)[field]
    return out


def _unprinted(number: int) -> list[Printed]:
    """Returns cells the paper leaves out: doing nothing, and chemistry's fine-tuned models."""
    kinds = {("Baseline", "Random"): ("Baseline", "Nothing")}
    if number in (17, 18):
        kinds |= {
            ("NLL", name): ("NLL Finetuned", name) for name in ("AE", "GNN", "Modular", "VAE")
        }
    out = []
    for entry in printed(number):
        if (entry.loss, entry.model) in kinds:
            loss, model = kinds[entry.loss, entry.model]
            out.append(replace(entry, loss=loss, model=model, mean=math.nan, plus_minus=None))
    return out


def _recovery(worlds: Sequence[str], records: Records) -> list[dict[str, Any]]:
    """Returns graph-recovery scores of every model and variant, means over seeds."""
    out = []
    for (world, loss, model), found in sorted(records.items()):
        if loss == "Baseline" or world not in worlds:
            continue
        for variant in Row(world=world, loss=loss, model=model).variants:
            scores = [r["scores"][variant]["recovery"] for r in found if _has(r, variant)]
            if scores:
                out.append({"world": world, "loss": variant, "model": model, **_graph(scores)})
    return out


def _discovery(settings: Settings, number: int) -> list[dict[str, Any]]:
    """Returns what PC and GES found, where they were run."""
    out = []
    for world in settings.worlds(number):
        path = discovery_file(settings.out, world)
        if path.exists():
            scores = read_json(path)["scores"]
            out += [{"world": world, "method": m, **scores[m]} for m in scores]
    return out


def _has(record: Mapping[str, Any], variant: str) -> bool:
    return "recovery" in record["scores"].get(variant, {})


def _graph(scores: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    def mean(part: str, name: str) -> float:
        return round(float(np.mean([score[part][name] for score in scores])), 4)

    return {
        "average_precision": mean("edges", "average_precision"),
        "f1_best_threshold": mean("edges", "f1"),
        "shd_best_threshold": mean("edges", "shd"),
        "f1": mean("fixed", "f1"),
        "shd": mean("fixed", "shd"),
        "ancestors_f1": mean("ancestors", "f1"),
        "total_effect_error": round(
            float(np.mean([score["total_effect_error"] for score in scores])), 4
        ),
        "seeds": len(scores),
    }


def _mean(values: Mapping[str, float]) -> tuple[float, float]:
    array = np.array(list(values.values()))
    return round(float(array.mean()), 4), round(float(array.std()), 4)
