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
from interverse.benchmarks.causaltriplet.verdicts import judge, summary
from interverse.benchmarks.tidy import markdown, with_table
from interverse.reports.plots.style import save
from interverse.reports.sections import Grid

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
    parts = [_short(folders)]
    parts += [_folder(folder, _rows(folder), tables) for folder, tables in folders.items()]
    curves = curve(RESULTS / "confounding")
    parts += [_curve(curves)] if curves else []
    parts += [_actions(RESULTS / "confounding" / "actions.json")]
    parts += [_recovery(_read(RESULTS / "recovery"))]
    return "\n".join(parts)


def _short(folders: Mapping[Path, Rows]) -> str:
    """Returns what helps out of distribution, of every folder with enough seeds for a verdict."""
    lines = ["#### In short", "", "| claim out of distribution | shift | folder | verdict |"]
    lines += ["|---|---|---|---|"]
    claims = [
        (f"{entry['better']} above {entry['worse']}", entry["shift"], folder.name, entry["ood"])
        for folder, tables in folders.items()
        for table in tables
        for entry in table["orderings"]
    ]
    for claim, shift, folder, found in sorted(claims, key=lambda row: row[:3]):
        verdict = found[RULE]
        if "p" in verdict:  # tested: seeds are enough
            lines.append(f"| {claim} | {shift} | {folder} | {_told(verdict)} |")
    return "\n".join([*lines, ""])


def _read(folder: Path) -> Rows:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.seed-*.json"))]


def _curve(rows: Rows) -> str:
    """Returns accuracy by model and strength of the confounder, and what can be claimed."""
    strengths = sorted({row["strength"] for row in rows})
    sizes = [_span([row["sizes"][name] for row in rows]) for name in ("train", "test_id")]
    seeds = _span([len(row["test_ood"]["seeds"]) for row in rows])
    lines = ["#### confounding", "", "![Accuracy against strength of the confounder]"]
    lines[-1] += "(confounding/curve.svg)"
    lines += ["", "The same houses at each strength, a quarter of them for testing: trained on"]
    lines[-1] += f" {sizes[0]} pairs, tested on {sizes[1]}; {seeds} seeds, mean and deviation."
    told = " | ".join(f"{strength:g}" for strength in strengths)
    lines += ["", f"| model | set | {told} |", "|---" * (2 + len(strengths)) + "|"]
    for model in dict.fromkeys(row["model"] for row in rows):
        held = {row["strength"]: row for row in rows if row["model"] == model}
        for name, word in (("test_id", "ID"), ("test_ood", "OOD")):
            cells = [_spread(held[s][name]) for s in strengths]
            lines.append(f"| {model} | {word} | {' | '.join(cells)} |")
    claims = [f"- {name}: {_told(verdict)}" for name, verdict in curve_claims(rows)]
    return "\n".join([*lines, "", *claims, ""])


def _actions(path: Path) -> str:
    """Returns how much of the action the confounder decides."""
    found = json.loads(path.read_text())
    lines = ["| strength | actions drawn | possible on both sides | action on the coin's side |"]
    lines[0] += " class on the coin's side | class tells of the action (bits) | coin tells (bits) |"
    lines += ["|---" * 7 + "|"]
    for strength, row in found["strengths"].items():
        shares = " | ".join(f"{row[name]:.3f}" for name in _SHARES)
        lines.append(f"| {strength} | {row['draws']:,} | {shares} |")
    ends = [*found["strengths"]]
    told = f"P(action given class) at strengths {ends[0]} and {ends[-1]} is"
    told += f" {found['variation']:.3f} apart (total variation);"
    told += f" shuffled, up to {found['variation_by_chance_95']:.3f} (95 %)."
    made = f"`{found['command']}`: actions drawn as those of pairs, in {found['houses']} houses,"
    return "\n".join([f"{made} without pictures. {told}", "", *lines, ""])


_SHARES = (
    "both_sides_possible",
    "action_on_the_coins_side",
    "class_on_the_coins_side",
    "class_bits",
    "coin_bits",
)
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


