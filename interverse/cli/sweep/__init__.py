"""`interverse sweep`: tasks x algorithms x curricula x seeds from one file, then a report."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from interverse.cli.json_output import print_json
from interverse.cli.sweep.cell import SCORES
from interverse.cli.sweep.cost import cost_table, sweep_costs
from interverse.cli.sweep.plan import read_plan
from interverse.cli.sweep.run import MOST_WORKERS, SweepOutcome, folder_of, sweep
from interverse.core.errors import InterverseError, check_whole, explain
from interverse.protocols.evaluate import RESULT_FILE


@dataclass(frozen=True, kw_only=True)
class SweepCommand:
    """Trains and scores every cell of a file; started again, it goes on where it stopped."""

    file: Annotated[Path, tyro.conf.Positional]
    """A YAML file with tasks, algorithms, curricula, seeds, and flags of train and evaluate."""
    out: Path
    """A folder for the cells, the scores of all and the report."""
    workers: int = 1
    """How many cells run at a time."""
    cluster: str | None = None
    """A Ray cluster that runs the cells: local, auto or an address."""
    dry_run: bool = False
    """Show the cells, what they would take in time and on disk, and start none."""
    allow_other_code: bool = False
    """Go on with cells that other code or libraries began."""
    json: bool = False
    """Write one JSON document to standard output, progress to standard error."""


class FailedCellsError(InterverseError, RuntimeError):
    """A sweep that ended with cells that failed; the others are finished."""


def sweep_command(config: SweepCommand) -> None:
    """Runs the sweep and says where its report is; raises at the end if cells failed."""
    console = Console()
    if config.dry_run:
        check_whole(config.workers, "workers", MOST_WORKERS)
        with redirect_stdout(sys.stderr):  # a world of one's own may print
            costs = sweep_costs(read_plan(config.file), config.out)
        if config.json:
            rows = [
                {"name": name, "state": state, **asdict(c)} for name, (state, c) in costs.items()
            ]
            print_json({"cells": rows})
        else:
            console.print(cost_table(costs, config.workers))
        return
    with redirect_stdout(sys.stderr):  # a world of one's own may print
        outcome = sweep(
            config.file,
            config.out,
            workers=config.workers,
            cluster=config.cluster,
            allow_other_code=config.allow_other_code,
            progress=True,
        )
    if config.json:
        print_json(_told(outcome, config.out))
    elif len(outcome.results):
        console.print(outcome.results.table())
        console.print(f"Report in {config.out / 'report'}", soft_wrap=True)
    if outcome.failed:
        told = "; ".join(f"{name}: {error}" for name, error in sorted(outcome.failed.items()))
        raise FailedCellsError(
            explain(
                f"{len(outcome.failed)} cells failed ({told[:800]})",
                fix="The others are finished; start the same command again for these",
            )
        )


def _told(outcome: SweepOutcome, out: Path) -> dict[str, Any]:
    """Returns every cell with its folder and its scores or its error, and where the page is."""
    cells = []
    for cell in outcome.cells:
        folder, error = folder_of(out, cell), outcome.failed.get(cell.name)
        row = {"name": cell.name, "task": cell.task, "experiment": cell.experiment}
        told = {"error": error} if error else {"results": folder / SCORES}
        cells.append({**row, "seed": cell.seed, "run": folder, **told})
    made = bool(len(outcome.results))
    return {
        "cells": cells,
        "results": out / RESULT_FILE if made else None,
        "report": out / "report" / "index.html" if made else None,
    }
