"""Distinct windows, and products over cells, give what whole frames and layers give."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn

from interverse.core.errors import InvalidValueError
from interverse.models import patches, world_fit
from interverse.models.encoders import Encoder
from interverse.models.fit import Fit
from interverse.models.patches import PatchTable, cell_maps, frames_of, patch_maps, suits, viewer
from interverse.models.source import ArraySource
from interverse.models.world_fit import fit_world_model
from interverse.models.world_model import WorldModelConfig
from tests.models.conftest import tiny_config

TINY = tiny_config(encoder="medium")


@pytest.fixture
def source(squares) -> ArraySource:
    return ArraySource(*squares(4, 6, seed=5)[:2])


def layers(config: WorldModelConfig = TINY) -> nn.Sequential:
    """Returns an encoder's layers, none of their parameters at a special value."""
    torch.manual_seed(config.objects)
    maps = Encoder(config).maps
    with torch.no_grad():
        for parameter in maps.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return maps.double() if config is TINY else maps


def encoder(objects: int) -> nn.Sequential:
    return layers(WorldModelConfig(model="modular", objects=objects))


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("room", [0, 700])
@pytest.mark.parametrize("training", [True, False])
def test_maps_gradients_and_statistics_are_those_of_whole_frames(
    training, room, products, source, monkeypatch
):
    plain = layers().train(training)
    fast = copy.deepcopy(plain)
    table = PatchTable(source, plain, 8)
    table._room = room  # as on a GPU, where rows without a window fill the batch up
    numbers = torch.tensor([3, 0, 3, 17, 9, 25, 26, 27])
    seen = table.seen(numbers)
    assert room in (0, len(seen.windows))
    exact = seen._replace(windows=seen.windows.double(), counts=seen.counts.double())
    expected = plain(source.frames(numbers).double()).flatten(2)
    if products:  # as a GPU in bf16 takes them
        monkeypatch.setattr(patches, "suits", lambda *_: True)
        in_double = functools.partial(patches.window_values, dtype=torch.float64)
        monkeypatch.setattr(patches, "window_values", in_double)
    found = patch_maps(exact, fast)
    torch.testing.assert_close(found, expected)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (found * weight).sum().backward()
    for (name, theirs), ours in zip(plain.named_parameters(), fast.parameters(), strict=True):
        if not (training and name == "0.bias"):  # batch norm takes it out
            torch.testing.assert_close(ours.grad, theirs.grad)
    for name, value in plain[1].named_buffers():
        torch.testing.assert_close(dict(fast[1].named_buffers())[name], value)


def test_every_cell_finds_its_own_window(source):
    table = PatchTable(source, layers(), 8)
    numbers = torch.tensor([[1, 2, 2], [20, 0, 1]])  # two members, an order for each
    seen = table.seen(numbers)
    pixels = torch.nn.functional.pad(frames_of(source, numbers).movedim(2, 4), (0, 0, 4, 4, 4, 4))
    for member, frame, cell in ((0, 0, 0), (1, 0, 37), (1, 2, 99), (0, 2, 55)):
        row, column = 5 * (cell // 10), 5 * (cell % 10)
        window = pixels[member, frame, row : row + 13, column : column + 13].flatten()
        shown = seen.windows[member, seen.shown[member, frame, cell]]
        torch.testing.assert_close(shown[: len(window)], window)
    assert seen.counts.sum(1).tolist() == [300, 300]


def test_too_little_room_is_told(source):
    table = PatchTable(source, layers(), 8)
    table._room = 3
    table.seen(torch.arange(8))
    with pytest.raises(InvalidValueError, match="room is for 3"):
        table.check()


def test_frames_without_repetition_are_taken_whole():
    noise = np.random.default_rng(0).integers(0, 256, (2, 3, 50, 50, 3), np.uint8)
    source = ArraySource(noise, np.zeros((2, 2), np.int64))
    see, _ = viewer(source, layers(), suits=True, batch=4)
    assert torch.equal(see(torch.arange(4)), source.frames(torch.arange(4)))


@pytest.mark.parametrize(("model", "loss"), [("modular", "contrastive"), ("ae", "jepa")])
def test_training_ends_at_the_same_losses(model, loss, squares, tiny, monkeypatch):
    train, valid = (ArraySource(*squares(3, 6, seed=s)[:2]) for s in (0, 1))
    how, config = Fit(epochs=2, batch_size=8), tiny(model, loss, encoder="medium")
    by_windows = fit_world_model(config, how, train, valid)[0].history
    monkeypatch.setattr(
        world_fit, "viewer", lambda s, *_, **__: (lambda n: frames_of(s, n), lambda: None)
    )
    whole = fit_world_model(config, how, train, valid)[0].history
    expected = [row["valid"] for row in whole]
    assert [row["valid"] for row in by_windows] == pytest.approx(expected, rel=2e-2)  # float32


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
