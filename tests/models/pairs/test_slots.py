"""Slots and methods that recover factors: shapes, arithmetic by hand, what they learn."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.models.pairs.config import EncoderConfig, PairModelConfig
from interverse.models.pairs.encoders import PairEncoder
from interverse.models.pairs.recovery import (
    LOSSES,
    PairAutoencoder,
    Recovery,
    picture_score,
    recover,
    share_latents,
    small_images,
)
from interverse.models.pairs.slots import (
    FILE,
    SlotAttention,
    SlotAutoencoder,
    SlotTraining,
    train_slots,
)
from interverse.models.pairs.tensors import PairTensors

TINY = EncoderConfig(name="slots", scale="tiny", resolution=32, slots=3, iterations=2)


@pytest.mark.parametrize("size", [32, 64, 128])
def test_pictures_come_back_at_their_size(size):
    model = SlotAutoencoder(replace(TINY, resolution=size))
    with torch.no_grad():
        drawn, share = model(torch.rand(1, 3, size, size), torch.randn(1, 3, 16))
    assert drawn.shape == (1, 3, size, size)
    assert share.shape == (1, 3, size, size)
    torch.testing.assert_close(share.sum(1), torch.ones(1, size, size))


def test_the_published_size():
    model = SlotAutoencoder(EncoderConfig(name="slots"))
    assert (model.encoder.slots, model.encoder.width, model.encoder.attention.iterations) == (
        15,
        64,
        5,
    )
    convolutions = sum(p.numel() for p in model.encoder.tokens.convolutions.parameters())
    assert convolutions == 3 * 64 * 25 + 64 + 3 * (64 * 64 * 25 + 64)


def test_slots_in_another_order_give_slots_in_another_order():
    attention = SlotAttention(8, 3, implicit=False)
    tokens, slots = torch.randn(2, 10, 8), torch.randn(2, 4, 8)
    with torch.no_grad():
        plain, turned = attention(tokens, slots), attention(tokens, slots[:, [2, 0, 3, 1]])
    torch.testing.assert_close(turned, plain[:, [2, 0, 3, 1]], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("implicit", [False, True])
def test_only_the_last_iteration_is_differentiated_when_implicit(implicit):
    attention = SlotAttention(8, 3, implicit=implicit)
    start = attention.start(torch.randn(2, 4, 8))
    attention(torch.randn(2, 10, 8), start).sum().backward()
    assert (attention.mean.grad is None) == implicit
    assert attention.query.weight.grad.any()


def test_noise_is_a_function_of_row_and_seed():
    network = SlotAutoencoder(TINY).encoder
    rows = torch.tensor([4, 9, 2])
    found = network.noise(rows, 1)
    assert torch.equal(network.noise(rows[1:2], 1)[0], found[1])
    assert not torch.equal(network.noise(rows, 2), found)
    assert abs(float(network.noise(torch.arange(400), 0).std()) - 1) < 0.02


def test_pretraining_lowers_the_loss_and_its_weights_are_used(tmp_path, pairs):
    how = SlotTraining(
        encoder=TINY,
        steps=18,
        batch_size=16,
        warmup=2,
        log_every=6,
        out=tmp_path,
        learning_rate=2e-3,
    )
    model, history = train_slots(pairs.images[:, 0], how)
    assert [row["step"] for row in history] == [6, 12, 18]
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    config = PairModelConfig(encoder=replace(TINY, weights=str(tmp_path / FILE)), frozen=True)
    encoder = PairEncoder(config)
    for name, value in model.encoder.state_dict().items():
        assert torch.equal(encoder.network.state_dict()[name], value), name
    other = replace(config, encoder=replace(config.encoder, resolution=32, scale="full"))
    with pytest.raises(InvalidValueError, match="another slot encoder"):
        PairEncoder(other)


def test_pretraining_goes_on_where_it_stopped(tmp_path, pairs):
    images = pairs.images[:40, 0]
    how = SlotTraining(encoder=TINY, steps=8, batch_size=4, warmup=2, log_every=2)
    whole, history = train_slots(images, how)

    def stop(row):
        if row["step"] == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_slots(images, replace(how, out=tmp_path), listeners=[stop])
    resumed, again = train_slots(images, replace(how, out=tmp_path))
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    assert [row["loss"] for row in again] == [row["loss"] for row in history]


def test_bad_pictures_are_refused(pairs):
    with pytest.raises(InvalidValueError, match="pictures are"):
        train_slots(pairs.images[:, 0, :, :16], SlotTraining(encoder=TINY, steps=1))
    with pytest.raises(InvalidValueError, match="slots, without weights"):
        SlotTraining(encoder=EncoderConfig())


def moving_square(count=256, seed=0):
    """Pairs of a grey square at a place; the action `open` moves it right, `close` left."""
    rng = np.random.default_rng(seed)
    place, shade = rng.integers(8, 40, count), rng.integers(80, 255, count)
    verb = rng.integers(0, 2, count)
    after = place + np.where(verb == 1, 8, -8)
    images = np.zeros((count, 2, 3, 64, 64), np.uint8)
    for row in range(count):
        for moment, left in enumerate((place[row], after[row])):
            images[row, moment, :, 24:40, left : left + 16] = shade[row]
    return PairTensors(
        images=torch.from_numpy(images),
        verb=torch.from_numpy(verb),
        noun=torch.zeros(count, dtype=torch.int64),
        verbs=("close", "open"),
        nouns=("square",),
        crop="single",
        factors={
            "place": np.stack([place, after], axis=1).astype(float),
            "shade": np.stack([shade, shade], axis=1).astype(float),
        },
    )


def test_latents_that_differ_little_are_averaged():
    # divergences of the latents by hand: 0, ln 2 - 3/8 and 50; the middle of their range is 25
    one = (torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, 0.0]]))
    two = (torch.tensor([[1.0, 0.0, 10.0]]), torch.tensor([[0.0, math.log(4), 0.0]]))
    (mean, logvar), (other, logother) = share_latents(one, two)
    assert mean.tolist() == [[1.0, 0.0, 0.0]]
    assert other.tolist() == [[1.0, 0.0, 10.0]]
    assert logvar.exp()[0].tolist() == pytest.approx([1.0, 2.5, 1.0])
    assert logother.exp()[0].tolist() == pytest.approx([1.0, 2.5, 1.0])


def test_only_the_block_of_an_actions_group_knows_the_action():
    model = PairAutoencoder(Recovery(latents=3), 3, torch.tensor([0, 0, 1]))
    z, verbs = torch.randn(1, 3), torch.tensor([0, 1, 2])
    means = torch.stack([model.next_latents(z, verb[None])[0][:, 0] for verb in verbs])
    assert torch.equal(means[0, 0], means[1, 0])
    assert torch.equal(means[0, 0], means[2, 0])
    assert not torch.equal(means[0, 1], means[1, 1])  # two actions of group 0
    assert torch.equal(means[0, 2], means[1, 2])
    assert not torch.equal(means[0, 2], means[2, 2])


@pytest.mark.parametrize("method", LOSSES)
def test_each_method_learns_and_its_training_repeats(method):
    pairs, how = moving_square(64), Recovery(method=method, latents=4, steps=8, batch_size=8)
    few = SimpleNamespace(train=np.arange(60), test_id=np.arange(60, 64))  # too few to score
    first, again = (recover(pairs, few, how, seed=1) for _ in range(2))
    assert first.losses == again.losses
    assert first.losses[-1] < first.losses[0]
    assert first.scores == {"names": []}


def test_scores_are_those_of_the_test_pairs():
    how = Recovery(method="pcl", latents=2, steps=1, batch_size=2)
    found = recover(
        moving_square(48), SimpleNamespace(train=np.arange(2), test_id=np.arange(48)), how
    )
    assert found.scores["names"] == ["place", "shade"]
    assert set(found.scores["r2"]) == {"place", "shade"}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ada_gvae", "citris"])
def test_the_moved_factor_is_recovered_and_imagined(method):
    pairs, how = moving_square(1024), Recovery(method=method, latents=4, steps=1500)
    split = SimpleNamespace(train=np.arange(896), test_id=np.arange(896, 1024))
    found = recover(pairs, split, how)
    assert found.scores["mcc_spearman"] > 0.8
    if method == "citris":
        fact, other = pairs.take(split.test_id), 1 - pairs.verb[split.test_id]
        before = fact.images[:, 0]
        place = fact.factors["place"][:, 0].astype(int)
        true = torch.zeros(before.shape)
        for row, left in enumerate(place + np.where(other == 1, 8, -8)):
            true[row, :, 24:40, left : left + 16] = fact.factors["shade"][row, 0] / 255
        imagined = found.model.imagine(before, other)
        assert picture_score(imagined, true, fact.images[:, 1].float() / 255) > 0.5


def test_the_score_of_imagined_pictures_has_its_ends():
    true, fact = torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8)
    assert picture_score(true, true, fact) == 1
    assert picture_score(fact, true, fact) == 0
    half = true + (fact - true) / 2  # a quarter of the squared error is left
    assert picture_score(half, true, fact) == pytest.approx(0.75)
    with pytest.raises(InvalidValueError, match="equal the fact"):
        picture_score(true, true, true)


def test_pictures_are_made_small_and_wrong_settings_refused():
    pairs = moving_square(2)
    big = torch.nn.functional.interpolate(pairs.images.flatten(0, 1).float(), scale_factor=2)
    images = big.to(torch.uint8).unflatten(0, (2, 2))
    assert torch.equal(small_images(replace(pairs, images=images)), pairs.images)
    with pytest.raises(UnknownNameError, match="ada_gvae"):
        Recovery(method="ada_gva")
    with pytest.raises(InvalidValueError, match="steps is 0"):
        Recovery(steps=0)
