"""The printed numbers of Tables 2 to 4, and what the authors' logs give, from the CSV beside."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import final

from interverse.core.errors import check_name

_FILE = Path(__file__).with_name("causaltriplet.csv")
TITLES = {
    2: "Table 2: regularisers, one object a picture",
    3: "Table 3: object-centric encoders, whole scenes",
    4: "Table 4: pretrained encoders, whole scenes",
}
LOG_RULES = {"max": "best_each", "bestid": "best_id", "last": "last"}
"""The CSV's names of the rules by which logs were read, and ours."""
_LOG_METHODS = {  # printed name -> name in the logs, by table
    (3, "slot-match"): "slot-match-max",
    (4, "clip"): "clip frozen",
    (4, "group-avg"): "group-avg frozen",
    (4, "group-dense"): "group-dense frozen",
    (4, "group-token"): "group-token-max frozen",
    (4, "resnet"): "resnet18 frozen",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TripletPrinted:
    """One number: `split` is ID or OOD, `deviation` over seeds."""

    table: str
    setting: str
    shift: str
    method: str
    split: str
    mean: float
    deviation: float | None


def printed(table: int) -> tuple[TripletPrinted, ...]:
    """Returns the printed numbers of a table.

    >>> [entry.mean for entry in printed(2) if entry.method == "SMS" and entry.split == "OOD"]
    [0.47, 0.54]
    """
    check_name("table", table, TITLES)
    return _named(f"table{table}")


def logged(table: int, entry: TripletPrinted) -> dict[str, tuple[float, float | None]]:
    """Returns what the authors' logs give for a printed number, by our rule; may be empty."""
    method = _LOG_METHODS.get((table, entry.method), entry.method)
    found = {}
    for theirs, ours in LOG_RULES.items():
        for row in _named(f"table{table}_log_{theirs}"):
            if (row.shift, row.method, row.split) == (entry.shift, method, entry.split):
                found[ours] = (row.mean, row.deviation)
    return found


def sweep(figure: int) -> tuple[tuple[float, TripletPrinted], ...]:
    """Returns the logs' best-epoch numbers of a sweep (Figures 7 and 10), by its value."""
    rows = _named(f"fig{figure}_log_max")
    return tuple((float(row.method.split("=")[1]), row) for row in rows)


def by_seed() -> tuple[tuple[int, TripletPrinted], ...]:
    """Returns Figure 13's numbers with the seed of each."""
    return tuple((int(row.setting.split("=")[1]), row) for row in _named("fig13_log_max"))


def object_accuracy() -> float:
    """Returns how often the paper's probe told the object from the vanilla action embedding."""
    return _named("text_4.1.1")[0].mean


@functools.cache
def _named(table: str) -> tuple[TripletPrinted, ...]:
    with open(_FILE, newline="", encoding="utf-8") as file:
        return tuple(
            TripletPrinted(
                table=row["table"],
                setting=row["setting"],
                shift=row["shift"],
                method=row["method"],
                split=row["split"],
                mean=float(row["mean"]),
                deviation=float(row["std"]) if row["std"] else None,
            )
            for row in csv.DictReader(file)
            if row["table"] == table
        )
