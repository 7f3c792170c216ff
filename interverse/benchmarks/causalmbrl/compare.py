"""Our numbers beside the printed ones: means over seeds, differences and their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from scipy import stats

from interverse.benchmarks.causalmbrl.published import Printed, printed, table
from interverse.benchmarks.causalmbrl.rows import VARIANTS, baselines_name, discovery_file, row_file
from interverse.benchmarks.causalmbrl.settings import Settings
from interverse.benchmarks.tidy import Score
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
    records = load_records(settings)
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
        "learned": [asdict(score) for score in learned(settings, number, records)],
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


def learned(settings: Settings, number: int, records: Records) -> Iterator[Score]:
    """Yields planning both ways and what models know of causes, after their yardsticks.

    The true world in a model's place is the ceiling; PC and GES see true states, where asked for.
    """
    worlds = settings.worlds(number)
    for (world, loss, model), found in sorted(records.items()):
        if loss == "Baseline" or world not in worlds:
            continue
        for record in found:
            draw = record.get("cpt_seed", 0)
            where = f"{world}, draw {draw}" if draw else world
            for variant in VARIANTS[loss]:
                scores = record["scores"].get(variant, {})
                for who, values in _known(f"{model} {variant}", scores):
                    run = _seed_name(record) if who.startswith(model) else ""
                    for what, value in values.items():
                        yield Score(where=where, who=who, what=what, value=value, run=run)
    for world in worlds:
        for draw in settings.draws(world):
            path = discovery_file(settings.out, world, draw)
            where = f"{world}, draw {draw}" if draw else world
            for who, own in read_json(path)["scores"].items() if path.exists() else ():
                for what, field in _DISCOVERED.items():
                    yield Score(where=where, who=f"{who} on states", what=what, value=own[field])


_GRAPH = {
    "F1": ("fixed", "f1"),
    "SHD": ("fixed", "shd"),
    "average precision": ("edges", "average_precision"),
    "ancestors F1": ("ancestors", "f1"),
}
_DISCOVERED = {"F1": "f1", "SHD": "shd", "skeleton F1": "skeleton_f1"}


def _known(label: str, scores: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields scores of one run by name: the model's, then the ceilings' that stand in its row."""
    own: dict[str, float] = {}
    for steps, ways in scores.get("planning", {}).items():
        own |= {f"{way} loop {steps}": one["success"] for way, one in ways.items()}
    found = scores.get("recovery", {})
    parts = {label: found, "true world": found.get("ceiling", {})}
    ceilings = {name: dict[str, float]() for name in found.get("counterfactual_ceilings", {})}
    for who, part in parts.items():
        values = {w: part[p[0]][p[1]] for w, p in _GRAPH.items() if p[0] in part}
        if who == label:
            own |= values
        else:
            ceilings.setdefault(who, {}).update(values)
    if "counterfactual" in found:
        judged = {label: found["counterfactual"], **found["counterfactual_ceilings"]}
        for who, one in judged.items():
            values = {"CF-H@1": one["hits"], "CF-MRR": one["mrr"], "effect": one["effect_error"]}
            if who == label:
                own |= values
            else:
                ceilings[who] |= values
    if "read" in found:
        error = found["read"]["counterfactual"]["effect_error"]
        ceilings["true outcomes, read by the probe"] = {"effect": error}
    if own:
        yield label, own
    yield from ((who, values) for who, values in ceilings.items() if values)


def _mean(values: Mapping[str, float]) -> tuple[float, float]:
    array = np.array(list(values.values()))
    return round(float(array.mean()), 4), round(float(array.std()), 4)
