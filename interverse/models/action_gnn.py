"""The action-aware graph network: messages carry the sender's action.

In C-SWM's graph network (`gnn`) the action reaches the node update of the acted slot alone, and
messages are made of states only. Every other slot's prediction is then the same for all actions of
one state: a push, which moves two blocks in one step, cannot be represented. Here the message
from the acted slot tells what it is about to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from interverse.models.mlp import MLP, one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig


@final
class ActionGraphTransition(nn.Module):
    """s'_i = s_i + node(s_i, own action, sum over j of edge(s_i, s_j, action of j))."""

    others: Tensor

    def __init__(
        self,
        objects: int,
        embedding: int,
        actions_per_object: int,
        *,
        hidden: int,
        layer_norm: bool,
    ) -> None:
        super().__init__()
        self.objects, self.actions_per_object = objects, actions_per_object
        width = embedding + actions_per_object
        self.edge = MLP(embedding + width, hidden, hidden, layer_norm=layer_norm)
        self.node = MLP(width + hidden, hidden, embedding, layer_norm=layer_norm)
        others = 1.0 - torch.eye(objects)
        self.register_buffer("others", others[None, :, :, None], persistent=False)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        count, n = len(state), self.objects
        chosen = one_hot(action, n * self.actions_per_object)
        slots = torch.cat([state, chosen.reshape(count, n, self.actions_per_object)], dim=-1)
        receivers = state[:, :, None].expand(-1, -1, n, -1)
        senders = slots[:, None].expand(-1, n, -1, -1)
        messages = self.edge(torch.cat([receivers, senders], dim=-1)) * self.others
        return state + self.node(torch.cat([slots, messages.sum(2)], dim=-1))


def build(config: WorldModelConfig) -> ActionGraphTransition:
    """Returns the transition of a config."""
    return ActionGraphTransition(
        config.objects,
        config.embedding,
        config.actions_per_object,
        hidden=config.hidden,
        layer_norm=config.layer_norm,
    )
