"""Our numbers beside the printed ones, under every rule of epoch selection; and the orderings.

Comparisons are JSON, and pages show them: one Markdown file, one HTML page, figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from interverse.benchmarks.causaltriplet.settings import (
    TITLES,
    TripletSettings,
    baseline_variants,
    found_in,
    logged,
    printed,
    scores,
    sweep_variant,
    table_variants,
)
from interverse.benchmarks.comparison import LEAST_SEEDS, differences, judge, summary
from interverse.benchmarks.driver import Tables
from interverse.core.files.json_text import read_json_object
from interverse.models.pairs.yardsticks import RULES
from interverse.reports.sections import Grid, Section, laid_out

Records = Sequence[Mapping[str, Any]]
Accuracies = Mapping[str, Mapping[str, float]]  # by seed, then test_id and test_ood
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
_WEIGHED = {"ICM": 6, "SMS": 7}  # regularisers, and the figures that sweep their weights
HALF_DIGIT = 0.005
"""Of the printed numbers, which have two decimals."""


def paper_rule(table: int, method: str) -> str:
    """Returns the rule of epoch selection that fits the printed row best."""
    return "best_id" if table == 3 and method.startswith("slot") else "best_each"


def compare(settings: TripletSettings, number: int) -> dict[str, Any]:
    """Returns one table's comparison; rows without results are left out."""
    rows = {key: settings.records(v) for key, v in table_variants(number).items()}
    rows = {key: found for key, found in rows.items() if found}
    cells = []
    for entry in printed(number):
        if not (found := rows.get((entry["shift"], entry["method"]))):
            continue
        rule, ours = paper_rule(number, entry["method"]), {}
        for name in RULES:
            ours[name] = summary(scores(found, name, _SETS[entry["split"]]))
            ours[name]["difference"] = round(ours[name]["mean"] - entry.value, 4)
        logs, far = logged(number, entry), abs(ours[rule]["difference"])
        cell = {
            **{name: entry[name] for name in ("shift", "method", "split")},
            "published": entry.value,
            "published_deviation": entry.spread,
            "published_logs": {name: {"mean": m, "deviation": d} for name, (m, d) in logs.items()},
            "paper_rule": rule,
            "ours": ours,
            "beyond_two_deviations": far > 2 * (entry.spread or 0.0) + HALF_DIGIT,
            "weights": sorted({f"{r['model']['encoder']['name']}: {r['weights']}" for r in found}),
            "sizes": found[0]["sizes"],
        }
        cells.append(cell)
    encoders = sorted({name for cell in cells for name in cell["weights"]})
    pretrained = all(not name.endswith("random") for name in encoders)
    full = settings.budget == "full" and settings.epochs is None
    held = {key: [r["analysis"] for r in found if "analysis" in r] for key, found in rows.items()}
    content: dict[str, Any] = {
        "table": number,
        "title": TITLES[number],
        "budget": settings.budget,
        "source": settings.source,
        "split": settings.split,
        "encoders": encoders,
        "comparable": full and bool(cells) and pretrained,
        "cells": cells,
        **_claims(number, rows),
        "representations": [
            {"shift": shift, "method": method, **representation(found)}
            for (shift, method), found in held.items()
            if found
        ],
        "baselines": list(_baselines(settings, number)),
    }
    if number == 2:
        content["published_object_accuracy"] = found_in("text_4.1.1")[0].value
        content["chosen"] = chosen_weights(settings)
    return content


def answers_file(out: Path, crop: str, shift: str, seed: int) -> Path:
    """Returns where the answers without looking lie, of a shift and seed."""
    return out / "rows" / f"{crop}.{shift}.answers.seed-{seed}.json"


def _baselines(settings: TripletSettings, table: int) -> Iterator[dict[str, Any]]:
    """Yields the baselines of a table by shift: answers without looking, then trained ones."""
    beside = baseline_variants(table)
    for crop, shift in dict.fromkeys((v.crop, v.shift) for v in beside.values()):
        files = [answers_file(settings.out, crop, shift, seed) for seed in settings.every_seed]
        answers = [read_json_object(path) for path in files if path.exists()]
        for name in ("constant answer", "object only") if answers else ():
            rows = {str(found["seed"]): found[name] for found in answers}
            yield {"shift": shift, "name": name, **_both(rows)}
    for (shift, name), variant in beside.items():
        if found := settings.records(variant):
            yield {"shift": shift, "name": name, **_both(_at_best(found))}


