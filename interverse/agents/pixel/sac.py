"""Soft actor-critic from pictures, without augmentation: what the other agents add to."""

from __future__ import annotations

from typing import final

from torch import Tensor

from interverse.agents.pixel.agent import Agent, PixelBatch


@final
class PixelSac(Agent):
    """One encoder for actor and critics; the critics alone train it."""

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        target = self.target(batch, batch.successors)
        return self.learn(batch.observations, batch.actions, target)
