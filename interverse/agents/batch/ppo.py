"""Proximal policy optimisation on a device: worlds, networks and buffers side by side.

After Schulman et al. (2017) with generalised advantages, a learning rate that follows the KL
divergence, running normalisation of features, and the value of the last state in place of what an
episode cut by time would still have earned. It is our own and no library's: worlds, buffers and
networks lie on one device, and episodes end by the host's clock, so no step waits for the host.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, final

import torch

from interverse.agents.batch.network import (
    ActorCritic,
    difference_matrix,
    observation_clip,
)
from interverse.agents.batch.shaping import shaped_reward
from interverse.agents.training import join, split
from interverse.core.errors import InvalidValueError, check_whole
from interverse.core.type_checks import Share, check_types, number, validated, whole
from interverse.rollouts.exported import ExportedPolicy
from interverse.worlds import trifinger

Tensor = torch.Tensor

_KNOWN = 2e7  # rows that a cloned policy's normalisation counts as seen
_CLONE_STEPS, _CLONE_RATE = 3000, 1e-3
_CLONE_SPREAD = (0.08, 0.25)  # limits of a cloned policy's standard deviation
_SHOWN_AT_ONCE = 8192
_CRITIC_FIRST = 40  # updates in which a policy begun with stays, until the critic knows it
_CRITIC_RATE = 5e-4  # least learning rate of its critic, which is new
_BEGUN_STD = -2.5  # logarithm of the standard deviation of its actions: it is to become precise


_Factor = Annotated[float, number(most=1e6, above=True)]
_Weight = Annotated[float, number(most=1e6)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class PpoSettings:
    """Hyper-parameters.

    Attributes:
        horizon: steps of every world between updates. epochs, minibatches: of an update.
        gamma, lam: discount, and that of the advantages. clip: of the probability ratio.
        reward_scale: factor of rewards. entropy: weight, falling to 0 in the second half.
        rate: first learning rate; `rates`: its limits. kl: range in which the rate stays; it falls
            to a quarter in the second half, so that the policy comes to rest.
        least_std: least standard deviation of an action, as a logarithm.
        hidden: widths of the hidden layers.
        privileged: whether the critic also sees masses, friction and gravity, which the policy
            does not.
        imitation: weight of the squared distance to shown actions, falling to 0 in the first half;
            above 0 the policy begins with them.
    """

    horizon: Annotated[int, whole(10_000)] = 24
    epochs: Annotated[int, whole(1000)] = 4
    minibatches: Annotated[int, whole(10**6)] = 4
    gamma: Share = 0.99
    lam: Share = 0.95
    clip: _Factor = 0.2
    reward_scale: _Factor = 0.02
    entropy: _Weight = 0.002
    rate: _Factor = 3e-4
    rates: tuple[float, float] = (3e-5, 1e-3)
    kl: tuple[float, float] = (0.006, 0.015)
    least_std: Annotated[float, number(-20.0, 2.0)] = -3.0
    hidden: tuple[int, ...] = (256, 256)
    privileged: bool = False
    imitation: _Weight = 0.0

    def __post_init__(self) -> None:
        check_types(PpoSettings, {item.name: getattr(self, item.name) for item in fields(self)})
        for name in ("kl", "rates"):  # the least and the greatest
            pair = getattr(self, name)
            if len(pair) != 2 or not 0.0 < pair[0] <= pair[1] < math.inf:
                allowed = "the least and the greatest number, above 0"
                raise InvalidValueError(f"{name} is {pair!r}", allowed=allowed)
        check_whole(len(self.hidden), "the number of layers in hidden", 100)
        for width in self.hidden:
            check_whole(width, "a layer of hidden", 10**6)


@final
@dataclass(slots=True)
class Rollout:
    """One horizon of all worlds, (T, N, ...); `values` has one more row."""

    features: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    rewards: Tensor
    ended: Tensor


@final
class DevicePpo:
    """A learner on an arena."""

    def __init__(self, arena: trifinger.DeviceArena, settings: PpoSettings, *, seed: int) -> None:
        torch.manual_seed(seed)
        arena.order_starts(seed=seed)
        self.arena, self.settings = arena, settings
        features = difference_matrix(arena.layout.slices, arena.layout.width)
        more = arena.view().hidden.shape[1] if settings.privileged else 0
        clip = observation_clip(arena.options.normalize_observations)
        self.network = ActorCritic(features, 9, settings.hidden, more, clip).to(arena.device)
        last: Any = self.network.actor[-1]  # the untrained mean action is the resting pose
        torch.nn.init.normal_(last.weight, 0.0, 0.01)
        with torch.no_grad():
            last.bias.copy_(arena.rest_action())
        policy = [self.network.log_std, *self.network.actor.parameters()]
        groups = [{"params": policy}, {"params": list(self.network.critic.parameters())}]
        self.optimizer = torch.optim.Adam(groups, lr=settings.rate)
        self.rate, self.steps = settings.rate, 0
        t, n, width = settings.horizon, arena.num_worlds, self.network.seen_width + more
        shapes = ((t, n, width), (t, n, 9), (t, n), (t + 1, n), (t, n), (t, n))
        self._buffer = Rollout(*(torch.zeros(shape, device=arena.device) for shape in shapes))
        self._shown: tuple[Tensor, Tensor] | None = None
        self._begun = False  # whether the first policy was a learned one
        self._initial: ExportedPolicy | None = None
        self._tally = torch.zeros(4, device=arena.device)  # fraction, solved, return, episodes
        self._returns = torch.zeros(arena.num_worlds, device=arena.device)

    def begin_with(self, policy: ExportedPolicy) -> None:
        """Takes a policy that `check_initial` passed to begin with, unless the run has learned."""
        self._begun, self._initial = True, policy
        self._set_rate()
        if self.steps:
            return
        with torch.no_grad():
            self.network.log_std.fill_(_BEGUN_STD)
        self.network.adopt(policy)

    def _normalise(self, seen: Tensor) -> None:
        """Takes features into the normalisation, which stays once a policy begun with learns.

        Until then the policy is adopted again, for another scale of its features would change it.
        """
        if self._begun and not self._critic_alone():
            return
        self.network.observe(seen)
        if self._initial is not None:
            self.network.adopt(self._initial)

    def imitate(self, observations: Tensor, actions: Tensor) -> None:
        """Takes shown actions to keep near to; a policy that has not learned yet begins with them.

        Args:
            observations: (n, k), as the arena gives them.
            actions: (n, 9); what lies beyond the world's limits counts as at them.
        """
        network, where = self.network, self.arena.device
        raw = network.raw(observations.to(where))
        self._shown = raw, self.arena.limited(actions.to(where)).to(raw)
        self._begun = True
        self._set_rate()
        if self.steps:
            return
        network.observe(raw)
        network.seen.fill_(_KNOWN)  # else the features of a cloned policy would change their scale
        optimizer = torch.optim.Adam(network.actor.parameters(), lr=_CLONE_RATE)
        for step in range(_CLONE_STEPS):
            optimizer.param_groups[0]["lr"] = _CLONE_RATE * (1.0 - step / _CLONE_STEPS)
            optimizer.zero_grad(set_to_none=True)
            self._missed().sum().backward()
            optimizer.step()
        with torch.no_grad():
            spread = self._missed().sqrt().clip(*_CLONE_SPREAD)
            network.log_std.copy_(spread.log())

    def _missed(self) -> Tensor:
        """Returns mean squared distances to some of the shown actions, (9,)."""
        assert self._shown is not None
        raw, actions = self._shown
        some = torch.randint(len(raw), (min(len(raw), _SHOWN_AT_ONCE),), device=raw.device)
        mean = self.network.mean_action(self.network.normal(raw[some]))
        return ((mean - actions[some]) ** 2).mean(0)

    # ---------------------------------------------------------------- checkpoints

    def save(self) -> dict[str, Tensor]:
        """Returns all that the rest of a run depends on: networks, worlds, random numbers."""
        tree = {
            "count": torch.tensor((self.steps, self.rate), dtype=torch.float64),
            "tally": self._tally,
            "returns": self._returns,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict()["state"],
            "arena": self.arena.save(),
            "random": {"cpu": torch.get_rng_state()},
        }
        if self.arena.device.type == "cuda":
            tree["random"]["cuda"] = torch.cuda.get_rng_state(self.arena.device)
        return split(tree)[0]

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Goes back to where `save` was called, in a learner made with the same settings."""
        held = join(saved)
        self.network.load_state_dict(held["network"])
        moments = held.get("optimizer", {})
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        steps, self.rate = held["count"].tolist()
        self.steps = int(steps)
        self._set_rate()
        self._tally.copy_(held["tally"])
        self._returns.copy_(held["returns"])
        self.arena.restore(held["arena"])
        torch.set_rng_state(held["random"]["cpu"])
        if "cuda" in held["random"] and self.arena.device.type == "cuda":
            torch.cuda.set_rng_state(held["random"]["cuda"], self.arena.device)

    # ------------------------------------------------------------------- acting

    @torch.no_grad()
    def collect(self) -> Tensor:
        """Fills the buffer with one horizon; returns some raw features for the normalisation."""
        network, buffer, seen = self.network, self._buffer, []
        std = network.log_std.exp()
        view = self.arena.view()
        for t in range(self.settings.horizon):
            raw = network.raw(view.observation)
            x = network.normal(raw, view.hidden)
            mean = network.mean_action(x)
            action = mean + std * torch.randn_like(mean)
            buffer.features[t], buffer.actions[t] = x, action
            buffer.log_probs[t] = (-0.5 * ((action - mean) / std) ** 2 - network.log_std).sum(-1)
            buffer.values[t] = network.critic(x)[:, 0]
            if t % 6 == 0:
                seen.append(raw)
            view = self._advance(t, view, action)
        last = network.prepare(view.observation, view.hidden)
        buffer.values[self.settings.horizon] = network.critic(last)[:, 0]
        self.steps += self.settings.horizon * self.arena.num_worlds
        return torch.cat(seen)

    def _advance(self, t: int, before: trifinger.ArenaView, action: Tensor) -> trifinger.ArenaView:
        """Steps the worlds, pays them, and starts new episodes where they ended."""
        arena, buffer, settings = self.arena, self._buffer, self.settings
        arena.step(action)
        now = arena.view()
        reward = shaped_reward(arena.task, before, now, arena.limited(action))
        self._returns += reward
        buffer.rewards[t] = reward * settings.reward_scale
        buffer.ended[t] = 0.0
        ended = arena.ended
        for part in ended:
            self._close(t, part, now)
        if not ended:
            return now
        arena.begin_ended()
        return arena.view()

    def _close(self, t: int, ended: slice, now: trifinger.ArenaView) -> None:
        """Adds what an episode cut by time would still have earned, and counts how it ended."""
        arena, buffer, settings = self.arena, self._buffer, self.settings
        final = self.network.prepare(now.observation[ended], now.hidden[ended])
        buffer.rewards[t, ended] += settings.gamma * self.network.critic(final)[:, 0]
        buffer.ended[t, ended] = 1.0
        fraction, count = now.fraction[ended], float(ended.stop - ended.start)
        solved = arena.solved(now)[ended].sum()
        self._tally += torch.stack(
            [fraction.sum(), solved, self._returns[ended].sum(), torch.full_like(solved, count)]
        )
        self._returns[ended] = 0.0

    # ----------------------------------------------------------------- learning

    def update(self, progress: float) -> float:
        """Learns from the buffer; returns the KL divergence. `progress` is that of the run."""
        settings, buffer = self.settings, self._buffer
        advantage = self._advantages()
        returns = (advantage + buffer.values[:-1]).reshape(-1)
        flat = advantage.reshape(-1)
        flat = (flat - flat.mean()) / (flat.std() + 1e-8)
        x, action = buffer.features.flatten(0, 1), buffer.actions.flatten(0, 1)
        old, divergences = buffer.log_probs.reshape(-1), []
        entropy = settings.entropy * min(1.0, max(0.0, (0.85 - progress) / 0.35))
        near = settings.imitation * max(0.0, 1.0 - 2.0 * progress)
        critic_alone = self._critic_alone()
        for _ in range(settings.epochs):
            for part in torch.randperm(len(x), device=x.device).chunk(settings.minibatches):
                rows = (x[part], action[part], old[part], flat[part], returns[part])
                divergences.append(self._descend(rows, entropy, near))
        kl = float(torch.stack(divergences).mean())
        if not critic_alone:  # else the rate would rise while the policy stays
            # Slows down where the policy changed too much, speeds up where too little.
            share = min(1.0, max(0.25, 2.0 * (1.0 - progress)))
            (low, high), (least, most) = settings.kl, settings.rates
            if kl > high * share:
                self.rate = max(self.rate / 1.3, least)
            elif kl < low * share:
                self.rate = min(self.rate * 1.2, most)
            self._set_rate()
            with torch.no_grad():
                self.network.log_std.clip_(min=settings.least_std)
        return kl

    def _critic_alone(self) -> bool:
        """Returns whether a policy begun with stays as it is, for its critic does not know it."""
        update = self.settings.horizon * self.arena.num_worlds
        return self._begun and self.steps <= _CRITIC_FIRST * update

    @torch.no_grad()
    def _advantages(self) -> Tensor:
        settings, buffer = self.settings, self._buffer
        advantage = torch.zeros_like(buffer.rewards)
        last = torch.zeros_like(buffer.rewards[0])
        for t in reversed(range(settings.horizon)):
            goes_on = 1.0 - buffer.ended[t]
            error = buffer.rewards[t] + settings.gamma * buffer.values[t + 1] * goes_on
            last = error - buffer.values[t] + settings.gamma * settings.lam * goes_on * last
            advantage[t] = last
        return advantage

    def _descend(self, rows: tuple[Tensor, ...], entropy: float, near: float) -> Tensor:
        x, action, old, advantage, returns = rows
        network, clip = self.network, self.settings.clip
        log_prob, _ = network.log_probability(x, action)
        ratio = (log_prob - old).exp()
        gain = torch.minimum(ratio * advantage, ratio.clip(1 - clip, 1 + clip) * advantage)
        miss = ((network.critic(x)[:, 0] - returns) ** 2).mean()
        loss = miss
        if not self._critic_alone():
            loss = loss - gain.mean() - entropy * network.log_std.sum()
            if near and self._shown is not None:
                loss = loss + near * self._missed().sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for part in ([*network.actor.parameters(), network.log_std], network.critic.parameters()):
            torch.nn.utils.clip_grad_norm_(part, 1.0)
        self.optimizer.step()
        return ((ratio - 1.0) - (log_prob - old)).mean().detach()

    def _set_rate(self) -> None:
        policy, critic = self.optimizer.param_groups
        policy["lr"] = self.rate
        critic["lr"] = max(self.rate, _CRITIC_RATE) if self._begun else self.rate

    def advance(self, steps: int) -> float:
        """Plays a horizon of a run of so many steps and learns from it; returns the divergence."""
        seen = self.collect()
        kl = self.update(self.steps / steps)
        self._normalise(seen)
        return kl

    def row(self, kl: float) -> dict[str, Any]:
        """Returns a row of the learning curve: how episodes ended since the last one, and rates."""
        fraction, solved, returned, count = (float(v) for v in self._tally)
        self._tally.zero_()
        many = max(count, 1.0)
        diverged = getattr(self.arena.engine, "diverged", torch.zeros(1))  # MuJoCo raises instead
        return {
            "steps": self.steps,
            "fraction": round(fraction / many, 4),
            "success": round(solved / many, 4),
            "return": round(returned / many, 2),
            "episodes": int(count),
            "kl": round(kl, 4),
            "learning_rate": round(self.rate, 6),
            "std": round(float(self.network.log_std.detach().exp().mean()), 3),
            "diverged": int(diverged.sum()),
        }
