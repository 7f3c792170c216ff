"""The medium encoder as products over cells gives what its layers give, gradients included."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from interverse.models.encoders import Encoder
from interverse.models.patches import cell_maps, suits
from interverse.models.world_model import WorldModelConfig


def scenes(count: int) -> torch.Tensor:
    """Returns coloured squares on black: a mean far from zero compared with its spread."""
    rng = torch.Generator().manual_seed(3)
    images = torch.zeros(count, 3, 50, 50)
    for image in images:
        for _ in range(3):
            row, column = (10 * torch.randint(5, (2,), generator=rng)).tolist()
            color = torch.rand(3, 1, 1, generator=rng)
            image[:, row : row + 10, column : column + 10] = color
    return images


def encoder(objects: int) -> nn.Sequential:
    """Returns the layers up to the maps, none of their parameters at a special value."""
    torch.manual_seed(objects)
    maps = Encoder(WorldModelConfig(model="modular", objects=objects)).maps
    with torch.no_grad():
        for parameter in maps.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return maps


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("objects", [3, 5])
def test_maps_and_gradients_are_those_of_the_layers(objects, training):
    layers = encoder(objects).train(training)
    fast = copy.deepcopy(layers)
    images = scenes(6)
    weight = torch.randn(6, objects, 10, 10)
    expected, found = layers(images), cell_maps(images, fast, dtype=torch.float32)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    (expected * weight).sum().backward()
    (found * weight).sum().backward()
    for (name, theirs), ours in zip(layers.named_parameters(), fast.parameters(), strict=True):
        if training and name == "0.bias":  # batch norm takes it out: their gradient is rounding
            assert ours.grad is None
            assert theirs.grad.norm() < 1e-3
        else:
            assert (ours.grad - theirs.grad).norm() < 1e-4 * theirs.grad.norm(), name


def test_running_statistics_move_as_batch_norm_moves_them():
    layers = encoder(3).train()
    fast = copy.deepcopy(layers)
    for images in scenes(12).split(4):
        layers(images)
        cell_maps(images, fast, dtype=torch.float32)
    for theirs, ours in zip(layers.buffers(), fast.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_cpu_keeps_its_layers():
    assert not suits(scenes(1), encoder(3), "medium")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_bf16_errs_no_more_than_the_layers_in_bf16():
    exact = encoder(3).train()
    images = scenes(64)
    expected = copy.deepcopy(exact).double()(images.double())
    layers, fast = copy.deepcopy(exact).cuda(), copy.deepcopy(exact).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert suits(images.cuda(), fast, "medium")
        theirs, ours = layers(images.cuda()), cell_maps(images.cuda(), fast)
    error = [(maps.double().cpu() - expected).norm() for maps in (theirs, ours)]
    assert error[1] < 1.5 * error[0]
