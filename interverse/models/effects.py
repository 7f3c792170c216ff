"""Intervening in a model: which object does it think acts on which?

The same trials are put to the model and to the world: act on one object, or act on one object in
two scenes that differ in one other object. What each object became is read as chances over its
values, and compared by `interverse.metrics.recovery`. The world itself, put in the model's place,
recovers its own graph; a model that predicts no change recovers the empty one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.metrics import recovery
from interverse.metrics.recovery import Floats, RecoveryScores
from interverse.models.heads import Probe
from interverse.models.source import to_float
from interverse.models.world_model import WorldModel

_ROWS = 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Scenes, actions, and the twins in which one object differs.

    Attributes:
        scenes: (N, ...) what the model sees (images), or the world's own states.
        actions: (N,) int64.
        acted: (N,) the object each action is about.
        twins: (N, ...) the same scenes with the value of object `altered` changed.
        twin_actions: (N,) the same actions, or where the altered object is the acted one, the
            same kind of action with another value.
        altered: (N,) the object that differs.
    """

    scenes: NDArray[np.generic]
    actions: NDArray[np.int64]
    acted: NDArray[np.int64]
    twins: NDArray[np.generic]
    twin_actions: NDArray[np.int64]
    altered: NDArray[np.int64]


class Respondent(Protocol):
    """A model or a world that can be asked what an action does."""

    def now(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns (N, objects, values): what it takes each object to be."""
        ...

    def after(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns (N, objects, values): what it expects each object to become.

        Row n must not depend on the other rows, and a world must use the same noise for row n at
        every call, so that a twin differs by its intervention alone.
        """
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effects:
    """A respondent's effect matrices; entry [i, j] is what j does to i."""

    total: Floats  # (n, n)
    direct: Floats  # (n, n)


class ProbedModel(ABC):
    """A model of pictures, asked in its latent space and read through a probe."""

    @abstractmethod
    def encodings(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns (N, width) the model's states of images."""

    @abstractmethod
    def predictions(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns (N, width) the states it predicts."""

    @abstractmethod
    def read(self, states: Floats) -> Floats:
        """Returns (N, objects, values): chances that the probe reads in states (N, width)."""

    def now(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns what is read in the encodings of images."""
        return self.read(self.encodings(scenes))

    def after(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns what is read in the predicted next states."""
        return self.read(self.predictions(scenes, actions))


@final
class ModelRespondent(ProbedModel):
    """A world model, asked in its latent space and read through a probe."""

    def __init__(self, model: WorldModel, probe: Probe) -> None:
        self.model, self.probe = model.eval(), probe.eval()
        self._device = next(model.parameters()).device

    def encodings(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns (N, width) the model's states of images."""
        return self._by_parts(self._encode, scenes)

    def predictions(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns (N, width) the states it predicts."""
        return self._by_parts(lambda s, a: self.model.predict(self._encode(s), a), scenes, actions)

    def read(self, states: Floats) -> Floats:
        """Returns what the probe reads in states."""
        found = self._by_parts(self.probe, states)
        return found.reshape(len(found), self.probe.objects, self.probe.values)

    def _encode(self, images: torch.Tensor) -> torch.Tensor:
        return self.model.encode(to_float(images))

    @torch.no_grad()
    def _by_parts(self, of: Callable[..., torch.Tensor], *arrays: NDArray[Any]) -> Floats:
        """Returns (N, width) what a function gives, some rows at a time on the model's device."""
        parts = []
        for start in range(0, len(arrays[0]), _ROWS):
            rows = (array[start : start + _ROWS] for array in arrays)
            parts.append(of(*(torch.as_tensor(part).to(self._device) for part in rows)))
        return torch.cat(parts).flatten(1).cpu().numpy()


def effects(respondent: Respondent, trials: Trials, *, floor: float = 0.0) -> Effects:
    """Returns the effect matrices that a respondent's answers amount to.

    Args:
        respondent: a model or a world.
        trials: what it is asked.
        floor: total effects up to this count as none when paths are told apart; a trained model
            needs some, its answers are never exactly unchanged.
    """
    outcome = respondent.after(trials.scenes, trials.actions)
    twin = respondent.after(trials.twins, trials.twin_actions)
    total = recovery.total_effects(respondent.now(trials.scenes), outcome, trials.acted)
    depends = recovery.dependences(outcome, twin, trials.altered, trials.acted)
    return Effects(total=total, direct=recovery.direct_effects(depends, total, floor=floor))


def score_effects(
    graph: NDArray[np.generic],
    *,
    truth: Effects,
    found: Effects,
    one_step: bool = False,
    threshold: float = 0.1,
) -> RecoveryScores:
    """Returns how well a model's effects match the world's.

    Args:
        graph: (n, n) true edges, [i, j] = 1 for j -> i.
        truth: the world's own effects, on the same trials.
        found: the model's.
        one_step: effects do not travel within a step (blocks), so total effects are the edges.
        threshold: of the score that does not choose its own.
    """
    return recovery.recovery(
        graph,
        true_totals=truth.total,
        found_totals=found.total,
        found_direct=found.total if one_step else found.direct,
        threshold=threshold,
    )
