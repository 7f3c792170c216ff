"""Soft actor-critic as arithmetic: the networks together, and the three losses."""

from __future__ import annotations

import copy
import math
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.networks import (
    Critics,
    PixelActor,
    PixelChoice,
    PixelEncoder,
    PixelSizes,
    Trunk,
    ready,
)


@final
class SoftNetworks(nn.Module):
    """Encoder, critics, actor, targets and temperature.

    With `own_trunk` the actor shares the convolutions only and reads them through a linear layer
    and norm of its own, as in SAC+AE, CURL, DBC, DrQ and RAD; without, it shares the whole encoder.
    `squash` and `whole` are the encoder's.
    """

    def __init__(
        self,
        sizes: PixelSizes,
        seed: int,
        *,
        alpha: float,
        own_trunk: bool,
        squash: bool,
        whole: bool,
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.encoder = PixelEncoder(sizes, generator, squash=squash, whole=whole)
        self.critics = Critics(sizes, generator)
        self.actor = PixelActor(sizes, generator)
        self.actor_trunk = Trunk(sizes, generator, squash=squash) if own_trunk else None
        self.target_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.tensor(math.log(alpha)))

    def acting(self, maps: Tensor) -> Tensor:
        """Returns what the actor reads in the last maps; its losses never reach the encoder."""
        if self.actor_trunk is None:
            return self.encoder.trunk(maps.detach()).detach()
        return self.actor_trunk(maps.detach())

    @torch.no_grad()
    def soft_value(self, noise: Tensor, *successors: Tensor) -> Tensor:
        """Returns the targets' value of the online actor's next action, with its entropy.

        An actor that shares the whole encoder reads the target encoder here.
        """
        x = ready(*successors)
        features = self.target_encoder.trunk(self.target_encoder.last_maps(x))
        read = features
        if self.actor_trunk is not None:
            read = self.actor_trunk(self.encoder.last_maps(x))
        choice = self.actor(read, noise)
        values = torch.minimum(*self.target_critics(features, choice.actions))
        return values - self.log_alpha.exp() * choice.log_density


def critic_loss(values: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
    """Returns half the mean squared error of each critic, summed."""
    one, other = (0.5 * functional.mse_loss(value, target) for value in values)
    return one + other


def actor_loss(choice: PixelChoice, value: Tensor, alpha: Tensor) -> Tensor:
    """Returns the mean of alpha log pi - Q."""
    return (alpha.detach() * choice.log_density - value).mean()


def temperature_loss(choice: PixelChoice, log_alpha: Tensor, target_entropy: float) -> Tensor:
    """Returns what moves the entropy to its target."""
    excess = -choice.log_density.detach() - target_entropy
    return (log_alpha.exp() * excess).mean()
