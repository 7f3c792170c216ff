"""The paper's findings as claims: what its printed numbers say of each, and what our runs say.

A claim says that one model scores above another in some worlds. Printed numbers are means and
deviations over three seeds, so both sides are judged alike, by Welch's t-test of two means, with
Holm's correction over the worlds of a claim. An open claim tells how many seeds a side would give
it 80% power, if its difference and deviations are the true ones.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from scipy import stats

from interverse.benchmarks.causalmbrl.settings import TABLES, deviation, printed
from interverse.benchmarks.comparison import LEVEL, verdict, welch
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import read_json_object
from interverse.metrics.comparison import holm
from interverse.reports.sections import Grid, Section, write_summary

POWER = 0.8
_SEEDS = 3  # behind every printed number
_LEAST = 3  # runs a side, for a verdict
_THREE = ("blocks/observed-3-v1", "blocks/unobserved-3-v1", "blocks/fixed_unobserved-3-v1")
_FIVE = ("blocks/observed-5-v1", "blocks/unobserved-5-v1", "blocks/fixed_unobserved-5-v1")
_BLOCKS = (*_THREE, *_FIVE)
_OBSERVED = ("blocks/observed-3-v1", "blocks/observed-5-v1")
_CHEMISTRY = ("chemistry/chain-v1", "chemistry/collider-v1", "chemistry/full-v1")
What = Literal["H@1", "zero-shot H@1", "success", "success, closed loop"]
_LOSSES = {"contrastive": "Contrastive", "jepa": "JEPA", "nll": "NLL Finetuned"}


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """One model above another, by a score after so many steps, in some worlds; names as printed."""

    what: What
    steps: int
    above: str
    below: str
    worlds: tuple[str, ...]
    losses: tuple[str, str] = ("Contrastive", "Contrastive")

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Model and loss of both."""
        return (self.above, self.losses[0]), (self.below, self.losses[1])

    @property
    def text(self) -> str:
        """One line for headings."""
        (above, loss), (below, other) = self.sides
        told = f"{above} above {below}, {loss}"
        if loss != other:
            told = f"{above} {loss} above {below} {other}"
        return f"{told}: {self.what} after {self.steps}"


_NLL = ("NLL", "NLL")
CLAIMS: tuple[Claim, ...] = (
    # Structured transitions predict better than one network on the whole state.
    Claim("H@1", 10, "Modular", "AE", _BLOCKS),
    Claim("H@1", 10, "GNN", "AE", _BLOCKS),
    Claim("H@1", 10, "Modular", "GNN", _BLOCKS),
    Claim("zero-shot H@1", 10, "Modular", "AE", _OBSERVED),
    Claim("zero-shot H@1", 10, "GNN", "AE", _OBSERVED),
    # They plan better.
    Claim("success", 10, "Modular", "AE", _BLOCKS),
    Claim("success", 10, "GNN", "AE", _BLOCKS),
    Claim("success", 10, "Modular", "GNN", _BLOCKS),
    # A contrastive loss predicts better than the likelihood of pixels.
    Claim("H@1", 10, "Modular", "Modular", _BLOCKS, ("Contrastive", "NLL")),
    Claim("H@1", 10, "GNN", "GNN", _BLOCKS, ("Contrastive", "NLL")),
    Claim("H@1", 10, "AE", "AE", _BLOCKS, ("Contrastive", "NLL")),
    Claim("H@1", 10, "Modular", "Modular", _BLOCKS, ("NLL Finetuned", "NLL")),
    # In chemistry modularity helps.
    Claim("H@1", 1, "Modular", "AE", _CHEMISTRY, _NLL),
    Claim("H@1", 10, "Modular", "GNN", _CHEMISTRY, _NLL),
    Claim("success", 10, "Modular", "AE", _CHEMISTRY, _NLL),
    Claim("success", 10, "Modular", "VAE", _CHEMISTRY, _NLL),
    # What the paper's plans were scored without: a look at the world between steps.
    Claim("success, closed loop", 10, "Modular", "AE", _BLOCKS),
    Claim("success, closed loop", 10, "Modular", "GNN", _BLOCKS),
)


class Runs(NamedTuple):
    """One model's score: mean, sample deviation, over how many seeds."""

    mean: float
    deviation: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Runs:
        """Returns those of our values by seed."""
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)), len(values))

    @classmethod
    def printed(cls, mean: float, deviation: float) -> Runs:
        """Returns those behind a printed mean, whose deviation divides by the number of seeds."""
        return cls(mean, deviation * math.sqrt(_SEEDS / (_SEEDS - 1)), _SEEDS)


class Difference(NamedTuple):
    """Of two models: the difference, its 95% interval, p, and the seeds for 80% power."""

    value: float
    low: float
    high: float
    p: float
    needed: int | None


def difference(above: Runs, below: Runs) -> Difference:
    """Returns Welch's test of two means.

    >>> round(difference(Runs(2.0, 1.0, 10), Runs(1.0, 1.0, 10)).p, 3)
    0.038
    """
    gap, pair = above.mean - below.mean, (above, below)
    if above.deviation == below.deviation == 0:
        return Difference(gap, gap, gap, 1.0 if gap == 0 else 0.0, None)
    half, p = welch(gap, *((s.deviation**2 / s.seeds, s.seeds - 1) for s in pair))
    needed = None
    if gap:  # with so many seeds a side so large a difference is found four times of five
        quantiles = stats.norm.ppf(1 - LEVEL / 2) + stats.norm.ppf(POWER)
        variance = above.deviation**2 + below.deviation**2
        needed = max(_LEAST, math.ceil(float(quantiles**2 * variance / gap**2)) + 1)
    return Difference(gap, gap - half, gap + half, p, needed)