def _claims(table: int, rows: Mapping[tuple[str, str], Records]) -> dict[str, list[dict[str, Any]]]:
    """Returns what ours says on the paper's claims; all claims under a rule are one family.

    The claims are that ID is above OOD in every row, and the orderings; seeds share their split.
    """
    gaps = [
        ({"shift": shift, "method": method}, (found, "test_id"), (found, "test_ood"))
        for (shift, method), found in rows.items()
    ]
    orderings = [
        (
            {"shift": shift, "better": better, "worse": worse},
            (rows[shift, better], "test_ood"),
            (rows[shift, worse], "test_ood"),
        )
        for number, better, worse in ORDERINGS
        for shift in dict.fromkeys(shift for shift, _ in table_variants(table))
        if number == table and (shift, better) in rows and (shift, worse) in rows
    ]
    verdicts: list[dict[str, Any]] = [{} for _ in (*gaps, *orderings)]
    for rule in RULES:
        family = []
        for _, above, below in (*gaps, *orderings):
            sides = (scores(found, rule, name) for found, name in (above, below))
            family.append(differences(*sides))
        for told, verdict in zip(verdicts, judge(family), strict=True):
            told[rule] = verdict
    each = iter(verdicts)
    return {
        "gaps": [{**claim, "id_minus_ood": next(each)} for claim, _, _ in gaps],
        "orderings": [{**claim, "ood": next(each)} for claim, _, _ in orderings],
    }


def representation(held: Records) -> dict[str, float]:
    """Returns means over seeds of object predictability, own-block change and factor scores."""
    rows = []
    for one in held:
        row = {"object": one["object"]["accuracy"], "own_change": one["change"]["own"]}
        factors = one.get("factors", {})
        row |= {name: value for name, value in factors.items() if isinstance(value, float)}
        rows.append(row)
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: float(np.mean([row[name] for row in rows])) for name in names}


def chosen_weights(settings: TripletSettings) -> list[dict[str, Any]]:
    """Returns per regulariser what its best weight on ID validation gives, and the gain over none.

    The best weight of a seed is the one whose best epoch is best on validation.
    """
    out, gains = [], []
    for method, figure in _WEIGHED.items():
        values = settings.sizes().sweeps[figure]
        rows = {v: settings.records(sweep_variant(figure, v)) for v in values}
        rows = {value: found for value, found in rows.items() if found}
        if 0.0 not in rows or len(rows) < 2:
            continue
        plain, best = _at_best(rows[0.0]), {}
        for seed in plain:
            held = {v: r for v, found in rows.items() for r in found if str(r["seed"]) == seed}
            top = max(held, key=lambda v: max(row["valid"] for row in held[v]["history"]))
            best[seed] = top, held[top]["selection"]["best_valid"]
        picked = {seed: row for seed, (_, row) in best.items()}
        swept = {value: _at_best(found) for value, found in sorted(rows.items())}
        out.append(
            {
                "method": method,
                "values": sorted(rows),
                "weights": {seed: value for seed, (value, _) in best.items()},
                **_both(picked),
                "sweep": [
                    {"weight": value, **_both(own), "gain": summary(_gain(own, plain))}
                    for value, own in swept.items()
                ],
            }
        )
        gains.append(_gain(picked, plain))
    for entry, verdict in zip(out, judge(gains), strict=True):
        entry["gain"] = verdict
    return out


def _at_best(found: Records) -> Accuracies:
    """Returns by seed both accuracies at the epoch that is best on validation."""
    return {str(record["seed"]): record["selection"]["best_valid"] for record in found}


def _both(rows: Accuracies) -> dict[str, Any]:
    return {
        told: summary({seed: row[name] for seed, row in rows.items()})
        for told, name in _SETS.items()
    }


def _gain(rows: Accuracies, plain: Accuracies) -> dict[str, float]:
    one, other = ({s: row["test_ood"] for s, row in side.items()} for side in (rows, plain))
    return differences(one, other)


# -------------------------------------------------------------------------------------- the pages

