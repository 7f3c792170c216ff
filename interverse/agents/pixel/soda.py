"""SODA: SAC on random crops, whose encoder also learns to see strong changes through.

Hansen and Wang's soft data augmentation: nothing strongly changed ever reaches actor or critics. A
projection of the changed picture predicts the slow projection of the same picture as it was.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend, track
from interverse.agents.pixel.augment import augmentation
from interverse.agents.pixel.networks import linear
from interverse.core.errors import check_number, check_whole


@final
@dataclass(frozen=True, kw_only=True)
class SodaOptions(AgentOptions):
    """The strong augmentation and the projections."""

    strong: str = "random_convolution"
    """A name of the table, or several joined by +; a random convolution is one of the paper's."""
    own_batch: int = 256
    """Pictures of a step on the projections; they are drawn apart from the critics' batch."""
    projection_rate: float = 1e-3
    """The learning rate of that step."""
    projection: int = 100
    """The width of the projections and of what is inside them."""
    projection_tau: float = 0.005
    """How far the slow encoder and projection move at a step."""

    def __post_init__(self) -> None:
        for name in ("projection", "own_batch"):
            check_whole(getattr(self, name), name, 10**6)
        check_number(self.projection_rate, "projection_rate", above=True)
        check_number(self.projection_tau, "projection_tau", most=1.0, above=True)
        augmentation(self.strong)  # raises for a name that no table holds


@final
class Soda(Agent):
    """At every second update the convolutions learn from a pair of crops of one picture."""

    options: SodaOptions
    options_type = SodaOptions
    own_trunk = True

    def _build(self, generator: torch.Generator) -> None:
        self._strong = augmentation(self.options.strong)
        width = self.options.projection
        parts = {
            "projection": Projection(self.sizes.flat, width, generator),
            "predictor": Projection(width, width, generator),
        }
        parts["slow_projection"] = copy.deepcopy(parts["projection"]).requires_grad_(False)
        self.extra.update({name: part.to(self.device) for name, part in parts.items()})
        slow = copy.deepcopy(self.networks.encoder.convolutions).requires_grad_(False)
        self.extra["slow_convolutions"] = slow
        learned = (self.networks.encoder.convolutions, parts["projection"], parts["predictor"])
        self.optimisers["projection"] = self.adam(*learned, rate=self.options.projection_rate)

    @property
    def drawn(self) -> int:
        """The critics' transitions, and after them the pictures of the step on projections."""
        return self.hyper.batch + self.options.own_batch

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from both parts of a batch; every crop is drawn apart."""
        turn, own = self.updates % self.hyper.actor_every, batch.observations[self.hyper.batch :]
        batch = PixelBatch(*(part[: self.hyper.batch] for part in batch))
        target = self.target(batch, self.crop(batch.successors))
        losses = self.learn(self.crop(batch.observations), batch.actions, target)
        return losses if turn else losses | self._consistent(own)

    def _consistent(self, pictures: Tensor) -> dict[str, Tensor]:
        """Makes one step towards projections that a strong change does not move."""
        plain, changed = self.crop(pictures), self.crop(pictures)
        (changed,) = self._strong(changed, generator=self.generator)
        encoder, extra, tau = self.networks.encoder, self.extra, self.options.projection_tau
        with torch.no_grad():
            maps = encoder.maps(plain, extra["slow_convolutions"])[-1]
            slow = extra["slow_projection"](maps)
        guess = extra["predictor"](extra["projection"](encoder.convolve(changed)))
        guess, slow = functional.normalize(guess, dim=1), functional.normalize(slow, dim=1)
        loss = functional.mse_loss(guess, slow)
        descend(self.optimisers["projection"], loss)
        track(extra["slow_projection"], extra["projection"], tau)
        track(extra["slow_convolutions"], encoder.convolutions, tau)
        return {"consistency": loss.detach()}


@final
class Projection(nn.Module):
    """Linear, norm over the batch, ReLU, linear."""

    def __init__(self, given: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = linear(given, width, generator)
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.second = linear(width, width, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the projection; the norm is that of the batch, as in training."""
        x = self.first(x.flatten(1))
        x = functional.batch_norm(x, None, None, self.scale, self.shift, training=True)
        return self.second(functional.relu(x))
