"""Results of recognition, printed from the rows of results/causaltriplet.

Usage: python tools/recognition_page.py [--check]; writes results/causaltriplet/tables.md and the
table between the marks of docs/recognition_results.md, or exits 1 if they are not what rows say.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from interverse.benchmarks.causaltriplet.compare import HALF_DIGIT
from interverse.benchmarks.causaltriplet.confounding import curve, curve_claims, curve_figure
from interverse.benchmarks.comparison import judge, summary
from interverse.reports.plots.style import save
from interverse.reports.sections import Grid, markdown, with_table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "recognition_results.md"
RESULTS = ROOT / "results" / "causaltriplet"
TABLES = RESULTS / "tables.md"
RULE = "best_valid"
Rows = Sequence[Mapping[str, Any]]


def printed() -> str:
    """Returns the results of every folder as Markdown."""
    folders = {
        path.parent: [json.loads(f.read_text()) for f in sorted(path.parent.glob("table-*.json"))]
        for path in sorted(RESULTS.glob("*/summary.md"))
    }
    # What helps out of distribution, of every folder with enough seeds for a verdict.
    claims = [
        (f"{entry['better']} above {entry['worse']}", entry["shift"], folder.name, entry["ood"])
        for folder, tables in folders.items()
        for table in tables
        for entry in table["orderings"]
    ]
    grid = [["claim out of distribution", "shift", "folder", "verdict"]]
    for claim, shift, name, found in sorted(claims, key=lambda row: row[:3]):
        if "p" in found[RULE]:  # tested: seeds are enough
            grid.append([claim, shift, name, _told(found[RULE])])
    parts = ["#### In short", markdown(grid)]
    for folder, tables in folders.items():
        rows = [row for row in _read(folder / "rows") if "sizes" in row]
        parts += _folder(folder, rows, tables)
    curves = curve(RESULTS / "confounding")
    parts += _curve(curves) if curves else []
    parts += _actions(json.loads((RESULTS / "confounding" / "actions.json").read_text()))
    return "\n\n".join([*parts, *_recovery(_read(RESULTS / "recovery"))])


def _read(folder: Path) -> Rows:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.seed-*.json"))]


def _curve(rows: Rows) -> list[str]:
    """Returns accuracy by model and strength of the confounder, and what can be claimed."""
    strengths = sorted({row["strength"] for row in rows})
    sizes = [_span([row["sizes"][name] for row in rows]) for name in ("train", "test_id")]
    seeds = _span([len(row["test_ood"]["seeds"]) for row in rows])
    grid = [["model", "set", *(f"{strength:g}" for strength in strengths)]]
    for model in dict.fromkeys(row["model"] for row in rows):
        held = {row["strength"]: row for row in rows if row["model"] == model}
        for name, word in (("test_id", "ID"), ("test_ood", "OOD")):
            grid.append([model, word, *(_spread(held[s][name]) for s in strengths)])
    return [
        "#### confounding",
        "![Accuracy against strength of the confounder](confounding/curve.svg)",
        "The same houses at each strength, a quarter of them for testing: trained on"
        f" {sizes[0]} pairs, tested on {sizes[1]}; {seeds} seeds, mean and deviation.",
        markdown(grid),
        "\n".join(f"- {name}: {_told(verdict)}" for name, verdict in curve_claims(rows)),
    ]


_SHARES = {
    "both_sides_possible": "possible on both sides",
    "action_on_the_coins_side": "action on the coin's side",
    "class_on_the_coins_side": "class on the coin's side",
    "class_bits": "class tells of the action (bits)",
    "coin_bits": "coin tells (bits)",
}


def _actions(found: Mapping[str, Any]) -> list[str]:
    """Returns how much of the action the confounder decides."""
    grid = [["strength", "actions drawn", *_SHARES.values()]]
    for strength, row in found["strengths"].items():
        shares = [f"{row[name]:.3f}" for name in _SHARES]
        grid.append([strength, f"{row['draws']:,}", *shares])
    ends = [*found["strengths"]]
    told = (
        f"`{found['command']}`: actions drawn as those of pairs, in {found['houses']} houses,"
        f" without pictures. P(action given class) at strengths {ends[0]} and {ends[-1]} is"
        f" {found['variation']:.3f} apart (total variation);"
        f" shuffled, up to {found['variation_by_chance_95']:.3f} (95 %)."
    )
    return [told, markdown(grid)]


_SCORES = {
    "mcc_spearman": "MCC",
    "r2_diagonal": "R2 own",
    "dci_disentanglement": "DCI D",
    "dci_completeness": "DCI C",
    "dci_informativeness": "DCI I",
}
_OLD_HALVES = (
    "R2 and DCI I here are likely too high: halves were drawn picture by picture, so that readers"
    " were fitted on pictures nearly equal to those that judged them. Today all pictures of a house"
    " lie in one half."
)


def _recovery(rows: Rows) -> list[str]:
    """Returns recovery scores of the methods, means over seeds."""
    if not rows:
        return []
    sizes = [_span([row["sizes"][name] for row in rows]) for name in ("train", "test_id")]
    pairs = f"trained on {sizes[0]} pairs, {rows[0]['steps']:,} steps; tested on {sizes[1]}"
    names = [n for n in _SCORES if all(n in row["scores"] for row in rows)]
    parts = ["#### recovery", f"Factors: {', '.join(rows[0]['scores']['names'])}; {pairs}."]
    if any(row["scores"].get("halves") != "groups" for row in rows):
        parts.append(_OLD_HALVES)
    grid = [["method", "seeds", *(_SCORES[name] for name in names), "pictures"]]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        cells = [_over([row["scores"][name] for row in mine]) for name in names]
        seen = [row["pictures"]["picture_score"] for row in mine if row.get("pictures")]
        grid.append([method, str(len(mine)), *cells, _over(seen) if seen else "-"])
    return [*parts, markdown(grid)]


def _over(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return _spread({"mean": statistics.fmean(values), "deviation": statistics.pstdev(values)})


def _folder(folder: Path, rows: Rows, tables: Rows) -> list[str]:
    """Returns encoders and sizes of a folder, then each of its tables with all that is beside."""
    own = "pretrained on the same pictures"
    weights = [own if "slots" in row["weights"] else row["weights"] for row in rows]
    named = zip(rows, weights, strict=True)
    encoders = {f"{row['model']['encoder']['name']}, {told}" for row, told in named}
    frozen = {"frozen" if row["model"]["frozen"] else "trained" for row in rows}
    names = {"train": "trained on", "valid": "validated on", "test_id": "ID", "test_ood": "OOD"}
    told = [f"{word} {_span([r['sizes'][name] for r in rows])}" for name, word in names.items()]
    seeds, size = len({row["seed"] for row in rows}), min(row["budget"]["size"] for row in rows)
    parts = [
        f"#### {folder.name}",
        f"Encoders: {'; '.join(sorted(encoders))} ({', '.join(sorted(frozen))}).\n"
        f"Pairs: {', '.join(told)}. {seeds} seeds, {size} px, {len(rows)} runs.",
    ]
    for table in tables:
        _check(folder, rows, table)
        parts.append(markdown(_cells(table["cells"])))
        parts += [markdown(_baselines(table))] if table.get("baselines") else []
        parts += [markdown(_chosen(table["chosen"]))] if table.get("chosen") else []
        if held := table["representations"]:
            grid = [["model", "shift", "object told", "change in the action's own block"]]
            for e in held:
                told = [f"{e['object']:.3f}", f"{e['own_change']:.3f}"]
                grid.append([e["method"], e["shift"], *told])
            parts.append(markdown(grid))
        claims = [
            (f"{e['method']}, {e['shift']}: ID above OOD", e["id_minus_ood"]) for e in table["gaps"]
        ]
        for e in table["orderings"]:
            name = f"{e['better']} above {e['worse']} out of distribution, {e['shift']}"
            claims.append((name, e["ood"]))
        parts.append("\n".join(f"- {name}: {_told(one[RULE])}" for name, one in claims))
    return parts


def _check(folder: Path, rows: Rows, table: Mapping[str, Any]) -> None:
    """Raises ValueError where a stored table holds another accuracy than the rows it is made of."""
    kind = {2: "single", 3: "multi"}[table["table"]]

    def accuracy(shift: str, method: str, name: str) -> dict[str, float]:
        model = "vanilla" if method == "resnet" else method.lower()
        mine = [row for row in rows if row["variant"] == f"{kind}.{shift}.{model}"]
        return {str(row["seed"]): row["selection"][RULE][name] for row in mine}

    found = []
    for cell in table["cells"]:
        name = {"ID": "test_id", "OOD": "test_ood"}[cell["split"]]
        found.append((cell["ours"], accuracy(cell["shift"], cell["method"], name)))
    for gap in table["gaps"]:
        both = [accuracy(gap["shift"], gap["method"], name) for name in ("test_id", "test_ood")]
        found.append((gap["id_minus_ood"], _minus(*both)))
    for pair in table["orderings"]:
        both = [accuracy(pair["shift"], pair[word], "test_ood") for word in ("better", "worse")]
        found.append((pair["ood"], _minus(*both)))
    for stored, values in found:
        told = {name: stored[RULE].get(name) for name in ("mean", "deviation", "low", "high")}
        said = {name: summary(values)[name] for name in told} if values else dict.fromkeys(told)
        if not _agree(told, said):
            raise ValueError(f"{folder.name}: the table says {told}, the rows {said}")


def _agree(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> bool:
    """Returns whether numbers are the same but for the order in which seeds were added up."""
    return all(
        a is b if a is None or b is None else math.isclose(a, b, rel_tol=0.0, abs_tol=1e-9)
        for a, b in ((one[name], other[name]) for name in one)
    )


def _minus(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {seed: one[seed] - other[seed] for seed in one if seed in other}


def _span(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _cells(cells: Rows) -> Grid:
    """Returns both accuracies of each model, and whether OOD is within two published deviations.

    Half a unit of the last printed digit is allowed for, as in the tables.
    """
    grid = [["model", "shift", "ID", "OOD", "OOD and two published deviations"]]
    held = {(c["shift"], c["method"], c["split"]): c for c in cells}
    for shift, method in dict.fromkeys((cell["shift"], cell["method"]) for cell in cells):
        both = [held[shift, method, split] for split in ("ID", "OOD")]
        told = [f"{_spread(c['ours'][RULE])} ({c['published']:.2f})" for c in both]
        apart = both[1]["ours"][RULE]["mean"] - both[1]["published"]
        near = abs(apart) <= 2 * both[1]["published_deviation"] + HALF_DIGIT
        where = "within" if near else "above" if apart > 0 else "below"
        grid.append([method, shift, *told, where])
    return grid


def _baselines(table: Mapping[str, Any]) -> Grid:
    """Returns the baselines; a crop that scores as no crop in every seed is said to be none."""
    plain = [c["ours"][RULE].get("seeds") for c in table["cells"] if c["split"] == "OOD"]
    grid = [["baseline", "shift", "ID", "OOD"]]
    for entry in table["baselines"]:
        none = entry["name"] == "changed-pixel crop" and entry["OOD"].get("seeds") in plain
        name = entry["name"] + (" (the whole picture: all pixels change)" if none else "")
        grid.append([name, entry["shift"], *(_spread(entry[s]) for s in ("ID", "OOD"))])
    return grid


def _chosen(entries: Rows) -> Grid:
    """Returns each regulariser at its chosen weight, then at all; their gains are one family."""
    grid = [["regulariser", "weight", "ID", "OOD", "gain in OOD over none"]]
    swept = [point for entry in entries for point in entry["sweep"] if point["weight"] > 0]
    judged = iter(judge([point["gain"]["seeds"] for point in swept]))
    for entry in entries:
        both = [_spread(entry[name]) for name in ("ID", "OOD")]
        grid.append([entry["method"], "chosen on validation", *both, _told(entry["gain"])])
        for point in entry["sweep"]:
            both = [_spread(point[name]) for name in ("ID", "OOD")]
            gain = _told(next(judged)) if point["weight"] > 0 else "-"
            grid.append([entry["method"], f"{point['weight']:g}", *both, gain])
    return grid


def _told(verdict: Mapping[str, Any]) -> str:
    if "mean" not in verdict:
        return str(verdict["verdict"])
    low, high = verdict["low"], verdict["high"]
    ends = "" if low is None or low == high else f" [{low:+.3f}, {high:+.3f}]"
    return f"{verdict['verdict']}, {verdict['mean']:+.3f}{ends}"


def _spread(found: Mapping[str, Any]) -> str:
    return f"{found['mean']:.3f} ± {found['deviation']:.3f}"


def short_table() -> Grid:
    """Returns the table of the page: vanilla and regularised models, then scenes with a mask."""
    grid = [["model", "shift", "ID", "OOD"]]
    for folder, methods in (("lite0-both", ("vanilla", "ICM", "SMS")), ("scenes-both", _SCENES)):
        for path in sorted((RESULTS / folder).glob("table-*.json")):
            cells = json.loads(path.read_text())["cells"]
            held = {(c["shift"], c["method"], c["split"]): c for c in cells}
            for shift, method in dict.fromkeys((c["shift"], c["method"]) for c in cells):
                if method in methods:
                    both = [held[shift, method, split] for split in ("ID", "OOD")]
                    told = [f"{_spread(c['ours'][RULE])} ({c['published']:g})" for c in both]
                    scene = "scenes: " if folder.startswith("scenes") else ""
                    grid.append([scene + method, shift, *told])
    return grid


_SCENES = ("resnet", "oracle-mask")


def main(arguments: Iterable[str]) -> int:
    """Writes or checks tables and page; returns the exit status."""
    tables = f"{_HEAD}\n{printed().strip()}\n".replace("\n#### ", "\n## ")
    wanted = with_table(PAGE, markdown(short_table()))
    if "--check" in arguments:
        return int(wanted != PAGE.read_text() or tables != TABLES.read_text())
    PAGE.write_text(wanted)
    TABLES.write_text(tables)
    curves = curve(RESULTS / "confounding")
    if curves:
        save(curve_figure(curves), RESULTS / "confounding" / "curve.svg")
    return 0


_HEAD = """# Causal Triplet on generated rooms: every table

Accuracy at the epoch that is best on validation, mean and deviation (of the seeds as a
population) over seeds; chance is .14, the published number stands in brackets. A claim is
confirmed or contradicted by a paired t-test over at least ten seeds, corrected by Holm's rule:
for all claims below a table together, for the regularisers at their chosen weights, and for all
points of the sweeps. Else it is open, or had too few seeds. Intervals are those of each claim
alone. T-MEX is left out: no text with its definition was found. Figure 13 needs GroupViT's
weights, which no package carries.
"""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
