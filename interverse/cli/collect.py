"""`interverse collect`: a data set of any world: grid play, pairs of rooms, or episodes."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from interverse.cli.evaluate import parse_pairs, without_pairs
from interverse.data import Collect as CollectConfig
from interverse.data import collect as run
from interverse.errors import InvalidValueError, explain

# Flags by kind of data set; a flag of another kind is refused, since it would be ignored.
_KINDS: dict[str, tuple[str, ...]] = {
    "grid": ("episodes", "steps", "images", "overwrite"),
    "pairs": ("pairs", "depth", "overwrite"),
    "episodes": ("episodes", "steps", "policy", "twin"),
}
_GRIDS = ("blocks", "chemistry")


@dataclass(frozen=True, kw_only=True)
class Collect(CollectConfig):
    """Collects a data set; started again, it goes on where it stopped."""

    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as mode=ZeroShot."""
    pairs: int = 1000
    """Rooms only: how many before/after pairs. OUT is a folder then."""
    depth: bool = False
    """Rooms only: keep depth pictures too."""
    policy: str = "random"
    """Other worlds: random, scripted, or the path of a policy. OUT is a folder then."""
    twin: tuple[str, ...] = ()
    """Other worlds: VARIABLE=VALUE; each adds the counterfactual of every episode under that `do`.
    VALUE is JSON, or A or B for a draw from that space."""


def collect(config: Collect) -> Path:
    """Collects the data set and says where it is."""
    family = config.id.rpartition(":")[2].partition("/")[0]
    kind = "pairs" if family == "rooms" else "grid" if family in _GRIDS else "episodes"
    given = _given(config, kind)
    with redirect_stdout(sys.stderr):  # Ray prints when a node dies
        path = {"pairs": _pairs, "grid": _grid, "episodes": _episodes}[kind](given)
    Console().print(str(path), soft_wrap=True)
    return path


def _given(config: Collect, kind: str) -> dict[str, Any]:
    """Returns the flags of a kind of data set, or raises for one of another kind."""
    given = without_pairs(config)
    others = {name for names in _KINDS.values() for name in names} - set(_KINDS[kind])
    for item in fields(config):
        if item.name in others and given.pop(item.name) != item.default:
            raise InvalidValueError(
                explain(f"--{item.name} has no meaning for {config.id}", fix="Leave it out")
            )
    return given


def _grid(given: dict[str, Any]) -> Path:
    return run(CollectConfig(**given | {"progress": True}))


def _episodes(given: dict[str, Any]) -> Path:
    from interverse.data.episodes import CollectEpisodes, collect_episodes

    del given["progress"]
    twins = tuple({name: value} for name, value in parse_pairs(given.pop("twin")).items())
    config = CollectEpisodes(**given, twins=twins)
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task(f"{config.id}, {config.policy}", total=config.episodes)
        return collect_episodes(config, lambda count: progress.advance(bar, count))


def _pairs(given: dict[str, Any]) -> Path:
    from interverse.data.pairs import CollectPairs, PairHeader, collect_pairs

    path = collect_pairs(CollectPairs(**given | {"progress": True}))
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
