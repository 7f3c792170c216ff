"""Our numbers beside the printed ones: means over seeds, differences and their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from interverse.benchmarks.causalmbrl.published import Printed, printed, table
from interverse.benchmarks.causalmbrl.rows import VARIANTS, baselines_name, discovery_file, row_file
from interverse.benchmarks.causalmbrl.settings import Settings
from interverse.fit.work import Record
from interverse.models.checkpoint import read_json, write_json

PUBLISHED_SEEDS = 3
"""Seeds behind each printed number."""
LEVEL = 0.95


def welch(
    ours: Sequence[float], mean: float, deviation: float, *, count: int = PUBLISHED_SEEDS
) -> tuple[float, float] | None:
    """Returns the 95 % interval of our mean minus theirs; None where we have one value only.

    Args:
        ours: our values, one per seed.
        mean: the printed mean.
        deviation: the printed standard deviation, of the population of `count` seeds.
        count: how many seeds are behind the printed mean.

    >>> low, high = welch([1.0, 2.0, 3.0], 2.0, 1.0)
    >>> round(low, 2), round(high, 2)
    (-2.58, 2.58)
    """
    values = np.asarray(ours, dtype=float)
    if len(values) < 2:
        return None
    own = float(values.var(ddof=1)) / len(values)
    other = deviation**2 / (count - 1)  # the population's variance, corrected, over count
    difference = float(values.mean()) - mean
    if own + other == 0.0:
        return difference, difference
    freedom = (own + other) ** 2 / (own**2 / (len(values) - 1) + other**2 / (count - 1))
    reach = float(stats.t.ppf(0.5 + LEVEL / 2, freedom)) * math.sqrt(own + other)
    return difference - reach, difference + reach


Key = tuple[str, str, str]  # world, loss, model
Records = Mapping[Key, Sequence[Mapping[str, Any]]]

_HALF_DIGIT = 0.005  # printed numbers have two decimals (Tables 17 and 18: three)
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
    """Returns one table's comparison and writes it as JSON; cells without results are left out.

    Values are not rounded before they are averaged, as the original did; that moves a mean by half
    a unit of the second decimal at most, which no cell is called far off for. The cells are of draw
    0 of the world's mechanisms: another draw is another world, no further run of this one, and
    stands apart.
    """
    about = table(number)
    records, worlds = load_records(settings), settings.worlds(number)
    every = {draw: _of_draw(records, draw) for draw in range(settings.cpt_seeds)}
    content = {
        "table": number,
        "title": about.title,
        "kind": about.kind,
        "budget": settings.budget,
        "epochs": settings.epochs,
        "pretrain_epochs": settings.pretrain_epochs,
        "comparable": settings.budget == "full"
        and settings.epochs is None
        and settings.pretrain_epochs is None,
        "cells": _cells(settings, number, every[0]),
        "draws": [
            {"draw": draw, **{name: cell[name] for name in _OF_A_DRAW}}
            for draw, own in every.items()
            if draw > 0
            for cell in _cells(settings, number, own)
        ],
        "recovery": [
            {**entry, "draw": draw} if draw > 0 else entry
            for draw, own in every.items()
            for entry in _recovery(worlds, own)
        ],
        "discovery": _discovery(settings, number),
    }
    write_json(settings.out / f"table-{number:02d}.json", content)
    return content


def _cells(settings: Settings, number: int, records: Records) -> list[dict[str, Any]]:
    """Returns the cells of a table that there are records for."""
    return [
        cell
        for entry in (*printed(number), *_unprinted(number))
        if entry.world in settings.worlds(number)
        if (cell := _cell(entry, table(number).kind, records))
    ]


def _of_draw(records: Records, draw: int) -> dict[Key, list[Mapping[str, Any]]]:
    """Returns the records of one draw of the mechanisms; worlds without any have draw 0."""
    return {
        key: [record for record in found if record.get("cpt_seed", 0) == draw]
        for key, found in records.items()
    }


def load_records(settings: Settings) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Returns the records on disk by (world, loss, model); baselines have loss "Baseline"."""
    found: dict[Key, list[dict[str, Any]]] = {}
    baselines: dict[str, Mapping[str, Any]] = {}
    for row in settings.rows():
        own = _read(settings, row.name, settings.asked(row))
        found.setdefault((row.world, row.loss, row.model), []).extend(own)
        episodes = settings.budget_of(row).episodes
        settled: dict[str, Any] = {"world": row.world, "episodes": episodes, **row.options}
        baselines[baselines_name(row.world, row.cpt_seed)] = settled
    for name, made_with in baselines.items():
        key = (made_with["world"], "Baseline", "")
        found.setdefault(key, []).extend(_read(settings, name, made_with))
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
        **_published(entry, seeds),
    }
    if entry.metric in _OWN_RULE:
        own = _values(entry, kind, _OWN_RULE[entry.metric], records)
        if own:
            cell |= {"ours_own_rule": _mean(own)[0], "seeds_own_rule": own}
    return cell


