"""Layers and losses of world models: perceptrons, stacks, convolutions over cells, norms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of its pictures
_VECTOR = 16  # channels that fill a CPU's vectors: with these its convolutions are the faster way


def full_precision(like: Tensor) -> torch.autocast:
    """Returns a context in which autocast is off.

    Mixed precision is for the convolutions, which are the cost; states and statistics rounded to
    eight bits would blur the distances that ranking compares.
    """
    return torch.autocast(like.device.type, enabled=False)


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


# ------------------------------------------------------------------------------------------- cells
# Where kernel and stride are equal nothing overlaps: a cell's pixels are one row and the kernel one
# matrix. The product is what matrix units are made for; mapped over the stacked weights of several
# seeds it stays one, where a grouped convolution would be slow.


@final
class CellConv2d(nn.Module):
    """`nn.Conv2d(inputs, outputs, edge, stride=edge)`: cells of edge x edge pixels to numbers."""

    def __init__(self, inputs: int, outputs: int, edge: int) -> None:
        super().__init__()
        drawn = nn.Conv2d(inputs, outputs, edge, stride=edge)
        nn.init.xavier_uniform_(drawn.weight)
        assert drawn.bias is not None
        nn.init.zeros_(drawn.bias)
        self.edge = edge
        self.weight, self.bias = drawn.weight, drawn.bias

    def forward(self, images: Tensor) -> Tensor:
        """Returns (B, outputs, h, w) for images (B, inputs, edge h, edge w)."""
        batch, channels, height, width = images.shape
        if images.device.type == "cpu" and channels >= _VECTOR:
            return functional.conv2d(images, self.weight, self.bias, stride=self.edge)
        h, w, k = height // self.edge, width // self.edge, self.edge
        pixels = images.movedim(1, 3).reshape(batch, h, k, w, k, -1).transpose(2, 3)
        kernel = self.weight.permute(0, 2, 3, 1).flatten(1)
        cells = functional.linear(pixels.reshape(batch * h * w, -1), kernel, self.bias)
        return cells.reshape(batch, h, w, -1).movedim(3, 1)


@final
class CellConvTranspose2d(nn.Module):
    """`nn.ConvTranspose2d(inputs, outputs, edge, stride=edge)`: numbers to cells of pixels."""

    def __init__(self, inputs: int, outputs: int, edge: int) -> None:
        super().__init__()
        drawn = nn.ConvTranspose2d(inputs, outputs, edge, stride=edge)
        assert drawn.bias is not None
        self.edge = edge
        self.weight, self.bias = drawn.weight, drawn.bias

    def forward(self, maps: Tensor) -> Tensor:
        """Returns (B, outputs, edge h, edge w) for maps (B, inputs, h, w)."""
        batch, inputs, h, w = maps.shape
        k = self.edge
        kernel = self.weight.permute(2, 3, 1, 0).reshape(-1, inputs)
        rows = maps.movedim(1, 3).reshape(-1, inputs)
        cells = functional.linear(rows, kernel, self.bias.repeat(k * k))
        pixels = cells.reshape(batch, h, w, k, k, -1).permute(0, 1, 3, 2, 4, 5)
        return pixels.reshape(batch, h * k, w * k, -1).movedim(3, 1)


# -------------------------------------------------------------------------------------- batch norm


class NormStatistics(NamedTuple):
    """The buffers of a batch norm that tracks its statistics, which Torch types as optional."""

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


# ---------------------------------------------------------------------------------------- pictures


@final
class Normalised(nn.Module):
    """Shifts and scales pictures in 0..1 as the pretrained weights expect."""

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: tuple[float, ...], deviation: tuple[float, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("scale", 1 / torch.tensor(deviation)[:, None, None], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the shifted pictures."""
        return (images - self.mean) * self.scale


# ----------------------------------------------------------------------------------------- losses
# All sums over values are divided by the batch, so that a loss does not grow with it.

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
