"""Policies in zip files of Stable-Baselines 2 and 3."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.rollouts import saved
from interverse.rollouts.archives import load_archive
from interverse.rollouts.policy import as_policy
from interverse.rollouts.policy_world import policy_world

TASK = "trifinger/pushing-v1"
SEEN, ACTIONS = 56, 9


def second_version(path, *, seen=SEEN, activation="<function tanh at 0x1>", drop=()):
    """Writes a file as Stable-Baselines 2 does: JSON, an npz, a list of the parameters' names."""
    rng = np.random.default_rng(0)
    shapes = {"shared_fc0": (seen, 16), "shared_fc1": (16, 8), "vf": (8, 1), "pi": (8, ACTIONS)}
    weights = {}
    for name, shape in shapes.items():
        if name not in drop:
            weights[f"model/{name}/w:0"] = rng.normal(size=shape).astype(np.float32)
            weights[f"model/{name}/b:0"] = rng.normal(size=shape[1]).astype(np.float32)
    held = io.BytesIO()
    np.savez(held, **weights)
    card = {
        "action_space": {"low": str(np.full(ACTIONS, -1.0)), "high": str(np.full(ACTIONS, 1.0))},
        "policy_kwargs": {"act_fun": activation, "net_arch": "[16, 8]"},
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(card))
        archive.writestr("parameters", held.getvalue())
        archive.writestr("parameter_list", json.dumps(list(weights)))
    return weights


def test_version_2_is_a_tanh_network_clipped_to_its_bounds(tmp_path):
    weights = second_version(tmp_path / "old.zip")
    seen = np.random.default_rng(1).normal(size=(5, SEEN))
    hidden = seen
    for layer in ("shared_fc0", "shared_fc1"):
        weight, bias = weights[f"model/{layer}/w:0"], weights[f"model/{layer}/b:0"]
        hidden = np.tanh(hidden @ weight + bias)
    raw = hidden @ weights["model/pi/w:0"] + weights["model/pi/b:0"]
    acted = load_archive(tmp_path / "old.zip")(seen)
    assert (np.abs(raw) > 1).any()  # so that the clip is tried
    assert acted == pytest.approx(np.clip(raw, -1, 1), abs=1e-5)


def test_an_evaluation_takes_the_path_and_names_the_rows(tmp_path):
    second_version(tmp_path / "old.zip")
    results = iv.evaluate(str(tmp_path / "old.zip"), TASK, "P0", episodes=1, max_steps=3)
    assert list(results.to_pandas().experiment) == ["old"]


