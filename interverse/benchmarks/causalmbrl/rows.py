"""One row of the tables: a model, its loss and its world; and its results at rest, per seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from interverse.models.world_model import Loss

MODELS = ("ae", "gnn", "modular", "vae")
LOSSES: tuple[Loss, ...] = ("contrastive", "nll")
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "contrastive": {"Contrastive": "contrastive"},
    "nll": {"NLL": "transition", "NLL Finetuned": "finetune"},
}
"""By loss: the printed name of each result, and the training stage whose weights it has."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbrlRow:
    """A model, its loss, its world, and in chemistry the draw of the world's mechanisms."""

    world: str
    model: str
    loss: Loss
    cpt_seed: int = 0

    @property
    def name(self) -> str:
        """For files and logs."""
        return f"{world_name(self.world, self.cpt_seed)}.{self.model}.{self.loss}"

    @property
    def options(self) -> dict[str, int]:
        """Options of its world."""
        return {"cpt_seed": self.cpt_seed} if self.world.startswith("chemistry/") else {}

    @property
    def variants(self) -> Mapping[str, str]:
        """The printed name of each result, and the training stage whose weights it has."""
        return VARIANTS[self.loss]


def world_name(world: str, cpt_seed: int = 0) -> str:
    """Returns a world's name in files and logs; chemistry's has the draw of its mechanisms.

    >>> world_name("chemistry/chain-v1", 2), world_name("blocks/observed-3-v1")
    ('chemistry-chain-v1.draw-2', 'blocks-observed-3-v1')
    """
    draw = f".draw-{cpt_seed}" if world.startswith("chemistry/") else ""
    return world.replace("/", "-") + draw


def row_file(out: Path, name: str, seed: int) -> Path:
    """Returns where the results of a row and seed lie."""
    return out / "rows" / f"{name}.seed-{seed}.json"


def baselines_name(world: str, cpt_seed: int = 0) -> str:
    """Returns the name under which a world's baselines are kept, like `MbrlRow.name`."""
    return f"{world_name(world, cpt_seed)}.baselines"


def discovery_file(out: Path, world: str, cpt_seed: int = 0) -> Path:
    """Returns where a world's causal discovery lies, which has no seed."""
    return out / "rows" / f"{world_name(world, cpt_seed)}.discovery.json"
