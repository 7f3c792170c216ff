"""RAD: SAC on random crops of larger pictures; acting, it sees the middle."""

from __future__ import annotations

from typing import final

from torch import Tensor

from interverse.agents.pixel.agent import Agent, PixelBatch, descend
from interverse.agents.pixel.geometry import random_crop
from interverse.agents.pixel.soft import critic_loss


@final
class Rad(Agent):
    """Crops o and o' apart; the actor has a trunk of its own."""

    own_trunk = True

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        nets = self.networks
        target = self.target(batch, self._crop(batch.successors))
        flat = nets.encoder.convolve(self._crop(batch.observations))
        features = nets.encoder.trunk(flat)
        loss = critic_loss(nets.critics(features, batch.actions), target)
        descend(self.optimisers["critic"], loss)
        return {"critic": loss.detach()} | self.follow(flat, features)

    def _crop(self, pictures: Tensor) -> Tensor:
        return random_crop(pictures, self.sizes.pictures[1], self.generator)
