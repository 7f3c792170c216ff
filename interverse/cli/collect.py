"""`interverse collect`: a data set of random play, with its causal graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from interverse.cli.evaluate import without_pairs
from interverse.data import Collect as CollectConfig
from interverse.data import collect as run


@dataclass(frozen=True, kw_only=True)
class Collect(CollectConfig):
    """Collects a data set; started again, it goes on where it stopped."""

    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as mode=ZeroShot."""


def collect(config: Collect) -> Path:
    """Collects the data set and says where it is."""
    path = run(CollectConfig(**without_pairs(config) | {"progress": True}))
    Console().print(str(path), soft_wrap=True)
    return path
