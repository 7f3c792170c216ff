"""The modular transition: one network per object, each seeing the whole state."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.models.mlp import StackedLinear, StackedNorm, one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig


@final
class ObjectNetworks(nn.Module):
    """As many independent networks as objects, computed together."""

    def __init__(
        self, objects: int, embedding: int, actions: int, *, hidden: int, layer_norm: bool
    ) -> None:
        super().__init__()
        self.actions = actions
        self.from_action = StackedLinear(objects, actions, hidden)
        self.from_state = StackedLinear(objects, objects * embedding, hidden)
        self.inner = StackedLinear(objects, 2 * hidden, hidden)
        self.inner_norm = StackedNorm(objects, hidden) if layer_norm else nn.Identity()
        self.outer = StackedLinear(objects, hidden, 2 * hidden)
        self.outer_norm = StackedNorm(objects, 2 * hidden) if layer_norm else nn.Identity()
        self.change = StackedLinear(objects, 2 * hidden, embedding)

    def forward(self, states: Tensor, action: Tensor) -> Tensor:
        """Returns the change (B, objects, embedding) of every object.

        Args:
            states: (1 or objects, B, objects * embedding), what each network sees.
            action: (B,) indices over all actions.
        """
        chosen = self.from_action(one_hot(action, self.actions)[None])
        x = functional.relu(torch.cat([chosen, self.from_state(states)], dim=-1))
        x = functional.relu(self.inner_norm(self.inner(x)))
        x = functional.relu(self.outer_norm(self.outer(x)))
        return self.change(x).transpose(0, 1)


@final
class ModularTransition(nn.Module):
    """s'_i = s_i + f_i(s, action), no sparsity and no graph imposed."""

    def __init__(self, networks: ObjectNetworks) -> None:
        super().__init__()
        self.networks = networks

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns the next state (B, objects, embedding) for actions (B,)."""
        return state + self.networks(state.flatten(1)[None], action)


def object_networks(config: WorldModelConfig) -> ObjectNetworks:
    """Returns the networks of a config; the objects share its hidden width."""
    hidden = config.width * (config.hidden // config.objects)
    return ObjectNetworks(
        config.objects,
        config.embedding,
        config.actions,
        hidden=hidden,
        layer_norm=config.layer_norm,
    )


def build(config: WorldModelConfig) -> ModularTransition:
    """Returns the transition of a config."""
    return ModularTransition(object_networks(config))
