"""DrQ-v2: a deterministic actor with noise that fades, returns of several steps, shifted pictures.

Yarats, Fergus, Lazaric and Pinto's agent. There is no entropy term and no target for the
convolutions: values of the next state read the online ones through a slow linear layer and norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.agent import Agent, AgentOptions, PixelBatch, descend, track
from interverse.agents.pixel.augment import augmentation
from interverse.agents.pixel.presets import PixelHyper
from interverse.core.errors import InvalidValueError, check_whole, explain


@final
@dataclass(frozen=True, kw_only=True)
class DrqV2Options(AgentOptions):
    """Length of the returns, and how the noise of actions fades."""

    returns: int = 3
    """Steps whose rewards are added up before a value takes over."""
    spread: float = 1.0
    """The standard deviation of actions at the start."""
    last_spread: float = 0.1
    """The one that it falls to, in a straight line."""
    fading: int = 100_000
    """Decisions until it is there: 100,000, 500,000 or 2,000,000 by the task's difficulty."""
    spread_limit: float = 0.3
    """The most that noise may change an action inside an update."""

    def __post_init__(self) -> None:
        for name in ("returns", "fading"):
            check_whole(getattr(self, name), name, 10**12)
        if not 0.0 <= self.last_spread <= self.spread or not self.spread_limit > 0.0:
            given = f"spread {self.spread}, last_spread {self.last_spread}"
            raise InvalidValueError(
                explain(
                    f"{given}, spread_limit {self.spread_limit}",
                    allowed="0 <= last_spread <= spread, spread_limit > 0",
                )
            )


@final
class DrqV2(Agent):
    """Clipped double Q-learning on shifted pictures; both networks learn at every update."""

    options: DrqV2Options
    options_type = DrqV2Options
    own_trunk = True
    whole = True

    def _build(self, generator: torch.Generator) -> None:
        self.returns = self.options.returns
        self._shift = augmentation("drq_no_noise")
        self._fading = Fading(self.options, self.hyper).to(self.device)
        self.extra["fading"] = self._fading

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; observations and successors are shifted apart."""
        nets = self.networks
        (seen,) = self._shift(batch.observations, generator=self.generator)
        (successors,) = self._shift(batch.successors, generator=self.generator)
        spread = self._fading.step()
        target = self._target(batch, successors, spread)
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

    @torch.no_grad()
    def _target(self, batch: PixelBatch, successors: Tensor, spread: Tensor) -> Tensor:
        """Returns the rewards on the way plus the discounted value of what the actor does then."""
        nets, discount = self.networks, self.hyper.discount**self.options.returns
        flat = nets.encoder.convolve(successors)
        actions = self._near(nets.acting(flat), spread)
        values = nets.target_critics(nets.target_encoder.trunk(flat), actions)
        return batch.rewards + discount * (1.0 - batch.ends) * torch.minimum(*values)

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

    def step(self) -> Tensor:
        """Counts an update; returns its spread."""
        spread = self.spread()
        self.updates += 1.0
        return spread

    def spread(self) -> Tensor:
        """Returns the standard deviation now."""
        options, hyper = self._options, self._hyper
        decisions = hyper.warm_up + self.updates / hyper.update_rate
        part = (decisions / options.fading).clamp(max=1.0)
        return options.spread + part * (options.last_spread - options.spread)
