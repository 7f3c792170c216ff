"""`sweep`: every cell of a file trained and scored by any number of workers, then a report."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from interverse.cli.sweep import cell as cells
from interverse.cli.sweep.plan import SweepCell, read_plan
from interverse.core.errors import InterverseError, check_whole
from interverse.core.files.atomic import alone_in, write_json
from interverse.protocols.evaluate import RESULT_FILE
from interverse.results import Results
from interverse.rollouts.executors import run_units

MOST_WORKERS = 10_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOutcome:
    """What a sweep came to.

    Attributes:
        cells: all of the file, in order.
        results: the scores of all finished cells.
        failed: the error of each cell that failed, by the cell's name.
    """

    cells: tuple[SweepCell, ...]
    results: Results
    failed: dict[str, str]


def sweep(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    workers: int = 1,
    cluster: str | None = None,
    allow_other_code: bool = False,
    progress: bool = False,
) -> SweepOutcome:
    """Returns the scores of a sweep, and writes them with a report.

    A cell that fails is recorded and the others go on; started again, finished cells are skipped,
    failed ones tried again, and one that was interrupted goes on from its last checkpoint.

    Args:
        file: tasks, algorithms, curricula, seeds, and flags of train and evaluate; see docs/cli.md.
        out: a folder: `cells/NAME` for each, `results.parquet` and `report`.
        workers: how many cells run at a time, in processes of their own if more than one.
        cluster: a Ray cluster that runs the cells, as for `evaluate`; None stays on this machine.
        allow_other_code: go on with cells that other code or libraries began.
        progress: whether to show a progress bar on standard error.
    """
    check_whole(workers, "workers", MOST_WORKERS)
    plan, root = read_plan(Path(file)), Path(out)
    with alone_in(root):
        for cell in plan:
            cells.claim(cell, folder_of(root, cell), allow_other_code=allow_other_code)
        missing = [cell for cell in plan if not cells.is_finished(folder_of(root, cell))]
        work = partial(_run_all, missing, root, workers, cluster, allow_other_code)
        failed = _watched(work(), total=len(plan), done=len(plan) - len(missing), show=progress)
        return SweepOutcome(cells=plan, results=_write(plan, root, failed), failed=failed)


def folder_of(root: Path, cell: SweepCell) -> Path:
    """Returns the folder of a cell in a sweep's folder."""
    return root / "cells" / cell.name


def _run_all(
    missing: list[SweepCell], root: Path, workers: int, cluster: str | None, other: bool
) -> Iterator[tuple[str, str | None]]:
    """Yields each cell's name and error, if any, as cells end."""
    finished: Generator[tuple[SweepCell, dict[str, bytes] | str | None]]
    if cluster is None:
        finished = run_units(_run_here, missing, (root, other), workers=workers, on_lost=_lost)
    else:
        finished = run_units(
            cells.run_elsewhere, missing, None, workers=workers, cluster=cluster, on_lost=_lost
        )
    with closing(finished) as pairs:
        for cell, given in pairs:
            folder = folder_of(root, cell)
            error = given if isinstance(given, str) else None
            if isinstance(given, dict):
                cells.unpack(given, folder)
            elif error:
                write_json(folder / cells.FAILED_FILE, {"error": error})
            yield cell.name, error


def _run_here(cell: SweepCell, shared: tuple[Path, bool]) -> str | None:
    """Runs a cell in its folder; returns its error, if any."""
    root, other = shared
    try:
        cells.run_cell(cell, folder_of(root, cell), allow_other_code=other)
    except Exception as error:  # the other cells go on
        return cells.describe(error)
    return None


def _lost(_cell: SweepCell, error: InterverseError) -> str:
    return cells.describe(error)


def _watched(
    finished: Iterator[tuple[str, str | None]], *, total: int, done: int, show: bool
) -> dict[str, str]:
    """Returns the errors by cell, with a bar on the way."""
    failed: dict[str, str] = {}
    columns = (
        TextColumn("cells"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[f]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not show) as bar:
        task = bar.add_task("cells", total=total, completed=done, f="")
        for name, error in finished:
            if error is not None:
                failed[name] = error
            bar.update(task, advance=1, f=f"{len(failed)} failed" if failed else "")
    return failed


def _write(plan: tuple[SweepCell, ...], root: Path, failed: dict[str, str]) -> Results:
    """Writes the scores of all finished cells as one table, and a report of them."""
    parts = [
        Results.from_parquet(folder_of(root, cell) / cells.SCORES / RESULT_FILE)
        for cell in plan
        if cell.name not in failed
    ]
    results = Results.concat(parts)
    if parts:
        results.to_parquet(root / RESULT_FILE)
        _report(results, root / "report")
    return results


def _report(results: Any, folder: Path) -> None:
    from interverse.reports.page import report  # loads matplotlib

    report(results, folder, episodes=False, title="Sweep")
