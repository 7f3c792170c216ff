"""The reward predictor: learns a distance between states; refuses data that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.core.errors import InvalidValueError
from interverse.models.fit import Fit
from interverse.models.heads import RewardData, RewardPredictor, encode_images, fit_reward
from interverse.models.source import ArraySource
from interverse.models.world_model import WorldModel


def data(squares, seed: int, episodes: int) -> RewardData:
    images, actions, cells = squares(episodes, 6, seed=seed, objects=1)
    goal = cells[:, -1:]
    apart = np.abs(cells // 5 - goal // 5) + np.abs(cells % 5 - goal % 5)
    rewards = -apart[:, 1:].mean(-1)
    return RewardData(source=ArraySource(images, actions), rewards=rewards, targets=images[:, -1])


class Cells(torch.nn.Module):
    """Encodes an image as its red cells."""

    def forward(self, images):
        return torch.nn.functional.avg_pool2d(images, 10)[:, :1].flatten(2)


def test_it_beats_the_best_constant_and_leaves_the_encoder_alone(squares, tiny):
    model = WorldModel.seeded(tiny("ae", objects=1, embedding=25), seed=0)
    model.encoder = Cells()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    train, valid = data(squares, 0, 100), data(squares, 1, 20)
    how = Fit(epochs=15, batch_size=32, learning_rate=3e-3)
    predictor = fit_reward(model, how, train, valid)
    frames = (
        np.asarray(valid.source._frames).reshape(20, 7, 50, 50, 3)[:, 1:].reshape(-1, 50, 50, 3)
    )
    states = encode_images(model, torch.as_tensor(frames))
    targets = encode_images(model, torch.as_tensor(valid.targets)).repeat_interleave(6, 0)
    error = np.abs(predictor(states, targets).detach().numpy() - valid.rewards.ravel()).mean()
    constant = np.abs(valid.rewards - np.median(valid.rewards)).mean()
    assert error < 0.6 * constant
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_it_has_the_published_shape():
    shapes = [tuple(p.shape) for p in RewardPredictor(96).parameters()]
    assert shapes == [(512, 192), (512,), (1, 512), (1,)]


def test_rewards_must_match_the_episodes(squares):
    images, actions, _ = squares(3, 4, seed=0)
    with pytest.raises(InvalidValueError, match=r"rewards \(3, 3\).*allowed|Allowed: rewards"):
        RewardData(
            source=ArraySource(images, actions), rewards=np.zeros((3, 3)), targets=images[:, 0]
        )
