"""RAD: SAC on random crops of larger pictures; acting, it sees the middle."""

from __future__ import annotations

from typing import final

from torch import Tensor

from interverse.agents.pixel.agent import Agent, PixelBatch


@final
class Rad(Agent):
    """Crops o and o' apart; the actor has a trunk of its own."""

    own_trunk = True
    squash = False

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        target = self.target(batch, self.crop(batch.successors))
        return self.learn(self.crop(batch.observations), batch.actions, target)
