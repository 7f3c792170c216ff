"""DBC: features as far apart as their states behave differently (deep bisimulation)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend
from interverse.agents.pixel.networks import PixelSizes, perceptron

_LOG_SPREAD = (-5.0, 2.0)


@final
@dataclass(frozen=True, kw_only=True)
class DbcOptions(AgentOptions):
    """How strongly the metric shapes the features."""

    bisimulation: float = 0.5
    """The weight of the metric's loss beside that of the latent model."""


@final
class Dbc(Agent):
    """After each step of the critics: a latent model's loss, and the bisimulation metric's."""

    options: DbcOptions
    options_type = DbcOptions

    def _build(self, generator: torch.Generator) -> None:
        self.extra["model"] = LatentModel(self.sizes, generator).to(self.device)
        self.optimisers["encoder"] = self.adam(self.networks.encoder, rate=self.hyper.encoder_rate)
        self.optimisers["model"] = self.adam(self.extra["model"], rate=self.hyper.critic_rate)

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        nets, model = self.networks, self.extra["model"]
        target = self.target(batch, batch.successors)
        losses = self.learn(batch.observations, batch.actions, target)
        features = nets.encoder(batch.observations)
        with torch.no_grad():
            successors = nets.encoder(batch.successors)
        foresight = model_loss(model(features, batch.actions), batch.rewards, successors)
        with torch.no_grad():
            guess = model(features, batch.actions)
        others = torch.randperm(len(features), generator=self.generator, device=self.device)
        metric = bisimulation_loss(features, batch.rewards, guess, others, self.hyper.discount)
        total = foresight + self.options.bisimulation * metric
        descend(self.optimisers["encoder"], total, self.optimisers["model"])
        return losses | {"model": foresight.detach(), "bisimulation": metric.detach()}


class NextFeatures(NamedTuple):
    """A Gaussian over the next features, and the reward."""

    mean: Tensor
    spread: Tensor
    reward: Tensor


@final
class LatentModel(nn.Module):
    """Features and actions to the next features and the reward."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        width = sizes.features + sizes.actions
        self.layers = perceptron(width, 2 * sizes.features + 1, sizes.hidden, generator)

    def forward(self, features: Tensor, actions: Tensor) -> NextFeatures:
        """Returns what comes next."""
        out = self.layers(torch.cat([features, actions], dim=1)).float()
        mean, raw = out[:, :-1].chunk(2, dim=1)
        low, high = _LOG_SPREAD
        log_spread = low + 0.5 * (high - low) * (torch.tanh(raw) + 1.0)
        return NextFeatures(mean, log_spread.exp(), out[:, -1:])


def model_loss(guess: NextFeatures, rewards: Tensor, successors: Tensor) -> Tensor:
    """Returns the Gaussian's negative log likelihood (less a constant) and the reward's error."""
    distance = (successors - guess.mean) / guess.spread
    unlikely = (0.5 * distance**2 + guess.spread.log()).mean()
    return unlikely + functional.mse_loss(guess.reward, rewards)


def bisimulation_loss(
    features: Tensor, rewards: Tensor, guess: NextFeatures, others: Tensor, discount: float
) -> Tensor:
    """Returns the squared error of |z_i - z_j| as |r_i - r_j| + discount W2(P_i, P_j)."""
    apart = (features - features[others]).abs().sum(1)
    reward = (rewards - rewards[others]).abs().squeeze(1)
    means = (guess.mean - guess.mean[others]).pow(2).sum(1)
    spreads = (guess.spread - guess.spread[others]).pow(2).sum(1)
    wanted = reward + discount * torch.sqrt(means + spreads)
    return functional.mse_loss(apart, wanted)
