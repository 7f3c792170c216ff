"""SAC+AE: the encoder also learns to give its pictures back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend
from interverse.agents.pixel.augment import fused
from interverse.agents.pixel.half import in_half
from interverse.agents.pixel.networks import PixelSizes, linear

_BINS = 2**5  # grey levels of the picture that is to be given back


@final
@dataclass(frozen=True, kw_only=True)
class SacAeOptions(AgentOptions):
    """How the autoencoder is held back."""

    latent_cost: float = 1e-6
    """The weight of half the squared length of the features."""
    decoder_decay: float = 1e-7
    """Weight decay of the decoder."""


@final
class SacAe(Agent):
    """A reconstruction loss after every step of the critics."""

    options: SacAeOptions
    options_type = SacAeOptions
    own_trunk = True

    def _build(self, generator: torch.Generator) -> None:
        decoder = PixelDecoder(self.sizes, generator).to(self.device)
        self.extra["decoder"] = decoder
        self.optimisers["encoder"] = self.adam(self.networks.encoder, rate=self.hyper.encoder_rate)
        self.optimisers["decoder"] = self.adam(
            decoder, rate=self.hyper.encoder_rate, weight_decay=self.options.decoder_decay
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        target = self.target(batch, batch.successors)
        losses = self.learn(batch.observations, batch.actions, target)
        features = self.networks.encoder(batch.observations)
        given_back = self.extra["decoder"](features)
        draws = self._uniform(batch.observations.shape)
        measure = _fused_error() if given_back.is_cuda else picture_error
        error = measure(given_back, batch.observations, draws)
        error = error + self.options.latent_cost * 0.5 * features.pow(2).sum(1).mean()
        descend(self.optimisers["encoder"], error, self.optimisers["decoder"])
        return losses | {"reconstruction": error.detach()}

    def _uniform(self, shape: torch.Size) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.device)


@final
class PixelDecoder(nn.Module):
    """Features to a picture, the encoder's layers in reverse."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        self._maps = (sizes.filters, sizes.side, sizes.side)
        self.linear = linear(sizes.features, sizes.flat, generator)
        self.layers = nn.ModuleList(
            _transposed(sizes.filters, sizes.filters, generator) for _ in range(sizes.layers - 1)
        )
        uneven = (sizes.pictures[1] - 3) % 2  # the row and column that the stride had dropped
        self.last = _transposed(
            sizes.filters, sizes.pictures[0], generator, stride=2, output_padding=uneven
        )

    def forward(self, features: Tensor) -> Tensor:
        """Returns pictures about -0.5..0.5."""
        x = functional.relu(self.linear(features)).view(-1, *self._maps)
        if in_half(x):  # the layout of the encoder's maps
            x = x.contiguous(memory_format=torch.channels_last)
        for layer in self.layers:
            x = functional.relu(layer(x))
        return self.last(x)


def picture_error(given_back: Tensor, pictures: Tensor, noise: Tensor) -> Tensor:
    """Returns the mean squared difference to the coarse pictures."""
    return functional.mse_loss(given_back.float(), coarse(pictures, noise))


@functools.cache
def _fused_error() -> Callable[..., Tensor]:
    return fused(picture_error)


def coarse(pictures: Tensor, noise: Tensor) -> Tensor:
    """Returns pictures in 32 grey levels, spread over their bin by uniform noise, -0.5..0.5."""
    level = torch.floor(pictures / (256 / _BINS))
    return (level + noise) / _BINS - 0.5


def _transposed(
    given: int, made: int, generator: torch.Generator, **geometry: int
) -> nn.ConvTranspose2d:
    """Returns a 3x3 transposed convolution: delta-orthogonal with the gain of ReLU."""
    layer = skip_init(nn.ConvTranspose2d, given, made, 3, **geometry)
    centre = torch.empty(given, made)
    nn.init.orthogonal_(centre, gain=nn.init.calculate_gain("relu"), generator=generator)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[:, :, 1, 1] = centre
        layer.bias.zero_()
    return layer
