"""`interverse collect`: random play of a grid world, or before/after pairs of rooms."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from interverse.cli.evaluate import without_pairs
from interverse.data import Collect as CollectConfig
from interverse.data import collect as run
from interverse.errors import InvalidValueError, explain

_PAIRS_ONLY = ("pairs", "depth")
_EPISODES_ONLY = ("episodes", "steps", "images")


@dataclass(frozen=True, kw_only=True)
class Collect(CollectConfig):
    """Collects a data set; started again, it goes on where it stopped."""

    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as mode=ZeroShot."""
    pairs: int = 1000
    """Rooms only: how many before/after pairs. OUT is a folder then."""
    depth: bool = False
    """Rooms only: keep depth pictures too."""


def collect(config: Collect) -> Path:
    """Collects the data set and says where it is."""
    rooms = config.id.startswith("rooms/")
    _refuse(config, _EPISODES_ONLY if rooms else _PAIRS_ONLY)
    given = without_pairs(config) | {"progress": True}
    for name in _EPISODES_ONLY if rooms else _PAIRS_ONLY:
        given.pop(name)
    with redirect_stdout(sys.stderr):  # Ray prints when a node dies
        path = _pairs(given) if rooms else run(CollectConfig(**given))
    Console().print(str(path), soft_wrap=True)
    return path


def _refuse(config: Collect, names: tuple[str, ...]) -> None:
    """Raises for a flag of the other kind of data set, which would be ignored."""
    for item in fields(config):
        if item.name in names and getattr(config, item.name) != item.default:
            raise InvalidValueError(
                explain(f"--{item.name} has no meaning for {config.id}", fix="Leave it out")
            )


def _pairs(given: dict[str, Any]) -> Path:
    from interverse.data.pairs import CollectPairs, PairHeader, collect_pairs

    path = collect_pairs(CollectPairs(**given))
    header = PairHeader.load(path)
    size = sum((path / shard.file).stat().st_size for shard in header.shards)
    reasons = ", ".join(f"{count} {reason}" for reason, count in header.rejected.items())
    Console(stderr=True).print(
        f"{header.pairs} pairs, {header.acceptance:.0%} of {header.tries} tries accepted"
        f" (rejected: {reasons or 'none'}), {size / 1e6:.1f} MB",
        soft_wrap=True,
        highlight=False,
    )
    return path
