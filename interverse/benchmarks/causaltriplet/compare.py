"""Our numbers beside the printed ones, under every rule of epoch selection; and the orderings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from interverse.benchmarks.causaltriplet.published import (
    TITLES,
    TripletPrinted,
    logged,
    object_accuracy,
    printed,
)
from interverse.benchmarks.causaltriplet.settings import TripletSettings
from interverse.benchmarks.causaltriplet.variants import (
    SHIFTS,
    TABLES,
    TripletVariant,
    answers_file,
    baseline_variants,
    row_file,
    table_variant,
)
from interverse.benchmarks.causaltriplet.verdicts import chosen_weights, judge, summary
from interverse.models.checkpoint import read_json, write_json
from interverse.models.pairs.selection import RULES

_SETS = {"ID": "test_id", "OOD": "test_ood"}
# OOD orderings that the paper reports: (table, better, worse).
ORDERINGS = (
    (2, "ICM", "vanilla"),
    (2, "SMS", "ICM"),
    (2, "SMS", "vanilla"),
    (3, "oracle-mask", "resnet"),
    (3, "slot-dense", "slot-avg"),
    (3, "slot-match", "slot-dense"),
    (3, "slot-match", "slot-avg"),
    (4, "clip", "resnet"),
    (4, "group-dense", "group-avg"),
    (4, "group-token", "group-dense"),
    (4, "group-token", "group-avg"),
)
HALF_DIGIT = 0.005
"""Of the printed numbers, which have two decimals."""


def paper_rule(table: int, method: str) -> str:
    """Returns the rule of epoch selection that fits the printed row best."""
    return "best_id" if table == 3 and method.startswith("slot") else "best_each"


def compare(settings: TripletSettings, number: int) -> dict[str, Any]:
    """Returns one table's comparison and writes it as JSON; rows without results are left out."""
    cells = [cell for entry in printed(number) if (cell := _cell(settings, number, entry))]
    content: dict[str, Any] = {
        "table": number,
        "title": TITLES[number],
        "budget": settings.budget,
        "source": settings.source,
        "split": settings.split,
        "encoders": sorted({name for cell in cells for name in cell["weights"]}),
        "comparable": _comparable(settings, cells),
        "cells": cells,
        **_claims(settings, number),
        "representations": _representations(settings, number),
        "baselines": _baselines(settings, number),
    }
    if number == 2:
        content["published_object_accuracy"] = object_accuracy()
        content["chosen"] = chosen_weights(settings, records)
    write_json(settings.out / f"table-{number}.json", content)
    return content


def records(settings: TripletSettings, variant: TripletVariant) -> list[dict[str, Any]]:
    """Returns the records on disk of a variant, by seed."""
    paths = (row_file(settings.out, variant, s) for s in range(1, settings.sizes().seeds + 1))
    return [read_json(path) for path in paths if path.exists()]


def scores(found: Sequence[Mapping[str, Any]], rule: str, name: str) -> dict[str, float]:
    """Returns the accuracy by seed under a rule; name is test_id or test_ood."""
    return {str(record["seed"]): record["selection"][rule][name] for record in found}


def _cell(settings: TripletSettings, table: int, entry: TripletPrinted) -> dict[str, Any] | None:
    found = records(settings, table_variant(table, entry.method, entry.shift))
    if not found:
        return None
    rule = paper_rule(table, entry.method)
    ours = {}
    for name in RULES:
        ours[name] = summary(scores(found, name, _SETS[entry.split]))
        ours[name]["difference"] = round(ours[name]["mean"] - entry.mean, 4)
    far = abs(ours[rule]["difference"]) > 2 * (entry.deviation or 0.0) + HALF_DIGIT
    logs = logged(table, entry)
    return {
        "shift": entry.shift,
        "method": entry.method,
        "split": entry.split,
        "published": entry.mean,
        "published_deviation": entry.deviation,
        "published_logs": {name: {"mean": m, "deviation": d} for name, (m, d) in logs.items()},
        "paper_rule": rule,
        "ours": ours,
        "beyond_two_deviations": far,
        "weights": sorted({f"{r['model']['encoder']['name']}: {r['weights']}" for r in found}),
        "sizes": found[0]["sizes"],
    }


