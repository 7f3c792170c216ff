"""Evaluations during training: a file that survives a real kill, and the curve drawn from it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.protocols.evaluate import evaluate
from interverse.protocols.learning import TrainAndEvaluate, train_and_evaluate
from interverse.reports.runs import read_folder
from interverse.results import Results

SLIDER = "tutorial/slider-v1"
INTERVERSE = Path(sys.executable).parent / "interverse"


def config(out, **more):
    settings = {"task": SLIDER, "out": out, "num_envs": 4, "checkpoint_every": 512, "steps": 1024}
    return TrainAndEvaluate(**settings | {"evaluate_episodes": 3} | more)


def test_every_checkpoint_is_scored(tmp_path):
    train_and_evaluate(config(tmp_path, evaluate_protocols="P0,P2"))
    results = Results.from_parquet(tmp_path / "evaluation.parquet")
    assert sorted(set(results.column("step"))) == [512, 1024]
    assert (results.experiments, results.protocols) == (["sb3_ppo"], ["P0", "P2"])
    assert len(results) == 2 * 2 * 3
    (run,) = read_folder(tmp_path).provenance["runs"]
    assert Path(run["source"]) == tmp_path / "policy"


def test_checkpoints_take_the_test_that_their_policy_would(tmp_path):
    world = {"observation": "state", "max_steps": 20}
    given = {"task": "control/cartpole_balance-v1", "steps": 512, "evaluate_protocols": "none"}
    options = world | {"visual_seed": 3, "threads": 1}
    policy = train_and_evaluate(config(tmp_path, options=options, **given))
    (run,) = read_folder(tmp_path).provenance["runs"]
    assert (run["options"], run["training_place"]) == (world | {"threads": 1}, {"visual_seed": 3})
    again = evaluate(policy, "control/cartpole_balance-v1", "none", episodes=3)
    scored = Results.from_parquet(tmp_path / "evaluation.parquet")
    assert scored.scores("return").tolist() == again.scores("return").tolist()


def test_scores_from_beyond_the_last_checkpoint_are_dropped(tmp_path):
    train_and_evaluate(config(tmp_path))
    stray = tmp_path / "evaluation" / "step-000000001500.parquet"
    stray.write_bytes((tmp_path / "evaluation" / "step-000000001024.parquet").read_bytes())
    train_and_evaluate(config(tmp_path, steps=1536))
    results = Results.from_parquet(tmp_path / "evaluation.parquet")
    assert sorted(set(results.column("step"))) == [512, 1024, 1536]


def test_no_episodes_no_file(tmp_path):
    train_and_evaluate(config(tmp_path, steps=512, evaluate_episodes=0))
    assert not (tmp_path / "evaluation.parquet").exists()


def test_mistakes_show_before_any_work(tmp_path):
    with pytest.raises(UnknownNameError, match="unknown protocol 'P77'"):
        train_and_evaluate(config(tmp_path / "run", evaluate_protocols="P77"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(InvalidValueError, match="evaluate_episodes is -1"):
        config(tmp_path, evaluate_episodes=-1)


def start(out, *flags):
    words = ["train", "--task", SLIDER, "--steps", "20000", "--checkpoint-every", "4000"]
    given = ["--num-envs", "4", "--evaluate-episodes", "10", "--out", str(out), *flags]
    return subprocess.Popen([INTERVERSE, *words, *given], env=os.environ | {"OMP_NUM_THREADS": "1"})


def scored(out):
    return [int(f.stem.rpartition("-")[2]) for f in (out / "evaluation").glob("step-*.parquet")]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("algorithm", ["sb3_ppo", "sac"])
def test_killed_at_12000_of_20000_steps_and_resumed_it_ends_as_an_unbroken_run(algorithm, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = start(killed, "--algorithm", algorithm)
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline and max(scored(killed), default=0) < 12_000:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 12_000 <= max(scored(killed)) < 17_000
    assert start(killed, "--algorithm", algorithm).wait() == 0
    assert start(whole, "--algorithm", algorithm).wait() == 0
    cards = [json.loads((f / "policy" / "policy.json").read_text()) for f in (whole, killed)]
    assert cards[0] == cards[1]
    assert cards[0]["trained"]["steps"] >= 20_000
    name = "evaluation.parquet"
    assert (whole / name).read_bytes() == (killed / name).read_bytes()
    ours, theirs = (load_file(f / "policy" / "policy.safetensors") for f in (whole, killed))
    assert all(np.array_equal(ours[key], theirs[key]) for key in ours)


def test_a_baseline_trains_on_states_of_control(tmp_path):
    """Its evaluations run under the task's own training protocol: control has no P0."""
    given = {"task": "control/cartpole_balance-v1", "steps": 512, "checkpoint_every": 512}
    options = {"observation": "state", "max_steps": 8}
    train_and_evaluate(config(tmp_path, options=options, **given))
    results = Results.from_parquet(tmp_path / "evaluation.parquet")
    assert results.protocols == ["train"]
    with pytest.raises(InvalidValueError, match="sac_aug"):
        train_and_evaluate(config(tmp_path / "pixels", **given))
