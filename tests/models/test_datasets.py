"""From data sets to sources: stored and drawn frames agree, labels say what is in the picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.data import Collect, collect, open_dataset
from interverse.models.datasets import dataset_labels, dataset_rewards, dataset_source
from interverse.models.source import batch


@pytest.fixture(scope="module", params=["blocks/observed-3-v1", "chemistry/chain-v1"])
def data(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "set.h5"
    return open_dataset(collect(Collect(id=request.param, episodes=6, steps=5, out=path)))


def test_stored_and_drawn_frames_agree(data):
    chosen = torch.tensor([0, 7, 29])
    kept = dataset_source(data)
    if data.scene is not None:
        drawn = dataset_source(data, drawn=True)
        for a, b in zip(batch(kept, chosen), batch(drawn, chosen), strict=True):
            assert torch.equal(a, b)
    image = torch.as_tensor(data.images()[1, 3]).movedim(-1, 0).float() / 255
    assert torch.equal(batch(kept, torch.tensor([7])).next_obs[0], image)


def test_rewards_have_their_targets(data):
    rewards = dataset_rewards(data, dataset_source(data))
    assert rewards.rewards.shape == (6, 5)
    assert rewards.targets.shape == (6, 50, 50, 3)


def test_equal_labels_mean_equal_pictures(data):
    labels, values = dataset_labels(data)
    assert labels.shape[:2] == (6, 6)
    assert 0 <= labels.min() <= labels.max() < values
    images = data.images()
    for episode in range(6):
        same = (labels[episode, 1:] == labels[episode, :-1]).all(1)
        still = (images[episode, 1:] == images[episode, :-1]).reshape(5, -1).all(1)
        assert np.array_equal(same, still)
