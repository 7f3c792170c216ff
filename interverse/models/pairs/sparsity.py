"""Sparse change: features in blocks, one per group of actions; only its own block may change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from interverse.core.errors import InvalidValueError, explain

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
            explain(f"{groups} groups of actions need as many features, there are {width}")
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
    member = torch.nn.functional.one_hot(blocks, count).to(change.dtype)
    squares = change.square() @ member  # (B, tokens, blocks)
    # The root's slope at zero is infinite; blocks that did not change get slope zero instead.
    return torch.where(squares > 0, squares.clamp(min=1e-12).sqrt(), 0.0).sum(-1).mean()