def _recovery(rows: Rows) -> str:
    """Returns recovery scores of the methods, means over seeds."""
    if not rows:
        return ""
    sizes = [_span([row["sizes"][name] for row in rows]) for name in ("train", "test_id")]
    pairs = f"trained on {sizes[0]} pairs, {rows[0]['steps']:,} steps; tested on {sizes[1]}"
    names = [n for n in _SCORES if all(n in row["scores"] for row in rows)]
    lines = ["#### recovery", "", f"Factors: {', '.join(rows[0]['scores']['names'])}; {pairs}.", ""]
    if any(row["scores"].get("halves") != "groups" for row in rows):
        lines += [_OLD_HALVES, ""]
    heads = [_SCORES[name] for name in names]
    lines += [f"| method | seeds | {' | '.join(heads)} | pictures |"]
    lines += ["|---" * (3 + len(names)) + "|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        cells = [_over([row["scores"][name] for row in mine]) for name in names]
        seen = [row["pictures"]["picture_score"] for row in mine if row.get("pictures")]
        told = _over(seen) if seen else "-"
        lines.append(f"| {method} | {len(mine)} | {' | '.join(cells)} | {told} |")
    return "\n".join([*lines, ""])


def _over(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return _spread({"mean": statistics.fmean(values), "deviation": statistics.pstdev(values)})


def _rows(folder: Path) -> Rows:
    files = sorted((folder / "rows").glob("*.seed-*.json"))
    found = [json.loads(path.read_text()) for path in files]
    return [row for row in found if "sizes" in row]


def _folder(folder: Path, rows: Rows, tables: Rows) -> str:
    encoders = {f"{row['model']['encoder']['name']}, {_weights(row)}" for row in rows}
    frozen = {"frozen" if row["model"]["frozen"] else "trained" for row in rows}
    lines = [f"#### {folder.name}", ""]
    lines += [f"Encoders: {'; '.join(sorted(encoders))} ({', '.join(sorted(frozen))})."]
    lines += [_sizes(rows), ""]
    for table in tables:
        _check(folder, rows, table)
        lines += [*_cells(table["cells"]), ""]
        if table.get("baselines"):
            lines += [*_baselines(table), ""]
        if table.get("chosen"):
            lines += [*_chosen(table["chosen"]), ""]
        lines += [*_held(table["representations"]), *_claims(table), ""]
    return "\n".join(lines)


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


def _weights(row: Mapping[str, Any]) -> str:
    return "pretrained on the same pictures" if "slots" in row["weights"] else row["weights"]


def _sizes(rows: Rows) -> str:
    """Returns how many pairs and seeds the rows had."""
    names = {"train": "trained on", "valid": "validated on", "test_id": "ID", "test_ood": "OOD"}
    told = []
    for name, word in names.items():
        told.append(f"{word} {_span([row['sizes'][name] for row in rows])}")
    seeds = len({row["seed"] for row in rows})
    size = sorted({row["budget"]["size"] for row in rows})
    return f"Pairs: {', '.join(told)}. {seeds} seeds, {size[0]} px, {len(rows)} runs."


def _span(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _cells(cells: Rows) -> list[str]:
    """Returns both accuracies of each model, and where the published interval is left OOD."""
    lines = ["| model | shift | ID | OOD | OOD and two published deviations |", "|---" * 5 + "|"]
    keys = dict.fromkeys((cell["shift"], cell["method"]) for cell in cells)
    for shift, method in keys:
        both = [
            next(c for c in cells if (c["shift"], c["method"], c["split"]) == (shift, method, s))
            for s in ("ID", "OOD")
        ]
        told = [f"{_spread(c['ours'][RULE])} ({c['published']:.2f})" for c in both]
        lines.append(f"| {method} | {shift} | {told[0]} | {told[1]} | {_reach(both[1])} |")
    return lines


def _reach(cell: Mapping[str, Any]) -> str:
    """Returns whether a cell lies within two published deviations of the published mean.

    Half a unit of the last printed digit is allowed for, as in the tables.
    """
    apart = cell["ours"][RULE]["mean"] - cell["published"]
    if abs(apart) <= 2 * cell["published_deviation"] + HALF_DIGIT:
        return "within"
    return "above" if apart > 0 else "below"


def _baselines(table: Mapping[str, Any]) -> list[str]:
    """Returns the baselines; a crop that scores as no crop in every seed is said to be none."""
    plain = [c["ours"][RULE].get("seeds") for c in table["cells"] if c["split"] == "OOD"]
    lines = ["| baseline | shift | ID | OOD |", "|---|---|---|---|"]
    for entry in table["baselines"]:
        both = " | ".join(_spread(entry[name]) for name in ("ID", "OOD"))
        none = entry["name"] == "changed-pixel crop" and entry["OOD"].get("seeds") in plain
        name = entry["name"] + (" (the whole picture: all pixels change)" if none else "")
        lines.append(f"| {name} | {entry['shift']} | {both} |")
    return lines


def _chosen(entries: Rows) -> list[str]:
    """Returns each regulariser at its chosen weight, then at all; their gains are one family."""
    lines = ["| regulariser | weight | ID | OOD | gain in OOD over none |", "|---|---|---|---|---|"]
    swept = [point for entry in entries for point in entry["sweep"] if point["weight"] > 0]
    judged = iter(judge([point["gain"]["seeds"] for point in swept]))
    for entry in entries:
        both = " | ".join(_spread(entry[name]) for name in ("ID", "OOD"))
        start = f"| {entry['method']} | chosen on validation"
        lines.append(f"{start} | {both} | {_told(entry['gain'])} |")
        for point in entry["sweep"]:
            cells = " | ".join(_spread(point[name]) for name in ("ID", "OOD"))
            gain = _told(next(judged)) if point["weight"] > 0 else "-"
            lines.append(f"| {entry['method']} | {point['weight']:g} | {cells} | {gain} |")
    return lines


def _held(entries: Rows) -> list[str]:
    """Returns how well the object is told from the action embedding, and where features change."""
    if not entries:
        return []
    lines = ["| model | shift | object told | change in the action's own block |"]
    lines += ["|---|---|---|---|"]
    for entry in entries:
        told = f"{entry['object']:.3f} | {entry['own_change']:.3f}"
        lines.append(f"| {entry['method']} | {entry['shift']} | {told} |")
    return [*lines, ""]


def _claims(table: Mapping[str, Any]) -> list[str]:
    lines = []
    for entry in table["gaps"]:
        lines.append((f"{entry['method']}, {entry['shift']}: ID above OOD", entry["id_minus_ood"]))
    for entry in table["orderings"]:
        name = f"{entry['better']} above {entry['worse']} out of distribution, {entry['shift']}"
        lines.append((name, entry["ood"]))
    return [f"- {name}: {_told(verdicts[RULE])}" for name, verdicts in lines]


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