_LEGEND = (
    "Accuracy, mean over seeds and standard deviation; then the published number in brackets. Each"
    " rule says which epoch counts: the last, the best on validation, the best on the ID test, or"
    " the best of each test set on itself (which looks at the answer). A plus marks the rule that"
    " fits the published row, a star a difference of more than two published deviations there."
)
_SMALL = (
    "Not the paper's data, weights or budget: the published numbers stand here for orientation"
    " alone."
)
_ORDER_LEGEND = (
    "OOD accuracy of the first minus the second, by seed, with its 95% t interval. Confirmed or"
    f" contradicted: a paired t-test over at least {LEAST_SEEDS} seeds, corrected by Holm's rule"
    " for all claims of the column, finds p below 0.05."
)
_HELD_LEGEND = (
    "Of the last epoch's features: object is how often a network tells the object class from the"
    " action embedding (published for vanilla: 0.87); own_change the share of change in the"
    " action's own block; the rest against true factors."
)
_BASE_LEGEND = (
    "Always the commonest action; the commonest action of the object; a model on pictures cut to"
    " the pixels that changed; a model that is told the object's mask. Trained ones at the epoch"
    " that is best on validation."
)
_CHOSEN_LEGEND = (
    "Per seed, the weight with the best accuracy on ID validation; gain is OOD accuracy over weight"
    " 0. Then every weight of the sweep by itself."
)


def sections(_: TripletSettings, tables: Tables, figures: Sequence[str]) -> Iterator[Section]:
    """Yields the numbers of each table, and what can be said of them."""
    for content in tables:
        if not content["cells"]:
            continue
        table = content["table"]
        remarks = [_LEGEND] if content["comparable"] else [_LEGEND, _SMALL]
        remarks.append(f"Encoders: {'; '.join(content['encoders'])}.")
        yield content["title"], remarks, _numbers(content["cells"])
        gaps, orderings = content["gaps"], content["orderings"]
        if orderings or gaps:
            claims = [(f"{g['method']}: ID above OOD", g, g["id_minus_ood"]) for g in gaps]
            claims += [(f"{e['better']} above {e['worse']}", e, e["ood"]) for e in orderings]
            cells = [
                ((name, entry["shift"]), rule, _verdict_text(told[rule]))
                for name, entry, told in claims
                for rule in RULES
            ]
            head = ("claim", "shift")
            yield f"Orderings of table {table}", [_ORDER_LEGEND], laid_out(cells, head)
        if content["baselines"]:
            grid: Grid = [["baseline", "shift", "ID", "OOD"]]
            for e in content["baselines"]:
                grid.append([e["name"], e["shift"], *_spreads(e, "ID", "OOD")])
            yield f"Baselines of table {table}", [_BASE_LEGEND], grid
        if content.get("chosen"):
            grid = [["regulariser", "weight", "ID", "OOD", "gain in OOD"]]
            for entry in content["chosen"]:
                gain = _verdict_text(entry["gain"])
                grid.append([entry["method"], "chosen", *_spreads(entry, "ID", "OOD"), gain])
                for point in entry["sweep"]:
                    sets = _spreads(point, "ID", "OOD", "gain")
                    grid.append([entry["method"], f"{point['weight']:g}", *sets])
            yield "Regularisers, weight chosen on validation", [_CHOSEN_LEGEND], grid
        if found := content["representations"]:
            held = [
                ((row["shift"], row["method"]), name, f"{value:.3f}")
                for row in found
                for name, value in row.items()
                if name not in ("shift", "method")
            ]
            head = ("shift", "method")
            yield f"What the models of table {table} hold", [_HELD_LEGEND], laid_out(held, head)


def _numbers(cells: Records) -> Grid:
    laid = []
    for cell in cells:
        for rule in RULES:
            ours = cell["ours"][rule]
            text = f"{ours['mean']:.3f}"
            if len(ours["seeds"]) > 1:
                text += f" +- {ours['deviation']:.3f}"
            if rule == cell["paper_rule"]:
                text += f" ({cell['published']:.2f} +- {cell['published_deviation']:.2f}) +"
                text += " *" if cell["beyond_two_deviations"] else ""
            laid.append(((cell["method"], cell["shift"], cell["split"]), rule, text))
    return laid_out(laid, ("model", "shift", "set"))


def _spreads(found: Mapping[str, Any], *names: str) -> list[str]:
    return [f"{found[n]['mean']:.3f} +- {found[n]['deviation']:.3f}" for n in names]


def _verdict_text(verdict: Mapping[str, Any]) -> str:
    if "mean" not in verdict:
        return str(verdict["verdict"])
    ends = ""
    if verdict["low"] is not None:
        ends = f" [{verdict['low']:+.3f}, {verdict['high']:+.3f}]"
    return f"{verdict['verdict']}: {verdict['mean']:+.3f}{ends}"
