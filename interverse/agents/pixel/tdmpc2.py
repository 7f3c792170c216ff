"""TD-MPC2: a latent model learned for its values, searched at every decision.

Hansen, Su and Wang's agent. Over three steps the model should foresee the latents of what was
seen, the rewards, and the values of what the prior would do next; nothing is reconstructed. The
prior learns to raise the values. `interverse.rollouts.planned` holds the model and the search.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from interverse.agents.pixel.agent import (
    AgentOptions,
    PixelBatch,
    PixelLearner,
    compile_parts,
    descend,
    sent,
    track,
)
from interverse.agents.pixel.augment import PadCrop
from interverse.agents.pixel.graphed import GraphedCall
from interverse.core.errors import InvalidValueError, check_number
from interverse.rollouts.planned import PlanModel, PlanNoise, PlanOptions, PlanSizes

_SCALE_ENDS = (0.05, 0.95)  # quantiles of values whose distance is their scale


@final
@dataclass(frozen=True, kw_only=True)
class TdMpc2Options(AgentOptions, PlanOptions):
    """The search's settings, and the weights of the losses; the defaults are the authors'."""

    rho: float = 0.5
    """How much less a step of a sequence counts than the one before it."""
    consistency: float = 20.0
    reward_weight: float = 0.1
    value_weight: float = 0.1
    """The weights of the three losses of the model."""
    dropout: float = 0.01
    """The share of the value networks' first layer that is dropped in training."""
    clip: float = 20.0
    """The length that gradients are shortened to."""
    pad: int = 3
    """The most pixels that pictures are shifted by in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rho", "consistency", "reward_weight", "value_weight", "clip"):
            check_number(getattr(self, name), name, above=True)
        check_number(self.dropout, "dropout", most=1.0, below=True)


@final
class PlanNetworks(nn.Module):
    """The model, slow copies of its value networks, and the scale of values."""

    scale: Tensor

    def __init__(self, model: PlanModel) -> None:
        super().__init__()
        self.model = model
        self.target_values = copy.deepcopy(model.values).requires_grad_(False)
        self.register_buffer("scale", torch.ones(()))

    @torch.no_grad()
    def rescale(self, values: Tensor, tau: float) -> Tensor:
        """Moves the scale towards the distance of two quantiles, at least 1; returns it."""
        low, high = (values.flatten().quantile(end) for end in _SCALE_ENDS)
        self.scale.lerp_((high - low).clamp(min=1.0), tau)
        return self.scale


@final
class TdMpc2(PixelLearner):
    """Learns a model and a prior from sequences; acts by a search that begins with its last one."""

    options: TdMpc2Options
    options_type = TdMpc2Options
    networks: PlanNetworks
    sequences = True

    def _start(self, seed: int) -> None:
        hyper, sizes = self.hyper, self.sizes
        channels, side = sizes.pictures
        shape = PlanSizes(
            channels=channels,
            side=side,
            actions=sizes.actions,
            filters=sizes.filters,
            layers=sizes.layers,
            hidden=sizes.hidden,
        )
        if sizes.features != shape.latent:
            raise InvalidValueError(
                f"features is {sizes.features}",
                allowed=f"{shape.latent}, as many as the last convolution gives",
            )
        dice = torch.Generator().manual_seed(seed)
        model = PlanModel(shape, self.options, hyper.discount, dice)
        self.networks = PlanNetworks(model).to(self.device)
        self.returns = self.options.horizon
        self._shift = PadCrop(pad=self.options.pad)
        heads = (model.dynamics, model.rewards, model.values)
        self.optimisers["model"] = self.adam(*heads, rate=hyper.critic_rate)
        encoder = {"params": list(model.encoder.parameters()), "lr": hyper.encoder_rate}
        self.optimisers["model"].add_param_group(encoder)
        self.optimisers["prior"] = self.adam(model.prior, rate=hyper.actor_rate, eps=1e-5)
        fixed = model.noise(1, torch.Generator().manual_seed(0))
        self._fixed = PlanNoise(*(part.to(self.device) for part in fixed))
        self._plans = torch.zeros(0, self.options.horizon, sizes.actions, device=self.device)
        self._explore = GraphedCall(self._explored, self.generator)
        self._judge = GraphedCall(self._judged, self.generator)

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch of sequences: the model, then the prior on the model's latents."""
        model, options, steps = self.networks.model, self.options, self.options.horizon
        now, later = self._stacks(batch.observations)
        actions = batch.actions.unflatten(1, (steps, -1)).transpose(0, 1)
        rewards, ends = (part.T[..., None] for part in (batch.rewards, batch.ends))
        with torch.no_grad():
            wanted = model.encode(later).float().unflatten(0, (steps, -1))
            target = rewards + self.hyper.discount * (1.0 - ends) * self._next_value(wanted)
        latents = [model.encode(now).float()]
        for action in actions:
            latents.append(model.next(torch.cat([latents[-1], action], dim=-1)))
        z = torch.stack(latents)
        both = torch.cat([z[:-1], actions], dim=-1)
        gaps = (z[1:] - wanted).pow(2).mean((1, 2))
        rewarding = -(model.encoded(rewards) * model.reward(both).log_softmax(-1)).sum(-1).mean(1)
        guesses = model.value(both, kept=self._kept(both, options.critics)).log_softmax(-1)
        valuing = -(model.encoded(target) * guesses).sum(-1).mean((0, 2))
        fade = options.rho ** torch.arange(steps + 1, device=self.device)
        parts = [(fade[:-1] * part).mean() for part in (gaps, rewarding, valuing)]
        weights = (options.consistency, options.reward_weight, options.value_weight)
        total = torch.stack([w * part for w, part in zip(weights, parts, strict=True)]).sum()
        descend(self.optimisers["model"], total, clip=options.clip)
        losses = dict(zip(("consistency", "reward", "value"), parts, strict=True))
        losses |= self._improve(z.detach(), fade)
        track(self.networks.target_values, model.values, self.hyper.critic_tau)
        self.updates += 1
        return {name: part.detach() for name, part in losses.items()}

    def _improve(self, z: Tensor, fade: Tensor) -> dict[str, Tensor]:
        """Makes one step of the prior towards actions of high value and entropy."""
        model = self.networks.model
        choice = model.choose(z, self._noise(z))
        both = torch.cat([z, choice.actions], dim=-1)
        values = model.decoded(model.value(both, self._pair(), self._kept(both, 2))).mean(0)
        scale = self.networks.rescale(values[0], self.hyper.critic_tau)
        entropy = -choice.log_density
        weight = self.hyper.alpha * self.sizes.actions
        loss = -(fade * (values / scale + weight * entropy).mean((1, 2))).mean()
        descend(self.optimisers["prior"], loss, clip=self.options.clip)
        return {"prior": loss, "entropy": entropy.mean(), "scale": scale.clone()}

    def _stacks(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the first stacks of sequences and all later ones, each shifted on its own."""
        channels, steps = self.sizes.pictures[0], self.options.horizon
        wide = (frames.shape[1] - channels) // steps
        stacks = [frames[:, t * wide : t * wide + channels] for t in range(steps + 1)]
        (shifted,) = self._shift(torch.cat(stacks), generator=self.generator)
        return shifted[: len(frames)], shifted[len(frames) :]

    def _next_value(self, z: Tensor) -> Tensor:
        """Returns the smaller of two slow values of what the prior does at latents."""
        model = self.networks.model
        both = torch.cat([z, model.choose(z, self._noise(z)).actions], dim=-1)
        slow = model.value(both, self._pair(), values=self.networks.target_values)
        return model.decoded(slow).amin(0)

    def _noise(self, z: Tensor) -> Tensor:
        shape = (*z.shape[:-1], self.sizes.actions)
        return torch.randn(shape, generator=self.generator, device=self.device)

    def _pair(self) -> Tensor:
        """Returns the numbers of two different value networks."""
        lots = torch.rand(self.options.critics, generator=self.generator, device=self.device)
        return lots.topk(2).indices

    def _kept(self, x: Tensor, networks: int) -> Tensor | None:
        """Returns the factors of dropout: 0, or so much more that the mean stays."""
        share = self.options.dropout
        if share == 0.0:
            return None
        shape = (networks, x[..., 0].numel(), self.sizes.hidden)
        draws = torch.rand(shape, generator=self.generator, device=self.device)
        return (draws >= share) / (1.0 - share)

    def _decide(self, seen: Tensor, fresh: NDArray[np.bool_], explore: bool) -> Tensor:
        if not explore:
            return self._judge(seen)[0]
        if len(self._plans) != len(seen):
            self._plans = self._plans.new_zeros(len(seen), *self._plans.shape[1:])
        actions, plans = self._explore(seen, self._plans, sent(fresh, self.device))
        self._plans = plans.clone()
        return actions

    def _judged(self, seen: Tensor) -> tuple[Tensor, ...]:
        return (self.networks.model(seen, *self._fixed),)

    def _explored(self, seen: Tensor, plans: Tensor, fresh: Tensor) -> tuple[Tensor, ...]:
        """Returns actions of elites, drawn by their weights, with noise; and the plans' mean."""
        model = self.networks.model
        kept = torch.where(fresh[:, None, None], 0.0, plans)
        start = torch.cat([kept[:, 1:], torch.zeros_like(kept[:, :1])], dim=1)
        noise = model.noise(len(seen), self.generator)
        found = model.search(model.encode(seen).float(), start, noise)
        draws = torch.rand(found.weights.shape, generator=self.generator, device=self.device)
        chosen = (found.weights / -draws.log()).argmax(1)  # the first of exponential clocks
        first = found.elites[torch.arange(len(seen), device=self.device), chosen, 0]
        spread = found.spread[:, 0] * self.noise(len(seen))
        return (first + spread).clamp(-1.0, 1.0), found.mean

    def compile(self) -> None:
        """Has Torch compile the perceptrons."""
        model = self.networks.model
        heads = (model.dynamics, model.rewards, model.values, model.prior)
        compile_parts(*heads, self.networks.target_values)

    def state(self) -> dict[str, Tensor]:
        """Returns everything a checkpoint needs, by name."""
        return super().state() | {"plans": self._plans.clone()}

    def load(self, state: Any, updates: int) -> None:
        """Puts a saved state into this agent of the same kind and sizes."""
        super().load(state, updates)
        self._plans = state["plans"].to(self.device, copy=True)
