"""From tokens of two pictures to the action, and the penalty on changes that are not its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError
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
        before, after = features.unbind(1)
        if self.config.pairing == "dense":  # every token with every token
            count = before.shape[1]
            before = before[:, :, None].expand(-1, -1, count, -1).flatten(1, 2)
            after = after[:, None].expand(-1, count, -1, -1).flatten(1, 2)
        pairs = self.action(self._join(before, after))
        action = pairs.amax(1) if self.config.pairing == "match-max" else pairs.mean(1)
        return HeadOutput(features, action, self.classifier(action))

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


# ---------------------------------------------------------------------------------- sparse change

REVERSE = {
    "clean": "dirty",
    "close": "open",
    "dirty": "clean",
    "open": "close",
    "turnoff": "turnon",
    "turnon": "turnoff",
}
"""Actions that undo each other; an action and its reverse form a group."""


def verb_groups(verbs: Sequence[str]) -> Tensor:
    """Returns each action's group, (actions,) int64, counted in the actions' order.

    >>> verb_groups(["open", "break", "close"]).tolist()
    [0, 1, 0]
    """
    keys = [min(verb, REVERSE.get(verb, verb)) for verb in verbs]
    order = list(dict.fromkeys(keys))
    return torch.tensor([order.index(key) for key in keys])


def feature_blocks(width: int, groups: int) -> Tensor:
    """Returns each feature's block, (width,) int64: equal blocks, a remainder in the last.

    >>> feature_blocks(7, 3).tolist()
    [0, 0, 1, 1, 2, 2, 2]
    """
    if groups > width:
        raise InvalidValueError(
            f"{groups} groups of actions need as many features, there are {width}"
        )
    return (torch.arange(width) // (width // groups)).clamp(max=groups - 1)


def change_penalty(
    features: Tensor, group: Tensor, blocks: Tensor, form: Literal["mse", "norm"]
) -> Tensor:
    """Returns how much features changed that the action does not concern, one number.

    Args:
        features: (B, 2, tokens, width).
        group: (B,), the group of each pair's action.
        blocks: (width,), each feature's block.
        form: "mse": mean square over batch and all features, the touched block counted as zero.
            "norm": sum over untouched blocks of the norm, mean over the batch.
    """
    change = features[:, 1] - features[:, 0]
    untouched = (blocks != group[:, None])[:, None, :]
    change = change * untouched
    if form == "mse":
        return change.square().mean()
    count = int(blocks[-1]) + 1
    member = nn.functional.one_hot(blocks, count).to(change.dtype)
    squares = change.square() @ member  # (B, tokens, blocks)
    # The root's slope at zero is infinite; blocks that did not change get slope zero instead.
    return torch.where(squares > 0, squares.clamp(min=1e-12).sqrt(), 0.0).sum(-1).mean()
