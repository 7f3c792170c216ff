"""Ctrl-C loses nothing, the bar shows returns while it moves, hyper-parameters reach SB3."""

from __future__ import annotations

import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

import interverse as iv
from interverse.agents.sb3 import WorldVecEnv
from interverse.agents.train import Train, make_env, make_model, train
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.files.checkpoints import Checkpoints
from interverse.core.run import CHECKPOINTS, Run
from interverse.protocols.learning import TrainAndEvaluate, train_and_evaluate

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
    assert held.step == (384 if algorithm == "sb3_ppo" else 28)
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


@pytest.mark.parametrize(
    ("hyper", "error"),
    [({"seed": 1}, UnknownNameError), ({"batch_size": "x"}, InvalidValueError)],
)
def test_mistaken_hyper_parameters_are_refused(hyper, error, tmp_path):
    with pytest.raises(error, match=next(iter(hyper))):
        train(Train(**RUN, out=tmp_path / "run", hyper=hyper))
    assert not (tmp_path / "run").exists()


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
