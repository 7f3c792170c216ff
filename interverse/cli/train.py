"""`interverse train`: SB3 baselines from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from interverse.agents.train import Train as TrainConfig
from interverse.agents.train import train as run
from interverse.cli.evaluate import without_pairs


@dataclass(frozen=True, kw_only=True)
class Train(TrainConfig):
    """Trains a baseline; started again with the same flags, it goes on where it stopped."""

    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as skip_frame=3."""


def train(config: Train) -> Path:
    """Trains and says where the policy is."""
    folder = run(TrainConfig(**without_pairs(config)), progress=True)
    console = Console()
    console.print(str(folder), soft_wrap=True)
    console.print(f"Next: interverse evaluate --task {config.task} --policy {folder}", style="dim")
    return folder
