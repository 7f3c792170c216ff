"""From an agent to two plain files that act."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from torch import Tensor, nn

from interverse.agents.pixel.agent import Agent, PixelLearner
from interverse.agents.pixel.tdmpc2 import TdMpc2
from interverse.rollouts.pixels import PicturePolicy, PixelCard, PixelPolicy
from interverse.rollouts.planned import planned_policy


def export(
    agent: PixelLearner,
    observations: gym.spaces.Box,
    actions: gym.spaces.Box,
    trained: dict[str, Any],
) -> PicturePolicy:
    """Returns the agent's mean or planned action as a policy for worlds with these spaces."""
    shape, low, high = list(observations.shape), actions.low.tolist(), actions.high.tolist()
    if isinstance(agent, TdMpc2):
        return planned_policy(agent.networks.model, shape, (low, high), trained)
    assert isinstance(agent, Agent)
    nets = agent.networks
    trunk = nets.encoder.trunk if nets.actor_trunk is None else nets.actor_trunk
    linear = [layer for layer in nets.actor.layers if isinstance(layer, nn.Linear)]
    parts: dict[str, Any] = {"trunk": trunk.linear, "norm": trunk.norm}
    parts |= {f"conv.{i}": layer for i, layer in enumerate(nets.encoder.convolutions)}
    parts |= {f"actor.{i}": layer for i, layer in enumerate(linear)}
    weights: dict[str, Tensor] = {}
    for name, part in parts.items():
        weights[f"{name}.weight"] = part.weight.detach().cpu().clone()
        weights[f"{name}.bias"] = part.bias.detach().cpu().clone()
    card = PixelCard(
        observation=shape,
        image_size=agent.sizes.pictures[1],
        convolutions=len(nets.encoder.convolutions),
        layers=len(linear),
        low=low,
        high=high,
        trained=trained,
        squash=trunk.squash,
    )
    return PixelPolicy(card, weights)
