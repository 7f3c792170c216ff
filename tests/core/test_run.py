"""The one training run: whole checkpoints after any damage, stops that lose nothing, its code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from interverse.core import code
from interverse.core import run as runs
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.checkpoints import Checkpoint, Checkpoints
from interverse.core.run import Display, Run, patient_interrupt, terminable


def state(step: int, **more) -> Checkpoint:
    tensors = {"weights": torch.full((3,), float(step)), "rng": torch.get_rng_state()}
    record = {"curve": [{"loss": 0.1 * step}], "counts": np.arange(3)}
    return Checkpoint(step=step, record=record, tensors=tensors, **more)


def flip(path: Path, at: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 1
    path.write_bytes(bytes(data))


def test_a_checkpoint_comes_back_and_two_are_kept(tmp_path):
    held = Checkpoints(tmp_path)
    assert held.load() is None
    for step in (10, 20, 30):
        (tmp_path / f"frames-{step}.npz").write_bytes(bytes([step]))
        held.save(state(step, files=(f"frames-{step}.npz",)))
    found = Checkpoints(tmp_path).load()
    assert (found.step, found.files) == (30, ("frames-30.npz",))
    assert found.record == {"curve": [{"loss": 3.0}], "counts": [0, 1, 2]}
    assert torch.equal(found.tensors["weights"], torch.full((3,), 30.0))
    kept = (
        "frames-20.npz",
        "frames-30.npz",
        *(f"generation-{n}.{e}" for n in (2, 3) for e in ("json", "safetensors")),
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


@pytest.mark.parametrize("at", [0.02, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("name", ["generation-2.json", "generation-2.safetensors", "frames-20.npz"])
def test_any_flipped_bit_is_told_and_the_older_checkpoint_is_used(name, at, tmp_path, capsys):
    held = Checkpoints(tmp_path / runs.CHECKPOINTS)
    held.folder.mkdir()
    for step in (10, 20):
        (held.folder / f"frames-{step}.npz").write_bytes(bytes(range(step, step + 100)))
        held.save(state(step, files=(f"frames-{step}.npz",)))
    flip(held.folder / name, at)
    with Run(tmp_path, {"seed": 0}, title="run", total=40) as run:
        found = run.resume()
        assert found.step == 10
        assert float(found.tensors["weights"][0]) == 10.0
        told = capsys.readouterr().err
        assert "is damaged" in told
        assert "Going on from the one before, at step 10" in told
        run.save(state(30, files=("frames-10.npz",)))
    flip(held.folder / "generation-3.safetensors")  # now the one of step 10 is the older one
    assert Checkpoints(held.folder).load().step == 10
    flip(held.folder / "generation-1.safetensors")
    with pytest.raises(FileFormatError, match=r"every checkpoint in .* is damaged .*Delete"):
        Checkpoints(held.folder).load()


def test_checkpoints_are_on_the_disk_before_they_count(tmp_path, monkeypatch):
    order = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: order.append(os.readlink(f"/proc/self/fd/{fd}")) or sync(fd)
    )
    monkeypatch.setattr(os, "replace", lambda a, b: order.append(Path(b).name) or replace(a, b))
    Checkpoints(tmp_path).save(state(1))
    told = [Path(entry).name for entry in order]
    assert [name.endswith(".safetensors") for name in told] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert told[1::3] == ["generation-1.safetensors", "generation-1.json"]
    assert told[2::3] == [tmp_path.name] * 2


def test_a_checkpoint_is_due_by_steps_by_time_and_at_the_end(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(runs.time, "monotonic", lambda: now[0])
    with Run(tmp_path, {}, title="run", total=1000, every=100) as run:
        due = []
        for step, seconds in ((30, 1), (60, 301), (90, 302), (110, 303), (150, 304), (1000, 305)):
            now[0] = float(seconds)
            due += [step] if run.due(step) else []
            run.keep(step, lambda: state(step))  # noqa: B023
    assert due == [60, 110, 1000]
    with Run(None, {}, title="run", total=10) as run:
        assert run.resume() is None
        run.log(1, {"loss": 1.0})
        run.keep(10, lambda: state(10))
    assert Checkpoints(tmp_path / runs.CHECKPOINTS).load().step == 1000


def test_a_folder_is_one_runs_and_another_process_is_refused(tmp_path):
    with (
        Run(tmp_path, {"seed": 0, "steps": 5}, title="run", total=5),
        pytest.raises(InvalidValueError, match="another process"),
        Run(tmp_path, {"seed": 0}, title="run", total=5),
    ):
        pass
    with Run(tmp_path, {"seed": 0, "steps": 9}, title="run", total=9):
        pass
    with (
        pytest.raises(InvalidValueError, match="seed 0 there, 1 here"),
        Run(tmp_path, {"seed": 1, "steps": 9}, title="run", total=9),
    ):
        pass


def stopped_at(step: int, number: int, folder: Path) -> None:
    with Run(folder, {}, title="run", total=99, every=50) as run:
        for now in range(1, 99):
            if now == step:
                os.kill(os.getpid(), number)
            run.keep(now, lambda: state(now))  # noqa: B023


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_a_checkpoint_and_the_second_does_not_wait(number, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        stopped_at(7, number, tmp_path)
    assert Checkpoints(tmp_path / runs.CHECKPOINTS).load().step == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with patient_interrupt() as stop, patient_interrupt() as same:
        os.kill(os.getpid(), number)
        assert stop.is_set()
        assert same is stop
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with pytest.raises(KeyboardInterrupt), terminable():
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_log_has_a_line_within_the_longest_silence_also_inside_one_update(monkeypatch, capsys):
    monkeypatch.setattr(runs, "LONGEST_SILENCE", 0.02)
    with Display() as display:
        task = display.add("ppo slider", 1000)
        display.update(task, 250, "return -3.2")
        time.sleep(0.1)
        display.update(task, 500)
        time.sleep(0.1)
        display.end(task)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 6
    assert lines[0] == "ppo slider: 0 of 1,000 steps"
    assert "ppo slider: 250 of 1,000 steps, return -3.2" in lines
    assert lines[-1].startswith("ppo slider: 500 of 1,000 steps, return -3.2, ")
    assert lines[-1].endswith(" s left")
    assert threading.active_count() == 1 or not any(
        "_repeat" in t.name for t in threading.enumerate()
    )
    with Display(show=False) as quiet:
        quiet.end(quiet.add("run", 10))
    assert not capsys.readouterr().err


def test_curves_go_on_where_a_run_went_on(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for upto in (3, 5):
        with Run(tmp_path, {}, title="run", total=5) as run:
            begun = 0 if run.resume() is None else 2  # the first try is lost after step 2
            for step in range(begun + 1, upto + 1):
                run.log(step, {"loss": step + 0.1 * upto})
                if (step, upto) == (2, 3):
                    run.save(state(2))
    curve = EventAccumulator(str(tmp_path / "tensorboard"))
    curve.Reload()
    told = [(event.step, round(event.value, 1)) for event in curve.Scalars("loss")]
    assert told == [(1, 1.3), (2, 2.3), (3, 3.5), (4, 4.5), (5, 5.5)]


def test_a_killed_run_goes_on_from_a_whole_checkpoint(tmp_path):
    code = (
        "import sys, torch\n"
        "from pathlib import Path\n"
        "from interverse.core.run import Run\n"
        "from interverse.core.files.checkpoints import Checkpoint\n"
        "with Run(Path(sys.argv[1]), {}, title='run', total=10**6, every=1) as run:\n"
        "    found = run.resume()\n"
        "    for step in range(1 if found is None else found.step + 1, 10**6):\n"
        "        tensors = {'w': torch.full((1000,), float(step))}\n"
        "        run.keep(step, lambda: Checkpoint(step=step, record={}, tensors=tensors))\n"
        "        print(step, flush=True)\n"
    )
    last = 0
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
        ) as child:
            lines = [int(child.stdout.readline()) for _ in range(15)]
            child.kill()
            lines += [int(line) for line in child.stdout.read().split()]
        assert lines[0] in (last + 1, last + 2)
        held = Checkpoints(tmp_path / runs.CHECKPOINTS)
        found = held.load()
        assert not held.told
        assert found.step in (lines[-1], lines[-1] + 1)
        assert (found.tensors["w"] == found.step).all()
        last = lines[-1]


def held(folder):
    return json.loads((folder / code.TRAIN_FILE).read_text())


def test_a_folder_goes_on_with_more_steps(tmp_path):
    code.stamp_run(tmp_path, {"seed": 0, "steps": 5})
    code.stamp_run(tmp_path, {"seed": 0, "steps": 9})
    assert held(tmp_path)["steps"] == 9
    assert held(tmp_path)["code"] == [code.code_identity()]


def test_another_config_is_refused_with_both_sides(tmp_path):
    code.stamp_run(tmp_path, {"seed": 0})
    with pytest.raises(InvalidValueError, match="seed 0 there, 1 here"):
        code.stamp_run(tmp_path, {"seed": 1})


def test_of_tables_only_what_differs_is_named(tmp_path):
    code.stamp_run(tmp_path, {"hyper": {"gamma": 0.9, "batch": 64}})
    with pytest.raises(InvalidValueError, match=r"run: hyper\.gamma 0\.9 there, 0\.8 here\."):
        code.stamp_run(tmp_path, {"hyper": {"gamma": 0.8, "batch": 64}})


def test_other_code_is_told_and_written_down_and_goes_on(tmp_path, monkeypatch, capsys):
    code.stamp_run(tmp_path, {"seed": 0})
    first = code.code_identity()
    monkeypatch.setattr(code, "code_hash", lambda: "edited")
    code.stamp_run(tmp_path, {"seed": 0})
    assert "begun with other code (package): what it holds is kept" in capsys.readouterr().err
    assert held(tmp_path)["code"] == [first, code.code_identity()]
    code.stamp_run(tmp_path, {"seed": 0})
    assert len(held(tmp_path)["code"]) == 2, "each code once"
    assert capsys.readouterr().err == ""
    with pytest.raises(InvalidValueError, match="seed 0 there, 1 here"):
        code.stamp_run(tmp_path, {"seed": 1})


def test_a_folder_that_names_no_code_or_one_is_of_other_code(tmp_path, capsys):
    (tmp_path / code.TRAIN_FILE).write_text(json.dumps({"seed": 0}))
    code.stamp_run(tmp_path, {"seed": 0, "newer": 1})
    assert "other code" in capsys.readouterr().err
    assert held(tmp_path)["code"] == [{}, code.code_identity()]
    older = {"seed": 0, "newer": 1, "code": code.code_identity()}
    (tmp_path / code.TRAIN_FILE).write_text(json.dumps(older))
    code.stamp_run(tmp_path, {"seed": 0, "newer": 1})
    assert capsys.readouterr().err == ""
