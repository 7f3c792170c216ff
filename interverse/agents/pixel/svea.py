"""SVEA: values of shifted and of strongly changed pictures learn one target from shifted ones.

Hansen, Su and Wang's stabilised Q-learning: the target never sees a strong augmentation, both views
are weighed in one loss, and the actor learns from the shifted view alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend
from interverse.agents.pixel.augment import augmentation
from interverse.agents.pixel.soft import critic_loss
from interverse.core.errors import check_number


@final
@dataclass(frozen=True, kw_only=True)
class SveaOptions(AgentOptions):
    """The strong augmentation, and how much its view counts."""

    strong: str = "random_convolution"
    """A name of the table, or several joined by +; the authors' code has this one."""
    strong_weight: float = 0.5
    """The paper's beta: the share of the strong view in the critics' loss."""

    def __post_init__(self) -> None:
        check_number(self.strong_weight, "strong_weight", most=1.0)
        augmentation(self.strong)  # raises for a name that no table holds


@final
class Svea(Agent):
    """SAC on shifted pictures whose critics also see them strongly changed."""

    options: SveaOptions
    options_type = SveaOptions
    own_trunk = True

    def _build(self, generator: torch.Generator) -> None:
        self._shift, self._strong = augmentation("drq_no_noise"), augmentation(self.options.strong)

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch, o and o' shifted apart: one target, two views of o."""
        nets, count, weight = self.networks, len(batch.rewards), self.options.strong_weight
        (seen,) = self._shift(batch.observations, generator=self.generator)
        (successors,) = self._shift(batch.successors, generator=self.generator)
        target = self.target(batch, successors)
        (changed,) = self._strong(seen, generator=self.generator)
        flat = nets.encoder.convolve(seen, changed)
        features = nets.encoder.trunk(flat)
        actions = batch.actions.repeat(2, 1)
        first, second = nets.critics(features, actions)
        weak = critic_loss((first[:count], second[:count]), target)
        strong = critic_loss((first[count:], second[count:]), target)
        descend(self.optimisers["critic"], (1.0 - weight) * weak + weight * strong)
        losses = {"critic": weak.detach(), "strong": strong.detach()}
        return losses | self.follow(features[:count], flat[:count])
