"""A training run carries its world: evaluation needs the folder and nothing else."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import interverse as iv
from interverse.cli import main
from interverse.cli.view import View, session_of
from interverse.core.errors import InvalidValueError
from interverse.results import Results
from interverse.rollouts.policy_world import policy_world

OPTIONS = {"skip_frame": 3, "action_mode": "joint_torques", "max_steps": 4}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few steps, with options of its own."""
    out = tmp_path_factory.mktemp("runs") / "torques"
    words = ["train", "--task", "trifinger/reaching-v1", "--steps", "8", "--out", str(out)]
    words += ["--algorithm", "sb3_ppo"]
    words += ["--option", *(f"{name}={json.dumps(value)}" for name, value in OPTIONS.items())]
    assert main([*words, "--num-envs", "2", "--evaluate-episodes", "0"]) == 0
    return out


def test_the_policy_knows_its_world(run):
    known = policy_world(run)
    assert known.task == "trifinger/reaching-v1"
    assert {name: known.options[name] for name in OPTIONS} == OPTIONS


def test_the_next_line_is_right(run, capsys, tmp_path):
    words = ["evaluate", str(run), "--protocols", "P0", "--episodes", "2"]
    assert main([*words, "--out", str(tmp_path / "scores")]) == 0
    results = Results.from_parquet(tmp_path / "scores" / "results.parquet")
    assert {name: results.provenance["options"][name] for name in OPTIONS} == OPTIONS
    assert results.data["length"].to_pylist() == [4, 4]


