"""Losses of the world models, as functions of states and images.

All sums over values are divided by the batch, so that a loss does not grow with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor
from torch.nn import functional

Reduce = Literal["sum", "mean"]


def image_loss(logits: Tensor, images: Tensor) -> Tensor:
    """Returns the binary cross-entropy of images (B, 3, 50, 50), summed per image, averaged."""
    total = functional.binary_cross_entropy_with_logits(logits.float(), images, reduction="sum")
    return total / len(images)


def transition_loss(predicted: Tensor, state: Tensor) -> Tensor:
    """Returns the squared error of predicted states, summed per sample, averaged."""
    return (predicted - state).square().sum() / len(state)


def kl_loss(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Returns the divergence from a standard normal, summed per sample, averaged.

    >>> kl_loss(torch.zeros(4, 1, 3), torch.zeros(4, 1, 3)).item()
    0.0
    """
    terms = 1 + log_variance - mean.square() - log_variance.exp()
    return 0.5 * torch.sum(-terms) / len(mean)


class Contrast(NamedTuple):
    """The two halves of a contrastive loss, each a scalar; their sum is what is trained."""

    pull: Tensor
    push: Tensor

    @property
    def total(self) -> Tensor:
        """Pull plus push."""
        return self.pull + self.push


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """The squared distance of two slot states over 2 sigma^2, as a function."""

    sigma: float = 0.5
    reduce: Reduce = "sum"
    """Whether a slot's squared differences are summed (the code) or averaged (the paper's MSE)."""

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Returns (B, slots)."""
        squares = (a - b).square()
        distance = squares.sum(-1) if self.reduce == "sum" else squares.mean(-1)
        return distance / (2 * self.sigma**2)


def contrastive_loss(
    state: Tensor,
    other: Tensor,
    predicted: Tensor,
    following: Tensor,
    *,
    hinge: float = 1.0,
    energy: Energy = Energy(),  # noqa: B008 - frozen
) -> Contrast:
    """Returns pull (prediction to the true next state) and push (state from another state).

    States are (B, slots, width); `other` is a permutation of the batch's states, and beyond an
    energy of `hinge` a negative is far enough.
    """
    near = energy(predicted, following).mean(-1)
    far = energy(state, other).mean(-1)
    return Contrast(pull=near.mean(), push=functional.relu(hinge - far).mean())


def jepa_loss(predicted: Tensor, following: Tensor, state: Tensor) -> Tensor:
    """Returns the error of predicted encodings plus what keeps encodings apart (VICReg).

    Encodings are (B, slots, width); the true next ones, `following`, are pulled as well.
    """
    error = (predicted - following).square().mean()
    spread = _spread(state.flatten(1)) + _spread(following.flatten(1))
    return 25.0 * error + 0.5 * spread


def _spread(states: Tensor) -> Tensor:
    """Returns variance and covariance terms of states (B, width), zero where all is spread out."""
    centred = states - states.mean(0)
    deviation = (centred.square().sum(0) / max(1, len(states) - 1) + 1e-4).sqrt()
    covariance = centred.T @ centred / max(1, len(states) - 1)
    off = covariance.square().sum() - covariance.diagonal().square().sum()
    return 25.0 * functional.relu(1.0 - deviation).mean() + off / states.shape[1]
