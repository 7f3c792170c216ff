"""`interverse fit`: from an id to one page, resumed after a stop."""

import json
import sys
from dataclasses import replace

import pytest

from interverse.cli import main
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.fit import work
from interverse.fit import world as module
from interverse.fit.settings import budget
from interverse.fit.world import FitWorld, fit_world
from interverse.scoring import grid
from interverse.scoring.world_model import KINDS
from tests.scoring.test_world_model import TINY
from tools.causalmbrl_page import load_rows


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """A budget of seconds."""
    for name, loss in (("_SMOKE", "contrastive"), ("_SMOKE_NLL", "nll")):
        monkeypatch.setattr(module, name, budget("smoke", loss))
    monkeypatch.setitem(grid.SIZES, "small", TINY)


@pytest.mark.parametrize(
    ("name", "model", "loss"),
    [
        ("blocks/observed-3-v1", "modular", "contrastive"),
        pytest.param("chemistry/chain-v1", "ae", "nll", marks=pytest.mark.slow),
    ],
)
def test_an_id_becomes_a_page_with_every_score_beside_its_yardsticks(
    tmp_path, capsys, monkeypatch, name, model, loss
):
    settings = FitWorld(id=name, model=model, loss=loss, hidden=32, out=tmp_path / "fit")
    assert not fit_world(replace(settings, time_limit=0.0))["complete"]
    found = fit_world(settings)
    assert found["complete"]
    page = (settings.folder / "index.html").read_text()
    for text in ("planning latent_closed", "in_scene", "nothing predicted", "true world", "push"):
        assert text in page
    for figure in ("curves.svg", "predictions.png", "scores.svg"):
        assert figure in page
        assert (settings.folder / figure).stat().st_size > 1000
    (record,) = found["seeds"]
    assert record["runs"][0]["command"].startswith(f"interverse fit {name} --model {model}")
    assert set(record["scores"]["model"]) == set(KINDS)
    capsys.readouterr()
    monkeypatch.setattr(work, "commit", lambda: "later")  # adds no score, so no run
    words = ["fit", name, "--model", model, "--loss", loss, "--hidden", "32"]
    assert main([*words, "--out", str(settings.folder), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["complete"]
    assert again["seeds"][0]["scores"] == json.loads(json.dumps(record["scores"]))
    assert again["seeds"][0]["runs"] == record["runs"]
    assert {kind: again[kind] for kind in KINDS} == again["seeds"][0]["scores"]["model"]
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as without the extra `report`
    assert fit_world(settings)["complete"]
    page = (settings.folder / "index.html").read_text()
    assert "No figures: matplotlib is not installed" in page
    assert "curves.svg" not in page


def test_stages_of_nll_are_chosen_and_said(tmp_path, monkeypatch):
    settings = FitWorld(
        id="chemistry/chain-v1",
        model="rssm",
        pretrain_epochs=2,
        finetune=False,
        hidden=32,
        out=tmp_path,
    )
    monkeypatch.setattr(module, "write_fit_page", lambda *args: None)
    (record,) = fit_world(settings)["seeds"]
    assert {name: row["epochs"] for name, row in record["training"].items()} == {
        "pretrain": 2,
        "transition": 1,
    }
    assert "--pretrain-epochs 2" in record["runs"][0]["command"]
    assert "--no-finetune" in record["runs"][0]["command"]
    assert load_rows(tmp_path)[0].label.startswith("rssm NLL, 2 epochs of pretraining, 1 epochs")
    with pytest.raises(InvalidValueError, match="one stage"):
        FitWorld(id="blocks/observed-3-v1", finetune=False)


def test_a_world_without_world_models_says_which_have_them():
    with pytest.raises(InvalidValueError, match=r"trifinger.*blocks/observed-3-v1"):
        FitWorld(id="trifinger/pushing-v1")
    with pytest.raises(UnknownNameError, match="Did you mean"):
        FitWorld(id="blocks/observd-3-v1")
    with pytest.raises(InvalidValueError, match="has no contrastive loss"):
        FitWorld(id="blocks/observed-3-v1", model="vae", loss="contrastive")


def test_training_a_policy_on_blocks_names_the_way_that_works(tmp_path, capsys):
    assert main(["train", "--task", "blocks/observed-3-v1", "--out", str(tmp_path)]) == 2
    assert "interverse fit blocks/observed-3-v1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "told", "absent"),
    [
        ("blocks/observed-3-v1", {"objects": 1}, "one object", ("graph", "counterfactual")),
        ("chemistry/chain-v1", {"mode": "moving"}, "no target", ("planning",)),
        ("chemistry/chain-v1", {"mode": "delayed"}, "after one step", ("graph", "effects")),
        ("chemistry/chain-v1", {"observed": [0, 2, 3, 4]}, "not seen", ("graph",)),
        ("chemistry/random-v1", {"meta": True}, "another graph", ("graph",)),
    ],
)
def test_what_a_world_does_not_define_is_named_and_the_rest_is_scored(
    tmp_path, capsys, name, options, told, absent
):
    model = "gnn" if name.startswith("blocks") else "modular"
    found = fit_world(
        FitWorld(id=name, options=options, model=model, hidden=32, out=tmp_path / "fit")
    )
    assert told in capsys.readouterr().err
    for kind in KINDS:
        assert ("absent" in found[kind]) == (found[kind]["value"] is None)
    assert all(told in found[kind]["absent"] for kind in absent)
    assert found["ranking"]["1"]["value"] is not None
    assert told in (tmp_path / "fit" / "index.html").read_text()


def test_flags_shape_the_model_and_its_training():
    settings = FitWorld(
        id="blocks/observed-3-v1", embedding=8, width=2, sigma=0.3, hinge=2.0, learning_rate=1e-3
    )
    config = settings.model_config(3, 5)
    assert (config.embedding, config.width, config.sigma, config.hinge) == (8, 2, 0.3, 2.0)
    assert "--sigma 0.3" in settings.command()
    with pytest.raises(InvalidValueError, match="width belongs to"):
        FitWorld(id="blocks/observed-3-v1", model="gnn", width=2)


def test_a_model_of_ones_own_is_trained_then_scored_alike(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "model", "my_own_model"]) == 0
    assert "--model my_own_model:Own" in capsys.readouterr().out
    words = ["blocks/observed-3-v1", "--model", "my_own_model:Own", "--epochs", "1"]
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["fit", *words, "--out", "fit", "--json"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert "planning latent_closed" in (tmp_path / "fit" / "index.html").read_text()
    words = ["my_own_model:Own", "blocks/observed-3-v1", "--weights", "fit/model.safetensors"]
    assert main(["score", *words, "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert {kind: scored[kind] for kind in KINDS} == {kind: fitted[kind] for kind in KINDS}
    assert main(["fit", "blocks/observed-3-v1", "--model", "my_own_model:Own", "--sigma", "1"]) == 2
    assert "--sigma 1.0 belongs to this library's models" in capsys.readouterr().err
    words = ["tutorial/slider-v1", "--model", "my_own_model:Own", "--epochs", "1", "--json"]
    assert main(["fit", *words]) == 0
    assert json.loads(capsys.readouterr().out)["in_scene"]["value"] is not None
    assert main(["score", "my_own_model:Missing", "blocks/observed-3-v1"]) == 2
    assert "has no 'Missing'" in capsys.readouterr().err


def test_weights_that_training_does_not_reach_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["new", "model", "my_part_model"]) == 0
    file = tmp_path / "my_part_model.py"
    file.write_text(
        file.read_text()
        + """
from torch import nn

class Part(Own):
    def __init__(self, observation_shape, actions):
        super().__init__(observation_shape, actions)
        self.beside, self.fixed = nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)


class Detached(Own):
    def encode(self, observations):
        return super().encode(observations).detach()

    def rollout(self, latents, actions):
        return super().rollout(latents, actions).detach()
"""
    )
    words = ["fit", "blocks/observed-3-v1", "--epochs", "1", "--budget", "smoke", "--model"]
    assert main([*words, "my_part_model:Part", "--out", "part"]) == 0
    assert "training left weights as they were: beside.weight, beside.bias" in (
        capsys.readouterr().err.replace("\n", " ")
    )
    assert main([*words, "my_part_model:Detached", "--out", "none"]) == 2
    assert "the loss of my_part_model:Detached follows from no weight" in capsys.readouterr().err
