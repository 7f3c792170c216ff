"""`interverse collect`: random play of a grid world, or before/after pairs of rooms."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from interverse.cli.evaluate import without_pairs
from interverse.data import Collect as CollectConfig
from interverse.data import collect as run
from interverse.errors import InvalidValueError, explain

_PAIRS_ONLY = ("pairs", "depth", "pairs_per_house", "first_house", "preset")
_EPISODES_ONLY = ("episodes", "steps", "images")


@dataclass(frozen=True, kw_only=True)
class Collect(CollectConfig):
    """Collects a data set; started again, it goes on where it stopped.

    Random play of a grid world goes to one file; before/after pairs of rooms go to a folder.
    """

    id: Annotated[str, tyro.conf.Positional]
    """A grid world, such as blocks/observed-3-v1, or rooms: rooms/single-v1, rooms/multi-v1."""
    out: Path
    """The file to write; for rooms, the folder."""
    seed: int = 0
    """Of the data set: episode or house number n has the address (seed, n)."""
    episodes: int = 1000
    """Grid worlds only: how many episodes."""
    steps: int = 100
    """Grid worlds only: actions per episode."""
    images: bool = False
    """Grid worlds only: store pixels too. Without, they are drawn when asked for."""
    overwrite: bool = False
    """Replace what holds another data set."""
    workers: int = 1
    """How many units of about 60,000 frames, or houses, are made at a time; it changes no byte."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as mode=ZeroShot."""
    pairs: int = 1000
    """Rooms only: how many before/after pairs. OUT is a folder then."""
    depth: bool = False
    """Rooms only: keep depth pictures too."""
    pairs_per_house: int = 25
    """Rooms only: the most pairs of a house; fewer give more houses."""
    first_house: int = 0
    """Rooms only: the first house; sets with other houses share none."""
    preset: str | None = None
    """Rooms only: triplet-30k: 30,000 pairs with test houses of their own, a card and checksums."""


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
    from interverse.data.pairs.presets import collect_preset

    preset = given.pop("preset")
    if preset is not None:
        return collect_preset(preset, CollectPairs(**given), say=_say)
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


def _say(text: str) -> None:
    Console(stderr=True).print(text, soft_wrap=True, highlight=False)
