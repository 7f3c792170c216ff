"""`interverse sweep`: tasks x algorithms x curricula x seeds from one file, then a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from interverse.cli.sweep.cost import cost_table
from interverse.cli.sweep.plan import read_plan
from interverse.cli.sweep.run import MOST_WORKERS, sweep
from interverse.core.errors import InterverseError, check_whole, explain


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


class FailedCellsError(InterverseError, RuntimeError):
    """A sweep that ended with cells that failed; the others are finished."""


def sweep_command(config: SweepCommand) -> None:
    """Runs the sweep and says where its report is; raises at the end if cells failed."""
    console = Console()
    if config.dry_run:
        check_whole(config.workers, "workers", MOST_WORKERS)
        console.print(cost_table(read_plan(config.file), config.out, config.workers))
        return
    outcome = sweep(
        config.file,
        config.out,
        workers=config.workers,
        cluster=config.cluster,
        allow_other_code=config.allow_other_code,
        progress=True,
    )
    if len(outcome.results):
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
