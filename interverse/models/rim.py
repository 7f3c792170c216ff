"""Recurrent independent mechanisms: blocks that compete for the input and talk sparsely.

Corrected against the reference: the block-diagonal GRU is stored as blocks, not as a dense matrix
whose other entries are zeroed at every call; the null slot has no dead weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from interverse.models.attention import (
    Communication,
    GroupLinear,
    InputAttention,
    most_attentive,
    speak_and_settle,
)
from interverse.models.mlp import StackedLinear
from interverse.models.recurrent import INPUT_WIDTH, Memory, RecurrentTransition, with_core

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig


@final
class RIMCore(nn.Module):
    """Six GRU blocks of 100, of which the four most attentive move."""

    memories = 1

    def __init__(
        self, inputs: int = 2 * INPUT_WIDTH, *, blocks: int = 6, size: int = 100, active: int = 4
    ) -> None:
        super().__init__()
        self.blocks, self.size, self.active = blocks, size, active
        self.width = blocks * size
        self.inputs = nn.Linear(inputs, inputs)
        nn.init.uniform_(self.inputs.weight, -0.1, 0.1)
        self.attend = InputAttention(
            GroupLinear(blocks, size, 64),
            GroupLinear(blocks, inputs, 64, shared=True),
            GroupLinear(blocks, inputs, 32, shared=True),
        )
        self.gru = BlockGRU(blocks, 32, size)
        self.talk = Communication(blocks, size)

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the output (B, width) and the blocks' new states."""
        old = memory[0].unflatten(-1, (self.blocks, self.size))
        inputs = self.inputs(x)[:, None].expand(-1, self.blocks, -1)
        seen, weight = self.attend(old, inputs)
        active = most_attentive(weight, self.active)
        new = speak_and_settle(self.talk, old, self.gru(seen, old), active).flatten(1)
        return new, (new,)


@final
class BlockGRU(nn.Module):
    """As many gated recurrent units as blocks, none sharing a weight."""

    def __init__(self, blocks: int, inputs: int, size: int) -> None:
        super().__init__()
        self.from_input = StackedLinear(blocks, inputs, 3 * size)
        self.from_hidden = StackedLinear(blocks, size, 3 * size)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """Returns the next states (B, blocks, size)."""
        return gated_update(
            self.from_input(x.transpose(0, 1)).transpose(0, 1),
            self.from_hidden(hidden.transpose(0, 1)).transpose(0, 1),
            hidden,
        )


def gated_update(from_input: Tensor, from_hidden: Tensor, hidden: Tensor) -> Tensor:
    """Returns a GRU's next state from its two triple-width linear maps."""
    reset_x, update_x, new_x = from_input.chunk(3, dim=-1)
    reset_h, update_h, new_h = from_hidden.chunk(3, dim=-1)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
    return new + update * (hidden - new)


def build(config: WorldModelConfig) -> RecurrentTransition:
    """Returns the transition of a config around this core."""
    return with_core(config, RIMCore())
