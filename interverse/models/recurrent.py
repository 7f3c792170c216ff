"""Transitions with a memory: inputs, a recurrent core, and a residual read-out.

Corrected against the reference: the two input maps belong to the module and are trained; memory is
zero at the start of every episode, in training and in evaluation; nothing is drawn at test time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, final

import torch
from torch import Tensor, nn

from interverse.models.mlp import one_hot

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

Memory = tuple[Tensor, ...]

INPUT_WIDTH = 512
"""Width to which state and action are each brought; a core sees twice this."""


class Core(Protocol):
    """What a recurrent core offers."""

    width: int
    """Length of the output and of every memory tensor."""
    memories: int
    """How many memory tensors there are."""

    def __call__(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the output (B, width) and the new memory."""
        ...


@final
class RecurrentTransition(nn.Module):
    """s' = s + read(core(s, action, memory)), on a flat state."""

    def __init__(self, state_width: int, actions: int, core: Core) -> None:
        super().__init__()
        self.actions = actions
        self.from_state = nn.Linear(state_width, INPUT_WIDTH)
        self.from_action = nn.Linear(actions, INPUT_WIDTH)
        self.core = core
        self.read = nn.Linear(core.width, state_width)

    def start(self, batch: int) -> Memory:
        """Returns the empty memory of a fresh episode, one row per world."""
        zeros = self.read.weight.new_zeros(batch, self.core.width)
        return (zeros,) * self.core.memories

    def forward(self, state: Tensor, action: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the next state (B, 1, width) and the memory after it."""
        chosen = self.from_action(one_hot(action, self.actions))
        x = torch.cat([self.from_state(state[:, 0]), chosen], dim=-1)
        output, memory = self.core(x, memory)
        return state + self.read(output)[:, None], memory


@final
class LSTMCore(nn.Module):
    """One layer of long short-term memory."""

    memories = 2

    def __init__(self, inputs: int = 2 * INPUT_WIDTH, width: int = 600) -> None:
        super().__init__()
        self.width = width
        self.cell = nn.LSTMCell(inputs, width)

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the output (B, width) and (output, cell)."""
        output, cell = self.cell(x, memory)
        return output, (output, cell)


def with_core(config: WorldModelConfig, core: Core) -> RecurrentTransition:
    """Returns the transition of a config around a core."""
    return RecurrentTransition(config.vision.slot_width, config.actions, core)


def build(config: WorldModelConfig) -> RecurrentTransition:
    """Returns the transition of a config with long short-term memory."""
    return with_core(config, LSTMCore())
