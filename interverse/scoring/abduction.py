"""Abduction for any world model: what a fact did beyond its prediction happens again.

Noise is taken to be added to the model's prediction, in its latent space: the residual of the fact
(its outcome less what was predicted of it) is carried over to the altered scene. That needs no
training, and exact noise of another form (chemistry's inverse chances) it only approaches.
"""

from __future__ import annotations

from typing import Any, final

from torch import Tensor, nn

from interverse.models.world_model import WorldModel
from interverse.scoring.outside import Fact, OwnModel


@final
class Abducting(nn.Module):
    """A world model with `abduct`: its own two methods, and residuals that are carried over.

    Args:
        model: a world model of this library, or anything with `encode` and `rollout` on tensors.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = OwnModel(model) if isinstance(model, WorldModel) else model

    def encode(self, observations: Any) -> Any:
        """Returns the model's latents."""
        return self.model.encode(observations)

    def rollout(self, latents: Any, actions: Any) -> Any:
        """Returns the model's predictions."""
        return self.model.rollout(latents, actions)

    def abduct(self, fact: Fact) -> CarriedOver:
        """Returns the model with the residuals of N facts, row by row."""
        expected = self.rollout(self.encode(fact.observations), fact.actions[:, None])[:, -1]
        return CarriedOver(self, self.encode(fact.outcomes) - expected)


@final
class CarriedOver:
    """A model's `rollout` with the residual of row i's fact on every prediction of row i."""

    def __init__(self, model: Abducting, residual: Tensor) -> None:
        self._model, self._residual = model, residual

    def rollout(self, latents: Any, actions: Any) -> Any:
        """Returns predictions (N, K, ...) plus residuals (N, ...)."""
        return self._model.rollout(latents, actions) + self._residual[:, None]
