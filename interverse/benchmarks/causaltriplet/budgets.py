"""Budgets: the published sizes, what a CPU can do in hours, or just enough to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, final

from interverse.models.pairs.recipes import INDEPENDENCE, MIN_MASK, SPARSITY

BudgetName = Literal["smoke", "reduced", "full"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TripletBudget:
    """Sizes of everything a number depends on.

    Attributes:
        pairs: to generate, where no data are given.
        size: edge of the pictures in pixels.
        train, valid, test: the most pairs of each set.
        epochs: of models that train their encoder, None: the recipe's. frozen_epochs: of others.
        slot_steps: of slot pretraining. resolution: of its pictures.
        seeds: seeds 1 to N.
        tiny: whether encoders are small stand-ins.
        sweeps: by figure, the values tried.
    """

    pairs: int
    size: int
    train: int = 5000
    valid: int = 500
    test: int = 5000
    epochs: int | None = None
    frozen_epochs: int | None = None
    slot_steps: int = 500_000
    resolution: Literal[32, 64, 128] = 128
    seeds: int = 10
    tiny: bool = False
    sweeps: Mapping[int, tuple[float, ...]] = field(
        default_factory=lambda: {6: INDEPENDENCE, 7: SPARSITY, 10: MIN_MASK}
    )

    def record(self) -> dict[str, Any]:
        """Returns what decides a model's numbers, as JSON values."""
        names = ("size", "train", "valid", "test", "slot_steps", "resolution", "tiny")
        found = asdict(self)
        return {name: found[name] for name in names}


BUDGETS: Mapping[str, TripletBudget] = MappingProxyType(
    {
        "full": TripletBudget(pairs=20_000, size=224),
        "reduced": TripletBudget(
            pairs=9000,
            size=64,
            test=1500,
            epochs=15,
            frozen_epochs=50,
            slot_steps=3000,
            resolution=64,
            seeds=3,
            sweeps={6: INDEPENDENCE, 7: (0.0, 0.01, 0.1, 1.0, 10.0), 10: (1.0, 0.1, 0.01, 0.001)},
        ),
        "smoke": TripletBudget(
            pairs=400,
            size=64,
            train=160,
            valid=30,
            test=60,
            epochs=2,
            frozen_epochs=2,
            slot_steps=6,
            resolution=32,
            seeds=1,
            tiny=True,
            sweeps={6: (0.0, 0.1), 7: (0.0, 1.0), 10: (1.0, 0.01)},
        ),
    }
)
