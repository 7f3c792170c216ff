"""Torch loaders: every transition once, in an order the seed fixes, drawn or stored alike."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from interverse.core.errors import InvalidValueError  # noqa: E402
from interverse.data import Collect, collect, open_dataset  # noqa: E402
from interverse.data.loaders import TransitionDataset, transition_loader  # noqa: E402


@pytest.fixture(scope="module", params=[False, True], ids=["drawn", "stored"])
def data(request, tmp_path_factory):
    config = Collect(
        id="blocks/observed-3-v1",
        episodes=5,
        steps=7,
        out=tmp_path_factory.mktemp("data") / "d.h5",
        images=request.param,
    )
    return open_dataset(collect(config))


def test_in_order_it_is_the_data_set(data):
    batches = list(transition_loader(data, batch_size=8, shuffle=False))
    assert [len(batch.action) for batch in batches] == [8, 8, 8, 8, 3]
    image, action, next_image, reward = (torch.cat(part) for part in zip(*batches, strict=True))
    frames = data.images()
    assert image.dtype == torch.uint8
    np.testing.assert_array_equal(image, frames[:, :-1].reshape(-1, 50, 50, 3))
    np.testing.assert_array_equal(next_image, frames[:, 1:].reshape(-1, 50, 50, 3))
    np.testing.assert_array_equal(action, data.actions.reshape(-1))
    np.testing.assert_array_equal(reward, data.rewards.reshape(-1))


def test_the_seed_fixes_the_order(data):
    def epoch(loader):
        return torch.cat([batch.reward for batch in loader])

    one, same, other = (transition_loader(data, batch_size=4, seed=s) for s in (1, 1, 2))
    first = epoch(one)
    assert torch.equal(first, epoch(same))
    assert not torch.equal(first, epoch(other))
    assert not torch.equal(first, epoch(one)), "every epoch has its own order"
    assert torch.equal(first.sort().values, epoch(other).sort().values)


def test_single_items_and_their_bounds(data):
    transitions = TransitionDataset(data)
    assert len(transitions) == 35
    item = transitions[9]
    np.testing.assert_array_equal(item.image, data.images(1)[0, 2])
    assert item.action == data.actions[1, 2]
    with pytest.raises(InvalidValueError, match="0 to 34"):
        transitions[35]
