"""Runs side by side in one process: each is what it is alone, also after a kill."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from interverse.agents.pixel import graphed
from interverse.agents.pixel import train as run_module
from interverse.agents.pixel.config import MOST_TOGETHER, plan
from interverse.agents.pixel.graphed import GraphedUpdate
from interverse.agents.pixel.replay import Replay
from interverse.agents.pixel.tdmpc2 import TdMpc2
from interverse.agents.pixel.train import PixelRun, train, train_together
from interverse.cli import main
from interverse.core.errors import InvalidValueError, StorageError
from interverse.core.files.checkpoints import Checkpoints
from interverse.core.run import CHECKPOINTS, Run
from tests.agents.pixel.dot import Dot
from tests.agents.pixel.test_train import PLANNING, TINY, config


def kept(folder: Path) -> dict[str, bytes]:
    """Returns what a run leaves behind, byte for byte, but TensorBoard's logs with their times."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    held = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {name: data for name, data in held.items() if not name.startswith("tensorboard")}


def three(out: Path, **more) -> list:
    """Returns runs of two algorithms and three lengths, whose checkpoints do not coincide."""
    planning = {"algorithm": "tdmpc2", "hyper": {**TINY, **PLANNING}, "steps": 25}
    return [
        config(out / "a", **more),
        config(out / "b", seed=1, steps=45, checkpoint_every=17, **more),
        config(out / "c", seed=2, **{**planning, **more}),
    ]


def assert_same(mine: Path, theirs: Path) -> None:
    one, other = kept(mine), kept(theirs)
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


@pytest.mark.parametrize("overlap", [False, True])
def test_together_equals_alone(overlap, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_LOG_EVERY", 7)
    folders = train_together(three(tmp_path / "together", overlap=overlap), make_env=Dot)
    assert folders == [tmp_path / "together" / name / "policy" for name in "abc"]
    for alone in three(tmp_path / "alone", overlap=overlap):
        train(alone, make_env=Dot)
        names = {"curves.json", "policy/policy.safetensors", "checkpoint/generation-2.json"}
        assert names <= kept(alone.out).keys()
        assert_same(tmp_path / "together" / alone.out.name, alone.out)


def test_killed_and_started_again_equals_unbroken(tmp_path, dying):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_together(three(whole), make_env=Dot)
    for _ in range(3):
        with dying():
            train_together(three(broken), make_env=Dot)
    held = [Checkpoints(path / CHECKPOINTS).load() for path in sorted(broken.iterdir())]
    assert any(one is None or one.step < 25 for one in held)
    train_together(three(broken), make_env=Dot)
    for name in "abc":
        assert_same(broken / name, whole / name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_each_run_stops_with_a_checkpoint_and_a_policy(number, tmp_path, monkeypatch):
    runs = [replace(one, steps=30) for one in three(tmp_path / "stopped")[:2]]
    begin = PixelRun.begin

    def stopping(run):
        if run.step == 25 and run._config.out.name == "a":
            os.kill(os.getpid(), number)
        begin(run)

    with monkeypatch.context() as patch:
        patch.setattr(PixelRun, "begin", stopping)
        with pytest.raises(KeyboardInterrupt):
            train_together(runs, make_env=Dot)
    for one in runs:
        assert Checkpoints(one.out / CHECKPOINTS).load().step in (25, 26)
        assert (one.out / "policy" / "policy.json").exists()
    whole = [replace(one, out=tmp_path / "whole" / one.out.name) for one in runs]
    for one, other in zip(runs, whole, strict=True):
        train_together([one], make_env=Dot)
        train_together([other], make_env=Dot)
        files = [c.out / "policy" / "policy.safetensors" for c in (one, other)]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_finished_run_is_not_trained_again(tmp_path, monkeypatch):
    first, second, _ = three(tmp_path)
    train(first, make_env=Dot)
    before, made = kept(first.out), []
    original = PixelRun.begin
    monkeypatch.setattr(PixelRun, "begin", lambda run: made.append(run) or original(run))
    train_together([first, second], make_env=Dot)
    assert kept(first.out) == before
    assert len({id(run) for run in made}) == 1
    assert (second.out / "policy" / "policy.json").exists()


def test_steps_are_begun_together_and_a_run_that_ends_is_closed_at_once(tmp_path, monkeypatch):
    told = []
    for name in ("begin", "finish", "close"):
        original = getattr(PixelRun, name)

        def telling(run, name=name, original=original):
            told.append((name, run._config.out.name))
            original(run)

        monkeypatch.setattr(PixelRun, name, telling)
    one, other, _ = three(tmp_path)
    train_together([replace(one, steps=2), replace(other, steps=3)], make_env=Dot)
    both = [("begin", "a"), ("begin", "b"), ("finish", "a"), ("finish", "b")]
    assert told == [*both, *both, ("close", "a"), *[(n, "b") for n in ("begin", "finish", "close")]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"threads": 2}, "threads 1 and 2"),
        ({"precision": "tf32"}, "precision float32 and tf32"),
        ({"out": "a"}, "two runs have the folder"),
        ({"wandb": "project"}, "wandb follows one run"),
        ({"hyper": {**TINY, "frame_stack": 2}}, r"\(6, S, S\)"),
    ],
    ids=str,
)
def test_runs_that_do_not_go_together(tmp_path, change, told):
    one, other, _ = three(tmp_path)
    change = {**change, "out": tmp_path / change.get("out", "b")}
    with pytest.raises(InvalidValueError, match=told):
        train_together([one, replace(other, **change)], make_env=Dot)
    assert not list(tmp_path.rglob("train.json")), "a refused call claims nothing"


