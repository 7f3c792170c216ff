"""`interverse list`: every registered world, by family."""

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
        family, _, rest = name.partition("/")
        families.setdefault(family, []).append(rest.removesuffix("-v1"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for family, members in families.items():
        table.add_row(f"{family}/", "  ".join(members))
    console = Console()
    console.print(table)
    first = next(name for name in ids if name.endswith("-v1"))
    told = f"An id is family/name-v1: interverse describe {first}"
    console.print(f"\n{len(ids)} worlds. {told}", style="dim", highlight=False)
