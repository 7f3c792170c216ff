"""Heads on a model's latents: a reward, and a probe that reads the objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.rng import generator
from interverse.models.probe import Probe
from interverse.models.reward import RewardPredictor

_BATCH, _RATE = 256, 1e-3


def fit_reward_head(
    states: Tensor, targets: Tensor, rewards: NDArray[np.floating[Any]], *, epochs: int, seed: int
) -> RewardPredictor:
    """Returns the predictor of rewards (N,) from latents (N, width) of frames and their targets."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = RewardPredictor(states.shape[1])
    wanted = torch.as_tensor(rewards).float()

    def loss(rows: Tensor) -> Tensor:
        return (head(states[rows], targets[rows]) - wanted[rows]).abs().mean()

    _fit(head, loss, len(states), epochs=epochs, seed=seed)
    return head.eval()


def fit_probe_head(
    states: Tensor, labels: NDArray[np.int64], *, values: int, epochs: int, seed: int
) -> Probe:
    """Returns the probe that reads the values (N, objects) of objects off latents (N, width)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = Probe(states.shape[1], labels.shape[1], values)
    wanted = torch.as_tensor(labels)

    def loss(rows: Tensor) -> Tensor:
        return functional.cross_entropy(
            head.logits(states[rows]).flatten(0, 1), wanted[rows].flatten()
        )

    _fit(head, loss, len(states), epochs=epochs, seed=seed)
    return head.eval()


@final
class Scale:
    """Latents in deviations over the frames that a head learns from: any model's own units go."""

    def __init__(self, states: Tensor) -> None:
        self._middle = states.mean(0)
        spread = states.std(0)
        self._spread = torch.where(
            spread > 1e-8 * (1 + self._middle.abs()), spread, torch.ones_like(spread)
        )

    def __call__(self, states: Tensor) -> Tensor:
        """Returns latents (N, width) in deviations, float32."""
        return ((states - self._middle) / self._spread).float()


def _fit(
    head: nn.Module, loss_of: Callable[[Tensor], Tensor], count: int, *, epochs: int, seed: int
) -> None:
    """Trains a head; the rate falls to zero, so that the last weights are the ones to keep."""
    optimizer = torch.optim.Adam(head.parameters(), lr=_RATE)
    steps = epochs * -(-count // _BATCH)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    rng = generator(seed=seed, name="scoring/heads")
    head.train()
    for _ in range(epochs):
        order = torch.as_tensor(rng.permutation(count))
        for rows in order.split(_BATCH):
            optimizer.zero_grad()
            loss = loss_of(rows)
            loss.backward()
            optimizer.step()
            falling.step()
