"""SCOFF: object files that share a few update rules (schemata).

Corrected against the reference: the files that attend *most* to their input are the ones that move
(there they were switched off), and the rule of each file is drawn in training only; at test time
it is the best-scoring one.
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
from interverse.models.rim import gated_update

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

_TEMPERATURE = 0.5
_KEY_WIDTH = 16


@final
class SCOFFCore(nn.Module):
    """Four object files of 150, three of them moving, each by one of two GRU rules."""

    memories = 1

    def __init__(
        self,
        inputs: int = 2 * INPUT_WIDTH,
        *,
        files: int = 4,
        size: int = 150,
        active: int = 3,
        rules: int = 2,
    ) -> None:
        super().__init__()
        self.files, self.size, self.active = files, size, active
        self.width = files * size
        self.inputs = nn.Linear(inputs, inputs)
        self.attend = InputAttention(
            GroupLinear(files, size, 64, shared=True),
            GroupLinear(files, inputs // files, 64, shared=True),
            GroupLinear(files, inputs // files, size, shared=True),
        )
        self.rules = SharedRules(rules, inputs=files * size, size=size)
        self.talk = Communication(files, size, shared=True)

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Returns the output (B, width) and the files' new states."""
        old = memory[0].unflatten(-1, (self.files, self.size))
        seen, weight = self.attend(old, self.inputs(x).unflatten(-1, (self.files, -1)))
        active = most_attentive(weight, self.active)
        new = speak_and_settle(self.talk, old, self.rules(seen.flatten(1), old), active).flatten(1)
        return new, (new,)


@final
class SharedRules(nn.Module):
    """A few GRUs; each file takes the one whose proposal answers its present state best."""

    def __init__(self, rules: int, *, inputs: int, size: int) -> None:
        super().__init__()
        self.from_input = StackedLinear(rules, inputs, 3 * size)
        self.from_hidden = StackedLinear(rules, size, 3 * size)
        self.read_key = nn.Linear(size, _KEY_WIDTH, bias=False)
        self.write_key = nn.Linear(size, _KEY_WIDTH, bias=False)

    def forward(self, seen: Tensor, hidden: Tensor) -> Tensor:
        """Returns the files' proposals (B, files, size).

        Args:
            seen: (B, inputs), what all files read together.
            hidden: (B, files, size), their present states.
        """
        batch, files, size = hidden.shape
        from_input = self.from_input(seen[None])[:, :, None]
        from_hidden = self.from_hidden(hidden.reshape(1, -1, size)).unflatten(1, (batch, files))
        proposals = gated_update(from_input, from_hidden, hidden)  # (rules, B, files, size)
        scores = (self.read_key(hidden) * self.write_key(proposals)).sum(-1)
        return (self._choice(scores)[..., None] * proposals).sum(0)

    def _choice(self, scores: Tensor) -> Tensor:
        """Returns a 0/1 choice over the first axis, with a straight-through gradient."""
        if self.training:
            gumbel = -torch.log(torch.empty_like(scores).exponential_())
            scores = scores + gumbel
        soft = torch.softmax(scores / _TEMPERATURE, dim=0)
        hard = torch.zeros_like(soft).scatter(0, soft.argmax(0, keepdim=True), 1.0)
        return hard + soft - soft.detach()


def build(config: WorldModelConfig) -> RecurrentTransition:
    """Returns the transition of a config around this core."""
    return with_core(config, SCOFFCore())
