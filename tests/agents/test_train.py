"""Training with Stable-Baselines3: its own check, resume to the last bit, safe export, its log."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file
from stable_baselines3 import PPO

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage, paper_curriculum
from interverse.actors.uniform import Uniform
from interverse.agents.sb3 import WorldVecEnv
from interverse.agents.train import Train, make_env, make_model, train
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.core.files.atomic import alone_in
from interverse.core.files.checkpoints import Checkpoints
from interverse.core.run import CHECKPOINTS, Run
from interverse.envs.wrappers import sample_new_goal
from interverse.protocols.learning import TrainAndEvaluate, train_and_evaluate
from interverse.protocols.measures import Metric
from interverse.rollouts.exported import ExportedPolicy

pytest.importorskip("stable_baselines3")


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
def test_killed_and_resumed_equals_unbroken(run, tmp_path, dying):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(config(whole, **RUNS[run]))
    with dying():
        train(config(broken, **RUNS[run]))
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


def test_a_checkpoint_without_one_of_its_arrays_is_torn(tmp_path):
    train(config(tmp_path, steps=512, curriculum=2))
    checkpoints = Checkpoints(tmp_path / CHECKPOINTS)
    held = checkpoints.load()
    fewer = {n: part for n, part in held.tensors.items() if n != "array|curriculum|tried"}
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
        ({"options": {"space": "B"}}, InvalidValueError, "option space is 'B'"),
        ({"space": "C"}, UnknownNameError, "unknown space 'C'"),
        ({"hyper": {"seed": 1}}, UnknownNameError, "seed"),
        ({"hyper": {"batch_size": "x"}}, InvalidValueError, "batch_size"),
    ],
    ids=str,
)
def test_mistakes(tmp_path, change, error, match):
    with pytest.raises(error, match=match):
        train(config(tmp_path, **change))
    assert not (tmp_path / "train.json").exists(), "a refused call claims nothing"


RUN = {"task": "tutorial/slider-v1", "num_envs": 4, "steps": 1024, "checkpoint_every": 600}


def interrupt_after(monkeypatch, steps: int, number=signal.SIGINT) -> None:
    """Presses Ctrl-C, or ends the process politely, in the middle of a batch."""
    inner, count = WorldVecEnv.step_wait, [0]

    def step_wait(self):
        count[0] += 1
        if count[0] == steps:
            os.kill(os.getpid(), number)
        return inner(self)

    monkeypatch.setattr(WorldVecEnv, "step_wait", step_wait)


@pytest.mark.parametrize("algorithm", ["sb3_ppo", pytest.param("sac", marks=pytest.mark.slow)])
def test_an_interrupted_run_ends_as_an_unbroken_one(algorithm, tmp_path, monkeypatch):
    settings = RUN | {"algorithm": algorithm, "evaluate_episodes": 2, "hyper": {"net": [16]}}
    settings |= {"options": {"max_steps": 20}}
    if algorithm == "sb3_ppo":
        settings["hyper"] |= {"n_steps": 32, "batch_size": 64, "n_epochs": 2}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_and_evaluate(TrainAndEvaluate(**settings, out=whole))
    with monkeypatch.context() as patch:
        ended_by = signal.SIGTERM if algorithm == "sb3_ppo" else signal.SIGINT
        interrupt_after(patch, 70, ended_by)
        with pytest.raises(KeyboardInterrupt):
            train_and_evaluate(TrainAndEvaluate(**settings, out=broken))
    held = Checkpoints(broken / CHECKPOINTS).load()
    assert held.step == held.record["counters"]["num_timesteps"]
    assert held.step == (384 if algorithm == "sb3_ppo" else 288)
    results = iv.evaluate(str(broken / "policy"), RUN["task"], "P0", episodes=1, max_steps=2)
    assert len(results) == 1, "a run that was stopped can be evaluated"
    train_and_evaluate(TrainAndEvaluate(**settings, out=broken))
    mine, theirs = (load_file(f / "policy" / "policy.safetensors") for f in (whole, broken))
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    names = [sorted(p.name for p in (f / "evaluation").iterdir()) for f in (whole, broken)]
    assert names[0] == names[1]


def test_the_bar_moves_within_a_piece_and_shows_the_return(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(Run, "show", lambda self, step, text=None: shown.append((step, text)))
    options = {"max_steps": 10}
    train(Train(**RUN, out=tmp_path, algorithm="sac", options=options), progress=True)
    assert len({done for done, _ in shown}) == 256
    assert shown[-1][1].startswith("return -")


def test_hyper_parameters_reach_the_algorithm(tmp_path):
    given = {"learning_rate": 0.5, "net": [7], "tanh": False}
    config = Train(**RUN, out=tmp_path, hyper=given)
    env = make_env(config)
    model = make_model(config, env)
    env.close()
    assert model.learning_rate == 0.5
    assert model.policy.mlp_extractor.policy_net[0].out_features == 7
    assert type(model.policy.mlp_extractor.policy_net[1]).__name__ == "ReLU"


def test_weights_and_biases_hears_of_a_run_that_asks(tmp_path, monkeypatch):
    calls = []
    run = SimpleNamespace(finish=lambda: calls.append("finish"))

    def init(**settings):
        calls.append(settings)
        return run

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    settings = RUN | {"steps": 16, "hyper": {"n_steps": 4, "batch_size": 16}}
    train(Train(**settings, out=tmp_path / "run", wandb="causes"))
    assert calls[0]["project"] == "causes"
    assert calls[0]["sync_tensorboard"]
    assert calls[0]["config"]["task"] == RUN["task"]
    assert calls[-1] == "finish"


def short(out, **other):
    given = dict(task="tutorial/slider-v1", steps=8, num_envs=2, options={"max_steps": 4})
    return Train(out=out, **{**given, **other})


def test_no_two_trainings_share_a_folder(tmp_path):
    from interverse.agents.batch.train import DeviceTrain, train_on_device
    from interverse.agents.pixel.config import PixelTrain
    from interverse.agents.pixel.train import train as train_pixels

    pixels = PixelTrain(task="control/cartpole_balance-v1", out=tmp_path)
    small = dict(num_envs=2, starts=2, curriculum=0, options={"max_steps": 4})
    device = DeviceTrain(task="trifinger/pushing-v1", out=tmp_path, device="torch", **small)
    each = ((train, short(tmp_path)), (train_pixels, pixels), (train_on_device, device))
    for start, settings in each:
        with alone_in(tmp_path), pytest.raises(InvalidValueError, match="another process is at"):
            start(settings)


def test_a_training_leaves_no_thread_and_refuses_a_corrupt_record(tmp_path):
    train(short(tmp_path, algorithm="sac"))
    before = threading.active_count()
    for seed in (1, 2):
        train(short(tmp_path / str(seed), algorithm="sac", seed=seed))
    assert threading.active_count() <= before
    (tmp_path / "train.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"train\.json"):
        train(short(tmp_path, algorithm="sac"))


REACHING = "trifinger/reaching-v1"
# the published weight of 100,000 only scales the reward; this one keeps returns near 1
REWARD = {"dense_reward_weights": (250.0, 0.0, 0.0, 0.0), "mended_reward": True}


def final_distance(model, *, fixed):
    """Returns the mean distance of tips and goals at the end of 32 episodes, m."""
    venv = iv.make_vec(REACHING, num_envs=32)
    seen, _ = venv.reset(seed=100)
    if not fixed:
        seen = venv.unwrapped.do(sample_new_goal(venv)).observation
    for _ in range(125):
        seen, *_, info = venv.step(model.predict(seen, deterministic=True)[0])
    apart = (info["achieved_goal"] - info["desired_goal"]).reshape(32, 3, 3)
    venv.close()
    return np.sqrt((apart**2).sum(axis=-1)).mean()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("curriculum", "steps"), [(0, 100_000), (1, 160_000)])
def test_ppo_learns_to_reach(curriculum, steps):
    baselines = pytest.importorskip("stable_baselines3")
    from interverse.agents.sb3 import WorldVecEnv

    venv = WorldVecEnv(REACHING, 16, curriculum=paper_curriculum(curriculum), **REWARD)
    venv.seed(0)
    model = baselines.PPO(
        "MlpPolicy",
        venv,
        n_steps=128,
        batch_size=256,
        gamma=0.95,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
    )
    untrained = final_distance(model, fixed=curriculum == 0)
    model.learn(steps)
    trained = final_distance(model, fixed=curriculum == 0)
    venv.close()
    print(f"\ncurriculum {curriculum}: {untrained:.4f} m untrained, {trained:.4f} m trained")
    assert trained < 0.4 * untrained
