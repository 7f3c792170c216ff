"""Attention pieces that the block-structured recurrent cores share."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn


@final
class GroupLinear(nn.Module):
    """One bias-free linear map per block, or a single one that all blocks share."""

    def __init__(self, blocks: int, inputs: int, outputs: int, *, shared: bool = False) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(outputs)
        count = 1 if shared else blocks
        self.weight = nn.Parameter(torch.empty(count, inputs, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Returns (B, blocks, outputs) for (B, blocks, inputs)."""
        return torch.einsum("bki,kio->bko", x, self.weight.expand(x.shape[1], -1, -1))


@final
class InputAttention(nn.Module):
    """Each block weighs its input against nothing (a null slot of zeros).

    A null slot's key and value are zero under bias-free maps, so its score is zero and it has no
    weights of its own.
    """

    def __init__(self, query: GroupLinear, key: GroupLinear, value: GroupLinear) -> None:
        super().__init__()
        self.query, self.key, self.value = query, key, value
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Returns what each block read (B, blocks, d_v) and the weight on its input (B, blocks).

        Args:
            hidden: (B, blocks, size), the blocks' states.
            inputs: (B, blocks or 1, width), what each may read.
        """
        keys = self.key(inputs)
        score = (self.query(hidden) * keys).sum(-1) / math.sqrt(keys.shape[-1])
        weight = torch.sigmoid(score)  # a softmax over {score, 0}
        return self.dropout(weight)[..., None] * self.value(inputs), weight


@final
class Communication(nn.Module):
    """Multi-head attention between blocks, gated, to be added to their states."""

    def __init__(
        self, blocks: int, size: int, *, heads: int = 4, head_width: int = 32, shared: bool = False
    ) -> None:
        super().__init__()
        self.heads = heads
        wide = heads * head_width
        self.query = GroupLinear(blocks, size, wide, shared=shared)
        self.key = GroupLinear(blocks, size, wide, shared=shared)
        self.value = GroupLinear(blocks, size, wide, shared=shared)
        self.out = nn.Linear(wide, size)
        self.gate = nn.Linear(wide, size)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden: Tensor) -> Tensor:
        """Returns (B, blocks, size), what each block heard."""
        query, key, value = (
            part(hidden).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        heard = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).flatten(2)
        return torch.sigmoid(self.gate(heard)) * torch.tanh(self.dropout(self.out(heard)))


def most_attentive(weight: Tensor, count: int) -> Tensor:
    """Returns a 0/1 mask (B, blocks, 1) of the `count` blocks that weigh their input most."""
    chosen = weight.topk(count, dim=-1).indices
    return torch.zeros_like(weight).scatter(-1, chosen, 1.0)[..., None]


def speak_and_settle(talk: Communication, old: Tensor, new: Tensor, active: Tensor) -> Tensor:
    """Returns the blocks' next states: active ones move and listen, the others keep theirs.

    No gradient flows through what an inactive block would have become.
    """
    heard = torch.where(active > 0, new, new.detach())
    return active * (new + talk(heard)) + (1 - active) * old
