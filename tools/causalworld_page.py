"""Results of CausalWorld, printed from the kept runs.

Usage: python tools/causalworld_page.py [--check]; writes results/causalworld/tables.md, and the
table and figure of docs/causalworld_results.md, or exits 1 if they are not what the runs say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from interverse.benchmarks.causalworld.pages import draw_bars_of, summary, unlike
from interverse.benchmarks.causalworld.scores import answer, by_curriculum, stored_records
from interverse.reports.attribution import INTERVAL_METHOD, Attribution
from interverse.reports.plots.style import save
from interverse.reports.sections import grouped, with_table
from interverse.results.text import Cell, TextTable

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "causalworld_results.md"
TABLES = ROOT / "results" / "causalworld" / "tables.md"
RUNS = tuple(TABLES.with_name(name) for name in ("h200.json", "cpu_runs.json"))
SHOWN = "pushing"


_CAPTION = (
    "as it is: last fractional success from the task's own start (P0); then the percentage of it "
    "that is lost when one factor alone is drawn from the space that training never draws from, B "
    f"[{INTERVAL_METHOD}]"
)


def cost_table(explained: Sequence[Mapping[str, Any]]) -> TextTable:
    """Returns what each factor costs each policy, in percent of its score.

    Args:
        explained: what `Attribution.to_json` gives, with the `policy`.
    """
    found = [(held["policy"], Attribution.from_json(held)) for held in explained]
    factors = list(dict.fromkeys(name for _, one in found for name in one.factors))
    rows: list[tuple[Cell, ...]] = []
    for policy, one in found:
        base = one.scores[()]
        task = one.task.removeprefix("trifinger/").removesuffix("-v1")
        costs = [one.percent(name).shown(0) if name in one.factors else "" for name in factors]
        rows.append((task, policy, str(len(base)), f"{base.mean():.2f}", *costs))
    return TextTable(
        header=("task", "policy", "episodes", "as it is", *factors),
        rows=tuple(rows),
        caption=_CAPTION,
    )


def main(arguments: Iterable[str]) -> int:
    """Writes or checks tables and page; returns the exit status."""
    records = stored_records(RUNS)
    tasks = grouped(records, "task")
    scores = {task: by_curriculum(mine) for task, mine in tasks.items()}
    best = answer(scores, {task: unlike(mine) for task, mine in tasks.items()})
    page = with_table(PAGE, "\n".join(line for line in best if line.startswith("|")))
    tables = summary(records)
    if "--check" in arguments:
        return int(page != PAGE.read_text() or tables != TABLES.read_text())
    PAGE.write_text(page)
    TABLES.write_text(tables)
    save(draw_bars_of(SHOWN, scores[SHOWN]), PAGE.parent / "images" / f"causalworld_{SHOWN}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
