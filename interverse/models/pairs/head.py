"""From tokens of two pictures to the action: projection, action encoder, classifier."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from interverse.models.pairs.config import PairModelConfig


class HeadOutput(NamedTuple):
    """What a head says of a batch.

    Attributes:
        features: (B, 2, tokens, width), the projected tokens p.
        action: (B, width), the action embedding.
        logits: (B, actions).
    """

    features: Tensor
    action: Tensor
    logits: Tensor


@final
class PairHead(nn.Module):
    """Projects tokens, joins them in pairs, embeds each pair, pools over pairs, classifies."""

    def __init__(self, config: PairModelConfig, *, inputs: int, actions: int) -> None:
        super().__init__()
        self.config = config
        width, norm = config.width, config.head_norm
        if config.projection == "linear":
            self.projection = _layers((inputs, width), norm=norm, relu_last=True)
        else:
            self.projection = _layers((inputs, width, width), norm=norm, relu_last=False)
        sizes = (width, width) if config.action == "linear" else (2 * width, width, width)
        self.action = _layers(sizes, norm=norm, relu_last=config.final_relu)
        self.classifier = nn.Linear(width, actions)

    def forward(self, tokens: Tensor) -> HeadOutput:
        """Returns the output for tokens (B, 2, T, inputs)."""
        features = self.projection(tokens)
        pairs = self.action(self._join(*self._paired(*features.unbind(1))))
        action = pairs.amax(1) if self.config.pairing == "match-max" else pairs.mean(1)
        return HeadOutput(features, action, self.classifier(action))

    def _paired(self, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the two sides of all pairs, (B, pairs, width) each."""
        if self.config.pairing != "dense":
            return before, after
        count = before.shape[1]
        left = before[:, :, None].expand(-1, -1, count, -1)
        right = after[:, None].expand(-1, count, -1, -1)
        return left.flatten(1, 2), right.flatten(1, 2)

    def _join(self, before: Tensor, after: Tensor) -> Tensor:
        change = after - before
        if self.config.action == "linear":
            return change
        left = before + after if self.config.join == "sum_difference" else before
        right = after if self.config.join == "concat" else change
        return torch.cat([left, right], dim=-1)


def critic(width: int, objects: int) -> nn.Module:
    """Returns the network that tries to tell the object class from the action embedding."""
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, objects))


@final
class _TokenNorm(nn.Module):
    """Batch norm over all axes but the last."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, values: Tensor) -> Tensor:
        return self.norm(values.flatten(0, -2)).view_as(values)


def _layers(sizes: tuple[int, ...], *, norm: bool, relu_last: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes), start=1):
        layers.append(nn.Linear(inputs, outputs))
        if norm:
            layers.append(_TokenNorm(outputs))
        if number < len(sizes) - 1 or relu_last:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)