def test_a_run_without_a_policy_yet_says_how_to_go_on(capsys, tmp_path):
    (tmp_path / "config.yaml").write_text("verb: train\n")
    assert main(["evaluate", str(tmp_path)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "has no policy yet" in told
    assert "interverse train --config" in told


def test_the_folder_of_an_evaluation_is_no_run(capsys, tmp_path):
    words = ["--task", "tutorial/slider-v1", "--protocols", "P0", "--episodes", "1"]
    out = tmp_path / "e"
    assert main(["evaluate", *words, "--option", "max_steps=1", "--out", str(out)]) == 0
    iv.evaluate("random", "tutorial/slider-v1", "P0", 1, max_steps=1, out=tmp_path / "p")
    for folder, known in ((out, "random --task tutorial/slider-v1"), (tmp_path / "p", "POLICY")):
        capsys.readouterr()
        assert main(["explain", str(folder)]) == 2
        told = capsys.readouterr().err.replace("\n", " ")
        assert "is a folder of `interverse evaluate` and holds no policy" in told
        assert f"what it scored ({known})" in told
        assert "train --config" not in told


def test_a_contradiction_names_both_sides(run):
    with pytest.raises(InvalidValueError, match=r"'joint_torques'.*'joint_positions'"):
        iv.evaluate(run, task="trifinger/reaching-v1", action_mode="joint_positions", episodes=1)


def test_another_rate_is_another_interface(run, capsys):
    assert main(["evaluate", str(run), "--option", "skip_frame=10", "--episodes", "1"]) == 2
    assert re.search(r"trained with skip_frame=3, and\s+skip_frame=10", capsys.readouterr().err)


def test_a_run_is_a_policy_in_python_too(run):
    episode = iv.rollout("trifinger/reaching-v1", run, seed=0)
    assert {name: episode.options[name] for name in OPTIONS} == OPTIONS
    env = iv.make("trifinger/reaching-v1", **OPTIONS)
    assert len(iv.rollout(env, str(run), seed=0)) == OPTIONS["max_steps"]
    env.close()


def test_a_world_of_other_actions_is_refused(run):
    env = iv.make("trifinger/reaching-v1", skip_frame=3, action_mode="joint_positions")
    with pytest.raises(InvalidValueError, match=r"'joint_torques'.*'joint_positions'"):
        iv.rollout(env, run)
    env.close()


def test_results_in_a_run_are_verified_with_its_policy(run, capsys):
    words = ["evaluate", str(run), "--protocols", "P0", "--episodes", "1"]
    assert main([*words, "--out", str(run / "results")]) == 0
    assert main(["verify", str(run / "results")]) == 0
    assert main(["verify", str(run / "results"), "--policy", str(run)]) == 0
    assert capsys.readouterr().out.count("VERIFIED") == 2


def test_a_run_that_has_more_steps_already_stays_as_it_is(run):
    files = [run / "policy" / "policy.json", run / "train.json"]
    before = [file.read_bytes() for file in files]
    assert main(["train", "--config", str(run / "config.yaml"), "--steps", "2"]) == 0
    assert [file.read_bytes() for file in files] == before


def test_a_run_that_was_moved_goes_on_where_it_is(run, tmp_path, capsys):
    moved = shutil.copytree(run, tmp_path / "moved")
    assert main(["train", "--config", str(moved / "config.yaml")]) == 0
    assert str(moved / "policy") in capsys.readouterr().out.replace("\n", "")


@pytest.mark.filterwarnings("error")
def test_a_smaller_last_batch_is_no_warning(tmp_path):
    words = ["train", "--task", "tutorial/slider-v1", "--steps", "4", "--num-envs", "2"]
    words += ["--hyper", "n_steps=3", "batch_size=4", "--evaluate-episodes", "0"]
    assert main([*words, "--out", str(tmp_path / "odd")]) == 0


def test_what_can_be_viewed_is_said(capsys):
    assert main(["view", "NOPE"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "unknown world 'NOPE'" in told
    assert "folder of a training run" in told


def test_a_policy_of_the_package_is_viewed_by_name():
    session = session_of(View(id="pushing_1"))
    assert session.id == "trifinger/pushing-v1"
    assert session.policy.endswith("pushing_1")
    session.close()


def test_a_default_is_part_of_the_interface_too(run):
    with pytest.raises(InvalidValueError, match=r"trained with observation_mode='structured'"):
        policy_world(run).with_options({"observation_mode": "pixel"})


@pytest.mark.parametrize("verb", ["evaluate", "explain", "view"])
def test_a_task_of_another_world_is_named(run, verb, capsys):
    other = "tutorial/slider-v1"
    words = {
        "evaluate": ["--policy", str(run), "--task", other],
        "explain": [str(run), "--task", other],
        "view": [other, "--policy", str(run)],
    }
    assert main([verb, *words[verb]]) == 2
    told = capsys.readouterr().err
    assert "trained in trifinger/reaching-v1" in told
    assert other in told


def test_its_policy_plays_in_the_viewer_where_no_scripted_one_can(run):
    server = pytest.importorskip("interverse.viewer.server")
    session = session_of(View(id=str(run)))
    viewer = server.Viewer(session, port=None)
    try:
        known = {"random": "random", f"{run.name}/policy": str(run / "policy")}
        assert viewer._page.episode._policies == known, "a page shows no folder of the machine"
        session.step()
        assert session.steps == 1
    finally:
        viewer.close()
        session.close()


@pytest.mark.parametrize(
    ("world", "option", "policy"),
    [
        ("trifinger/pushing-v1", (), "pushing_2"),
        ("trifinger/pushing-v1", ("skip_frame=10",), "random"),
        ("tutorial/slider-v1", (), "random"),
    ],
)
def test_a_world_opens_with_the_policy_of_the_package(world, option, policy):
    pytest.importorskip("torch")
    session = session_of(View(id=world, option=option))
    try:
        assert Path(session.policy).name == policy
    finally:
        session.close()


def test_a_missing_library_is_named_with_the_extra_that_brings_all(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("interverse.cli.train.find_spec", lambda name: None)
    assert main(["train", "--task", "tutorial/slider-v1", "--out", str(tmp_path / "run")]) == 2
    assert "interverse[rl]" in capsys.readouterr().err


def test_what_the_policy_does_not_depend_on_may_differ(run):
    results = iv.evaluate(
        run, task="trifinger/reaching-v1", protocols="P0", episodes=1, max_steps=2
    )
    assert results.data["length"].to_pylist() == [2]


def test_a_policy_without_a_world_needs_a_task(capsys):
    assert main(["evaluate", "--policy", "random"]) == 2
    assert "does not say which world" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_verb_ends_by_either_signal_and_keeps_what_is_finished(number, tmp_path):
    words = ["evaluate", "--task", "tutorial/slider-v1", "--episodes", "20000"]
    words += ["--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "interverse", *words]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.rglob("run.json")) and run.poll() is None:
        time.sleep(0.05)
    run.send_signal(number)
    _, told = run.communicate()
    assert run.returncode == 130, told
    assert told.strip().endswith("interverse evaluate: stopped")
