"""Data sets to sources and rewards: frames, transitions, labels; what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.agents.gridworld import GridPlanning
from interverse.agents.planner import ModelPolicy, plan
from interverse.agents.search import ModelImagination, PlanCEM, SearchPolicy
from interverse.core.errors import InvalidValueError
from interverse.data import Collect, collect, open_dataset
from interverse.models import Fit, fit_probe, fit_reward, fit_world_model
from interverse.models.datasets import (
    dataset_labels,
    dataset_rewards,
    dataset_source,
    dataset_world,
)
from interverse.models.heads import RewardData, RewardPredictor, encode_images
from interverse.models.source import (
    ArraySource,
    RenderedSource,
    check_same_world,
    num_frames,
    num_transitions,
)
from interverse.models.world_model import WorldModel
from tests.models.conftest import batch


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


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    def make(id="chemistry/chain-v1", seed=0, **options):
        path = tmp_path_factory.mktemp("sets") / "set.h5"
        how = Collect(id=id, episodes=4, steps=4, seed=seed, options=options, out=path)
        return open_dataset(collect(how))

    return make


def test_another_world_than_the_training_datas_is_refused(collected, tiny):
    """Each of these gave a number before: other mechanisms have the same shapes."""
    data, other = collected(objects=3), collected(objects=3, cpt_seed=1)
    source, foreign = dataset_source(data), dataset_source(other, drawn=True)
    how = Fit(epochs=1, batch_size=8)
    told = r"chemistry/chain-v1 with cpt_seed=1, objects=3, .* of chemistry/chain-v1 with objects=3"
    with pytest.raises(InvalidValueError, match=f"validation data of {told}"):
        fit_world_model(tiny(), how, source, foreign)
    (fitted,) = fit_world_model(tiny(), how, source, source)
    model, rewards = fitted.model(), dataset_rewards(data, source)
    (labels, values), (wrong, _) = dataset_labels(data), dataset_labels(other)
    with pytest.raises(InvalidValueError, match=f"rewards of {told}"):
        dataset_rewards(other, source)
    with pytest.raises(InvalidValueError, match=f"rewards of {told}"):
        fit_reward(model, how, rewards, dataset_rewards(other, foreign))
    with pytest.raises(InvalidValueError, match=f"the probe's training data of {told}"):
        fit_probe(model, how, (foreign, wrong), (foreign, wrong), values=values)
    with pytest.raises(InvalidValueError, match=f"labels of {told}"):
        fit_probe(model, how, (source, labels), (source, wrong[:, :]), values=values)
    reward = fit_reward(model, how, rewards, rewards)
    elsewhere = GridPlanning("chemistry/chain-v1", objects=3, cpt_seed=1)
    for policy in (
        ModelPolicy(model, reward),
        SearchPolicy(ModelImagination(model, reward), PlanCEM(), horizon=1),
    ):
        with pytest.raises(InvalidValueError, match=f"episodes of {told}"):
            plan(policy, elsewhere, horizon=1, episodes=2)
        plan(policy, GridPlanning("chemistry/chain-v1", objects=3), horizon=1, episodes=2)
    model.trained_in = None  # carried over on purpose
    plan(ModelPolicy(model, reward), elsewhere, horizon=1, episodes=2)


def test_other_looks_lengths_and_ways_to_say_it_are_the_same_world(collected):
    def of(id="blocks/observed-3-v1", **options):
        return dataset_world(collected(id, **options))

    train = of()
    for same in (of(mode="ZeroShot"), of(max_steps=40), of(objects=3, seed=5), of(palette_seed=2)):
        check_same_world("a", same, "b", train, fix="")
    for other in (of("blocks/unobserved-3-v1"), of(objects=4)):
        with pytest.raises(InvalidValueError, match="a of blocks"):
            check_same_world("a", other, "b", train, fix="")
    check_same_world("a", None, "b", train, fix="")


def test_transitions_join_the_right_frames(squares):
    images, actions, _ = squares(3, 4, seed=0)
    source = ArraySource(images, actions)
    assert (num_transitions(source), num_frames(source)) == (12, 15)
    got = batch(source, torch.tensor([0, 3, 4, 11]))
    for row, (episode, step) in enumerate([(0, 0), (0, 3), (1, 0), (2, 3)]):
        for frame, at in ((got.obs, step), (got.next_obs, step + 1)):
            expected = torch.as_tensor(images[episode, at]).permute(2, 0, 1).float() / 255
            assert torch.equal(frame[row], expected)
        assert got.action[row] == actions[episode, step]
    assert got.obs.is_contiguous(memory_format=torch.channels_last)


def test_ill_shaped_arrays_are_refused(squares):
    images, actions, _ = squares(3, 4, seed=0)
    with pytest.raises(InvalidValueError, match=r"images are torch.float32.*uint8"):
        ArraySource(images.astype(np.float32), actions)
    with pytest.raises(InvalidValueError, match=r"actions have shape \(3, 3\).*\(3, 4\)"):
        ArraySource(images, actions[:, 1:])
    with pytest.raises(InvalidValueError, match=r"states\['x'\] has shape \(3, 4\)"):
        RenderedSource({"x": np.zeros((3, 4))}, actions, lambda states: states["x"])


def rewarded(squares, seed: int, episodes: int) -> RewardData:
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
    train, valid = rewarded(squares, 0, 100), rewarded(squares, 1, 20)
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
