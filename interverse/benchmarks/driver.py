"""The course of every reproduction: do what is missing, compare, write the pages."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from interverse.core.errors import missing_extra
from interverse.core.files.json_text import read_json_object
from interverse.fit.work import Clock, other_code
from interverse.models.steps import check_device
from interverse.reports.sections import Say


def row_file(out: Path, name: str, seed: int) -> Path:
    """Returns where the results of a row and seed lie."""
    return out / "rows" / f"{name}.seed-{seed}.json"


def rows_on_disk(out: Path, name: str, seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Returns the results of a row, of the seeds that have any."""
    paths = (row_file(out, name, seed) for seed in seeds)
    return [read_json_object(path) for path in paths if path.exists()]


def write_figures(paper: str, say: Say, *given: Any) -> list[str]:
    """Writes the figures of a paper and returns their names; without matplotlib there are none."""
    try:
        figures = importlib.import_module(f"interverse.benchmarks.{paper}.figures")
    except ModuleNotFoundError:
        say(f"no figures: {missing_extra('matplotlib', 'report')}")
        return []
    names: list[str] = figures.write_figures(*given, say)
    return names


def reproduce_tables(
    settings: Any,
    make_work: Callable[[Any, Clock], Any],
    compare: Callable[[Any, int], dict[str, Any]],
    write_pages: Callable[[Any, list[dict[str, Any]], Say], None],
) -> dict[str, Any]:
    """Does what is not done yet, compares it with what was published, and writes the pages.

    Args:
        settings: a benchmark's; they have `device`, `time_limit`, `table` and `out`, whose rows lie
            in OUT/rows.
        make_work: from settings and a clock to what has `run_all` and `failures`.
        compare: from settings and the number of a table to ours beside the published one.
        write_pages: from settings, comparisons and what writes a line of the log.

    Returns:
        {"complete": whether all is done, "tables": one comparison per table}.
    """
    check_device(settings.device)
    clock = Clock(settings.time_limit)
    work = make_work(settings, clock)
    complete = clock.ends(work.run_all)
    tables = [compare(settings, number) for number in settings.table]
    write_pages(settings, tables, clock.say)
    rows = sorted((settings.out / "rows").glob("*.json"))
    for line in other_code({path.name: read_json_object(path) for path in rows}):
        clock.say(line)
    work.failures.raise_all()
    return {"complete": complete, "tables": tables}
