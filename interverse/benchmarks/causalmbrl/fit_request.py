"""The settings that all fits of `interverse fit` have, of pictures and of states."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interverse.benchmarks.causalmbrl.settings import MOST_EPOCHS, MOST_SEEDS
from interverse.core.errors import check_whole
from interverse.worlds import WORLDS

FitBudget = Literal["smoke", "reduced", "full"]


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """A world to fit a model to, and how much work to put into it."""

    id: str
    """A world's id."""
    budget: FitBudget = "smoke"
    """smoke: a minute or two on two cores. reduced: a fifth of the published data, a small encoder.
    full: the published sizes, for a GPU."""
    seeds: int = 1
    """Seeds 1 to N."""
    epochs: int | None = None
    """Epochs per stage, if not the budget's."""
    time_limit: float | None = None
    """Stop cleanly after so many seconds; asked again, it goes on."""
    out: Path | None = None
    """Folder for everything; by default runs/fit/ID.MODEL.LOSS.BUDGET (states:
    runs/fit/ID.network.BUDGET)."""

    def check(self) -> None:
        """Raises for an unknown world, with suggestions, and for numbers out of range."""
        WORLDS[self.id]
        check_whole(self.seeds, "seeds", MOST_SEEDS)
        if self.epochs is not None:
            check_whole(self.epochs, "epochs", MOST_EPOCHS)

    def folder_named(self, *model: str) -> Path:
        """Returns where everything is kept; a model's name is part of the usual folder's."""
        name = ".".join([self.id.replace("/", "-"), *model, self.budget])
        return Path("runs/fit") / name if self.out is None else self.out
