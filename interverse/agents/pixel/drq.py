"""DrQ: targets averaged over K shifted successors, values over M shifted observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend
from interverse.agents.pixel.augment import augmentation
from interverse.agents.pixel.soft import critic_loss
from interverse.core.errors import check_whole


@final
@dataclass(frozen=True, kw_only=True)
class DrqOptions(AgentOptions):
    """How much is averaged."""

    targets: int = 2
    """The paper's K: shifted successors per target."""
    values: int = 2
    """The paper's M: shifted observations per loss."""

    def __post_init__(self) -> None:
        for name in ("targets", "values"):
            check_whole(getattr(self, name), name, 10**6)


@final
class Drq(Agent):
    """Shifts by up to four pixels, the border repeated, without noise."""

    options: DrqOptions
    options_type = DrqOptions
    own_trunk = True
    whole = True

    def _build(self, generator: torch.Generator) -> None:
        self._shift = augmentation("drq_no_noise")

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; the actor learns from the first shift."""
        nets, count = self.networks, len(batch.rewards)
        shifted = [self._moved(batch.successors) for _ in range(self.options.targets)]
        target = torch.stack([self.target(batch, moved) for moved in shifted]).mean(0)
        views = [self._moved(batch.observations) for _ in range(self.options.values)]
        flat = nets.encoder.convolve(*views)
        features = nets.encoder.trunk(flat)
        actions, targets = (x.repeat(self.options.values, 1) for x in (batch.actions, target))
        loss = critic_loss(nets.critics(features, actions), targets)
        descend(self.optimisers["critic"], loss)
        return {"critic": loss.detach()} | self.follow(features[:count], flat[:count])

    def _moved(self, pictures: Tensor) -> Tensor:
        (moved,) = self._shift(pictures, generator=self.generator)
        return moved
