"""Materials that the rows of one world share: data on the device, trials, trained models."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from interverse.data import Dataset, load_dataset
from interverse.envs.build import build_world
from interverse.fit.settings import Budget
from interverse.fit.work import Clock
from interverse.models.counterfactual import (
    CopyTheFact,
    KeepTheScene,
    MoveTheActed,
    counterfactual_trials,
    score_counterfactuals,
)
from interverse.models.datasets import dataset_rewards, dataset_source
from interverse.models.effects import Effects, Trials, TrueWorld, effects, grid_trials
from interverse.models.fit import Fit
from interverse.models.heads import RewardData
from interverse.models.ranking import rank_unchanged
from interverse.models.source import TransitionSource
from interverse.models.steps import Precision
from interverse.models.world_fit import Fitted, fit_world_model
from interverse.models.world_model import Loss, WorldModelConfig

_RATE = 5e-4  # the published one
_SAVED_EVERY = 10  # epochs on a GPU, where writing each would cost more than the training
_TRIALS_SEED = 11  # of scenes that no data set holds
CHEMISTRY_COLORS = 5
BLOCKS_MOVES = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphTrials:
    """Interventions, and what they do in the world."""

    trials: Trials
    truth: Effects
    one_step: bool
    """Effects do not travel within a step (blocks): total effects are the edges."""


@final
class Materials:
    """Data sets and trials of one world at one budget, made when first needed.

    Args:
        world: a blocks or chemistry id.
        budget: how many episodes.
        device: where frames are kept.
        folder: where data sets are kept.
        options: of the world.
    """

    def __init__(
        self,
        world: str,
        budget: Budget,
        *,
        device: str,
        folder: Path,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.world, self.budget, self.device = world, budget, device
        self.options, self._folder = options, folder
        self._sets: dict[str, Dataset] = {}
        self._sources: dict[str, TransitionSource] = {}

    @property
    def objects(self) -> int:
        """How many objects the world has."""
        return self.data("valid").header.actions // self.actions_per_object

    @property
    def actions_per_object(self) -> int:
        """Moves in blocks, colours in chemistry; five in every published world."""
        if self.world.startswith("blocks/"):
            return BLOCKS_MOVES
        return int(self.options.get("colors", CHEMISTRY_COLORS))

    @property
    def test_set(self) -> Dataset:
        """New episodes of the training world."""
        return self.data("test")

    def data(self, split: str) -> Dataset:
        """Returns a data set: train, valid, test, or zero-shot, whose colours are new."""
        if split not in self._sets:
            count = getattr(self.budget, split.replace("-", "_"))
            self._sets[split] = load_dataset(
                self.world, split, folder=self._folder, episodes=count, **self.options
            )
        return self._sets[split]

    def source(self, split: str) -> TransitionSource:
        """Returns the transitions of a data set, on the device."""
        if split not in self._sources:
            self._sources[split] = dataset_source(self.data(split), device=self.device)
        return self._sources[split]

    @cached_property
    def unchanged(self) -> dict[str, dict[str, Any]]:
        """Ranking scores by horizon of pictures that are predicted to stay as they are."""
        return {str(k): asdict(score) for k, score in rank_unchanged(self.source("test")).items()}

    @cached_property
    def rewards(self) -> tuple[RewardData, RewardData]:
        """What the reward predictor trains and validates on."""
        names = ("train", "valid")
        train, valid = (dataset_rewards(self.data(name), self.source(name)) for name in names)
        return train, valid

    @cached_property
    def graph(self) -> GraphTrials:
        """The trials that judge what was learned of the graph."""
        world = build_world(self.world, self.budget.trials, self.options)
        trials = grid_trials(world, seed=_TRIALS_SEED)
        truth = effects(TrueWorld(trials), trials)
        return GraphTrials(trials=trials, truth=truth, one_step=trials.worlds.in_blocks)

    @cached_property
    def counterfactuals(self) -> Trials:
        """The trials that ask what would have happened."""
        world = build_world(self.world, self.budget.trials // 3, self.options)
        return counterfactual_trials(world, seed=_TRIALS_SEED)

    @cached_property
    def counterfactual_ceilings(self) -> dict[str, dict[str, Any]]:
        """Scores of the true world with and without the facts' noise, and of copies."""
        trials = self.counterfactuals
        every = {
            "true world": TrueWorld(trials),
            "true world, other noise": TrueWorld(trials, noise=2),
            "copy of the fact": CopyTheFact(trials),
            "altered scene, nothing done": KeepTheScene(trials),
            "acted object alone": MoveTheActed(trials),
        }
        return {name: score_counterfactuals(one, trials).record() for name, one in every.items()}


def fitted_models(
    config: WorldModelConfig,
    materials: Materials,
    folder: Path,
    seeds: Iterable[int],
    clock: Clock,
    *,
    name: str,
    precision: Precision,
    finetune: bool = True,
    compile: bool = False,
    learning_rate: float | None = None,
) -> dict[int, Fitted]:
    """Returns the model of every seed; all that a folder lacks are trained together."""
    seeds = tuple(seeds)
    missing = tuple(s for s in seeds if not (folder / f"seed-{s}" / "model.json").exists())
    if missing:
        sizes, device = materials.budget, materials.device
        how = Fit(
            epochs=sizes.epochs,
            pretrain_epochs=sizes.pretrain_epochs,
            finetune=finetune,
            batch_size=sizes.batch_size,
            seeds=missing,
            device=device,
            precision=precision,
            compile=compile,
            learning_rate=_RATE if learning_rate is None else learning_rate,
            out=folder,
            checkpoint_every=1 if device == "cpu" else _SAVED_EVERY,
            progress=sys.stderr.isatty(),
        )
        clock.check()
        with clock.timed(f"data of {materials.world}"):
            train, valid = materials.source("train"), materials.source("valid")
        told = f"{name}: seeds {', '.join(map(str, missing))}"
        watch = clock.watch(told, sizes.epochs, saved_every=how.checkpoint_every)
        with clock.timed(f"{told} trained"):
            fit_world_model(config, how, train, valid, listeners=[watch])
    return {seed: Fitted.load(folder / f"seed-{seed}") for seed in seeds}


def model_config(
    materials: Materials, model: str, loss: Loss, *, hidden: int = 512
) -> WorldModelConfig:
    """Returns a model as the published tables had it, 512 wide, for a world and its sizes."""
    return WorldModelConfig.named(
        "reference",
        model=model,
        loss=loss,
        objects=materials.objects,
        actions_per_object=materials.actions_per_object,
        encoder=materials.budget.encoder,
        embedding=materials.budget.embedding,
        hidden=hidden,
    )


def training_record(fitted: Fitted) -> dict[str, Any]:
    """Returns what training was like: per stage the time, the best epoch and its loss."""
    out: dict[str, Any] = {}
    for stage in fitted.weights:
        rows = [row for row in fitted.history if row["stage"] == stage]
        best = min(rows, key=lambda row: row["valid"])
        digest, weights = hashlib.sha256(), fitted.weights[stage]  # tells two trainings apart
        for name in sorted(weights):
            digest.update(name.encode() + weights[name].detach().cpu().numpy().tobytes())
        out[stage] = {
            "epochs": len(rows),
            "seconds": round(sum(row["seconds"] for row in rows), 1),
            "best_epoch": best["epoch"],
            "best_valid": best["valid"],
            "last_valid": rows[-1]["valid"],
            "weights": digest.hexdigest()[:16],
        }
    return out