def findings(folder: Path) -> list[dict[str, Any]]:
    """Returns a row per claim and world: the printed verdict, that of the runs in a folder, why."""
    theirs, ours = _printed_runs(), _own_runs(folder)
    out = []
    for claim in CLAIMS:
        rows: list[dict[str, Any]] = [{"claim": claim.text, "world": w} for w in claim.worlds]
        for side, known in (("printed", theirs), ("ours", ours)):
            found = []
            for world in claim.worlds:
                place = (claim.what, claim.steps, world)
                # The longest training of which both sides have enough runs.
                above, below = (known.get((*place, *which), {}) for which in claim.sides)
                both = {
                    length: (above[length], below[length]) for length in above if length in below
                }
                enough = [length for length, two in both.items() if _fewer(two) >= _LEAST]
                found.append(difference(*both[max(enough, key=_epochs)]) if enough else None)
            tested = iter(holm([one.p for one in found if one is not None]).tolist())
            for row, one in zip(rows, found, strict=True):
                row[side] = {"verdict": "no runs"}
                if one is not None:
                    p = next(tested)
                    told = {"verdict": verdict(one.value, p), "difference": one.value}
                    told |= {"low": one.low, "high": one.high, "p": p}
                    seeds = {"seeds_needed": one.needed} if told["verdict"] == "open" else {}
                    row[side] = told | seeds
        out += rows
    return out


def write_findings(folder: Path, out: Path) -> dict[str, Any]:
    """Returns the findings, after writing findings.json, summary.md and index.html to a folder."""
    rows = findings(folder)
    write_json(out / "findings.json", rows)
    remark = (
        "Printed: means and deviations over three seeds. Ours: the longest training that"
        " both sides have three seeds of. Welch's t-test, p corrected by Holm over the worlds of a"
        " claim: confirmed or contradicted below .05, otherwise open, with the seeds a side that"
        " would give 80% power."
    )
    sections: list[Section] = [
        ("In short", [remark], _overview(rows)),
        *((claim.text, [""], _grid(claim, rows)) for claim in CLAIMS),
    ]
    write_summary(out, "The paper's findings, by its numbers and by ours", sections)
    return {"findings": rows, "out": str(out)}


def _fewer(sides: tuple[Runs, Runs]) -> int:
    return min(side.seeds for side in sides)


def _epochs(length: str) -> int:
    """Returns the epochs of a training by its sizes."""
    return int(json.loads(length)["epochs"]) if length.startswith("{") else 0


def _printed_runs() -> dict[tuple[Any, ...], dict[str, Runs]]:
    """Returns the printed scores."""
    metrics = {"ranking": ("H@1", "H@1"), "zero_shot": ("H@1", "zero-shot H@1")}
    metrics["planning"] = ("Success", "success")
    out = {}
    for number, (kind, _) in TABLES.items():
        metric, what = metrics[kind]
        for one in printed(number):
            spread = deviation(number, one)
            if one["metric"] == metric and spread is not None:
                key = (what, int(one["steps"]), one["world"], one["model"], one["loss"])
                out[key] = {"printed": Runs.printed(one.value, spread)}
    return out


def _own_runs(folder: Path) -> dict[tuple[Any, ...], dict[str, Runs]]:
    """Returns the scores of our runs by the length of their training."""
    values: dict[tuple[Any, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.rglob("*.json")):
        record = read_json_object(path) if "seed-" in path.name else {}
        if "loss" not in record or record.get("options") or record.get("cpt_seed"):
            continue  # another world than the printed one
        model = {"gnn": "GNN", "modular": "Modular"}.get(record["model"], record["model"].upper())
        length = json.dumps(record["sizes"], sort_keys=True)
        for variant, scores in record["scores"].items():
            loss = _LOSSES[record["loss"]] if variant == "model" else variant
            for (what, below), steps in itertools.product(_PATHS.items(), (1, 5, 10)):
                found: Any = scores
                for part in (below[0], str(steps), *below[1:]):
                    found = found.get(part) if isinstance(found, Mapping) else None
                if found is not None:
                    values[what, steps, record["world"], model, loss][length].append(found)
    return {
        key: {length: Runs.of(own) for length, own in by_length.items() if len(own) >= _LEAST}
        for key, by_length in values.items()
    }


_PATHS: Mapping[What, tuple[str, ...]] = {
    "H@1": ("ranking", "published_hits"),
    "zero-shot H@1": ("zero_shot", "published_hits"),
    "success": ("planning", "open", "success"),
    "success, closed loop": ("planning", "closed", "success"),
}


def _overview(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Returns in how many worlds each claim is confirmed, contradicted, open, by side."""
    grid = [["claim", "worlds", "printed", "ours"]]
    for claim in CLAIMS:
        own = [row for row in rows if row["claim"] == claim.text]
        cells = []
        for side in ("printed", "ours"):
            words = [row[side]["verdict"] for row in own]
            counted = {word: words.count(word) for word in dict.fromkeys(words)}
            cells.append(", ".join(f"{count} {word}" for word, count in counted.items()))
        grid.append([claim.text, str(len(own)), *cells])
    return grid


def _grid(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> Grid:
    grid = [["world", "printed", "its difference", "ours", "our difference"]]
    for row in (row for row in rows if row["claim"] == claim.text):
        line = [row["world"]]
        for told in (row["printed"], row["ours"]):
            needed = told.get("seeds_needed")
            line.append(told["verdict"] + (f" ({needed} seeds)" if needed else ""))
            shown = "{difference:.3g} ({low:.3g} to {high:.3g}), p {p:.2g}"
            line.append(shown.format(**told) if "difference" in told else "")
        grid.append(line)
    return grid
