"""`interverse list`: every registered world, one line each."""

from __future__ import annotations

from dataclasses import dataclass

from interverse.cli.json_output import print_json
from interverse.worlds import WORLDS


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Lists every registered world."""

    json: bool = False
    """Write one JSON document to standard output."""


def listing(config: Listing) -> None:
    """Writes the ids of all worlds, by family."""
    WORLDS.load_entry_points()
    ids = sorted(WORLDS)
    if config.json:
        print_json(ids)
        return
    from rich.console import Console
    from rich.table import Table

    families: dict[str, list[str]] = {}
    for name in ids:
        families.setdefault(name.partition("/")[0], []).append(name)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("family")
    table.add_column("ids")
    for family, members in families.items():
        table.add_row(family, "\n".join(members))
    console = Console()
    console.print(table)
    console.print(f"\n{len(ids)} worlds. `interverse describe {ids[0]}` says more.", style="dim")
