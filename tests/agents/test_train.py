"""Training: SB3's own check, resume after a kill to the last bit, safe export."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from stable_baselines3 import PPO

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.uniform import Uniform
from interverse.agents.sb3 import WorldVecEnv
from interverse.agents.train import Train, make_env, make_model, train
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.core.files.checkpoints import Checkpoints
from interverse.core.run import CHECKPOINTS, Run
from interverse.protocols.measures import Metric
from interverse.rollouts.exported import ExportedPolicy

SLIDER = "tutorial/slider-v1"


def config(out: Path, **more) -> Train:
    settings = {"task": SLIDER, "out": out, "num_envs": 4, "checkpoint_every": 512} | more
    return Train(**settings)


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "policy" / "policy.safetensors")


GOALS = {"task": "trifinger/reaching-v1", "her": True, "actor": ("goals", "joints@first=1")}
GOALS |= {"space": "A_B"}  # the angles of random tips lie in neither A nor B
RUNS = {
    "sb3_ppo": {"algorithm": "sb3_ppo", "steps": 1536, "curriculum": 2},
    "sac": {"algorithm": "sac", "steps": 1024, "curriculum": 2},
    "td3": {"algorithm": "td3", "steps": 1024, "actor": ("adaptive:patterns=box/mass,window=4",)},
    "sac+her": {"algorithm": "sac", "steps": 1024, **GOALS, "options": {"max_steps": 40}},
    "td3+her": {"algorithm": "td3", "steps": 1024, **GOALS, "options": {"max_steps": 40}},
}


SLOW = ("sac+her", "td3+her")  # the same loop as without relabelled goals


@pytest.mark.parametrize(
    "run", [pytest.param(r, marks=pytest.mark.slow) if r in SLOW else r for r in RUNS]
)
def test_killed_and_resumed_equals_unbroken(run, tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(config(whole, **RUNS[run]))
    original = Run.save

    def save_then_die(self, checkpoint):
        original(self, checkpoint)
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        train(config(broken, **RUNS[run]))
    monkeypatch.setattr(Run, "save", original)
    train(config(broken, **RUNS[run]))
    mine, theirs = weights(whole), weights(broken)
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    cards = [json.loads((f / "policy" / "policy.json").read_text()) for f in (whole, broken)]
    assert cards[0] == cards[1]
    assert cards[0]["trained"]["steps"] >= RUNS[run]["steps"]


def starts(seed: int, out: Path, episodes: int = 4) -> np.ndarray:
    """What the worlds of a run see first, episode by episode."""
    env = make_env(config(out, seed=seed, options={"max_steps": 3}))
    make_model(config(out, seed=seed), env)  # it seeds the worlds too
    seen = [env.reset().copy()]
    while len(seen) < episodes:
        observation, _, done, _ = env.step(np.zeros((4, *env.action_space.shape), np.float32))
        seen += [observation.copy()] if done.all() else []
    env.close()
    return np.concatenate(seen)


def test_training_plays_no_test_episode_and_none_of_another_seeds_run(tmp_path):
    tested: list[np.ndarray] = []

    def first(steps):
        tested.append(np.asarray(steps.observations[0]))
        return 0.0

    asked = {"task": SLIDER, "protocols": "P0", "episodes": 4, "max_steps": 3, "seeds": 5}
    iv.evaluate("random", **asked, metrics=[Metric(name="first", function=first)])
    played = [starts(seed, tmp_path) for seed in (0, 1, 2)]
    rows = np.concatenate([*played, np.stack(tested)[: 4 * 5]]).round(5)
    assert len(rows) == 3 * 16 + 20
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_an_sb3_model_in_memory_is_told_of_starts_that_it_has_seen(capsys):
    asked = {"task": SLIDER, "protocols": "P0", "episodes": 2, "max_steps": 3}
    said = "Trained on episodes of seed 0, which the test plays too"
    model = PPO("MlpPolicy", iv.make(SLIDER, max_steps=5), seed=0, n_steps=8, batch_size=8)
    model.learn(8)
    iv.evaluate(model, **asked)
    assert said in " ".join(capsys.readouterr().err.split())
    iv.evaluate(model, **asked, seed=1)
    apart = PPO("MlpPolicy", WorldVecEnv(SLIDER, 2), seed=0, n_steps=8, batch_size=8)
    apart.learn(16)
    iv.evaluate(apart, **asked)
    assert "Trained on episodes" not in " ".join(capsys.readouterr().err.split())


def test_the_export_acts_as_the_model(tmp_path):
    from interverse.agents.sb3 import export

    for algorithm in ("sb3_ppo", "sac", "td3"):
        settings = config(tmp_path / algorithm, algorithm=algorithm)
        env = make_env(settings)
        model = make_model(settings, env)
        seen = np.random.default_rng(0).normal(size=(50, 11))
        expected, _ = model.predict(seen, deterministic=True)
        policy = ExportedPolicy.load(export(model, {}).save(tmp_path / algorithm / "out"))
        assert np.allclose(policy(seen), expected, atol=1e-5), algorithm


def test_hindsight_relabels_goals_and_learns_from_them(tmp_path):
    settings = config(tmp_path, **RUNS["sac+her"])
    env = make_env(settings)
    model = make_model(settings, env)
    model.learn(400)
    buffer = model.replay_buffer
    real, relabelled = buffer.observations["desired_goal"][:90], buffer.sample(2000)
    wanted = relabelled.observations["desired_goal"].numpy()
    given = np.unique(real.reshape(-1, real.shape[-1]), axis=0)
    gap = np.abs(wanted[:, None] - given[None]).max(axis=-1).min(axis=1)
    moved = gap > 1e-6
    assert 0.6 < moved.mean() < 0.95, "four of five goals are taken from what was reached"
    achieved = relabelled.next_observations["achieved_goal"].numpy()
    worth = env.venv.compute_reward(achieved, wanted)
    assert np.allclose(relabelled.rewards.numpy()[:, 0], worth, atol=1e-5)


def test_a_policy_on_goals_is_evaluated_in_the_plain_world(tmp_path):
    settings = config(tmp_path, **RUNS["sac+her"] | {"steps": 512})
    folder = train(settings)
    exported = ExportedPolicy.load(folder)
    env = make_env(settings)
    model = make_model(settings, env)
    seen = env.reset()
    assert set(exported.card.inputs) == set(seen)
    assert exported(seen).shape == (4, 9)
    task = {"task": "trifinger/reaching-v1", "protocols": "P5", "episodes": 3, "max_steps": 5}
    by_path, by_model = iv.evaluate(str(folder), **task), iv.evaluate(model, **task)
    assert by_path.experiments == [tmp_path.name]
    assert len(by_path) == len(by_model) == 3


def test_a_trained_policy_is_evaluated_by_its_path(tmp_path):
    folder = train(config(tmp_path, steps=512))
    results = iv.evaluate(str(folder), task=SLIDER, protocols="P0", episodes=2, max_steps=4)
    assert len(results) == 2


@pytest.mark.parametrize("algorithm", ["sb3_ppo", "sac", "td3"])
def test_control_is_trained_and_tested_from_states(algorithm, tmp_path):
    task = {"task": "control/cartpole_balance-v1", "algorithm": algorithm, "steps": 64}
    folder = train(config(tmp_path, **task, options={"observation": "state", "max_steps": 8}))
    results = iv.evaluate(str(folder), task=task["task"], protocols="none", episodes=2)
    assert len(results) == 2


@pytest.mark.slow
def test_ppo_learns_the_slider(tmp_path):
    folder = train(config(tmp_path, steps=16_000, num_envs=16, checkpoint_every=16_000))
    learned, chance = (
        iv.evaluate(policy, task=SLIDER, protocols="P0", episodes=50).scores("return").mean()
        for policy in (str(folder), "random")
    )
    assert learned > 0.5 * chance  # returns are negative: half the distance, or better


def test_a_folder_of_another_run_is_not_touched(tmp_path):
    train(config(tmp_path, steps=512))
    before = (tmp_path / "policy" / "policy.safetensors").read_bytes()
    with pytest.raises(InvalidValueError, match="holds another run: seed"):
        train(config(tmp_path, steps=512, seed=1))
    assert (tmp_path / "policy" / "policy.safetensors").read_bytes() == before


def test_a_torn_checkpoint_says_so(tmp_path):
    train(config(tmp_path, steps=512))
    (file,) = (tmp_path / "checkpoint").glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(FileFormatError, match=r"every checkpoint in .* is damaged"):
        train(config(tmp_path, steps=1024))


def test_a_checkpoint_without_one_of_its_arrays_is_torn(tmp_path):
    train(config(tmp_path, steps=512, curriculum=2))
    checkpoints = Checkpoints(tmp_path / CHECKPOINTS)
    held = checkpoints.load()
    fewer = {n: part for n, part in held.tensors.items() if n != "array|curriculum/tried"}
    assert len(fewer) == len(held.tensors) - 1
    checkpoints.save(replace(held, tensors=fewer))
    with pytest.raises(FileFormatError, match="'tried' is missing"):
        train(config(tmp_path, steps=1024, curriculum=2))


@pytest.mark.parametrize("name", ["policy.json", "policy.safetensors"])
def test_a_torn_policy_says_so(tmp_path, name):
    folder = train(config(tmp_path, steps=512))
    (folder / name).write_bytes(b"{")
    with pytest.raises(FileFormatError, match="holds no policy"):
        ExportedPolicy.load(folder)
    (folder / name).unlink()
    with pytest.raises(FileFormatError, match=f"{name} is missing"):
        ExportedPolicy.load(folder)


def test_the_vec_env_gives_terminal_observations():
    curriculum = Curriculum(stages=(Stage(actor=Uniform(patterns=("box/mass",))),))
    env = WorldVecEnv(SLIDER, 3, curriculum, max_steps=2)
    env.seed(5)
    env.reset()
    zero = np.zeros((3, 2), dtype=np.float32)
    env.step(zero)
    observation, _, done, infos = env.step(zero)
    assert done.all()
    assert infos[0]["TimeLimit.truncated"]
    assert not np.array_equal(infos[0]["terminal_observation"], observation[0])
    assert len(set(env.venv.values["box/mass"].tolist())) == 3


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"algorithm": "dqn"}, UnknownNameError, "unknown algorithm 'dqn'"),
        ({"preset": "huge"}, UnknownNameError, "unknown preset 'huge'"),
        ({"steps": 0}, InvalidValueError, "steps is 0"),
        ({"num_envs": 0}, InvalidValueError, "num_envs is 0"),
        ({"task": "blocks/observed-3-v1"}, InvalidValueError, "flat boxes"),
        ({"curriculum": 7}, UnknownNameError, "curriculum '7'"),
        ({"task": "tutorial/nothing-v1"}, UnknownNameError, "unknown world"),
        ({"actor": ("goles",)}, UnknownNameError, "Did you mean 'goals'"),
        ({"actor": ("goals",), "curriculum": 1}, InvalidValueError, "both given"),
        ({"her": True}, InvalidValueError, "her is on with algorithm sb3_ppo"),
        ({"her": True, "algorithm": "sac"}, InvalidValueError, "no goals to relabel"),
        ({"options": {"spce": "A"}}, UnknownNameError, "unknown option 'spce'"),
    ],
    ids=str,
)
def test_mistakes(tmp_path, change, error, match):
    with pytest.raises(error, match=match):
        train(config(tmp_path, **change))
    assert not (tmp_path / "train.json").exists(), "a refused call claims nothing"
