"""SGQN (Bertoin et al.): values that hold when all but the salient pixels are covered.

The pixels that the critics' gradient names are kept, the others get one colour; both pictures
should have one value. A head of the encoder learns to tell the salient pixels of strongly changed
pictures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend
from interverse.agents.pixel.augment import augmentation
from interverse.agents.pixel.networks import Critics, PixelEncoder, PixelSizes, linear, ready
from interverse.agents.pixel.soft import critic_loss
from interverse.core.errors import check_number

_WIDTHS = (32, 128, 64)  # of the head's maps, at a quarter, a half and the whole of the picture


@final
@dataclass(frozen=True, kw_only=True)
class SgqnOptions(AgentOptions):
    """What counts as salient, and how it is used; the defaults are the authors' code's."""

    quantile: float = 0.9
    """The share of pixels that is covered; the authors have 0.9 to 0.98 by task."""
    consistency: float = 0.5
    """The weight of the gap between the values of whole and covered pictures."""
    mask_rate: float = 3e-4
    """The learning rate of the head, and of the encoder under it."""
    strong: str = "random_convolution"
    """What changes the pictures that the head sees; the authors lay photographs over them."""

    def __post_init__(self) -> None:
        check_number(self.quantile, "quantile", most=1.0, above=True, below=True)
        for name in ("consistency", "mask_rate"):
            check_number(getattr(self, name), name, above=True)
        augmentation(self.strong)  # raises for a name that no table holds


@final
class Sgqn(Agent):
    """SAC on shifted pictures, with two losses about their salient pixels."""

    options: SgqnOptions
    options_type = SgqnOptions
    own_trunk = True

    def _build(self, generator: torch.Generator) -> None:
        self._shift, self._strong = augmentation("drq_no_noise"), augmentation(self.options.strong)
        head = SalienceHead(self.sizes, generator).to(self.device)
        self.extra["salience"] = head
        self.optimisers["salience"] = self.adam(
            self.networks.encoder, head, rate=self.options.mask_rate
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; the head at every second update, after the critics."""
        nets, turn, count = self.networks, self.updates % self.hyper.actor_every, len(batch.rewards)
        (seen,) = self._shift(batch.observations, generator=self.generator)
        (successors,) = self._shift(batch.successors, generator=self.generator)
        target = self.target(batch, successors)
        covered = self._covered(seen, self._salient(seen, batch.actions))
        flat = nets.encoder.convolve(seen, covered)
        features = nets.encoder.trunk(flat)
        pair = nets.critics(features, batch.actions.repeat(2, 1))
        whole = (pair[0][:count], pair[1][:count])
        critic = critic_loss(whole, target)
        gaps = [0.5 * functional.mse_loss(value[:count], value[count:]) for value in pair]
        gap = gaps[0] + gaps[1]
        descend(self.optimisers["critic"], critic + self.options.consistency * gap)
        losses = {"critic": critic.detach(), "consistency": gap.detach()}
        losses |= self.follow(features[:count], flat[:count])
        return losses if turn else losses | self._recognise(seen, batch.actions)

    def _recognise(self, seen: Tensor, actions: Tensor) -> dict[str, Tensor]:
        """Makes one step towards telling salient pixels under a strong change."""
        wanted = self._salient(seen, actions).float()
        (changed,) = self._strong(seen, generator=self.generator)
        told = self.extra["salience"](self.networks.encoder(changed), actions)
        loss = functional.binary_cross_entropy_with_logits(told.float(), wanted)
        descend(self.optimisers["salience"], loss)
        return {"salience": loss.detach()}

    def _salient(self, pictures: Tensor, actions: Tensor) -> Tensor:
        """Returns which pixels the first critic's value hangs on, (N, C, S, S)."""
        x = ready(pictures).detach().requires_grad_()
        value = guided_value(self.networks.encoder, self.networks.critics, x, actions)
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return salient(gradient[:, : pictures.shape[1]], self.options.quantile)

    def _covered(self, pictures: Tensor, kept: Tensor) -> Tensor:
        """Returns pictures whose other pixels have one level, drawn from darkest to lightest."""
        x = pictures.float()
        draw = torch.rand((), generator=self.generator, device=self.device)
        return torch.where(kept, x, torch.lerp(x.amin(), x.amax(), draw))


@final
class SalienceHead(nn.Module):
    """Features and actions to a logit per pixel and channel."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        channels, self._side = sizes.pictures
        self._quarter = -(-self._side // 4)
        given = sizes.features + sizes.actions
        self.linear = linear(given, _WIDTHS[0] * self._quarter**2, generator)
        pairs = zip(_WIDTHS, (*_WIDTHS[1:], channels), strict=True)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairs)
        for layer in self.layers:  # Torch's own start, without its global randomness
            bound = next(layer.parameters())[0].numel() ** -0.5
            for part in layer.parameters():
                nn.init.uniform_(part, -bound, bound, generator=generator)

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """Returns the logits, (N, C, S, S)."""
        x = self.linear(torch.cat([features, actions], dim=1))
        x = functional.relu(x).view(-1, _WIDTHS[0], self._quarter, self._quarter)
        sides = (2 * self._quarter, self._side)
        for layer, side in zip(self.layers, sides, strict=False):
            x = functional.relu(functional.interpolate(layer(x), size=[side, side]))
        return self.layers[-1](x)


def guided_value(encoder: PixelEncoder, critics: Critics, x: Tensor, actions: Tensor) -> Tensor:
    """Returns the first critic's values of pictures that are `ready`.

    Their gradient is guided back-propagation: at every ReLU only what is positive goes on.
    """
    maps = encoder.activations(x)
    for one in maps:
        one.register_hook(functional.relu)
    h = torch.cat([encoder.trunk(maps[-1]).float(), actions], dim=1)
    for layer in critics.first:
        h = layer(h)
        if isinstance(layer, nn.ReLU):
            h.register_hook(functional.relu)
    return h


def salient(gradient: Tensor, quantile: float) -> Tensor:
    """Returns the pixels of each frame whose largest gradient over colours is in the quantile."""
    count, channels, side = gradient.shape[:3]
    level = gradient.float().view(count, channels // 3, 3, side, side).abs().amax(2)
    least = level.flatten(2).quantile(quantile, dim=2)
    return (level >= least[..., None, None]).repeat_interleave(3, dim=1)
