"""`interverse check ID`: the laws of every world, tried on one, as a table."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interverse.cli.evaluate import flag_names, parse_pairs
from interverse.cli.json_output import print_json
from interverse.core.errors import InvalidValueError, explain
from interverse.rollouts.laws import LawResult, check_laws


@dataclass(frozen=True, kw_only=True)
class Check:
    """Checks the laws on a world: repeatable, batch = single, do, edited = rebuilt, and so on."""

    id: Annotated[str, tyro.conf.Positional]
    """A registered id, or MODULE:ID for a world of your own, such as my_lab:lab/tank-v1."""
    seed: int = 0
    """The seed of the episodes and of the values tried."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as skip_frame=3."""
    witnesses: bool = False
    """Also list every edge of the causal graph with the intervention that showed it."""
    json: bool = False
    """Write one JSON document to standard output."""


def _witness_table(rows: list[LawResult]) -> Table:
    """Returns the edges of the causal graph, each with what showed it."""
    table = Table(box=None, header_style="bold", title="Witnesses", title_justify="left")
    for column in ("edge", "seen by"):
        table.add_column(column, overflow="fold")
    for edge, how in sorted(item for row in rows for item in row.witnesses.items()):
        table.add_row(Text(edge, style="green"), Text(how))
    return table


def check(config: Check) -> list[LawResult]:
    """Checks every law and writes the table; raises where one does not hold."""
    options = parse_pairs(config.option, flag_names(config))
    with redirect_stdout(sys.stderr):  # a world may print
        rows = check_laws(config.id, seed=config.seed, **options)
    if config.json:
        print_json([asdict(row) for row in rows])
    else:
        table = Table(box=None, header_style="bold")
        for column in ("", "law", "found"):
            table.add_column(column, overflow="fold")
        for row in rows:
            mark = Text("ok", style="green") if row.passed else Text("!!", style="red")
            table.add_row(mark, Text(row.law), Text(row.detail))
        Console().print(table)
        if config.witnesses:
            Console().print(_witness_table(rows))
    broken = [row.law for row in rows if not row.passed]
    if broken:
        raise InvalidValueError(
            explain(
                f"{config.id} breaks {len(broken)} of {len(rows)} laws: {'; '.join(broken)}",
                fix="See CONTRIBUTING.md for what each law asks",
            )
        )
    return rows
