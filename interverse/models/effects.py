"""Intervening in a model: which object does it think acts on which?

The same trials are put to the model and to the world: act on one object, or act on one object in
two scenes that differ in one other object. What each object became is read as chances over its
values, and compared by `interverse.metrics.recovery`. The world itself, put in the model's place,
recovers its own graph; a model that predicts no change recovers the empty one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

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


@final
class ModelRespondent:
    """A world model, asked in its latent space and read through a probe."""

    def __init__(self, model: WorldModel, probe: Probe) -> None:
        self.model, self.probe = model.eval(), probe.eval()
        self._device = next(model.parameters()).device

    @torch.no_grad()
    def now(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns what the probe reads in the encodings of images."""
        return np.concatenate(
            [self.probe(self._encode(part)).cpu().numpy() for part in _parts(scenes)]
        )

    @torch.no_grad()
    def after(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns what the probe reads in the predicted next states."""
        rows = []
        for part, chosen in zip(_parts(scenes), _parts(actions), strict=True):
            action = torch.as_tensor(chosen, device=self._device)
            rows.append(self.probe(self.model.predict(self._encode(part), action)).cpu().numpy())
        return np.concatenate(rows)

    @torch.no_grad()
    def encodings(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns (N, width) the model's states of images."""
        parts = [self._encode(part).flatten(1).cpu().numpy() for part in _parts(scenes)]
        return np.concatenate(parts)

    @torch.no_grad()
    def predictions(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns (N, width) the states it predicts."""
        rows = []
        for part, chosen in zip(_parts(scenes), _parts(actions), strict=True):
            action = torch.as_tensor(chosen, device=self._device)
            rows.append(self.model.predict(self._encode(part), action).flatten(1).cpu().numpy())
        return np.concatenate(rows)

    def _encode(self, images: NDArray[np.generic]) -> torch.Tensor:
        return self.model.encode(to_float(torch.as_tensor(images).to(self._device)))


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


def _parts(array: NDArray[np.generic]) -> list[NDArray[np.generic]]:
    return [array[start : start + _ROWS] for start in range(0, len(array), _ROWS)]
