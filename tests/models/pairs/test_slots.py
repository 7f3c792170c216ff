"""Slot attention: shapes, what is differentiated, pretraining that resumes."""

from dataclasses import replace

import pytest
import torch

from interverse.core.errors import InvalidValueError
from interverse.models.pairs.config import EncoderConfig, PairModelConfig
from interverse.models.pairs.encoders import PairEncoder
from interverse.models.pairs.slots import (
    FILE,
    SlotAttention,
    SlotAutoencoder,
    SlotTraining,
    train_slots,
)

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
