"""Curves of a pixel agent's run as results: what `interverse report` draws them from."""

import json

import numpy as np
import pytest

from interverse.cli import main
from interverse.core.errors import FileFormatError
from interverse.reports.runs import read_folder
from interverse.results import Results

CONFIG = {
    "task": "control/cartpole_balance-v1",
    "algorithm": "sac_aug",
    "seed": 3,
    "hyper": {"beta": 1.0},
}
CURVES = {
    "episodes": [{"step": 8, "return": 20.0, "length": 8}, {"step": 8, "return": 1.0, "length": 8}],
    "evaluations": [
        {"step": 10, "mean": 30.0, "returns": [20.0, 40.0]},
        {"step": 20, "mean": 50.0, "returns": [45.0, 55.0]},
    ],
    "losses": [{"step": 10, "critic": 0.5}],
}


def run_folder(folder, curves=CURVES, **config):
    folder.mkdir()
    (folder / "train.json").write_text(json.dumps(CONFIG | config))
    (folder / "curves.json").write_text(json.dumps(curves))
    return folder


def test_evaluations_have_their_steps(tmp_path):
    results = read_folder(run_folder(tmp_path / "a"))
    assert results.experiments == ["sac_aug beta=1.0"]
    assert results.column("step").tolist() == [10, 10, 20, 20]
    assert results.column("episode").tolist() == [0, 1, 0, 1]
    assert results.scores("return").tolist() == [20.0, 40.0, 45.0, 55.0]
    assert set(results.column("seed")) == {3}


def test_runs_of_several_seeds_are_one_experiment(tmp_path):
    parts = [read_folder(run_folder(tmp_path / str(seed), seed=seed)) for seed in (0, 1)]
    parts.append(read_folder(run_folder(tmp_path / "other", hyper={"beta": 0.0})))
    assert len(Results.concat(parts).experiments) == 2


def test_before_the_first_evaluation_there_is_exploration(tmp_path):
    results = read_folder(run_folder(tmp_path / "a", CURVES | {"evaluations": []}))
    assert results.protocols == ["exploration"]
    assert results.scores("return").tolist() == [20.0, 1.0]


@pytest.mark.parametrize("text", ["{", "[]", '{"evaluations": [{"step": 1}], "episodes": []}'])
def test_broken_curves_are_named(tmp_path, text):
    folder = run_folder(tmp_path / "a")
    (folder / "curves.json").write_text(text)
    with pytest.raises(FileFormatError, match=str(folder)):
        read_folder(folder)


def test_the_report_shows_the_learning_curve(tmp_path):
    folder = run_folder(tmp_path / "a")
    main(["report", str(folder), "--out", str(tmp_path / "page")])
    page = (tmp_path / "page" / "index.html").read_text()
    assert "Learning curves" in page
    assert (tmp_path / "page" / "plots" / "curves.svg").stat().st_size > 5000
    assert not np.isnan(read_folder(folder).column("step").astype(float)).any()
