"""Numbers that others printed, and those of DMC-GB, SGQN and DMC-GB2 beside an evaluation's."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from interverse.results.estimates import estimates
from interverse.results.text import Cell, TextTable

if TYPE_CHECKING:
    from interverse.results.results import Results

_METRIC = "return"
_CAPTION = (
    "mean return: ours [95% interval over the scored episodes, or over the seeds of several "
    "trainings], printed with the spread beside it, over whole episodes of 1000 control "
    "steps; for orientation alone, as pictures and training are not the same"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of a paper, or of its authors' logs.

    Attributes:
        at: what it is of: the row of the table and its column, by the columns of published.csv.
        value: as printed; NaN stands for a cell that the paper leaves out.
        spread: what stands behind +-; None where nothing does.
    """

    at: Mapping[str, str]
    value: float
    spread: float | None

    def __getitem__(self, name: str) -> str:
        return self.at[name]


@functools.cache
def published(file: Path, table: str | None = None) -> tuple[Number, ...]:
    """Returns the numbers of a table from a published.csv, or all; lines with # are remarks."""
    found = []
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            if table in (None, row.pop("table", None)):
                value, spread = float(row.pop("value")), row.pop("spread", "")
                found.append(Number(at=row, value=value, spread=float(spread) if spread else None))
    return tuple(found)


def printed_returns() -> tuple[Number, ...]:
    """Returns every printed mean return of DMC-GB, SGQN and DMC-GB2.

    >>> [row.value for row in printed_returns() if row["method"] == "SADA"][:2]
    [808.0, 958.0]
    """
    return published(Path(__file__).with_name("published.csv"))


def beside_printed(results: Results) -> TextTable:
    """Returns mean returns under protocols that others printed numbers for, and those numbers.

    Without such a protocol or without returns the table is empty.
    """
    rows: list[tuple[Cell, ...]] = []
    ours = estimates(results.final(), _METRIC) if _METRIC in results.metrics else {}
    for at in dict.fromkeys(key[1:] for key in ours):
        theirs = [r for r in printed_returns() if (f"control/{r['task']}-v1", r["protocol"]) == at]
        if theirs:
            mine = {key[0]: mean.shown(0) for key, mean in ours.items() if key[1:] == at}
            rows += [(*at, name, mean, "this evaluation") for name, mean in mine.items()]
        for row in theirs:
            rows.append((*at, row["method"], f"{row.value:.0f} ± {row.spread:.0f}", row["source"]))
    header = ("task", "protocol", "who", _METRIC, "source")
    return TextTable(header=header, rows=tuple(rows), caption=_CAPTION)