def test_none_and_too_many(tmp_path):
    with pytest.raises(InvalidValueError, match="the number of runs is 0"):
        train_together([])
    many = [config(tmp_path / str(n)) for n in range(MOST_TOGETHER + 1)]
    with pytest.raises(InvalidValueError, match=f"from 1 to {MOST_TOGETHER}"):
        train_together(many)


def test_an_error_names_its_folder_and_lets_the_others_go(tmp_path, monkeypatch):
    one, other, _ = three(tmp_path)
    original = Run.save

    def full(self, checkpoint):
        if self.folder == one.out:
            raise OSError(28, "No space left on device")
        original(self, checkpoint)

    monkeypatch.setattr(Run, "save", full)
    with pytest.raises(StorageError, match=str(one.out)):
        train_together([one, other], make_env=Dot)
    monkeypatch.setattr(Run, "save", original)
    train_together([one, other], make_env=Dot)  # both folders are free again
    train(replace(one, out=tmp_path / "alone"), make_env=Dot)
    assert_same(one.out, tmp_path / "alone")


def test_seeds_on_the_command_line(tmp_path, capsys):
    sizes = "image_size=32 render_size=32 filters=4 layers=2 features=8 hidden=16 batch=8 warm_up=8"
    words = ["train", "--task", "control/cartpole_balance-v1", "--algorithm", "sac_aug"]
    words += ["--steps", "10", "--evaluate-episodes", "1", "--option", "max_steps=4"]
    words += ["quality=fast", "--hyper", *sizes.split(), "capacity=100"]
    assert main([*words, "--seeds", "3", "5", "--out", str(tmp_path / "runs")]) == 0
    assert f"interverse report {tmp_path / 'runs' / 'seed-3'} " in capsys.readouterr().out
    assert main([*words, "--seed", "5", "--out", str(tmp_path / "alone")]) == 0
    for data in (kept(tmp_path / "alone"), kept(tmp_path / "runs" / "seed-5")):
        assert json.loads(data["train.json"])["seed"] == 5
    assert main([*words, "--seeds", "2", "--out", str(tmp_path / "two")]) == 0
    assert sorted(run.name for run in (tmp_path / "two").glob("seed-*")) == ["seed-0", "seed-1"]
    alone = {n: d for n, d in kept(tmp_path / "alone").items() if n != "config.yaml"}
    assert kept(tmp_path / "runs" / "seed-5") == alone


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--algorithm", "sac_aug", "--seeds", "0", "1", "--seed", "0"], "--seed and --seeds"),
        (["--algorithm", "sac_aug", "--seeds", "1", "1"], "two runs have the folder"),
        (["--algorithm", "sac_aug", "--seeds", "0", "-1"], "got -1"),
        (
            ["--algorithm", "sb3_ppo", "--seeds", "0", "1"],
            "--seeds does not go with --algorithm sb3_ppo",
        ),
    ],
    ids=str,
)
def test_seeds_that_are_refused(tmp_path, capsys, flags, told):
    words = ["train", "--task", "control/cartpole_balance-v1", "--steps", "1"]
    assert main([*words, *flags, "--out", str(tmp_path / "run")]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_whatever_touches_the_device_is_on_the_stream_of_its_run(tmp_path, monkeypatch):
    """What a CPU can show of it: each piece of work happens inside the run's context."""
    depth, seen = [0], set()

    @contextmanager
    def stream(_run):
        depth[0] += 1
        yield
        depth[0] -= 1

    def watch(owner, name):
        original = getattr(owner, name)

        def watched(*given, **more):
            assert depth[0], name
            seen.add(name)
            return original(*given, **more)

        monkeypatch.setattr(owner, name, watched)

    monkeypatch.setattr(PixelRun, "stream", stream)
    work = {
        Replay: ("__init__", "add", "gather", "save", "load"),
        GraphedUpdate: ("__init__", "__call__"),
        TdMpc2: ("_start", "update", "_decide", "state", "load"),
        PixelRun: ("_note",),
        run_module: ("export",),
    }
    for owner, names in work.items():
        for name in names:
            watch(owner, name)
    monkeypatch.setattr(run_module, "_LOG_EVERY", 7)
    one = three(tmp_path)[2]
    for steps in (22, 25):
        train_together([replace(one, steps=steps)], make_env=Dot)
    assert seen == {name for names in work.values() for name in names}
    assert depth == [0]


def test_a_run_with_a_stream_of_its_own_records_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: "default")
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: "new")
    gpu = torch.device("cuda")
    for present, expected in (("default", "new"), ("own", "own")):
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device, now=present: now)
        assert graphed._recording_stream(gpu) == expected
    assert graphed._recording_stream(torch.device("cpu")) is None


@pytest.mark.gpu
@pytest.mark.parametrize("overlap", [False, True])
def test_together_equals_alone_on_a_gpu(overlap, tmp_path, monkeypatch):
    """In one process, so that cuDNN's trials choose the same kernels; only repeatable ones."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    settings = {"device": "cuda", "overlap": overlap}
    for name in ("alone", "again"):
        for one in three(tmp_path / name, **settings):
            train(one, make_env=Dot)
    train_together(three(tmp_path / "together", **settings), make_env=Dot)
    for name in "abc":
        assert_same(tmp_path / "again" / name, tmp_path / "alone" / name)  # else nothing is shown
        assert_same(tmp_path / "together" / name, tmp_path / "alone" / name)


@pytest.mark.gpu
def test_runs_on_a_gpu_have_streams_of_their_own(tmp_path):
    configs = three(tmp_path, device="cuda")
    runs = [PixelRun(one, plan(one), Dot, own_stream=True) for one in configs]
    streams = [stream for run in runs for stream in (run._stream, run.agent._side)]
    assert len({stream.cuda_stream for stream in streams}) == 6
    assert all(run._update._stream == run._stream for run in runs)
    assert runs[2].agent._explore._stream == runs[2]._stream
    for run in runs:
        run.close()
