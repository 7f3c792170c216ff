"""A whole run, small: interrupted it goes on to the same numbers, and no simulator is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from interverse.benchmarks.causalmbrl.run import reproduce
from interverse.benchmarks.causalmbrl.settings import Settings
from interverse.benchmarks.driver import reproduce_tables
from interverse.core.errors import InvalidValueError
from interverse.fit.work import (
    Clock,
    OutOfTimeError,
    Record,
    run_stamp,
)

RECORDED = Path(__file__).parents[1] / "parity" / "data" / "gridworlds.json"

WITHOUT_SIMULATORS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mujoco", "pyarrow", "stable_baselines3", "minari"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Blocked())
from interverse.cli import main
sys.exit(main(sys.argv[1:]))
"""


def smoke(out: Path, **choices) -> Settings:
    choices = {"table": (3, 9, 15), "models": ("modular",), "losses": ("contrastive",), **choices}
    return Settings(budget="smoke", seeds=2, out=out, **choices)


def cells(found: dict) -> list:
    return [table["cells"] for table in found["tables"]]


def test_rows_of_other_code_are_told_apart_and_kept(tmp_path, capsys):
    stamp = run_stamp("interverse reproduce", "cpu")
    paths = {name: tmp_path / "rows" / f"{name}.seed-1.json" for name in ("new", "old", "version")}
    for name, path in paths.items():
        record = Record(path, {"seed": 1})
        commit = "a" * 40 if name == "old" else stamp["commit"]
        source = "0" * 16 if name == "old" else stamp["source"]
        record.made_by_run({**stamp, "commit": commit, "source": source})
        if name == "version":
            record.content["made_by"] = {**record.content["made_by"], "interverse": "0.0.1"}
        record.put("Contrastive", "ranking", {"hits": 1.0})
    before = {path: path.read_bytes() for path in paths.values()}
    done = SimpleNamespace(run_all=lambda: None, failures=SimpleNamespace(raise_all=lambda: None))
    asked = SimpleNamespace(device="cpu", time_limit=None, table=(3,), out=tmp_path)
    for kept in (paths, ["new"]):
        for name in paths.keys() - set(kept):
            paths[name].unlink()
        found = reproduce_tables(asked, lambda *_: done, lambda *_: {"cells": []}, lambda *_: None)
        assert found["complete"]
        told = capsys.readouterr().err
        assert ("2 of 3 results are kept from other code" in told) == (len(kept) == 3)
        assert ("old.seed-1.json (commit aaaaaaaaaaaa;" in told) == (len(kept) == 3)
        assert ("; interverse 0.0.1)" in told) == (len(kept) == 3)
        assert "new.seed-1.json" not in told
    assert paths["new"].read_bytes() == before[paths["new"]]


@pytest.mark.slow
def test_the_time_limit_stops_it_and_the_same_command_goes_on(tmp_path):
    chosen = {"table": (3, 9), "epochs": 2}
    whole = reproduce(smoke(tmp_path / "whole", **chosen))
    assert whole["complete"]
    parts = tmp_path / "parts"
    assert not reproduce(smoke(parts, **chosen, time_limit=0.0))["complete"]
    found = reproduce(smoke(parts, **chosen, time_limit=1.5))
    for _ in range(30):
        if found["complete"]:
            break
        found = reproduce(smoke(parts, **chosen, time_limit=1.5))
    assert cells(found) == cells(whole)
    for name in ("summary.md", "index.html", "figure-21.svg", "table-03.json", "table-09.json"):
        assert (parts / name).exists()
    before = {path: path.stat().st_mtime_ns for path in (parts / "rows").iterdir()}
    reproduce(smoke(parts, **chosen))
    assert before == {path: path.stat().st_mtime_ns for path in (parts / "rows").iterdir()}


def test_another_budget_in_the_same_folder_is_refused(tmp_path):
    chosen = {"table": (3,), "models": ("ae",)}
    reproduce(smoke(tmp_path, **chosen))
    with pytest.raises(InvalidValueError, match="made with other settings"):
        reproduce(smoke(tmp_path, **chosen, epochs=2))


def test_epochs_of_the_first_stage_belong_to_nll_and_to_the_record():
    chosen = Settings(table=(3,), losses=("nll",), pretrain_epochs=2, epochs=5)
    (row, *_) = chosen.rows()
    assert chosen.budget_of(row).record()["pretrain_epochs"] == 2
    assert "--pretrain-epochs 2" in chosen.command()
    assert "pretrain_epochs" not in Settings(table=(3,)).budget_of(row).record()
    with pytest.raises(InvalidValueError, match="no row has a first stage"):
        Settings(table=(3,), losses=("contrastive",), pretrain_epochs=2)


def test_no_gpu_is_said_in_one_line(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(InvalidValueError, match="no GPU"):
        reproduce(smoke(tmp_path, device="cuda"))


@pytest.mark.slow
def test_the_command_needs_no_simulator_and_prints_json(tmp_path):
    words = "reproduce --table 17 --graphs chain --models ae --budget smoke --seeds 1 --json --out"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SIMULATORS, *words.split(), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["complete"]
    assert {cell["loss"] for cell in found["tables"][0]["cells"]} == {"NLL", "NLL Finetuned"}
    assert "pretrain 1/1 epochs" in done.stderr


def test_a_clock_counts_and_stops():
    times = iter([0.0, 1.0, 3.0])
    clock = Clock(2.0, now=lambda: next(times))
    clock.check()
    with pytest.raises(OutOfTimeError):
        clock.check()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_reduced_budget_matches_the_original_code(tmp_path):
    settings = Settings(
        table=(3,), models=("modular",), losses=("contrastive",), seeds=1, out=tmp_path
    )
    found = {
        cell["steps"]: cell["ours"]
        for cell in reproduce(settings)["tables"][0]["cells"]
        if cell["metric"] == "H@1"
    }
    runs = json.loads(RECORDED.read_text())["reduced_reference_observed3"]["runs"]
    (reference,) = [
        run
        for run in runs
        if (run["model"], run["loss"], run["encoder"], run["seed"])
        == ("Modular", "Contrastive", "small", 1)
    ]
    assert found[1] >= reference["test"]["K=1"]["h1"] - 5.0
