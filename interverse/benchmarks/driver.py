"""The course of every reproduction: do what is missing, compare, write the pages."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import read_json_object
from interverse.fit.work import Clock, Failures, other_code
from interverse.models.steps import check_device
from interverse.reports.sections import Say, Section, write_summary

Tables = Sequence[Mapping[str, Any]]
SMALL = "This is not the paper's budget: the published numbers stand here for orientation alone."


def row_file(out: Path, name: str, seed: int) -> Path:
    """Returns where the results of a row and seed lie."""
    return out / "rows" / f"{name}.seed-{seed}.json"


def rows_on_disk(out: Path, name: str, seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Returns the results of a row, of the seeds that have any."""
    paths = (row_file(out, name, seed) for seed in seeds)
    return [read_json_object(path) for path in paths if path.exists()]


class Work:
    """What a paper does by itself; the driver does what all do.

    Attributes:
        paper: its folder, whose module `figures` yields files and figures from settings and tables.
        title: of its page.
        file: of a table's comparison.
        waits_with: failures that must not cost hours of other work; by default those of ours and a
            full memory.
        compare: from settings and the number of a table to ours beside the published one.
        sections: parts of the page, from settings, comparisons and the figures that were drawn.
    """

    paper: str
    title: str
    file: str = "table-{}.json"
    waits_with: tuple[type[Exception], ...] = ()
    compare: Callable[[Any, int], dict[str, Any]]
    sections: Callable[[Any, Tables, Sequence[str]], Iterable[Section]]

    def __init__(self, settings: Any, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.failures = Failures(clock, *self.waits_with)

    def run_all(self) -> None:
        """Does what is not done yet."""
        raise NotImplementedError


def reproduce(kind: type[Work], settings: Any) -> dict[str, Any]:
    """Does what is not done yet, compares it with what was published, and writes the pages.

    Settings of all have `device`, `time_limit`, `table` and `out`; rows lie in OUT/rows.

    Returns:
        {"complete": whether all is done, "tables": one comparison per table}.
    """
    check_device(settings.device)
    clock = Clock(settings.time_limit)
    work = kind(settings, clock)
    complete = clock.ends(work.run_all)
    tables = [compared(kind, settings, number) for number in settings.table]
    write_pages(kind, settings, tables, clock.say)
    rows = sorted((settings.out / "rows").glob("*.json"))
    for line in other_code({path.name: read_json_object(path) for path in rows}):
        clock.say(line)
    work.failures.raise_all()
    return {"complete": complete, "tables": tables}


def compared(kind: type[Work], settings: Any, number: int) -> dict[str, Any]:
    """Returns one table's comparison and writes it as JSON; rows without results are left out."""
    content = kind.compare(settings, number)
    write_json(settings.out / kind.file.format(number), content, sort_keys=False)
    return content


def write_pages(kind: type[Work], settings: Any, tables: Tables, say: Say) -> list[str]:
    """Writes summary.md, index.html and, if matplotlib is there, figures, whose names it returns.

    What several tables have in common, a section of one heading, is shown once.
    """
    names = []
    try:
        from interverse.reports.plots import style

        made = importlib.import_module(f"interverse.benchmarks.{kind.paper}.figures")
    except ModuleNotFoundError as error:
        say(f"no figures: {error}")
    else:
        for name, figure in made.figures(settings, tables):
            if figure is None:
                say(f"{name}: nothing to show yet")
                continue
            style.save(figure, settings.out / name)
            names.append(name)
    sections = {one[0]: one for one in kind.sections(settings, tables, names)}
    say(write_summary(settings.out, kind.title, list(sections.values()), names))
    return names
