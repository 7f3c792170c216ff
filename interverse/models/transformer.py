"""A transformer over object slots: the acted slot's action is a token among the slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from interverse.models.mlp import one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

_HEADS = 4
_LAYERS = 2


@final
class TransformerTransition(nn.Module):
    """s' = s + read(attention over the slots and one token of the action), pre-norm, no dropout."""

    def __init__(self, objects: int, embedding: int, actions: int, *, hidden: int) -> None:
        super().__init__()
        width = _HEADS * max(1, hidden // (4 * _HEADS))
        self.actions = actions
        self.from_state = nn.Linear(embedding, width)
        self.from_action = nn.Linear(actions, width)
        self.places = nn.Parameter(torch.zeros(objects + 1, width).normal_(std=0.02))
        layer = nn.TransformerEncoderLayer(
            width, _HEADS, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        self.read = nn.Linear(width, embedding)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        chosen = self.from_action(one_hot(action, self.actions))[:, None]
        tokens = torch.cat([self.from_state(state), chosen], dim=1) + self.places
        return state + self.read(self.layers(tokens)[:, :-1])


def build(config: WorldModelConfig) -> TransformerTransition:
    """Returns the transition of a config."""
    return TransformerTransition(
        config.objects, config.embedding, config.actions, hidden=config.hidden
    )
