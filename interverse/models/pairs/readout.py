"""Small networks that read something off a representation: the object's class, true factors.

What a frozen representation tells is what a network trained on it can say of new samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.rng import generator
from interverse.metrics.representation import Kind, halves, r2
from interverse.models.pairs.head import critic
from interverse.models.pairs.work import seeded

_CITRIS_HIDDEN, _CITRIS_RATE, _CITRIS_BATCH, _CITRIS_EPOCHS = 128, 4e-3, 512, 100
_SMALLEST_DEVIATION = 0.01


def class_readout(
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *,
    classes: int,
    steps: int = 500,
    seed: int = 0,
) -> float:
    """Returns how often a network like the critic tells the class of test samples.

    Args:
        train: embeddings (N, width) and classes (N,) it learns from.
        test: the same, that it is judged on.
        classes: how many there are.
        steps: updates, each on the whole training set.
        seed: of its weights.
    """
    inputs, targets = train
    mean, scale = inputs.mean(0), inputs.std(0).clamp(min=1e-6)
    with seeded("readout/weights", seed):
        network = critic(inputs.shape[1], classes).to(inputs.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2, fused=True)
    ready = (inputs - mean) / scale
    for _ in range(steps):
        loss = functional.cross_entropy(network(ready), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        guess = network((test[0] - mean) / scale).argmax(1)
    return float((guess == test[1]).float().mean())


def citris_r2(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    blocks: Sequence[int] | None = None,
    kinds: Sequence[Kind] | None = None,
    epochs: int = _CITRIS_EPOCHS,
    seed: int = 42,
    groups: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Returns CITRIS's R2 matrix, (blocks, factors): each factor from each block by a network.

    One network reads all blocks: it gets the latents of one block, zeros elsewhere, and which
    block that is. It learns on a random half of the samples and is judged on the other.

    Args:
        latents: (samples, latents); standardised here.
        factors: (samples, factors).
        blocks: the block of each latent, from 0; None: each latent alone.
        kinds: of each factor: continuous (default), angle (radians) or categorical (from 0).
        epochs: of training.
        seed: of the halves and the network.
        groups: the group of each sample, which goes to one half; None: each sample alone.
    """
    values = torch.as_tensor(np.asarray(latents, dtype=np.float32))
    values = (values - values.mean(0)) / values.std(0).clamp(min=_SMALLEST_DEVIATION)
    true = np.asarray(factors, dtype=np.float64)
    told: Sequence[Kind] = kinds or ("continuous",) * true.shape[1]
    at = torch.arange(values.shape[1]) if blocks is None else torch.as_tensor(list(blocks))
    masks = functional.one_hot(at).T.float()  # (blocks, latents)
    goals = [_Goal(column, kind) for column, kind in zip(true.T, told, strict=True)]
    parted = halves(len(values), generator(seed=seed, name="citris/halves"), groups)
    rows, test = (torch.as_tensor(part) for part in parted)
    network = _train_reader(values, goals, masks, (rows, epochs, seed))
    scores = []
    for mask in masks:
        with torch.no_grad():
            out = network(_masked(values[test], mask))
        parts = out.split([goal.size for goal in goals], dim=1)
        scores.append([goal.score(part, test) for goal, part in zip(goals, parts, strict=True)])
    return np.array(scores)


@final
class _Goal:
    """One factor to predict: numbers standardised, angles as sine and cosine, categories."""

    def __init__(self, column: NDArray[Any], kind: Kind) -> None:
        self.kind: Kind = kind
        deviation = column.std()
        if kind == "continuous":  # R2 does not mind the scale; the network does
            column = (column - column.mean()) / (deviation if deviation > 0 else 1.0)
        self.truth = torch.as_tensor(column)
        self.size = {"continuous": 1, "angle": 2, "categorical": int(column.max()) + 1}[kind]

    def loss(self, out: Tensor, rows: Tensor) -> Tensor:
        true = self.truth[rows]
        if self.kind == "categorical":
            return functional.cross_entropy(out, true.long())
        wanted = true[:, None]
        if self.kind == "angle":
            wanted = torch.cat([wanted.sin(), wanted.cos()], dim=1)
        return functional.mse_loss(out, wanted.float())

    def score(self, out: Tensor, rows: Tensor) -> float:
        if self.kind == "categorical":
            guess = out.argmax(1)
        elif self.kind == "angle":
            guess = torch.atan2(out[:, 0], out[:, 1])
        else:
            guess = out[:, 0]
        found = r2(guess[:, None].numpy(), self.truth[rows][:, None].numpy(), self.kind)
        return max(0.0, float(found[0]))


def _train_reader(
    values: Tensor, goals: Sequence[_Goal], masks: Tensor, how: tuple[Tensor, int, int]
) -> nn.Module:
    rows, epochs, seed = how
    with seeded("citris/weights", seed):
        network = nn.Sequential(
            nn.Linear(2 * values.shape[1], _CITRIS_HIDDEN),
            nn.ReLU(),
            nn.Linear(_CITRIS_HIDDEN, _CITRIS_HIDDEN),
            nn.ReLU(),
            nn.Linear(_CITRIS_HIDDEN, sum(goal.size for goal in goals)),
        )
    optimizer = torch.optim.Adam(network.parameters(), lr=_CITRIS_RATE)
    for epoch in range(epochs):
        rng = generator(seed=seed, name="citris/order", episode=epoch)
        for some in rows[torch.as_tensor(rng.permutation(len(rows)))].split(_CITRIS_BATCH):
            block = torch.as_tensor(rng.integers(len(masks), size=len(some)))
            out = network(_masked(values[some], masks[block]))
            parts = out.split([goal.size for goal in goals], dim=1)
            loss = torch.zeros(())
            for goal, part in zip(goals, parts, strict=True):
                loss = loss + goal.loss(part, some)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    return network


def _masked(values: Tensor, mask: Tensor) -> Tensor:
    mask = mask.expand_as(values)
    return torch.cat([values * mask, mask], dim=-1)
