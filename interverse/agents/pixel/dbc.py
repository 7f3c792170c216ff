"""DBC: features as far apart as their states behave differently (deep bisimulation)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend
from interverse.agents.pixel.networks import PixelSizes, linear
from interverse.agents.pixel.soft import critic_loss
from interverse.core.errors import check_number

_SPREADS = (1e-4, 10.0)  # of the latent model, least and greatest
_WIDTH = 512  # of the latent model's and the reward's hidden layer


@final
@dataclass(frozen=True, kw_only=True)
class DbcOptions(AgentOptions):
    """How strongly the metric shapes the features, and how the latent model is held back."""

    bisimulation: float = 0.5
    """The weight of the metric's loss beside that of the latent model."""
    model_decay: float = 1e-7
    """Weight decay of the latent model and the reward."""

    def __post_init__(self) -> None:
        for name in ("bisimulation", "model_decay"):
            check_number(getattr(self, name), name)


@final
class Dbc(Agent):
    """The critics' step, one on a latent model's loss and the metric's, then the actor's."""

    options: DbcOptions
    options_type = DbcOptions
    own_trunk = True
    squash = False

    def _build(self, generator: torch.Generator) -> None:
        model = self._model = LatentModel(self.sizes, generator).to(self.device)
        self.extra["model"] = model
        rate, decay = self.hyper.critic_rate, self.options.model_decay
        self.optimisers["encoder"] = self.adam(self.networks.encoder, rate=self.hyper.encoder_rate)
        self.optimisers["model"] = self.adam(model, rate=rate, weight_decay=decay)

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; the actor sees the encoder as the metric has left it."""
        nets = self.networks
        target = self.target(batch, batch.successors)
        values = nets.critics(nets.encoder(batch.observations), batch.actions)
        loss = critic_loss(values, target)
        descend(self.optimisers["critic"], loss)
        losses = {"critic": loss.detach()} | self._foresee(batch)
        with torch.no_grad():
            maps = nets.encoder.convolve(batch.observations)
            features = nets.encoder.trunk(maps)
        return losses | self.follow(features, maps)

    def _foresee(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Moves encoder and latent model by what comes next and by the metric."""
        encoder, model = self.networks.encoder, self._model
        features = encoder(batch.observations)
        with torch.no_grad():
            successors = encoder(batch.successors)
        guess = model(features, batch.actions)
        dice = torch.randn(guess.mean.shape, generator=self.generator, device=self.device)
        reward = model.reward(guess.mean + guess.spread * dice)
        foresight = model_loss(guess, successors) + functional.mse_loss(reward, batch.rewards)
        others = torch.randperm(len(features), generator=self.generator, device=self.device)
        known = NextFeatures(*(part.detach() for part in guess))
        metric = bisimulation_loss(features, batch.rewards, known, others, self.hyper.discount)
        total = foresight + self.options.bisimulation * metric
        descend(self.optimisers["encoder"], total, self.optimisers["model"])
        return {"model": foresight.detach(), "bisimulation": metric.detach()}


class NextFeatures(NamedTuple):
    """A Gaussian over the next features."""

    mean: Tensor
    spread: Tensor


@final
class LatentModel(nn.Module):
    """Features and actions to the next features, and these to the reward."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        given = sizes.features + sizes.actions
        self.layers = _normed(given, 2 * sizes.features, generator)
        self.rewards = _normed(sizes.features, 1, generator)

    def forward(self, features: Tensor, actions: Tensor) -> NextFeatures:
        """Returns what comes next."""
        out = self.layers(torch.cat([features, actions], dim=1)).float()
        mean, raw = out.chunk(2, dim=1)
        low, high = _SPREADS
        return NextFeatures(mean, low + (high - low) * torch.sigmoid(raw))

    def reward(self, features: Tensor) -> Tensor:
        """Returns the reward on the way to these features, (N, 1)."""
        out: Tensor = self.rewards(features)
        return out.float()


def _normed(given: int, made: int, generator: torch.Generator) -> nn.Sequential:
    """Returns one hidden layer with a layer norm."""
    hidden = linear(given, _WIDTH, generator), nn.LayerNorm(_WIDTH), nn.ReLU()
    return nn.Sequential(*hidden, linear(_WIDTH, made, generator))


def model_loss(guess: NextFeatures, successors: Tensor) -> Tensor:
    """Returns the Gaussian's negative log likelihood, less a constant."""
    distance = (successors - guess.mean) / guess.spread
    return (0.5 * distance**2 + guess.spread.log()).mean()


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
