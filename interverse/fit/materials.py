"""Materials that the rows of one world share: data on the device, and trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.data import Dataset, load_dataset
from interverse.envs.build import build_world
from interverse.fit.settings import Budget
from interverse.models.counterfactual import (
    CopyTheFact,
    CounterfactualRespondent,
    CounterfactualTrials,
    KeepTheScene,
    MoveTheActed,
    TrueWorld,
    counterfactual_trials,
    score_counterfactuals,
)
from interverse.models.datasets import dataset_labels, dataset_rewards, dataset_source
from interverse.models.effects import Effects, effects
from interverse.models.heads import RewardData
from interverse.models.ranking import rank_unchanged
from interverse.models.source import TransitionSource
from interverse.models.trials import GridTrials, WorldRespondent, blocks_trials, chemistry_trials

_TRIALS_SEED = 11  # of scenes that no data set holds
CHEMISTRY_COLORS = 5
BLOCKS_MOVES = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphTrials:
    """Interventions, what they do in the world, and the world to ask more of."""

    trials: GridTrials
    world: WorldRespondent
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

    @property
    def objects(self) -> int:
        """How many objects the world has."""
        return self._valid_set.header.actions // self.actions_per_object

    @property
    def actions_per_object(self) -> int:
        """Moves in blocks, colours in chemistry; five in every published world."""
        if self.world.startswith("blocks/"):
            return BLOCKS_MOVES
        return int(self.options.get("colors", CHEMISTRY_COLORS))

    @cached_property
    def _train_set(self) -> Dataset:
        return self._load("train", self.budget.train)

    @cached_property
    def _valid_set(self) -> Dataset:
        return self._load("valid", self.budget.valid)

    @cached_property
    def train(self) -> TransitionSource:
        """Training transitions."""
        return dataset_source(self._train_set, device=self.device)

    @cached_property
    def valid(self) -> TransitionSource:
        """Validation transitions."""
        return dataset_source(self._valid_set, device=self.device)

    @cached_property
    def test_set(self) -> Dataset:
        """New episodes of the training world."""
        return self._load("test", self.budget.test)

    @cached_property
    def test(self) -> TransitionSource:
        """The references of the ranking."""
        return dataset_source(self.test_set, device=self.device)

    @cached_property
    def zero_shot(self) -> TransitionSource:
        """References whose colours were never seen in training."""
        return dataset_source(self._load("zero-shot", self.budget.zero_shot), device=self.device)

    @cached_property
    def unchanged(self) -> dict[str, dict[str, Any]]:
        """Ranking scores by horizon of pictures that are predicted to stay as they are."""
        return {str(k): asdict(score) for k, score in rank_unchanged(self.test).items()}

    @cached_property
    def rewards(self) -> tuple[RewardData, RewardData]:
        """What the reward predictor trains and validates on."""
        return (
            dataset_rewards(self._train_set, self.train),
            dataset_rewards(self._valid_set, self.valid),
        )

    @cached_property
    def labels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """True values of the objects in training and validation frames, for the probe."""
        return dataset_labels(self._train_set)[0], dataset_labels(self._valid_set)[0]

    @cached_property
    def graph(self) -> GraphTrials:
        """The trials that judge what was learned of the graph."""
        world = build_world(self.world, self.budget.trials, self.options)
        in_blocks = self.world.startswith("blocks/")
        make = blocks_trials if in_blocks else chemistry_trials
        trials, respondent = make(world, seed=_TRIALS_SEED)
        truth = effects(respondent, trials.states)
        return GraphTrials(trials=trials, world=respondent, truth=truth, one_step=in_blocks)

    @cached_property
    def counterfactuals(self) -> CounterfactualTrials:
        """The trials that ask what would have happened."""
        world = build_world(self.world, self.budget.trials // 3, self.options)
        return counterfactual_trials(world, seed=_TRIALS_SEED)

    @cached_property
    def counterfactual_ceilings(self) -> dict[str, dict[str, Any]]:
        """Scores of the true world with and without the facts' noise, and of copies."""
        trials = self.counterfactuals
        every: dict[str, CounterfactualRespondent] = {
            "true world": TrueWorld(trials),
            "true world, other noise": TrueWorld(trials, noise=2),
            "copy of the fact": CopyTheFact(trials.values),
            "altered scene, nothing done": KeepTheScene(trials.values),
            "acted object alone": MoveTheActed(trials),
        }
        return {name: score_counterfactuals(one, trials).record() for name, one in every.items()}

    def _load(self, split: str, episodes: int) -> Dataset:
        return load_dataset(
            self.world, split, folder=self._folder, episodes=episodes, **self.options
        )
