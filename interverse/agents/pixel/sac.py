"""Soft actor-critic from pictures, without augmentation: what the other agents add to."""

from __future__ import annotations

from typing import final

from torch import Tensor

from interverse.agents.pixel.agent import Agent, PixelBatch, descend
from interverse.agents.pixel.soft import critic_loss


@final
class PixelSac(Agent):
    """One encoder for actor and critics; the critics alone train it."""

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        nets = self.networks
        target = self.target(batch, batch.successors)
        flat = nets.encoder.convolve(batch.observations)
        features = nets.encoder.trunk(flat)
        loss = critic_loss(nets.critics(features, batch.actions), target)
        descend(self.optimisers["critic"], loss)
        return {"critic": loss.detach()} | self.follow(flat, features)
