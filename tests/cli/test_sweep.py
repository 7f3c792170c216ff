"""Sweeps: cells of a file, dry runs, failures, resumption by content, any number of workers."""

import json
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

import interverse as iv
from interverse.cli import main
from interverse.cli import sweep as module
from interverse.cli.sweep import FAILED, read_plan, sweep
from interverse.core.errors import InvalidValueError, UnknownNameError

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.yaml"
KEPT = ("policy/policy.safetensors", "policy/policy.json", "scores/results.parquet")
SMALL = """
tasks: [tutorial/slider-v1]
algorithms: [sb3_ppo]
seeds: 2
train: {steps: 4, num_envs: 2, evaluate_episodes: 0, option: {max_steps: 4}}
evaluate: {protocols: P0, episodes: 2}
"""


@pytest.fixture(autouse=True)
def short_batches(monkeypatch):
    """Lets PPO learn from 8 steps, so that a cell takes a moment."""
    from dataclasses import replace

    from interverse.agents import presets

    small = presets.PRESETS["sb3_ppo", "small"]
    short = replace(small, settings={"n_steps": 4, "batch_size": 8, "n_epochs": 1})
    monkeypatch.setitem(presets.PRESETS, ("sb3_ppo", "small"), short)


@pytest.fixture
def no_report(monkeypatch):
    """Leaves the page out, which takes longer than the cells."""
    monkeypatch.setattr("interverse.reports.page.report", lambda *_, **__: None)


def written(folder, text=SMALL, name="sweep.yaml"):
    path = folder / name
    path.write_text(text)
    return path


def cell_folders(out):
    return sorted((out / "cells").iterdir())


