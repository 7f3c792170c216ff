"""Heads on a model's states: a reward predictor, and a probe that reads the world's variables.

Slots need not match objects and flat states have none, so what a model says about an object is
asked of a small classifier trained on true states. It sees encodings only; predictions are what
it is then applied to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.rng import generator
from interverse.models.fit import Feed, Fit, ModelStage, train_stages
from interverse.models.layers import MLP
from interverse.models.learner import Learner, member
from interverse.models.source import (
    TransitionSource,
    check_same_world,
    num_frames,
    to_float,
)
from interverse.models.world_model import WorldModel

_IMAGES = 1024
_BATCH, _RATE = 256, 1e-3  # of heads on latents

_Head = TypeVar("_Head", bound=nn.Module)


@final
class RewardPredictor(nn.Module):
    """Two states, the present one and the target's, to a reward."""

    def __init__(self, state_values: int, *, hidden: int = 512) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 * state_values, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, state: Tensor, target: Tensor) -> Tensor:
        """Returns rewards (...) of flat states (..., values)."""
        return self.layers(torch.cat([state, target], dim=-1))[..., 0]

    def loss(self, state: Tensor, target: Tensor, reward: Tensor) -> Tensor:
        """Returns the mean absolute error."""
        return (self(state, target) - reward).abs().mean()


@final
class Probe(nn.Module):
    """Flat states to a distribution over each object's values."""

    def __init__(self, state_values: int, objects: int, values: int, *, hidden: int = 256) -> None:
        super().__init__()
        self.objects, self.values = objects, values
        self.mlp = MLP(state_values, hidden, objects * values)

    def logits(self, state: Tensor) -> Tensor:
        """Returns (B, objects, values) unnormalised log-probabilities."""
        return self.mlp(state.flatten(1)).unflatten(1, (self.objects, self.values))

    def forward(self, state: Tensor) -> Tensor:
        """Returns (B, objects, values) probabilities."""
        return torch.softmax(self.logits(state), dim=-1)

    def loss(self, state: Tensor, label: Tensor) -> Tensor:
        """Returns the cross-entropy of true values (B, objects)."""
        return functional.cross_entropy(self.logits(state).flatten(0, 1), label.flatten())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RewardData:
    """Episodes with a target each.

    Attributes:
        source: their frames.
        rewards: (episodes, steps), the reward of the frame after each action.
        targets: (episodes, H, W, 3) uint8.
    """

    source: TransitionSource
    rewards: np.ndarray | Tensor
    targets: np.ndarray | Tensor

    def __post_init__(self) -> None:
        shape = (self.source.num_episodes, self.source.num_steps)
        if tuple(self.rewards.shape) != shape or len(self.targets) != shape[0]:
            raise InvalidValueError(
                f"rewards {tuple(self.rewards.shape)}, targets {tuple(self.targets.shape)}",
                allowed=f"rewards {shape}, {shape[0]} targets",
            )


# ---------------------------------------------------------------- on the encoder of a world model


def fit_reward(
    model: WorldModel, how: Fit, train: RewardData, valid: RewardData, *, seed: int = 0
) -> RewardPredictor:
    """Returns the predictor with the lowest validation error over a frozen model's encoder.

    Every frame is encoded once. The published setting is `Fit(epochs=50)`.
    """
    model.eval()
    for data in (train, valid):
        model.check_world("rewards", data.source.world)
    size = model.config.slots * model.config.slot_width
    predictor = _seeded(lambda: RewardPredictor(size), seed)

    def feed(data: RewardData) -> Feed:
        source = data.source
        numbers = torch.arange(source.num_episodes * source.num_steps, device=source.device)
        episodes = torch.div(numbers, source.num_steps, rounding_mode="floor")
        states = _encoded(model, source, numbers + episodes + 1)  # the frame after each action
        targets = encode_images(model, torch.as_tensor(data.targets).to(source.device))
        rewards = torch.as_tensor(data.rewards).to(source.device, torch.float32).flatten()
        return Feed(
            len(numbers), lambda rows: (states[rows], targets[episodes[rows]], rewards[rows])
        )

    return _best(predictor, "reward", "layers", how, (feed(train), feed(valid)), seed)


