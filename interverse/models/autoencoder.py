"""The flat transition of the AE and VAE: one network sees the whole state."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from interverse.models.mlp import one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig


@final
class FlatTransition(nn.Module):
    """s' = s + f(s, action), with one network for the whole scene."""

    def __init__(self, width: int, actions: int, *, hidden: int, layer_norm: bool) -> None:
        super().__init__()
        self.actions = actions
        self.from_action = nn.Linear(actions, hidden)
        self.from_state = nn.Linear(width, hidden)
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Linear(2 * hidden, hidden),
            nn.LayerNorm(hidden) if layer_norm else nn.Identity(),
            nn.ReLU(),
            nn.Linear(hidden, 2 * hidden),
            nn.LayerNorm(2 * hidden) if layer_norm else nn.Identity(),
            nn.ReLU(),
            nn.Linear(2 * hidden, width),
        )

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, 1, width) of a state (B, 1, width) and actions (B,)."""
        flat = state[:, 0]
        chosen = self.from_action(one_hot(action, self.actions))
        change = self.layers(torch.cat([chosen, self.from_state(flat)], dim=-1))
        return state + change[:, None]


def build(config: WorldModelConfig) -> FlatTransition:
    """Returns the transition of a config."""
    return FlatTransition(
        config.vision.slot_width, config.actions, hidden=config.hidden, layer_norm=config.layer_norm
    )
