"""The graph-network transition (C-SWM): pairwise messages between all slots.

The action reaches the acted slot alone, and messages know states only: what any other slot becomes
does not depend on the action. In one step it can therefore represent a move, but not a push; see
`action_gnn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor, nn

from interverse.models.mlp import MLP, one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

ActionInput = Literal["own", "all", "none"]
"""Who sees the action: the acted slot alone, every slot, or none."""


@final
class GraphTransition(nn.Module):
    """s' = s + node(s, sum of messages, own action); fully connected, no self loops."""

    rows: Tensor
    columns: Tensor

    def __init__(
        self,
        objects: int,
        embedding: int,
        actions_per_object: int,
        *,
        hidden: int,
        layer_norm: bool,
        action_input: ActionInput = "own",
    ) -> None:
        super().__init__()
        self.objects, self.actions_per_object = objects, actions_per_object
        self.action_input = action_input
        self.hidden = hidden
        inputs = embedding + hidden + (0 if action_input == "none" else actions_per_object)
        self.edge = MLP(2 * embedding, hidden, hidden, layer_norm=layer_norm)
        self.node = MLP(inputs, hidden, embedding, layer_norm=layer_norm)
        pairs = [(i, j) for i in range(objects) for j in range(objects) if i != j]
        rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
        self.register_buffer("rows", torch.tensor(rows, dtype=torch.int64), persistent=False)
        self.register_buffer("columns", torch.tensor(columns, dtype=torch.int64), persistent=False)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        parts = [state, self._messages(state)]
        if self.action_input != "none":
            parts.append(self._action(action))
        return state + self.node(torch.cat(parts, dim=-1))

    def _messages(self, state: Tensor) -> Tensor:
        """Returns (B, objects, hidden): the sum of what every other slot says."""
        if self.objects == 1:
            return state.new_zeros(len(state), 1, self.hidden)
        ends = torch.cat([state[:, self.rows], state[:, self.columns]], dim=-1)
        messages = self.edge(ends)  # ordered by receiver, so a reshape replaces a scatter
        return messages.reshape(len(state), self.objects, self.objects - 1, -1).sum(2)

    def _action(self, action: Tensor) -> Tensor:
        """Returns (B, objects, actions_per_object)."""
        if self.action_input == "all":
            chosen = one_hot(action % self.actions_per_object, self.actions_per_object)
            return chosen[:, None].expand(-1, self.objects, -1)
        chosen = one_hot(action, self.objects * self.actions_per_object)
        return chosen.reshape(len(action), self.objects, self.actions_per_object)


def build(config: WorldModelConfig) -> GraphTransition:
    """Returns the transition of a config."""
    return GraphTransition(
        config.objects,
        config.embedding,
        config.actions_per_object,
        hidden=config.hidden,
        layer_norm=config.layer_norm,
        action_input=config.action_input,
    )