def fit_probe(
    model: WorldModel,
    how: Fit,
    train: tuple[TransitionSource, np.ndarray],
    valid: tuple[TransitionSource, np.ndarray],
    *,
    values: int,
    seed: int = 0,
) -> Probe:
    """Returns the probe with the lowest validation loss.

    Args:
        model: whose encodings are read; it stays as it is.
        how: epochs, batch size, device.
        train: frames, and labels (episodes, steps + 1, objects) in 0..values-1.
        valid: likewise.
        values: how many values an object has (25 cells, or the number of colours).
        seed: of the probe's weights.
    """
    model.eval()
    for name, (source, labels) in (("training", train), ("validation", valid)):
        told, of = source.world, getattr(labels, "world", None)  # of `dataset_labels`
        model.check_world(f"the probe's {name} data", told)
        check_same_world("labels", of, "frames", told, fix="Pass the labels of the source's data")
        model.check_world("labels", of)
        if tuple(labels.shape[:2]) != (source.num_episodes, source.num_steps + 1):
            raise InvalidValueError(
                f"labels have shape {tuple(labels.shape)}",
                allowed=f"({source.num_episodes}, {source.num_steps + 1}, objects)",
            )
    size, objects = model.config.slots * model.config.slot_width, int(train[1].shape[-1])
    probe = _seeded(lambda: Probe(size, objects, values), seed)

    def feed(source: TransitionSource, labels: np.ndarray) -> Feed:
        states = _encoded(model, source, torch.arange(num_frames(source), device=source.device))
        truth = torch.as_tensor(labels).to(source.device, torch.int64).flatten(0, 1)
        return Feed(len(states), lambda rows: (states[rows], truth[rows]))

    return _best(probe, "probe", "mlp", how, (feed(*train), feed(*valid)), seed)


@torch.no_grad()
def encode_images(model: WorldModel, images: Tensor) -> Tensor:
    """Returns flat states (N, values) of uint8 images (N, H, W, 3)."""
    parts = [model.encode(to_float(part)).flatten(1) for part in images.split(_IMAGES)]
    return torch.cat(parts)


@torch.no_grad()
def _encoded(model: WorldModel, source: TransitionSource, numbers: Tensor) -> Tensor:
    """Returns flat states (N, values) of frames by number."""
    parts = [model.encode(source.frames(part)).flatten(1) for part in numbers.split(_IMAGES)]
    return torch.cat(parts)


def _seeded(make: Callable[[], _Head], seed: int) -> _Head:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


@final
class _HeadLoss(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: tuple[Tensor, ...], draw: object) -> Tensor:
        loss: Tensor = self.model.loss(*batch)
        return loss


def _best(
    head: _Head, name: str, part: str, how: Fit, feeds: tuple[Feed, Feed], seed: int
) -> _Head:
    """Returns a head trained as any learner is, with the best weights by validation."""
    stage = ModelStage(
        name=name,
        objective=_HeadLoss,
        parts=(part,),
        feeds=lambda _: feeds,
        batch_size=how.batch_size,
    )
    best, _ = train_stages(Learner([head], torch.device(how.device)), [stage], how, seeds=(seed,))
    head.load_state_dict(member(best[name], 0))
    return head.eval()


# ---------------------------------------------------------------------- on anybody's latents


def fit_head(
    make: Callable[[], _Head], data: tuple[Tensor, ...], *, epochs: int, seed: int
) -> _Head:
    """Returns a head trained on (N, ...) data at a rate that falls to zero: no validation set."""
    head: Any = _seeded(make, seed)
    optimizer = torch.optim.Adam(head.parameters(), lr=_RATE)
    steps = epochs * -(-len(data[0]) // _BATCH)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    rng = generator(seed=seed, name="scoring/heads")
    head.train()
    for _ in range(epochs):
        for rows in torch.as_tensor(rng.permutation(len(data[0]))).split(_BATCH):
            optimizer.zero_grad()
            head.loss(*(part[rows] for part in data)).backward()
            optimizer.step()
            falling.step()
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
