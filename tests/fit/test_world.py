"""`interverse fit`: from an id to one page, resumed after a stop."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from interverse.benchmarks.causalmbrl.results_page import load_rows
from interverse.cli import main
from interverse.cli.fit import FitCommand, out_folder
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.fit import work
from interverse.fit import world as module
from interverse.fit.settings import budget
from interverse.fit.world import FitWorld, fit_world


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """A budget of seconds."""
    monkeypatch.setattr(module, "_SMOKE", budget("smoke", "contrastive"))
    monkeypatch.setattr(module, "_SMOKE_HIDDEN", 32)


@pytest.mark.parametrize(
    ("name", "model", "loss"),
    [
        ("blocks/observed-3-v1", "modular", "contrastive"),
        pytest.param("chemistry/chain-v1", "ae", "nll", marks=pytest.mark.slow),
    ],
)
def test_an_id_becomes_a_page_with_every_score_beside_its_ceiling(
    tmp_path, capsys, monkeypatch, name, model, loss
):
    settings = FitWorld(id=name, model=model, loss=loss, out=tmp_path / "fit")
    assert not fit_world(replace(settings, time_limit=0.0))["complete"]
    found = fit_world(settings)
    assert found["complete"]
    page = (settings.folder / "index.html").read_text()
    for text in (
        "H@1",
        "open loop",
        "ceiling: the true world",
        "CF-MRR",
        "copy of the fact",
        "true outcomes, read by the probe",
        "MPPI",
    ):
        assert text in page
    for figure in ("curves.svg", "predictions.png", "graph.svg"):
        assert figure in page
        assert (settings.folder / figure).stat().st_size > 1000
    (record,) = found["seeds"]
    assert record["runs"][0]["command"].startswith(f"interverse fit {name} --model {model}")
    assert set(record["scores"]["model"]) == {"ranking", "planning", "search", "recovery"}
    capsys.readouterr()
    monkeypatch.setattr(work, "commit", lambda: "later")  # adds no score, so no run
    words = ["fit", name, "--model", model, "--loss", loss, "--out", str(settings.folder)]
    assert main([*words, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["complete"]
    assert again["seeds"][0]["scores"] == json.loads(json.dumps(record["scores"]))
    assert again["seeds"][0]["runs"] == record["runs"]


def test_stages_of_nll_are_chosen_and_said(tmp_path, monkeypatch):
    settings = FitWorld(
        id="chemistry/chain-v1",
        model="rssm",
        loss="nll",
        pretrain_epochs=2,
        finetune=False,
        out=tmp_path,
    )
    monkeypatch.setattr(module, "_KINDS", ("ranking",))
    monkeypatch.setattr(module, "write_fit_page", lambda *args: None)
    (record,) = fit_world(settings)["seeds"]
    assert {name: row["epochs"] for name, row in record["training"].items()} == {
        "pretrain": 2,
        "transition": 1,
    }
    assert "--pretrain-epochs 2 --no-finetune" in record["runs"][0]["command"]
    assert load_rows(tmp_path)[0].label.startswith("rssm NLL, 2 epochs of pretraining, 1 epochs")
    with pytest.raises(InvalidValueError, match="one stage"):
        FitWorld(id="chemistry/chain-v1", finetune=False)


def test_a_world_without_world_models_says_which_have_them():
    with pytest.raises(InvalidValueError, match=r"trifinger.*blocks/observed-3-v1"):
        FitWorld(id="trifinger/pushing-v1")
    with pytest.raises(UnknownNameError, match="Did you mean"):
        FitWorld(id="blocks/observd-3-v1")
    with pytest.raises(InvalidValueError, match="has no contrastive loss"):
        FitWorld(id="blocks/observed-3-v1", model="vae")


def test_training_a_policy_on_blocks_names_the_way_that_works(tmp_path, capsys):
    assert main(["train", "--task", "blocks/observed-3-v1", "--out", str(tmp_path)]) == 2
    assert "interverse fit blocks/observed-3-v1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "option", "told"),
    [
        ("blocks/observed-3-v1", "objects=1", "there is no graph"),
        ("blocks/observed-3-v1", "plain=true", "no target"),
        ("chemistry/chain-v1", "mode=moving", "no target"),
        ("chemistry/chain-v1", "mode=delayed", "after one step"),
        ("chemistry/chain-v1", "observed=[0,2,3,4]", "not seen"),
        ("chemistry/random-v1", "meta=true", "another graph"),
    ],
)
def test_worlds_that_cannot_be_scored_are_refused_before_training(
    tmp_path, capsys, name, option, told
):
    words = ["fit", name, "--out", str(tmp_path / "fit"), "--option", option]
    assert main(words) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "fit").exists()


def test_the_noted_command_has_options_as_they_are_typed():
    asked = FitWorld(id="chemistry/chain-v1", options={"meta": True, "movement": "dynamic"})
    assert asked.command().endswith("--option meta=true --option movement=dynamic")


def test_a_model_brings_its_loss_and_bad_words_are_refused_before_anything_is_made(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    assert "rssm.nll.smoke" in str(out_folder(FitCommand(id="blocks/observed-3-v1", model="rssm")))
    for words, told in (
        (("--time-limit", "-5"), "seconds from 0 on"),
        (("--out", "taken"), "which is a file"),
        (("--model", "gmn"), "Did you mean"),
    ):
        assert main(["fit", "blocks/observed-3-v1", *words]) == 2
        assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
