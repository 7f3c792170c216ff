"""`interverse collect`: a data set of random play, with its causal graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from interverse.cli.evaluate import parse_pairs
from interverse.data import Collect as CollectConfig
from interverse.data import collect as run


@dataclass(frozen=True, kw_only=True)
class Collect:
    """Collects a data set; started again, it goes on where it stopped."""

    id: Annotated[str, tyro.conf.Positional]
    """A grid world's id, such as blocks/observed-3-v1."""
    out: Path
    """The HDF5 file to write."""
    episodes: int = 1000
    """How many episodes."""
    steps: int = 100
    """Actions per episode."""
    seed: int = 0
    """The seed; episode e is episode e of it."""
    images: bool = False
    """Store pixels too; without, they are drawn when asked for, with the same bytes."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as mode=ZeroShot."""
    overwrite: bool = False
    """Replace a file that holds another data set."""


def collect(config: Collect) -> Path:
    """Collects the data set and says where it is."""
    path = run(
        CollectConfig(
            id=config.id,
            out=config.out,
            episodes=config.episodes,
            steps=config.steps,
            seed=config.seed,
            images=config.images,
            options=parse_pairs(config.option),
            overwrite=config.overwrite,
            progress=True,
        )
    )
    Console().print(str(path), soft_wrap=True)
    return path
