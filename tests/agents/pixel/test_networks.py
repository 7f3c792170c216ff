"""The networks: Table 4's shapes and initial weights, and the squashed Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional

from interverse.agents.pixel.half import ConvolveRelu, LongProduct
from interverse.agents.pixel.networks import Critics, PixelActor, PixelEncoder, PixelSizes
from interverse.core.errors import InvalidValueError

PAPER = PixelSizes(pictures=(9, 84), actions=6)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_the_papers_encoder():
    encoder = PixelEncoder(PAPER, generator())
    pictures = torch.randint(0, 256, (2, 9, 84, 84), dtype=torch.uint8)
    shapes = [tuple(maps.shape[1:]) for maps in encoder.maps(pictures)]
    assert shapes == [(32, 41, 41), (32, 39, 39), (32, 37, 37), (32, 35, 35)]
    assert (PAPER.side, PAPER.flat) == (35, 35 * 35 * 32)
    features = encoder(pictures)
    assert features.shape == (2, 50)
    assert features.abs().max() <= 1
    assert sum(p.numel() for p in encoder.parameters()) == (
        (9 * 9 * 32 + 32) + 3 * (32 * 9 * 32 + 32) + (39200 * 50 + 50) + 2 * 50
    )


@pytest.mark.parametrize("whole", [False, True])
def test_convolutions_start_orthogonal(whole):
    """Zero but for their centres, unless whole kernels are drawn."""
    for layer in PixelEncoder(PAPER, generator(), whole=whole).convolutions:
        weight = layer.weight.detach().clone()
        rows = (weight.flatten(1) if whole else weight[:, :, 1, 1]).clone()
        weight[:, :, 1, 1] = 0
        assert weight.any() == whole
        assert not layer.bias.any()
        narrow = rows if rows.shape[0] <= rows.shape[1] else rows.T
        gram = narrow @ narrow.T
        assert torch.allclose(gram, 2 * torch.eye(len(narrow)), atol=1e-5), "ReLU's gain squared"


def test_features_that_are_not_squashed():
    pictures = torch.randint(0, 256, (2, 9, 84, 84), generator=generator(), dtype=torch.uint8)
    squashed, plain = (
        PixelEncoder(PAPER, generator(), squash=on)(pictures) for on in (True, False)
    )
    assert plain.abs().max() > 1
    assert torch.equal(torch.tanh(plain), squashed)


def test_linear_layers_start_orthogonal():
    critics = Critics(PixelSizes(pictures=(9, 84), actions=6, hidden=64), generator())
    for layer in critics.first[::2]:
        weight = layer.weight.detach()
        narrow = weight if weight.shape[0] <= weight.shape[1] else weight.T
        assert torch.allclose(narrow @ narrow.T, torch.eye(len(narrow)), atol=1e-5)
        assert not layer.bias.any()


def test_no_global_randomness():
    before = torch.random.get_rng_state()
    first, second = (PixelEncoder(PAPER, generator()) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_the_density_of_the_squashed_gaussian():
    """Against a histogram of its own draws, and SciPy's normal density."""
    actor = PixelActor(PixelSizes(pictures=(9, 84), actions=1, hidden=8, features=4), generator())
    with torch.no_grad():
        actor.layers[4].bias += torch.tensor([0.3, 0.75])
        noise = torch.randn(100_000, 1, generator=generator())
        choice = actor(torch.ones(1, 4).expand(100_000, -1), noise)
        mean, raw = actor.layers(torch.ones(1, 4))[0].tolist()
    spread = np.exp(-10 + 6 * (np.tanh(raw) + 1))
    actions = choice.actions[:, 0].numpy().astype(np.float64)
    x = mean + spread * noise[:, 0].numpy().astype(np.float64)
    expected = stats.norm.logpdf(x, mean, spread) - np.log(1 - np.tanh(x) ** 2)
    assert np.allclose(choice.log_density[:, 0].numpy(), expected, atol=1e-3)
    low, high = np.quantile(actions, [0.4, 0.6])
    inside = (actions > low) & (actions < high)
    rarity = np.exp(-choice.log_density[:, 0].numpy())
    assert (inside * rarity).mean() == pytest.approx(high - low, rel=0.03)
    assert torch.allclose(choice.mean, torch.tanh(torch.tensor(mean)))


def test_pictures_too_small():
    with pytest.raises(InvalidValueError, match="at least 9 pixels"):
        PixelSizes(pictures=(9, 8), actions=1)


@pytest.mark.parametrize("stride", [1, 2])
def test_the_convolution_of_half_precision_has_the_plain_gradients(stride):
    draw = generator()
    shapes = ((3, 8, 11, 11), (16, 8, 3, 3), (16,))
    given = [torch.randn(shape, generator=draw).requires_grad_() for shape in shapes]
    x, weight, bias = given
    laid_out = x.contiguous(memory_format=torch.channels_last)
    found = ConvolveRelu.apply(laid_out, weight, bias, (stride, stride))
    wanted = functional.relu(functional.conv2d(x, weight, bias, stride))
    assert torch.allclose(found, wanted, atol=1e-5)
    pull = torch.randn(wanted.shape, generator=draw)
    mine, theirs = (torch.autograd.grad(out, given, pull) for out in (found, wanted))
    for one, other in zip(mine, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_the_long_product_is_the_linear_layer():
    draw = generator()
    maps = torch.randn(4, 32, 5, 5, generator=draw)
    maps = maps.contiguous(memory_format=torch.channels_last).requires_grad_()
    weight = torch.randn(50, 800, generator=draw).requires_grad_()
    found = LongProduct.apply(maps, weight)
    wanted = functional.linear(maps.flatten(1), weight)
    assert torch.allclose(found, wanted, atol=1e-4)
    pull = torch.randn(wanted.shape, generator=draw)
    mine, theirs = (torch.autograd.grad(out, (maps, weight), pull) for out in (found, wanted))
    for one, other in zip(mine, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-4)