def _published(entry: Printed, seeds: Mapping[str, float]) -> dict[str, Any]:
    """Returns the printed number and how far ours is from it; None where nothing is printed."""
    printed_at_all = not math.isnan(entry.mean)
    deviation, values = entry.deviation, list(seeds.values())
    interval = None
    if printed_at_all and deviation is not None:
        interval = welch(values, entry.mean, deviation)
    difference = float(np.mean(values)) - entry.mean
    return {
        "published": entry.mean if printed_at_all else None,
        "published_plus_minus": entry.plus_minus,
        "published_plus_minus_is": entry.plus_minus_is,
        "published_deviation": deviation,
        "difference": round(difference, 4) if printed_at_all else None,
        "difference_interval": None if interval is None else [round(v, 4) for v in interval],
        "differs": None if interval is None else _excludes_zero(*interval),
    }


def _excludes_zero(low: float, high: float) -> bool:
    return low > _HALF_DIGIT or high < -_HALF_DIGIT


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
            value = at.get("open", at).get(field)
            if value is not None:
                out[_seed_name(record)] = value
    return out


def _seed_name(record: Mapping[str, Any]) -> str:
    """Returns a record's seed, with the draw of the world's mechanisms where there is one."""
    draw = record.get("cpt_seed")
    return str(record["seed"]) if draw is None else f"{draw}/{record['seed']}"


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
        for variant in VARIANTS[loss]:
            scores = {
                _seed_name(r): r["scores"][variant]["recovery"] for r in found if _has(r, variant)
            }
            if scores:
                out.append({"world": world, "loss": variant, "model": model, **_graph(scores)})
    return out


def _discovery(settings: Settings, number: int) -> list[dict[str, Any]]:
    """Returns what PC and GES found, where they were run."""
    out = []
    for world in settings.worlds(number):
        for draw in settings.draws(world):
            path = discovery_file(settings.out, world, draw)
            if path.exists():
                scores = read_json(path)["scores"]
                out += [{"world": world, "draw": draw, "method": m, **scores[m]} for m in scores]
    return out


def _has(record: Mapping[str, Any], variant: str) -> bool:
    return "recovery" in record["scores"].get(variant, {})


def _graph(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns means over seeds, the world's own scores (the ceiling), and F1 seed by seed."""

    def mean(*path: str) -> float:
        return round(float(np.mean([_at(score, path) for score in scores.values()])), 4)

    ceilings = all("ceiling" in score for score in scores.values())
    return {
        "average_precision": mean("edges", "average_precision"),
        "f1_best_threshold": mean("edges", "f1"),
        "shd_best_threshold": mean("edges", "shd"),
        "f1": mean("fixed", "f1"),
        "shd": mean("fixed", "shd"),
        "f1_ceiling": mean("ceiling", "fixed", "f1") if ceilings else None,
        "shd_ceiling": mean("ceiling", "fixed", "shd") if ceilings else None,
        "ancestors_f1": mean("ancestors", "f1"),
        "total_effect_error": mean("total_effect_error"),
        "counterfactual": _counterfactual(list(scores.values())),
        "seeds": {name: round(score["fixed"]["f1"], 4) for name, score in scores.items()},
    }


def _counterfactual(scores: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]] | None:
    """Returns counterfactual scores of the model and of its yardsticks, means over seeds."""
    if not all("counterfactual" in score for score in scores):
        return None
    each = [{"model": s["counterfactual"], **s["counterfactual_ceilings"]} for s in scores]
    out = {
        name: {
            field: round(float(np.mean([one[name][field] for one in each])), 4)
            for field in ("hits", "mrr", "effect_error")
        }
        for name in each[0]
        if all(name in one for one in each)
    }
    if all("read" in score for score in scores):
        read = [score["read"]["counterfactual"]["effect_error"] for score in scores]
        out["model"]["effect_error_read"] = round(float(np.mean(read)), 4)
    return out


def _at(score: Mapping[str, Any], path: Sequence[str]) -> float:
    found: Any = score
    for name in path:
        found = found[name]
    return float(found)


def _mean(values: Mapping[str, float]) -> tuple[float, float]:
    array = np.array(list(values.values()))
    return round(float(array.mean()), 4), round(float(array.std()), 4)
