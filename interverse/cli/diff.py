"""`interverse diff A B`: what differs between two results, and whether it matters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from interverse.reports.runs import read_folder
from interverse.results.difference import made_by, scored


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Compares two evaluations: what made them, and the scores of the episodes they share."""

    a: Annotated[Path, tyro.conf.Positional]
    """A folder that `interverse evaluate --out` or `train --out` wrote."""
    b: Annotated[Path, tyro.conf.Positional]
    """Another one."""


def diff(config: Diff) -> None:
    """Prints both tables and one line with the verdict."""
    a, b = (read_folder(folder).final() for folder in (config.a, config.b))
    made, scores = made_by(a, b), scored(a, b)
    console = Console()
    for table in (made, scores):
        console.print(table.render("rich"))
    verdicts = [row[-1] for row in scores.rows]
    names = [dict(zip(scores.header, row, strict=True)) for row in scores.rows]
    matters = [f"{n['score']} under {n['protocol']}" for n in names if n["verdict"] == "differs"]
    if not verdicts:
        told = "Nothing to compare: they share no scored episode."
    elif matters:
        told = f"It matters: {', '.join(matters[:8])} differ beyond chance."
    elif "within chance" in verdicts:
        told = "Scores differ, but no more than chance explains."
    else:
        told = "The shared scores are equal to the last bit."
    console.print(told, soft_wrap=True)
