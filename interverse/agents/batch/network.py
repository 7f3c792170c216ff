"""The learner's networks, and their export as a policy that every engine takes.

The policy sees the world's observation and, added to it, differences of places in it (block to
goal, fingertip to block). They are linear in the observation, and so is the running normalisation:
both are folded into the first layer on export, and the file is a plain multilayer perceptron.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np
import torch

from interverse.core.errors import InvalidValueError
from interverse.rollouts.exported import Card, ExportedPolicy
from interverse.rollouts.policy_world import INTERFACE, policy_world
from interverse.worlds import trifinger

Tensor = torch.Tensor

CLIP = 8.0  # of observations, in units of their usual range
RAW_CLIP = 400.0  # of those in units of their own, the widest of which reaches from -50 to 50
ACTIVATION: Final = "elu"
_PLACE = "cartesian_position"


def observation_clip(normalised: bool) -> float:
    """Returns the limit of observations, normalised or as they are."""
    return CLIP if normalised else RAW_CLIP


def check_initial(policy: ExportedPolicy, options: trifinger.TriFingerOptions) -> None:
    """Raises unless a network that learns with these options of the world can be this policy.

    Layers are compared where the network is known, in `ActorCritic.adopt`.
    """
    known = policy_world(policy)
    trained = {**known.defaults, **known.options}
    card, weights = policy.card, policy.weights
    low, high = trifinger.DeviceArena.action_limits(options)
    width = len(weights["obs.mean"])
    pairs: list[tuple[str, Any, Any]] = [  # what the policy has, and this run
        (name, trained[name], getattr(options, name))
        for name in INTERFACE
        if name in trained and hasattr(options, name)
    ]
    pairs += [
        ("activation", card.activation, ACTIVATION),
        ("squash", card.squash, False),
        ("clip", card.clip, observation_clip(options.normalize_observations)),
        ("inputs", card.inputs, []),
        ("low", card.low, low),
        ("high", card.high, high),
        ("obs.mean", weights["obs.mean"].tolist(), [0.0] * width),
        ("obs.std", weights["obs.std"].tolist(), [1.0] * width),
    ]
    for name, given, wanted in pairs:
        if isinstance(wanted, list) and wanted:  # within what float32 keeps
            same = len(given) == len(wanted) and np.allclose(given, wanted, atol=1e-6)
        else:
            same = given == wanted
        if not same:
            raise InvalidValueError(
                f"the initial policy has {name} {_short(given)}",
                allowed=f"{_short(wanted)} in this run",
                fix="Begin with a policy that PPO on a device exported for the same options",
            )


def _short(value: Any) -> str:
    """Returns a value as it is shown: of a long list the first numbers."""
    if isinstance(value, list) and len(value) > 3:
        return f"[{', '.join(f'{v:.4g}' for v in value[:3])}, ...]"
    return repr(value)


def difference_matrix(layout: Mapping[str, slice], width: int) -> Tensor:
    """Returns the matrix that turns an observation into features, (width, k).

    Differences of places are added: of goals and tips to blocks; without blocks, of goals to tips.
    A block's goal itself is left out, since it is the block's place plus their difference: a policy
    that sees goals from the block reaches some that it never saw.
    """
    blocks = sorted(n for n in layout if n.startswith("block_") and n.endswith(_PLACE))
    goals = sorted(n for n in layout if n.startswith("goal_") and n.endswith(_PLACE))
    tips = layout["end_effector_positions"].start if "end_effector_positions" in layout else None
    pairs = [(layout[g].start, layout[b].start) for b, g in zip(blocks, goals, strict=False)]
    if tips is not None:
        pairs += [(tips + 3 * f, layout[b].start) for b in blocks for f in range(3)]
        if not blocks:
            pairs += [(layout[g].start, tips + 3 * f) for f, g in enumerate(goals)]
    pairs += [(layout[a].start, layout[b].start) for a, b in itertools.pairwise(blocks)]
    columns = []
    for one, other in pairs:
        for axis in range(3):
            column = torch.zeros(width)
            column[one + axis], column[other + axis] = 1.0, -1.0
            columns.append(column)
    seen = torch.ones(width, dtype=torch.bool)
    for goal in goals[: len(blocks)]:
        seen[layout[goal]] = False
    return torch.cat([torch.eye(width)[:, seen], *(c[:, None] for c in columns)], dim=1)


@final
class ActorCritic(torch.nn.Module):
    """A Gaussian policy and a value, on normalised features of an observation.

    The critic may see `hidden` numbers more, which follow the features: what is known in training
    alone.
    """

    features: Tensor
    mean: Tensor
    variance: Tensor
    seen: Tensor

    def __init__(
        self,
        features: Tensor,
        actions: int,
        widths: tuple[int, ...],
        hidden: int = 0,
        clip: float = CLIP,
    ) -> None:
        super().__init__()
        self.clip = clip
        self.seen_width = count = features.shape[1]
        self.hidden = hidden
        self.actor = _perceptron(count, widths, actions)
        self.critic = _perceptron(count + hidden, widths, 1)
        self.log_std = torch.nn.Parameter(torch.full((actions,), -0.7))
        self.register_buffer("features", features)
        self.register_buffer("mean", torch.zeros(count))
        self.register_buffer("variance", torch.ones(count))
        self.register_buffer("seen", torch.tensor(1e-4))

    def prepare(self, observation: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Returns the normalised features of observations, and what the critic sees beside them."""
        return self.normal(self.raw(observation), hidden)

    def normal(self, raw: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Returns features normalised, and what the critic sees beside them."""
        x = (raw - self.mean) * self.scale()
        return torch.cat([x, hidden], dim=1) if self.hidden and hidden is not None else x

    def mean_action(self, x: Tensor) -> Tensor:
        """Returns the policy's mean action; it sees the features alone."""
        out: Tensor = self.actor(x[:, : self.seen_width])
        return out

    def scale(self) -> Tensor:
        """Returns the factors of features; one that never varied is not looked at."""
        return torch.where(self.variance > 1e-7, torch.rsqrt(self.variance + 1e-6), 0.0)

    def raw(self, observation: Tensor) -> Tensor:
        """Returns the features before normalisation."""
        clipped = torch.nan_to_num(observation).clip(-self.clip, self.clip)
        out: Tensor = clipped @ self.features
        return out

    def log_probability(self, x: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the log density of actions, without its constant, and the mean action."""
        mean = self.mean_action(x)
        scaled = (action - mean) / self.log_std.exp()
        return (-0.5 * scaled**2 - self.log_std).sum(-1), mean

    @torch.no_grad()
    def observe(self, raw: Tensor) -> None:
        """Takes features, (n, k), into the running mean and variance."""
        count = float(len(raw))
        mean, variance = raw.mean(0), raw.var(0, unbiased=False)  # of one row too
        total = self.seen + count
        gap = mean - self.mean
        spread = self.variance * self.seen + variance * count
        self.variance.copy_((spread + gap**2 * self.seen * count / total) / total)
        self.mean.add_(gap * count / total)
        self.seen.copy_(torch.clamp(total, max=2e7))

    @torch.no_grad()
    def adopt(self, policy: ExportedPolicy) -> None:
        """Makes the mean action that of a policy that `export` returned; see `check_initial`."""
        own = [m for m in self.actor if isinstance(m, torch.nn.Linear)]
        names = range(policy.card.layers)
        given = [(policy.weights[f"{i}.weight"], policy.weights[f"{i}.bias"]) for i in names]
        shapes = [tuple(weight.shape) for weight, _ in given]
        wanted = [(m.out_features, m.in_features) for m in own]
        wanted[0] = own[0].out_features, len(self.features)
        if shapes != wanted:
            raise InvalidValueError(f"the initial policy has layers {shapes}", allowed=str(wanted))
        first = given[0][0].to(self.mean).double() @ torch.linalg.pinv(self.features.double().T)
        scale = self.scale().double()
        own[0].weight.copy_(torch.where(scale > 0.0, first / scale.clip(min=1e-6), 0.0))
        own[0].bias.copy_(given[0][1].to(self.mean) + first @ self.mean.double())
        for layer, (weight, bias) in zip(own[1:], given[1:], strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)

    def export(self, bounds: tuple[list[float], list[float]], trained: dict[str, Any]) -> Any:
        """Returns the mean action as a policy of two plain files."""
        layers = [m for m in self.actor if isinstance(m, torch.nn.Linear)]
        first = layers[0].weight.double() * self.scale().double()
        weights = {
            "0.weight": (first @ self.features.double().T).float(),
            "0.bias": (layers[0].bias.double() - first @ self.mean.double()).float(),
        }
        for i, layer in enumerate(layers[1:], start=1):
            weights |= {f"{i}.weight": layer.weight, f"{i}.bias": layer.bias}
        width = len(self.features)
        weights |= {"obs.mean": torch.zeros(width), "obs.std": torch.ones(width)}
        card = Card(
            layers=len(layers),
            activation=ACTIVATION,
            squash=False,
            low=bounds[0],
            high=bounds[1],
            trained=trained,
            clip=self.clip,
        )
        return ExportedPolicy(card, {k: v.detach().cpu().clone() for k, v in weights.items()})


def _perceptron(inputs: int, widths: tuple[int, ...], outputs: int) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for width in widths:
        layers += [torch.nn.Linear(inputs, width), torch.nn.ELU()]
        inputs = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(inputs, outputs))
