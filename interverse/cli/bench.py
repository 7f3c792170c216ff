"""`interverse bench`: speed, each number beside a baseline measured in the same run."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from interverse.bench import BENCHMARKS
from interverse.bench.measure import Row


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measures speed; timings are noisy, so read the ratios."""

    only: tuple[str, ...] = ()
    """Which benchmarks; all by default."""
    json: bool = False
    """Write one JSON document to standard output, progress to standard error."""
    out: Path | None = None
    """Also write the JSON to this file."""


def bench(config: Bench) -> list[Row]:
    """Runs the benchmarks and writes their rows."""
    console = Console(stderr=True)
    rows: list[Row] = []
    for name in config.only or tuple(BENCHMARKS):
        run = BENCHMARKS.load(name)
        with console.status(f"measuring {name}"):
            rows += run()
    text = json.dumps([row.to_json() for row in rows], indent=1)
    if config.out is not None:
        config.out.write_text(text + "\n")
    if config.json:
        sys.stdout.write(text + "\n")
        return rows
    table = Table(box=None, header_style="bold")
    for column in ("name.metric", "value", "ratio", "baseline", "target"):
        table.add_column(column, overflow="fold")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        value = (
            f"{row.value:,.3g} {row.unit}" if row.value < 1e4 else f"{row.value:,.0f} {row.unit}"
        )
        table.add_row(f"{row.name}.{row.metric}", value, ratio, row.baseline, row.target)
    Console().print(table)
    return rows
