"""SAC+AUG of the DMCR paper: augmented batches, and features that should not notice it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend
from interverse.agents.pixel.augment import Rule, augmentation
from interverse.agents.pixel.geometry import PadCrop
from interverse.agents.pixel.half import kernels
from interverse.agents.pixel.soft import critic_loss
from interverse.core.errors import check_number


@final
@dataclass(frozen=True, kw_only=True)
class SacAugOptions(AgentOptions):
    """How a batch is augmented."""

    augmentation: str = "drq"
    """A name of the table, or several joined by +, such as color_jitter+drq."""
    beta: float = 0.9
    """The share of a batch that is augmented: its first int(beta * batch) samples."""
    invariance: float = 1e-5
    """The paper's lambda: the weight of |e(o) - e(aug(o))| in the encoder's loss."""
    rule: Rule = "paper"
    """Whether augmentation and norm follow the paper's text or its released code."""

    def __post_init__(self) -> None:
        check_number(self.beta, "beta", most=1.0)
        check_number(self.invariance, "invariance")
        augmentation(self.augmentation, self.rule)  # raises for a name that no table holds


@final
class SacAug(Agent):
    """SAC on batches of which a share is augmented."""

    options: SacAugOptions
    options_type = SacAugOptions

    def _build(self, generator: torch.Generator) -> None:
        self._augment = augmentation(self.options.augmentation, self.options.rule)

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch: the first part augmented, o and o' alike, the rest as it is."""
        nets, options, count = self.networks, self.options, len(batch.rewards)
        cut = int(options.beta * count)
        seen, successors = self._views(batch, cut)
        with self.aside():  # neither has a gradient: on a GPU they run beside the rest
            target = self.target(batch, *successors)
            plain = self._plain(batch.observations, cut)
        moved = nets.encoder(*seen)
        features = torch.cat([moved[:cut], moved[count:]])  # the rows that the critics see
        self.join()
        critic = critic_loss(nets.critics(features, batch.actions), target)
        losses, loss = {"critic": critic.detach()}, critic
        if plain is not None:
            gap = self._gap(moved[:count], torch.cat([plain, features[cut:].detach()]))
            losses["invariance"] = gap.detach()
            loss = critic + options.invariance * gap
        descend(self.optimisers["critic"], loss)
        return losses | self.follow(features)

    def _views(self, batch: PixelBatch, cut: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Returns o augmented and the last ones as they are; o' augmented up to there, the same."""
        now, then = batch.observations, batch.successors
        crop = self._augment.parts[0]
        if isinstance(crop, PadCrop) and self._in_one_kernel(crop, now):
            numbers = crop.numbers(now.shape, self.generator)
            seeds = torch.randint(2**31, (2,), generator=self.generator, device=self.device)
            given = [seeds[i:] if crop.noisy else None for i in range(2)]
            made = kernels()
            return (made.crops(now, numbers, given[0], len(now), cut),), (
                made.crops(then, numbers, given[1], cut, cut),
            )
        seen, successors = self._augment(now, then, generator=self.generator)
        return (seen, now[cut:]), (successors[:cut], then[cut:])

    def _in_one_kernel(self, crop: PadCrop, pictures: Tensor) -> bool:
        """Whether crop, noise and layout are one kernel: in half precision on a GPU."""
        paper = len(self._augment.parts) == 1 and crop.rule == "paper" and crop.pad == 4
        half = pictures.is_cuda and torch.is_autocast_enabled("cuda")
        return paper and half and pictures.shape[1] == 9 and kernels() is not None

    @torch.no_grad()
    def _plain(self, raw: Tensor, cut: int) -> Tensor | None:
        """Returns e(o) of what the critics see augmented, where anything asks for it."""
        return self.networks.encoder(raw[:cut]) if self.options.invariance > 0.0 else None

    def _gap(self, moved: Tensor, plain: Tensor) -> Tensor:
        """Returns the distance of e(aug(o)) to e(o) over the whole batch, through the first."""
        if self.options.rule == "code":
            return torch.linalg.vector_norm(moved - plain)
        return torch.linalg.vector_norm(moved - plain, dim=1).mean()