def _comparable(settings: TripletSettings, cells: Sequence[Mapping[str, Any]]) -> bool:
    """Whether numbers may be held against the paper's: its budget, and no random encoder."""
    pretrained = all(not name.endswith("random") for c in cells for name in c["weights"])
    return settings.budget == "full" and settings.epochs is None and bool(cells) and pretrained


def _baselines(settings: TripletSettings, table: int) -> list[dict[str, Any]]:
    """Returns the baselines of a table by shift: answers without looking, then trained ones."""
    out = []
    for crop, shift in dict.fromkeys((v.crop, v.shift) for v in baseline_variants(table).values()):
        seeds = range(1, settings.sizes().seeds + 1)
        files = [answers_file(settings.out, crop, shift, seed) for seed in seeds]
        answers = [read_json(path) for path in files if path.exists()]
        for name in ("constant answer", "object only") if answers else ():
            rows = {str(found["seed"]): found[name] for found in answers}
            out.append({"shift": shift, "name": name, **_both(rows)})
    for (shift, name), variant in baseline_variants(table).items():
        rows = {str(r["seed"]): r["selection"]["best_valid"] for r in records(settings, variant)}
        if rows:
            out.append({"shift": shift, "name": name, **_both(rows)})
    return out


def _both(rows: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    return {
        told: summary({seed: row[name] for seed, row in rows.items()})
        for told, name in _SETS.items()
    }


def _claims(settings: TripletSettings, table: int) -> dict[str, list[dict[str, Any]]]:
    """Returns what ours says on the paper's claims; all claims under a rule are one family."""
    gaps, orderings = _gaps(settings, table), _orderings(settings, table)
    claims = [*gaps, *orderings]
    for rule in RULES:
        family = [claim["differences"][rule] for claim in claims]
        for claim, verdict in zip(claims, judge(family), strict=True):
            claim.setdefault("verdicts", {})[rule] = verdict
    for claim in claims:
        del claim["differences"]
    return {
        "gaps": [_named(claim, "id_minus_ood") for claim in gaps],
        "orderings": [_named(claim, "ood") for claim in orderings],
    }


def _named(claim: Mapping[str, Any], name: str) -> dict[str, Any]:
    rest = {key: value for key, value in claim.items() if key != "verdicts"}
    return {**rest, name: claim["verdicts"]}


def _gaps(settings: TripletSettings, table: int) -> list[dict[str, Any]]:
    """Returns ID minus OOD per row and rule: the paper finds it large everywhere."""
    out = []
    for shift, method in _rows(table):
        found = records(settings, table_variant(table, method, shift))
        if found:
            values = {
                rule: _differences(scores(found, rule, "test_id"), scores(found, rule, "test_ood"))
                for rule in RULES
            }
            out.append({"shift": shift, "method": method, "differences": values})
    return out


def _orderings(settings: TripletSettings, table: int) -> list[dict[str, Any]]:
    """Returns the differences of each ordering of the paper by rule; seeds share their split."""
    out = []
    for number, better, worse in ORDERINGS:
        if number != table:
            continue
        for shift in SHIFTS if table == 2 else ("systematic",):
            pair = [records(settings, table_variant(table, m, shift)) for m in (better, worse)]
            if not all(pair):
                continue
            values = {
                rule: _differences(*(scores(found, rule, "test_ood") for found in pair))
                for rule in RULES
            }
            out.append({"shift": shift, "better": better, "worse": worse, "differences": values})
    return out


def _differences(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


def _representations(settings: TripletSettings, table: int) -> list[dict[str, Any]]:
    """Returns means over seeds of what each model's representation holds."""
    out = []
    for shift, method in _rows(table):
        found = records(settings, table_variant(table, method, shift))
        held = [record["analysis"] for record in found if "analysis" in record]
        if held:
            out.append({"shift": shift, "method": method, **representation(held)})
    return out


def representation(held: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Returns means over seeds of object predictability, own-block change and factor scores."""
    rows = []
    for one in held:
        row = {"object": one["object"]["accuracy"], "own_change": one["change"]["own"]}
        factors = one.get("factors", {})
        row |= {name: value for name, value in factors.items() if isinstance(value, float)}
        rows.append(row)
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: float(np.mean([row[name] for row in rows])) for name in names}


def _rows(table: int) -> list[tuple[str, str]]:
    shifts = SHIFTS if table == 2 else ("systematic",)
    return [(shift, method) for shift in shifts for method in TABLES[table]]
