"""Kernels for a GPU against plain operations; without a GPU in Triton's interpreter."""

import os

import pytest
import torch

from interverse.agents.pixel.augment import PadCrop

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
pytest.importorskip("triton")


@pytest.fixture
def kernels(monkeypatch):
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    from interverse.agents.pixel import kernels

    monkeypatch.setattr(kernels, "_PROGRAMS", 3)
    monkeypatch.setattr(kernels, "_ROWS", 16)
    yield kernels
    torch.set_default_device(None)


def generator():
    return torch.Generator(torch.get_default_device()).manual_seed(0)


def test_crops_are_the_plain_crops_and_the_rest_as_it_is(kernels):
    draw = generator()
    pictures = torch.randint(0, 256, (5, 12, 12, 12), generator=draw, dtype=torch.uint8)[:, 3:]
    numbers = torch.rand(2, 5, generator=draw)
    found = kernels.crops(pictures, numbers, None, 5, 3)
    moved = PadCrop().whole(pictures, numbers, None)
    wanted = torch.cat([moved, pictures[3:]]) / 255.0
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(found[:, :9].float(), wanted, atol=2**-7)
    assert not found[:, 9:].any()
    noisy = kernels.crops(pictures, numbers, torch.tensor([7]), 5, 3)[:, :9].float()
    inside = (wanted[:5] > 0.02) & (wanted[:5] < 0.98)
    assert (255.0 * (noisy - wanted)[:5][inside]).std().item() == pytest.approx(1.0, abs=0.15)
    assert torch.equal(noisy[5:], found[5:, :9].float())


def test_the_gradient_before_a_relu(kernels):
    draws = torch.randn(2, 3, 32, 7, 7, generator=generator()).bfloat16()
    given, out = (x.contiguous(memory_format=torch.channels_last) for x in draws)
    kept, of_bias = kernels.rectified(given, out.relu())
    wanted = torch.where(out > 0, given, 0.0)
    assert torch.equal(kept, wanted)
    assert torch.allclose(of_bias, wanted.float().sum((0, 2, 3)), atol=1e-4)


def test_adam_is_torchs(kernels):
    draw = generator()
    weight = torch.randn(5000, generator=draw)
    other = weight.clone().requires_grad_()
    theirs = torch.optim.Adam([other], lr=1e-3, weight_decay=1e-2)
    state = {name: torch.zeros(5000) for name in ("exp_avg", "exp_avg_sq")}
    state["step"] = torch.zeros(())
    for _ in range(5):
        other.grad = torch.randn(5000, generator=draw)
        kernels.adam(weight, other.grad, state, theirs.param_groups[0])
        theirs.step()
    assert torch.allclose(weight, other, atol=1e-6)
