"""Printed numbers of DMC-GB, SGQN and DMC-GB2 beside an evaluation's, from `published.csv`."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from interverse.results.estimates import estimates
from interverse.results.text import Cell, TextTable

if TYPE_CHECKING:
    from interverse.results.results import Results

_FILE = Path(__file__).with_name("published.csv")
_METRIC = "return"
_CAPTION = (
    "mean return: ours [95% interval over the scored episodes, or over the seeds of several "
    "trainings], printed with the spread beside it, over whole episodes of 1000 control "
    "steps; for orientation alone, as pictures and training are not the same"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedReturn:
    """The mean return that a source prints for a method, and the spread beside it."""

    source: str
    protocol: str
    task: str
    method: str
    mean: float
    spread: float


@functools.cache
def printed_returns() -> tuple[PrintedReturn, ...]:
    """Returns every printed number.

    >>> [row.mean for row in printed_returns() if row.method == "SADA"][:2]
    [808.0, 958.0]
    """
    with open(_FILE, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return tuple(
            PrintedReturn(
                source=row["source"],
                protocol=row["protocol"],
                task=f"control/{row['task']}-v1",
                method=row["method"],
                mean=float(row["mean"]),
                spread=float(row["spread"]),
            )
            for row in rows
        )


def beside_printed(results: Results) -> TextTable:
    """Returns mean returns under protocols that others printed numbers for, and those numbers.

    Without such a protocol or without returns the table is empty.
    """
    rows = tuple(_rows(results)) if _METRIC in results.metrics else ()
    return TextTable(
        header=("task", "protocol", "who", _METRIC, "source"), rows=rows, caption=_CAPTION
    )


def _rows(results: Results) -> Iterator[tuple[Cell, ...]]:
    ours = estimates(results.final(), _METRIC)
    for task, protocol in dict.fromkeys(key[1:] for key in ours):
        theirs = [r for r in printed_returns() if (r.task, r.protocol) == (task, protocol)]
        mine = {key[0]: mean for key, mean in ours.items() if key[1:] == (task, protocol)}
        for name, mean in mine.items() if theirs else ():
            yield task, protocol, name, mean.shown(0), "this evaluation"
        for row in theirs:
            shown = f"{row.mean:.0f} ± {row.spread:.0f}"
            yield task, protocol, row.method, shown, row.source
