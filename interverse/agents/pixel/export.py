"""From an agent to two plain files that act."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from torch import Tensor, nn

from interverse.agents.pixel.agent import Agent
from interverse.rollouts.pixels import PixelCard, PixelPolicy


def export(
    agent: Agent,
    observations: gym.spaces.Box,
    actions: gym.spaces.Box,
    trained: dict[str, Any],
) -> PixelPolicy:
    """Returns the agent's mean action as a policy for worlds with these spaces."""
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
        observation=list(observations.shape),
        image_size=agent.sizes.pictures[1],
        convolutions=len(nets.encoder.convolutions),
        layers=len(linear),
        low=actions.low.tolist(),
        high=actions.high.tolist(),
        trained=trained,
    )
    return PixelPolicy(card, weights)