def test_a_released_policy_is_known_by_its_content(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.zip"
    second_version(path)
    number = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(saved.RELEASED, number, saved.Released("pushing", 1))
    assert policy_world(path).task == TASK
    results = iv.evaluate(path, TASK, "P0", episodes=1, max_steps=3)
    assert results.provenance["options"]["skip_frame"] == 3
    assert results.provenance["options"]["dense_reward_weights"] == [750, 250, 0]
    assert "No world recorded" not in capsys.readouterr().err
    with pytest.raises(InvalidValueError, match="trained with skip_frame=3"):
        iv.evaluate(path, TASK, "P0", episodes=1, skip_frame=10)
    with pytest.warns(UserWarning, match="pass skip_frame=3"):
        iv.rollout(iv.make(TASK), path, max_steps=1)


def test_a_zip_without_a_world_says_how_it_is_played(tmp_path, capsys):
    second_version(tmp_path / "old.zip")
    iv.evaluate(tmp_path / "old.zip", TASK, "P0", episodes=1, max_steps=3, skip_frame=5)
    line = capsys.readouterr().err
    assert "No world recorded: played with skip_frame=5, joint_positions" in line


def test_the_release_has_five_policies_and_a_tutorials_two():
    tasks = sorted({known.task for known in saved.RELEASED.values()})
    assert tasks == ["pick_and_place", "picking", "pushing", "reaching", "stacking2"]
    assert len(saved.RELEASED) == 7


def test_version_3_acts_as_the_model_that_was_saved(tmp_path):
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    env = iv.make(TASK)
    seen = env.reset(seed=0)[0][None]
    for name, network in (
        ("PPO", {}),
        ("SAC", {}),
        ("TD3", {"net_arch": [16, 8]}),
        ("PPO", {"activation_fn": "ReLU", "net_arch": [16]}),
    ):
        if "activation_fn" in network:
            import torch

            network = {**network, "activation_fn": torch.nn.ReLU}
        kind = getattr(stable_baselines3, name)
        model = kind("MlpPolicy", env, seed=0, device="cpu", policy_kwargs=network)
        model.save(tmp_path / name)
        loaded = as_policy(tmp_path / f"{name}.zip", env.unwrapped.world)
        assert loaded(seen) == pytest.approx(model.predict(seen, deterministic=True)[0], abs=1e-6)


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_version_3_chooses_among_actions_as_the_model_that_was_saved(tmp_path, name):
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    model = getattr(stable_baselines3, name)("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
    model.save(tmp_path / "model")
    seen = np.random.default_rng(0).normal(size=(20, 4), scale=30).astype(np.float32)
    chosen = load_archive(tmp_path / "model.zip")(seen)
    assert chosen.tolist() == model.predict(seen, deterministic=True)[0].tolist()


def test_goals_are_seen_as_the_saved_model_saw_them(tmp_path):
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    sb3 = pytest.importorskip("interverse.agents.sb3")
    env = sb3.WorldVecEnv(TASK, 2, None, goals=True)
    model = stable_baselines3.SAC("MultiInputPolicy", env, seed=0, device="cpu", buffer_size=100)
    model.save(tmp_path / "model")
    seen = env.reset()
    acted = load_archive(tmp_path / "model.zip")(seen)
    assert acted == pytest.approx(model.predict(seen, deterministic=True)[0], abs=1e-6)


class Evil:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_version_3_unpickles_nothing(tmp_path):
    import base64
    import pickle

    stable_baselines3 = pytest.importorskip("stable_baselines3")
    env = iv.make(TASK)
    stable_baselines3.PPO("MlpPolicy", env, device="cpu").save(tmp_path / "model")
    evil = base64.b64encode(pickle.dumps(Evil())).decode()
    with (
        zipfile.ZipFile(tmp_path / "model.zip") as good,
        zipfile.ZipFile(tmp_path / "evil.zip", "w") as bad,
    ):
        card = json.loads(good.read("data"))
        for entry in card.values():
            if isinstance(entry, dict) and ":serialized:" in entry:
                entry[":serialized:"] = evil
        bad.writestr("data", json.dumps(card))
        bad.writestr("policy.pth", good.read("policy.pth"))
        bad.writestr("pytorch_variables.pth", pickle.dumps(Evil()))
    load_archive(tmp_path / "evil.zip")(env.reset(seed=0)[0][None])
    with zipfile.ZipFile(tmp_path / "worse.zip", "w") as bad:
        bad.writestr("data", json.dumps(card))
        bad.writestr("policy.pth", pickle.dumps(Evil()))
    with pytest.raises(FileFormatError, match="worse"):
        load_archive(tmp_path / "worse.zip")


def test_a_policy_of_another_world_says_what_it_wants(tmp_path):
    second_version(tmp_path / "old.zip", seen=37)
    with pytest.raises(FileFormatError, match="37 numbers"):
        iv.rollout(iv.make(TASK, max_steps=2), tmp_path / "old.zip", seed=0)


@pytest.mark.parametrize("fault", ["torn", "foreign", "relu", "headless"])
def test_an_unreadable_file_says_why(tmp_path, fault):
    file = tmp_path / "policy.zip"
    if fault == "torn":
        file.write_bytes(b"PK\x03\x04 torn")
    elif fault == "foreign":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("readme.txt", "hello")
    elif fault == "relu":
        second_version(file, activation="<function relu at 0x1>")
    else:
        second_version(file, drop=("pi",))
    with pytest.raises(FileFormatError, match=r"policy\.zip is no policy that can be read here"):
        load_archive(file)


def test_a_path_that_is_not_there_is_an_unknown_name():
    with pytest.raises(UnknownNameError, match="zip of Stable-Baselines"):
        as_policy("absent.zip", iv.make(TASK).unwrapped.world)
