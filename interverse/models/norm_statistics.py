"""Running statistics of batch norm, which Torch types as optional."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class NormStatistics(NamedTuple):
    """The buffers of a batch norm that tracks its statistics, and the rate at which it does."""

    mean: Tensor
    variance: Tensor
    batches: Tensor
    rate: float


def norm_statistics(norm: nn.BatchNorm2d) -> NormStatistics:
    """Returns the statistics of a norm that tracks them, as all norms here do."""
    mean, variance, batches = norm.running_mean, norm.running_var, norm.num_batches_tracked
    assert mean is not None
    assert variance is not None
    assert batches is not None
    assert norm.momentum is not None
    return NormStatistics(mean, variance, batches, norm.momentum)


@torch.no_grad()
def track(norm: nn.BatchNorm2d, mean: Tensor, unbiased: Tensor) -> None:
    """Moves the running mean and variance as batch norm does in training."""
    own = norm_statistics(norm)
    own.mean.mul_(1 - own.rate).add_(mean * own.rate)
    own.variance.mul_(1 - own.rate).add_(unbiased * own.rate)
    own.batches.add_(1)
