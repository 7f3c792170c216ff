"""Saved policies: what was saved acts as it did, a flipped bit is refused, another rate is said."""

import json
import shutil
import warnings

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.rollouts.policy import as_policy, load_policy
from interverse.rollouts.saved import trained_policy

torch = pytest.importorskip("torch")

from interverse.rollouts.exported import Card, ExportedPolicy, save_torchscript  # noqa: E402

TASK = "trifinger/pushing-v1"


@pytest.mark.parametrize("name", ["reaching_1", "cartpole_balance_small"])
def test_a_flipped_bit_in_the_weights_is_refused(name, tmp_path):
    policy = load_policy(trained_policy(name))
    folder = policy.save(tmp_path / "policy")
    assert load_policy(folder).card == policy.card
    file = folder / "policy.safetensors"
    whole = file.read_bytes()
    for at in (len(whole) // 2, len(whole) - 3):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FileFormatError, match="is not what was saved: it was damaged"):
            load_policy(folder)
    file.write_bytes(whole)
    load_policy(folder)


def test_a_card_from_before_there_were_hashes_is_read(tmp_path):
    folder = shutil.copytree(trained_policy("reaching_1"), tmp_path / "older")
    assert "weights_hash" not in json.loads((folder / "policy.json").read_text())
    load_policy(folder)


def save(folder, options):
    card = Card(
        layers=1,
        activation="tanh",
        squash=False,
        low=[-1.0] * 9,
        high=[1.0] * 9,
        trained={"config": {"options": options}},
    )
    weights = {"obs.mean": torch.zeros(56), "obs.std": torch.ones(56)}
    weights |= {"0.weight": torch.zeros(9, 56), "0.bias": torch.zeros(9)}
    return ExportedPolicy(card, weights).save(folder)


def test_another_rate_is_said(tmp_path):
    folder = save(tmp_path, {"skip_frame": 3})
    with pytest.warns(UserWarning, match="trained with skip_frame=3 and acts with skip_frame=10"):
        as_policy(folder, iv.make(TASK).unwrapped.world)


@pytest.mark.parametrize("options", [{"skip_frame": 3}, {}])
def test_the_same_rate_or_an_unknown_one_is_not(tmp_path, options):
    folder = save(tmp_path, options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_policy(folder, iv.make(TASK, skip_frame=3).unwrapped.world)


def test_a_torchscript_file_acts_as_the_policy(tmp_path):
    draw = torch.Generator().manual_seed(0)
    shapes = {"0.weight": (8, 5), "0.bias": (8,), "1.weight": (3, 8), "1.bias": (3,)}
    weights = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    weights["obs.mean"] = torch.randn(5, generator=draw)
    weights["obs.std"] = torch.rand(5, generator=draw) + 0.5
    bounds = {"low": [-1.0, -2.0, 0.0], "high": [1.0, 2.0, 3.0]}
    card = Card(layers=2, activation="tanh", squash=True, trained={}, **bounds)
    policy = ExportedPolicy(card, weights)
    path = save_torchscript(policy, tmp_path / "robot" / "policy.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        robot = torch.jit.load(str(path))
    for n in (1, 7):
        seen = np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32)
        np.testing.assert_array_equal(robot(torch.from_numpy(seen)).numpy(), policy(seen))
    with pytest.raises(InvalidValueError, match=r"\*\.pt"):
        save_torchscript(policy, tmp_path / "policy.onnx")
