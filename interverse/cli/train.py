"""`interverse train`: SB3 baselines from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from interverse.agents.presets import Algorithm, Preset
from interverse.agents.train import Train as TrainConfig
from interverse.agents.train import train as run
from interverse.cli.evaluate import parse_pairs


@dataclass(frozen=True, kw_only=True)
class Train:
    """Trains a baseline; started again with the same flags, it goes on where it stopped."""

    task: str
    """A world's id, such as trifinger/pushing-v1."""
    out: Path
    """A folder for checkpoints, logs and the exported policy."""
    algorithm: Algorithm = "ppo"
    """ppo, sac or td3."""
    preset: Preset = "small"
    """Hyper-parameters: paper (CausalWorld's Table 5) or small."""
    steps: int = 100_000
    """Environment steps in all; an algorithm finishes the batch it is in."""
    curriculum: int = 0
    """CausalWorld's: 0 none, 1 goals, 2 everything."""
    seed: int = 0
    """The seed of everything."""
    num_envs: int | None = None
    """Worlds in the batch; the preset's by default."""
    checkpoint_every: int = 20_000
    """Steps between checkpoints: what a kill can cost at most."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as skip_frame=3."""


def train(config: Train) -> Path:
    """Trains and says where the policy is."""
    folder = run(
        TrainConfig(
            task=config.task,
            out=config.out,
            algorithm=config.algorithm,
            preset=config.preset,
            steps=config.steps,
            curriculum=config.curriculum,
            seed=config.seed,
            num_envs=config.num_envs,
            checkpoint_every=config.checkpoint_every,
            options=parse_pairs(config.option),
        ),
        progress=True,
    )
    console = Console()
    console.print(str(folder), soft_wrap=True)
    console.print(f"Next: interverse evaluate --task {config.task} --policy {folder}", style="dim")
    return folder
