"""CURL: SAC on random crops, and an encoder that tells which crops are of one picture."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import Agent, PixelBatch, descend
from interverse.agents.pixel.geometry import random_crop
from interverse.agents.pixel.networks import PixelSizes
from interverse.agents.pixel.presets import PixelHyper
from interverse.agents.pixel.soft import critic_loss


@final
class Curl(Agent):
    """A contrastive loss after every step of the critics; the target encoder makes the keys."""

    own_trunk = True

    def __init__(
        self, hyper: PixelHyper, sizes: PixelSizes, seed: int, device: str = "cpu"
    ) -> None:
        super().__init__(hyper, sizes, seed, device)
        self.extra["contrast"] = Bilinear(sizes.features, self.generator).to(self.device)
        self.optimisers["contrast"] = self.adam(
            self.networks.encoder, self.extra["contrast"], rate=hyper.encoder_rate
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; o, o' and the key are cropped apart."""
        nets = self.networks
        anchors = self._crop(batch.observations)
        target = self.target(batch, self._crop(batch.successors))
        flat = nets.encoder.convolve(anchors)
        features = nets.encoder.trunk(flat)
        loss = critic_loss(nets.critics(features, batch.actions), target)
        descend(self.optimisers["critic"], loss)
        losses = {"critic": loss.detach()} | self.follow(flat, features)
        with torch.no_grad():
            keys = nets.target_encoder(self._crop(batch.observations))
        apart = contrastive_loss(self.extra["contrast"](nets.encoder(anchors), keys))
        descend(self.optimisers["contrast"], apart)
        return losses | {"contrast": apart.detach()}

    def _crop(self, pictures: Tensor) -> Tensor:
        return random_crop(pictures, self.sizes.pictures[1], self.generator)


@final
class Bilinear(nn.Module):
    """The matrix W between anchors and keys, uniform in (0, 1) at first."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        draws = torch.rand(width, width, generator=generator, device=generator.device)
        self.weight = nn.Parameter(draws)

    def forward(self, anchors: Tensor, keys: Tensor) -> Tensor:
        """Returns z_a W z_k^T, (N, N)."""
        return anchors @ (self.weight @ keys.T)


def contrastive_loss(logits: Tensor) -> Tensor:
    """Returns the cross entropy of picking one's own key among all."""
    labels = torch.arange(len(logits), device=logits.device)
    return functional.cross_entropy(logits - logits.amax(1, keepdim=True).detach(), labels)
