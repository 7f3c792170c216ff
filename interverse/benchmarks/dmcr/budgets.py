"""Budgets: the published sizes, what a CPU can do in hours, or just enough to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, final

from interverse.agents.pixel.presets import PixelPreset
from interverse.benchmarks.dmcr.published import METHODS, TASKS

BudgetName = Literal["smoke", "reduced", "full"]
_SWEEPS = {5: (0.0, 0.25, 0.5, 0.75, 0.9, 1.0), 6: (0.0, 1e-5, 1e-4, 1.5e-3, 1e-2, 1e-1)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DmcrBudget:
    """Sizes of everything a number depends on.

    Attributes:
        preset: of the agents. steps: decisions, None: the preset's for each task.
        runs: training runs a number, seeds 0 to runs - 1. Figure 6's caption has eight trials: ask
            for that many.
        looks, starts: visual seeds of a test and dynamics seeds of each; their product is its
            episodes, and no two of them start from the same state.
        train_episodes: of the training score.
        renderings: looks of one state for Figure 3.
        trained_looks: Figure 2's: how many of the first task and of the second.
        sweeps: by figure, the values tried. augmentations: of Figure 7, None: all eleven.
        tasks, methods: what is done unless asked for by name.
        by_name: whether methods were asked for by name: figures then train no others.
        hyper, world: other hyper-parameters than the preset's, further options of the world.
    """

    preset: PixelPreset
    steps: int | None = None
    runs: int = 5
    looks: int = 100
    starts: int = 3
    train_episodes: int = 100
    renderings: int = 300
    trained_looks: tuple[int, int] = (4, 60)
    sweeps: Mapping[int, tuple[float, ...]] = field(default_factory=lambda: dict(_SWEEPS))
    augmentations: tuple[str, ...] | None = None
    tasks: tuple[str, ...] = tuple(TASKS)
    methods: tuple[str, ...] = tuple(METHODS)
    by_name: bool = False
    hyper: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)


BUDGETS: Mapping[str, DmcrBudget] = MappingProxyType(
    {
        "full": DmcrBudget(preset="paper"),
        "reduced": DmcrBudget(
            preset="small",
            runs=2,
            looks=25,
            starts=2,
            train_episodes=50,
            renderings=100,
            trained_looks=(3, 0),
            sweeps={5: (0.0, 0.5, 1.0), 6: (0.0, 1e-4, 1e-2)},
        ),
        "smoke": DmcrBudget(
            preset="small",
            steps=24,
            runs=1,
            looks=3,
            starts=1,
            train_episodes=3,
            renderings=3,
            trained_looks=(2, 0),
            sweeps={5: (0.0, 1.0), 6: (0.0, 1e-2)},
            augmentations=("drq", "rotate"),
            tasks=("Cartpole Balance",),
            methods=("CURL", "SAC+AUG"),
            hyper={
                "image_size": 32,
                "filters": 4,
                "features": 8,
                "hidden": 16,
                "batch": 8,
                "capacity": 100,
                "warm_up": 8,
            },
            world={"max_steps": 4, "quality": "fast"},
        ),
    }
)
