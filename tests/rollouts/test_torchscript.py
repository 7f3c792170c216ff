"""A policy as TorchScript does what the exported policy does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from interverse.core.errors import InvalidValueError

torch = pytest.importorskip("torch")


@pytest.fixture
def policy():
    from interverse.rollouts.exported import Card, ExportedPolicy

    draw = torch.Generator().manual_seed(0)
    shapes = {"0.weight": (8, 5), "0.bias": (8,), "1.weight": (3, 8), "1.bias": (3,)}
    weights = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    weights["obs.mean"] = torch.randn(5, generator=draw)
    weights["obs.std"] = torch.rand(5, generator=draw) + 0.5
    bounds = {"low": [-1.0, -2.0, 0.0], "high": [1.0, 2.0, 3.0]}
    card = Card(layers=2, activation="tanh", squash=True, trained={}, **bounds)
    return ExportedPolicy(card, weights)


def test_the_file_acts_as_the_policy(policy, tmp_path):
    from interverse.rollouts.exported import save_torchscript

    path = save_torchscript(policy, tmp_path / "robot" / "policy.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        robot = torch.jit.load(str(path))
    for n in (1, 7):
        seen = np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32)
        np.testing.assert_array_equal(robot(torch.from_numpy(seen)).numpy(), policy(seen))
    with pytest.raises(InvalidValueError, match=r"\*\.pt"):
        save_torchscript(policy, tmp_path / "policy.onnx")
