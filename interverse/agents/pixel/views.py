"""Agents that differ in what their critics see: RAD, DrQ, DrQ-v2, SVEA, and DMCR's SAC+AUG.

RAD crops larger pictures; acting, it sees the middle. DrQ averages targets over K shifted
successors, values over M shifted observations. DrQ-v2 (Yarats, Fergus, Lazaric and Pinto) has a
deterministic actor with noise that fades and returns of several steps; there is no entropy term and
no target for the convolutions: values of the next state read the online ones through a slow linear
layer and norm. SVEA (Hansen, Su and Wang) weighs values of shifted and of strongly changed pictures
in one loss; its target and its actor never see the strong change. SAC+AUG augments a share of a
batch, and its features should not notice it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import (
    Agent,
    AgentOptions,
    Pair,
    PixelBatch,
    PixelHyper,
    StrongOptions,
    critic_loss,
    descend,
    track,
)
from interverse.agents.pixel.augment import PadCrop, Rule, augmentation, check_augmentation
from interverse.agents.pixel.half import kernels
from interverse.core.errors import InvalidValueError
from interverse.core.type_checks import Share, number, validated, whole

_Few = Annotated[int, whole(10**6)]
_Count = Annotated[int, whole(10**12)]


@final
class PixelSac(Agent):
    """One encoder for actor and critics; the critics alone train it."""


@final
class Rad(Agent):
    """Crops o and o' apart; the actor has a trunk of its own."""

    view = "crop"
    own_trunk = True
    squash = False


@final
@dataclass(frozen=True, kw_only=True)
@validated
class DrqOptions(AgentOptions):
    """How much is averaged."""

    targets: _Few = 2
    """The paper's K: shifted successors per target."""
    values: _Few = 2
    """The paper's M: shifted observations per loss."""


@final
class Drq(Agent):
    """Shifts without noise; the actor learns from the first shift."""

    options: DrqOptions
    options_type = DrqOptions
    view = "shift"
    own_trunk = True
    whole = True

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        shifted = [self.see(batch.successors) for _ in range(self.options.targets)]
        target = torch.stack([self.target(batch, moved) for moved in shifted]).mean(0)
        views = [self.see(batch.observations) for _ in range(self.options.values)]
        return self.learn(target, batch.actions, *views)


@final
@dataclass(frozen=True, kw_only=True)
@validated
class SveaOptions(StrongOptions):
    """The strong augmentation, and how much its view counts."""

    strong_weight: Share = 0.5
    """The paper's beta: the share of the strong view in the critics' loss."""


@final
class Svea(Agent):
    """SAC on shifted pictures whose critics also see them strongly changed."""

    options: SveaOptions
    options_type = SveaOptions
    view = "shift"
    own_trunk = True

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch, o and o' shifted apart: one target, two views of o."""
        seen, successors = self.see(batch.observations), self.see(batch.successors)
        target = self.target(batch, successors)
        (changed,) = self._strong(seen, generator=self.generator)
        return self.learn(target, batch.actions, seen, changed)

    def _judged(self, values: Pair, target: Tensor, count: int) -> tuple[Tensor, dict[str, Tensor]]:
        first, second = values
        weak = critic_loss((first[:count], second[:count]), target)
        strong = critic_loss((first[count:], second[count:]), target)
        weight = self.options.strong_weight
        return (1.0 - weight) * weak + weight * strong, {"critic": weak, "strong": strong}