def test_the_example_has_every_combination():
    plan = read_plan(EXAMPLE)
    assert len(plan) == 2 * 2 * 2 * 3
    assert plan[0].name == "trifinger_reaching-v1-sb3_ppo-c0-s0"
    assert {cell.experiment for cell in plan} == {
        "sb3_ppo-c0",
        "sb3_ppo-c1",
        "sac-her-c0",
        "sac-her-c1",
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("taks: [a]", "unknown key of sweep.yaml 'taks'.*mean 'tasks'"),
        ("train: {stepz: 3}", "unknown flag 'stepz'.*mean 'steps'"),
        ("train: {steps: many}", "tutorial_slider-v1-sb3_ppo-s0: .*steps"),
        ("train: {seed: 3}", "sweep.yaml, train gives seed"),
        ("evaluate: {protocols: P99}", "P99"),
        ("evaluate: {episodes: 1, metrics: [nothing]}", "nothing"),
        ("evaluate: {policy: evil.zip}", "unknown key"),
        (
            "tasks: [control/cartpole_balance-v1]\n"
            "evaluate: {protocols: train, option: [visual_seed=7]}",
            "visual_seed=7 is asked for, and protocol train sets visual_seed itself",
        ),
        ("tasks: []", "tasks is"),
        ("tasks: [no/such-v1]", "no/such-v1"),
        ("algorithms: [dqn]", "dqn"),
        ("algorithms: [{name: sb3_ppo}]", "algorithms has"),
        ("algorithms: [{algorithm: sb3_ppo, name: ../x}]", "an algorithm is named"),
        ("algorithms: [sb3_ppo, {algorithm: sb3_ppo, her: false}]", "two cells"),
        ("curricula: [{a: 1}]", "curricula has"),
        ("seeds: 99999999999", "seeds is"),
        ("seeds: [0, x]", "seeds is"),
        ("train: [steps]", "train is"),
        ("algorithms: [{algorithm: sb3_ppo, her: true}]", "her is on with algorithm sb3_ppo"),
        ("algorithms: [sac_aug]\ncurricula: [1]", "--num-envs does not go with"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_before_any_work(tmp_path, capsys, line, told):
    keys = {part.partition(":")[0] for part in line.splitlines()}
    kept = [row for row in SMALL.splitlines() if row and row.partition(":")[0] not in keys]
    file = written(tmp_path, "\n".join([*kept, line]))
    with pytest.raises((InvalidValueError, UnknownNameError), match=told):
        read_plan(file)
    assert main(["sweep", str(file), "--out", str(tmp_path / "o")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "o" / "cells").exists()


def test_a_dry_run_starts_nothing(tmp_path, capsys):
    file = written(tmp_path)
    assert main(["sweep", str(file), "--out", str(tmp_path / "o"), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("new") == 2
    assert "2 cells" in shown
    assert not (tmp_path / "o").exists()


@pytest.mark.usefixtures("no_report")
def test_the_tests_of_a_sweep_may_have_seeds_of_their_own(tmp_path):
    file = written(tmp_path, SMALL.replace("episodes: 2}", "episodes: 2, seed: 100}"))
    rows = sweep(file, tmp_path / "o").results.data.to_pylist()
    assert [row["seed"] for row in rows] == [100, 100, 101, 101]


@pytest.mark.usefixtures("no_report")
def test_finished_cells_are_skipped_by_what_they_hold(tmp_path, monkeypatch):
    file, out = written(tmp_path), tmp_path / "o"
    first = sweep(file, out)
    assert (len(first.results), first.failed) == (4, {})
    table = (out / "results.parquet").read_bytes()
    ran = []
    real = module.run_cell
    monkeypatch.setattr(module, "run_cell", lambda c, f, **o: (ran.append(c.seed), real(c, f, **o)))
    sweep(file, out)
    assert ran == []
    weights = cell_folders(out)[1] / "policy" / "policy.safetensors"
    good = weights.read_bytes()
    weights.write_bytes(good[:-1] + b"x")
    sweep(file, out)
    assert ran == [1]
    assert weights.read_bytes() == good
    assert (out / "results.parquet").read_bytes() == table


@pytest.mark.usefixtures("no_report")
def test_other_flags_are_refused_and_other_code_and_a_larger_grid_are_not(tmp_path, monkeypatch):
    file, out = written(tmp_path), tmp_path / "o"
    sweep(written(tmp_path, SMALL.replace("seeds: 2", "seeds: 1"), "one.yaml"), out)
    assert len(sweep(file, out).results) == 4
    other = written(tmp_path, SMALL.replace("steps: 4,", "steps: 9,"), "other.yaml")
    with pytest.raises(InvalidValueError, match="holds another cell: train"):
        sweep(other, out)
    from interverse.core import code

    monkeypatch.setattr(code, "code_hash", lambda: "other")
    assert sweep(file, out).failed == {}


def test_a_failed_cell_is_recorded_and_the_others_go_on(tmp_path, capsys):
    text = SMALL.replace("[sb3_ppo]", "[{algorithm: sac, her: true, name: bad}, sb3_ppo]")
    file, out = written(tmp_path, text), tmp_path / "o"
    assert main(["sweep", str(file), "--out", str(out)]) == 2
    assert "2 cells failed" in capsys.readouterr().err
    states = [(folder / FAILED).exists() for folder in cell_folders(out)]
    assert states == [True, True, False, False]
    error = json.loads((cell_folders(out)[0] / FAILED).read_text())["error"]
    assert "goal" in error
    assert iv.Results.from_parquet(out / "results.parquet").experiments == ["sb3_ppo"]
    assert (out / "report" / "index.html").exists()


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("how", [{"workers": 2}, {"workers": 2, "cluster": "local"}])
def test_other_workers_write_the_same_bytes(tmp_path, monkeypatch, how):
    monkeypatch.undo()  # other processes have the batches of the package
    file = written(tmp_path)
    outcomes = [sweep(file, tmp_path / "one"), sweep(file, tmp_path / "two", **how)]
    assert [outcome.failed for outcome in outcomes] == [{}, {}]
    for name in (
        "results.parquet",
        *(f"cells/{c.name}/{p}" for c in read_plan(file) for p in KEPT),
    ):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_one_sweep_at_a_time_is_in_a_folder(tmp_path):
    from interverse.core.files.atomic import alone_in

    with alone_in(tmp_path / "o"), pytest.raises(InvalidValueError, match="another process"):
        sweep(written(tmp_path), tmp_path / "o")
