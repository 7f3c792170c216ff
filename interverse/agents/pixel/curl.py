"""CURL: SAC on random crops, and an encoder that tells which crops are of one picture."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import Agent, PixelBatch, descend


@final
class Curl(Agent):
    """A contrastive loss after every step of the critics; the target encoder makes the keys."""

    own_trunk = True
    squash = False

    def _build(self, generator: torch.Generator) -> None:
        self.extra["contrast"] = Bilinear(self.sizes.features, self.generator).to(self.device)
        self.optimisers["contrast"] = self.adam(
            self.networks.encoder, self.extra["contrast"], rate=self.hyper.encoder_rate
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; o, o' and the key are cropped apart."""
        nets = self.networks
        anchors = self.crop(batch.observations)
        target = self.target(batch, self.crop(batch.successors))
        losses = self.learn(anchors, batch.actions, target)
        with torch.no_grad():
            keys = nets.target_encoder(self.crop(batch.observations))
        apart = contrastive_loss(self.extra["contrast"](nets.encoder(anchors), keys))
        descend(self.optimisers["contrast"], apart)
        return losses | {"contrast": apart.detach()}


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
