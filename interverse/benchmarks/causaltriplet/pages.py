"""Pages of the comparison: one Markdown file, one HTML page, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interverse.benchmarks.causaltriplet.figures import write_figures
from interverse.benchmarks.causaltriplet.settings import TripletSettings
from interverse.benchmarks.causaltriplet.verdicts import LEAST_SEEDS
from interverse.benchmarks.tidy import laid_out
from interverse.models.pairs.selection import RULES
from interverse.reports.sections import Grid, Say, write_summary

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


def write_pages(settings: TripletSettings, tables: Sequence[Mapping[str, Any]], say: Say) -> None:
    """Writes summary.md, index.html and, if matplotlib is there, figures."""
    figures = write_figures(settings, tables, say)
    sections = [section for content in tables for section in _sections(content)]
    say(write_summary(settings.out, "Causal Triplet, made again", sections, figures))


def _sections(content: Mapping[str, Any]) -> Iterator[tuple[str, list[str], Grid]]:
    if not content["cells"]:
        return
    remarks = [_LEGEND] if content["comparable"] else [_LEGEND, _SMALL]
    remarks.append(f"Encoders: {'; '.join(content['encoders'])}.")
    yield content["title"], remarks, _numbers(content["cells"])
    if content["orderings"] or content["gaps"]:
        yield f"Orderings of table {content['table']}", [_ORDER_LEGEND], _orderings(content)
    if content["baselines"]:
        yield f"Baselines of table {content['table']}", [_BASE_LEGEND], _baselines(content)
    if content.get("chosen"):
        yield "Regularisers, weight chosen on validation", [_CHOSEN_LEGEND], _chosen(content)
    if content["representations"]:
        title = f"What the models of table {content['table']} hold"
        yield title, [_HELD_LEGEND], _held(content["representations"])


def _numbers(cells: Sequence[Mapping[str, Any]]) -> Grid:
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


def _orderings(content: Mapping[str, Any]) -> Grid:
    claims = [(f"{g['method']}: ID above OOD", g, g["id_minus_ood"]) for g in content["gaps"]]
    claims += [(f"{e['better']} above {e['worse']}", e, e["ood"]) for e in content["orderings"]]
    cells = [
        ((name, entry["shift"]), rule, _verdict_text(told[rule]))
        for name, entry, told in claims
        for rule in RULES
    ]
    return laid_out(cells, ("claim", "shift"))


def _baselines(content: Mapping[str, Any]) -> Grid:
    rows: Grid = [["baseline", "shift", "ID", "OOD"]]
    for entry in content["baselines"]:
        rows.append([entry["name"], entry["shift"], *(_spread(entry[s]) for s in ("ID", "OOD"))])
    return rows


def _chosen(content: Mapping[str, Any]) -> Grid:
    rows: Grid = [["regulariser", "weight", "ID", "OOD", "gain in OOD"]]
    for entry in content["chosen"]:
        sets = [_spread(entry[s]) for s in ("ID", "OOD")]
        rows.append([entry["method"], "chosen", *sets, _verdict_text(entry["gain"])])
        for point in entry["sweep"]:
            sets = [_spread(point[s]) for s in ("ID", "OOD", "gain")]
            rows.append([entry["method"], f"{point['weight']:g}", *sets])
    return rows


def _spread(found: Mapping[str, Any]) -> str:
    return f"{found['mean']:.3f} +- {found['deviation']:.3f}"


def _verdict_text(verdict: Mapping[str, Any]) -> str:
    if "mean" not in verdict:
        return str(verdict["verdict"])
    ends = ""
    if verdict["low"] is not None:
        ends = f" [{verdict['low']:+.3f}, {verdict['high']:+.3f}]"
    return f"{verdict['verdict']}: {verdict['mean']:+.3f}{ends}"


def _held(found: Sequence[Mapping[str, Any]]) -> Grid:
    names = list(dict.fromkeys(name for row in found for name in row))
    return [names, *([_shown(row.get(name, "")) for name in names] for row in found)]


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"
