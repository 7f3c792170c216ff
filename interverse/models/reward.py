"""A reward predictor on a frozen encoder: how near is this state to the target?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, explain
from interverse.models.draws import Needs
from interverse.models.feeds import Feed
from interverse.models.fit import Fit, ModelStage
from interverse.models.learner import Learner, member
from interverse.models.run import Run
from interverse.models.source import TransitionSource, to_float, world_of
from interverse.models.world_model import WorldModel

_IMAGES = 1024


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
                explain(
                    f"rewards {tuple(self.rewards.shape)}, targets {tuple(self.targets.shape)}",
                    allowed=f"rewards {shape}, {shape[0]} targets",
                )
            )


class Pairs(NamedTuple):
    """Encoded frames, their targets, and the reward."""

    state: Tensor  # (B, values)
    target: Tensor  # (B, values)
    reward: Tensor  # (B,)


def fit_reward(
    model: WorldModel, how: Fit, train: RewardData, valid: RewardData, *, seed: int = 0
) -> RewardPredictor:
    """Returns the predictor with the lowest validation error over a frozen model's encoder.

    Every frame is encoded once. The published setting is `Fit(epochs=50)`.
    """
    model.eval()
    for data in (train, valid):
        model.check_world("rewards", world_of(data.source))
    vision = model.config.vision
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        predictor = RewardPredictor(vision.slots * vision.slot_width)
    stage = ModelStage(
        name="reward",
        objective=_AbsoluteError,
        parts=("layers",),
        feeds=lambda _: (_feed(model, train), _feed(model, valid)),
        needs=Needs(),
        batch_size=how.batch_size,
    )
    learner = Learner([predictor], torch.device(how.device))
    best = Run(learner, [stage], how, seeds=(seed,))()["reward"]
    predictor.load_state_dict(member(best, 0))
    return predictor.eval()


@final
class _AbsoluteError(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Pairs, draw: object) -> Tensor:
        return (self.model(batch.state, batch.target) - batch.reward).abs().mean()


@torch.no_grad()
def _feed(model: WorldModel, data: RewardData) -> Feed:
    source = data.source
    device = source.device
    numbers = torch.arange(source.num_episodes * source.num_steps, device=device)
    episodes = torch.div(numbers, source.num_steps, rounding_mode="floor")
    frames = numbers + episodes + 1  # the frame after each action
    states = torch.cat(
        [model.encode(source.frames(part)).flatten(1) for part in frames.split(_IMAGES)]
    )
    targets = encode_images(model, torch.as_tensor(data.targets).to(device))
    rewards = torch.as_tensor(data.rewards).to(device, torch.float32).flatten()

    def load(chosen: Tensor) -> Pairs:
        return Pairs(states[chosen], targets[episodes[chosen]], rewards[chosen])

    return Feed(len(numbers), load)


@torch.no_grad()
def encode_images(model: WorldModel, images: Tensor) -> Tensor:
    """Returns flat states (N, values) of uint8 images (N, H, W, 3)."""
    parts = [model.encode(to_float(part)).flatten(1) for part in images.split(_IMAGES)]
    return torch.cat(parts)
