"""Downloaded folders run no code of their own until somebody vouches for them."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

import interverse as iv
from interverse.cli import main
from interverse.protocols.verify import verify
from interverse.results import Results
from interverse.rollouts.episode import Episode
from interverse.worlds import WORLDS

TASK = "trap_a:lab/trap_a-v1"
WORLD = """import pathlib
import interverse as iv
pathlib.Path("ran").touch()
iv.register("lab/trap_a-v1", "interverse.worlds.tutorial.world:Slider", max_steps=3)
iv.register("lab/trap_b-v1", "interverse.worlds.trifinger.world:TriFinger", task="pushing")
from interverse.worlds.trifinger.tasks.one_block import Pushing
"""
VOUCH = "names code of its own, {}, and using it would run trap_a. If you trust whoever wrote it"


def forget() -> None:
    """Leaves the module to be imported anew, as by the next command."""
    sys.modules.pop("trap_a", None)
    for name in ("lab/trap_a-v1", "lab/trap_b-v1"):
        WORLDS._rows.pop(name, None)
    Path("ran").unlink(missing_ok=True)
    importlib.invalidate_caches()


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """The present folder, with a world whose module shows that it was run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    monkeypatch.setattr(WORLDS, "_rows", dict(WORLDS._rows))
    (tmp_path / "trap_a.py").write_text(WORLD)
    yield tmp_path
    forget()


@pytest.fixture
def results(workshop):
    """A folder of results of that world, as if it came from elsewhere."""
    iv.evaluate("random", TASK, protocols="P0", episodes=2, out="run", max_steps=3)
    forget()
    return "run"


def test_verify_asks_before_it_runs_code_that_results_name(results, capsys):
    assert main(["verify", results]) == 2
    assert VOUCH.format(TASK) in capsys.readouterr().err
    assert not Path("ran").exists()
    assert main(["verify", results, "--trust"]) == 0
    assert Path("ran").exists()


def test_the_argument_and_an_import_of_ones_own_are_trust_as_well(results):
    with pytest.raises(iv.errors.InvalidValueError, match="import trap_a first"):
        verify(results)
    assert verify(results, trust=True).problems == ()
    forget()
    importlib.import_module("trap_a")
    assert verify(results).problems == ()


def test_code_among_the_options_of_results_is_asked_about_too(workshop):
    task = "trap_a:Pushing"
    importlib.import_module("trap_a")
    iv.evaluate("random", "lab/trap_b-v1", protocols="P0", episodes=1, out="run", max_steps=1)
    folder = Path("run")
    held = Results.from_parquet(folder / "results.parquet")
    told = {**held.provenance, "options": {**held.provenance["options"], "task": task}}
    rows = [{**row, "task": "trifinger/pushing-v1"} for row in held.data.to_pylist()]
    Results.from_rows(rows, told).to_parquet(folder / "results.parquet")
    forget()
    with pytest.raises(iv.errors.InvalidValueError, match=VOUCH.format(task)):
        verify(folder)
    assert not Path("ran").exists()


def test_a_report_says_why_it_shows_no_episode(results, capsys):
    assert main(["report", results]) == 0
    assert VOUCH.format(TASK) in Path("run/report/index.html").read_text()
    assert not Path("ran").exists()
    assert main(["report", results, "--trust"]) == 0
    assert Path("ran").exists()
    assert VOUCH.format(TASK) not in Path("run/report/index.html").read_text()


def test_diff_and_reading_run_nothing(results):
    assert main(["diff", results, results]) == 0
    assert not Path("ran").exists()


def test_a_policy_that_names_its_world_s_code(workshop, capsys):
    pytest.importorskip("stable_baselines3")
    words = f"train --task {TASK} --steps 4 --num-envs 2 --evaluate-episodes 0"
    assert main([*words.split(), "--hyper", "n_steps=2", "batch_size=4", "--out", "run"]) == 0
    play = ["--protocols", "P0", "--episodes", "1"]
    for words in (
        ["evaluate", "run", *play],
        ["explain", "run", "--episodes", "2"],
        ["export", "run", "--no-video"],
        ["view", "run", "--seconds", "0"],
    ):
        forget()
        capsys.readouterr()
        assert main(words) == 2
        assert VOUCH.format(TASK) in capsys.readouterr().err
        assert not Path("ran").exists()
    assert main(["evaluate", "run", *play, "--trust"]) == 0
    forget()
    assert main(["evaluate", "run", *play, "--task", TASK]) == 0, "what is typed is trusted"


def test_an_episode_of_a_file_runs_no_code(workshop):
    fact = iv.rollout(TASK, "random", max_steps=2)
    header = {**vars_of(fact), "id": TASK}
    Episode(**header).save("fact.h5")
    forget()
    with pytest.raises(iv.errors.InvalidValueError, match=VOUCH.format(TASK)):
        iv.counterfactual(Episode.load("fact.h5"), {})
    assert not Path("ran").exists()
    importlib.import_module("trap_a")
    assert len(iv.counterfactual(Episode.load("fact.h5"), {})) == 2


def vars_of(episode: Episode) -> dict:
    return {name: getattr(episode, name) for name in Episode.__slots__}


def test_trust_is_no_setting_of_a_file(results, capsys):
    Path("verify.yaml").write_text(f"verb: verify\nfolder: {json.dumps(results)}\ntrust: true\n")
    assert main(["verify", "--config", "verify.yaml"]) == 2
    assert "unknown key of config 'trust'" in capsys.readouterr().err
    assert not Path("ran").exists()