@final
@dataclass(frozen=True, kw_only=True)
@validated
class SacAugOptions(AgentOptions):
    """How a batch is augmented."""

    augmentation: Annotated[str, check_augmentation] = "drq"
    """A name of the table, or several joined by +, such as color_jitter+drq."""
    beta: Share = 0.9
    """The share of a batch that is augmented: its first int(beta * batch) samples."""
    invariance: Annotated[float, number()] = 1e-5
    """The paper's lambda: the weight of |e(o) - e(aug(o))| in the encoder's loss."""
    rule: Rule = "paper"
    """Whether augmentation and norm follow the paper's text or its released code."""


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
        cut, plain = int(options.beta * count), None
        seen, successors = self._views(batch, cut)
        with self.aside(), torch.no_grad():  # on a GPU they run beside the rest
            target = self.target(batch, *successors)
            if options.invariance > 0.0:  # e(o) of what the critics see augmented
                plain = nets.encoder(batch.observations[:cut])
        moved = nets.encoder(*seen)
        features = torch.cat([moved[:cut], moved[count:]])  # the rows that the critics see
        self.join()
        loss = critic_loss(nets.critics(features, batch.actions), target)
        losses = {"critic": loss.detach()}
        if plain is not None:  # the distance of e(aug(o)) to e(o) over the whole batch
            apart = moved[:count] - torch.cat([plain, features[cut:].detach()])
            by_sample = None if options.rule == "code" else 1
            gap = torch.linalg.vector_norm(apart, dim=by_sample).mean()
            losses["invariance"] = gap.detach()
            loss = loss + options.invariance * gap
        descend(self.optimisers["critic"], loss)
        return losses | self.follow(features)

    def _views(self, batch: PixelBatch, cut: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Returns o augmented and the last ones as they are; o' augmented up to there, the same."""
        now, then = batch.observations, batch.successors
        crop = self._augment.parts[0]
        paper = isinstance(crop, PadCrop) and crop.rule == "paper" and crop.pad == 4
        alone = paper and len(self._augment.parts) == 1 and now.shape[1] == 9
        half = now.is_cuda and torch.is_autocast_enabled("cuda")
        if alone and half and (made := kernels()) is not None:  # crop, noise, layout in one kernel
            numbers = crop.numbers(now.shape, self.generator)
            seeds = torch.randint(2**31, (2,), generator=self.generator, device=self.device)
            given = [seeds[i:] if crop.noisy else None for i in range(2)]
            return (made.crops(now, numbers, given[0], len(now), cut),), (
                made.crops(then, numbers, given[1], cut, cut),
            )
        seen, successors = self._augment(now, then, generator=self.generator)
        return (seen, now[cut:]), (successors[:cut], then[cut:])


@final
@dataclass(frozen=True, kw_only=True)
@validated
class DrqV2Options(AgentOptions):
    """Length of the returns, and how the noise of actions fades."""

    returns: _Count = 3
    """Steps whose rewards are added up before a value takes over."""
    spread: float = 1.0
    """The standard deviation of actions at the start."""
    last_spread: float = 0.1
    """The one that it falls to, in a straight line."""
    fading: _Count = 100_000
    """Decisions until it is there: 100,000, 500,000 or 2,000,000 by the task's difficulty."""
    spread_limit: float = 0.3
    """The most that noise may change an action inside an update."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.last_spread <= self.spread or not self.spread_limit > 0.0:
            given = f"spread {self.spread}, last_spread {self.last_spread}"
            raise InvalidValueError(
                f"{given}, spread_limit {self.spread_limit}",
                allowed="0 <= last_spread <= spread, spread_limit > 0",
            )


@final
class DrqV2(Agent):
    """Clipped double Q-learning on shifted pictures; both networks learn at every update."""

    options: DrqV2Options
    options_type = DrqV2Options
    view = "shift"
    own_trunk = True
    whole = True

    def _build(self, generator: torch.Generator) -> None:
        self.returns = self.options.returns
        self._fading = Fading(self.options, self.hyper).to(self.device)
        self.extra["fading"] = self._fading

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; observations and successors are shifted apart."""
        nets, discount = self.networks, self.hyper.discount**self.options.returns
        seen, successors = self.see(batch.observations), self.see(batch.successors)
        spread = self._fading.spread()
        self._fading.updates += 1.0
        with torch.no_grad():  # rewards on the way, plus the value of what the actor does then
            flat = nets.encoder.convolve(successors)
            actions = self._near(nets.acting(flat), spread)
            values = nets.target_critics(nets.target_encoder.trunk(flat), actions)
            target = batch.rewards + discount * (1.0 - batch.ends) * torch.minimum(*values)
        flat = nets.encoder.convolve(seen)
        values = nets.critics(nets.encoder.trunk(flat), batch.actions)
        critic = functional.mse_loss(values[0], target) + functional.mse_loss(values[1], target)
        descend(self.optimisers["critic"], critic)
        self.updates += 1
        flat = flat.detach()
        actions = self._near(nets.acting(flat), spread)
        features = nets.encoder.trunk(flat).detach()
        actor = -torch.minimum(*nets.critics(features, actions)).mean()
        descend(self.optimisers["actor"], actor)
        track(nets.target_critics, nets.critics, self.hyper.critic_tau)
        track(nets.target_encoder.trunk, nets.encoder.trunk, self.hyper.critic_tau)
        return {"critic": critic.detach(), "actor": actor.detach(), "spread": spread}

    def _near(self, read: Tensor, spread: Tensor) -> Tensor:
        """Returns actions near the actor's; at the bounds the gradient goes on as if inside."""
        draws = self.noise(len(read))
        mean = self.networks.actor(read, draws).mean
        limit = self.options.spread_limit
        x = mean + (spread * draws).clamp(-limit, limit)
        return x + (x.clamp(-1.0, 1.0) - x).detach()

    def chosen(self, read: Tensor, noise: Tensor, *, explore: bool) -> Tensor:
        """Returns the actor's actions, with the present noise where it explores."""
        mean = self.networks.actor(read, noise).mean
        return (mean + self._fading.spread() * noise).clamp(-1.0, 1.0)


@final
class Fading(nn.Module):
    """The spread of actions by the number of updates, kept on the device: part of a CUDA graph."""

    updates: Tensor

    def __init__(self, options: DrqV2Options, hyper: PixelHyper) -> None:
        super().__init__()
        self._options, self._hyper = options, hyper
        self.register_buffer("updates", torch.zeros(()))

    def spread(self) -> Tensor:
        """Returns the standard deviation now."""
        options, hyper = self._options, self._hyper
        decisions = hyper.warm_up + self.updates / hyper.update_rate
        part = (decisions / options.fading).clamp(max=1.0)
        return options.spread + part * (options.last_spread - options.spread)
