"""Multilayer perceptrons of the world models, plain and stacked (one per object)."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional


def one_hot(index: Tensor, count: int) -> Tensor:
    """Returns (..., count) float32 with a one at each index.

    A comparison instead of `functional.one_hot`, which reads values back to check them and
    therefore can be neither captured in a CUDA graph nor mapped over seeds.
    """
    classes = torch.arange(count, device=index.device)
    return (index[..., None] == classes).to(torch.float32)


@final
class MLP(nn.Module):
    """Linear, ReLU, Linear, LayerNorm, ReLU, Linear: the form of every three-layer part."""

    def __init__(self, inputs: int, hidden: int, outputs: int, *, layer_norm: bool = True) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.LayerNorm(hidden) if layer_norm else nn.Identity(),
            nn.ReLU(),
            nn.Linear(hidden, outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Returns (..., outputs)."""
        return self.layers(x)


@final
class StackedLinear(nn.Module):
    """`count` linear maps that never share a weight, applied in one batched product."""

    def __init__(self, count: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(inputs)  # what nn.Linear draws from
        self.weight = nn.Parameter(torch.empty(count, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(count, 1, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Returns (count, B, outputs) for (count, B, inputs)."""
        return torch.matmul(x, self.weight) + self.bias


@final
class StackedNorm(nn.Module):
    """Layer normalisation whose scale and shift differ per member of a stack."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(count, 1, width))
        self.bias = nn.Parameter(torch.zeros(count, 1, width))

    def forward(self, x: Tensor) -> Tensor:
        """Returns (count, B, width), normalised over the last axis."""
        return functional.layer_norm(x, x.shape[-1:]) * self.weight + self.bias
