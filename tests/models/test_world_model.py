"""World models: configs that check themselves, named settings, rollouts."""

import json

import pytest
import torch

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.models import MODELS, ModelEntry, evaluate_ranking
from interverse.models.fit import Fit
from interverse.models.world_fit import Fitted, fit_world_model
from interverse.models.world_model import SETTINGS, WorldModel, WorldModelConfig

EVERY = [(name, loss) for name, row in MODELS.items() for loss in row.losses]


@pytest.mark.parametrize(("name", "loss"), EVERY)
def test_every_model_encodes_predicts_rolls_out_and_decodes(name, loss, tiny):
    model = WorldModel.seeded(tiny(name, loss), seed=3).eval()
    images, actions = torch.rand(4, 3, 50, 50), torch.randint(0, 15, (4, 3))
    state = model.encode(images)
    states = model.rollout(state, actions)
    assert states.shape == (3, *state.shape)
    torch.testing.assert_close(states[0], model.predict(state, actions[:, 0]))
    if loss == "nll":
        assert model.decode(states[-1]).shape == images.shape
    else:
        with pytest.raises(InvalidValueError, match=r"has no decoder.*loss='nll'"):
            model.decode(state)


MY_MODEL = """
from torch import nn

from interverse.models.layers import one_hot


class Shift(nn.Module):
    def __init__(self, width, actions):
        super().__init__()
        self.actions = actions
        self.shift = nn.Linear(actions, width)

    def forward(self, state, action):
        return state + self.shift(one_hot(action, self.actions))[:, None]


def build(config):
    return Shift(config.embedding, config.actions)
"""


def test_a_model_is_one_file_and_one_row(tmp_path, monkeypatch, tiny, train, valid):
    """The walk: write a file, add a row, train, save, load, rank."""
    (tmp_path / "my_shift_model.py").write_text(MY_MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(MODELS, "shift", ModelEntry("my_shift_model:build"))
    how = Fit(epochs=1, batch_size=16, out=tmp_path / "run")
    (fitted,) = fit_world_model(tiny("shift"), how, train, valid)
    model = Fitted.load(tmp_path / "run" / "seed-0").model()
    assert type(model.transition).__name__ == "Shift"
    assert evaluate_ranking(model, valid, horizons=(1,))[1].references == valid.num_episodes
    assert fitted.history[0]["stage"] == "contrastive"


@pytest.mark.parametrize("name", ["action_gnn", "transformer", "ae"])
def test_models_train_by_prediction_of_encodings_without_collapse(name, tiny, train, valid):
    how = Fit(epochs=20, batch_size=32, learning_rate=5e-3)
    (fitted,) = fit_world_model(tiny(name, "jepa"), how, train, valid)
    first, *_, last = (row["train"] for row in fitted.history)
    assert last < first
    images = train.frames(torch.arange(train.num_episodes * (train.num_steps + 1)))
    before, after = (
        model.eval().encode(images).detach().flatten(1).std(0).mean()
        for model in (WorldModel.seeded(fitted.config, 0), fitted.model())
    )
    assert float(after) > 2 * float(before)


def test_weights_are_a_function_of_the_seed_alone(tiny):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = WorldModel.seeded(tiny(), seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    same, other = WorldModel.seeded(tiny(), seed=1), WorldModel.seeded(tiny(), seed=2)
    for a, b in zip(first.parameters(), same.parameters(), strict=True):
        assert torch.equal(a, b)
    assert any(
        not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True)
    )


def test_named_settings_differ_as_paper_and_code_do():
    paper = WorldModelConfig.named("paper", model="ae", objects=3, loss="nll")
    code = WorldModelConfig.named("reference", model="ae", objects=3, loss="nll")
    shown = WorldModelConfig.named("readme", model="ae", objects=3, loss="nll")
    assert (code.encoder_channels, code.decoder_width, code.embedding) == (32, 256, 32)
    assert (paper.encoder_channels, paper.decoder_width, paper.embedding) == (512, 512, 32)
    assert (paper.layer_norm, paper.norm_first, paper.negatives) == (False, False, "current")
    contrast = WorldModelConfig.named("paper", model="ae", objects=3)
    assert (contrast.negatives, contrast.energy, contrast.decoder_width) == ("next", "mean", 256)
    assert shown.embedding == 128
    assert set(SETTINGS) == {"reference", "readme", "paper"}
    with pytest.raises(UnknownNameError, match="unknown setting 'papers'"):
        WorldModelConfig.named("papers", model="ae", objects=3)


def test_a_config_survives_json():
    graph = ((0, 0), (1, 0))
    config = WorldModelConfig(model="learned_graph", objects=2, graph=graph)
    assert WorldModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_an_older_config_with_choices_that_were_ignored_still_loads():
    stored = WorldModelConfig(model="gnn", objects=2, loss="nll").to_dict()
    old = {**stored, "negatives": "next", "energy": "mean", "width": 3}
    assert WorldModelConfig.from_dict(old).to_dict() == stored


@pytest.mark.parametrize(
    ("choices", "error", "text"),
    [
        ({"model": "modulr"}, UnknownNameError, "unknown model 'modulr'. Did you mean 'modular'"),
        ({"objects": 0}, InvalidValueError, "objects must be at least 1, got 0"),
        ({"loss": "l2"}, UnknownNameError, "unknown loss 'l2'"),
        ({"encoder": "huge"}, UnknownNameError, "unknown encoder size 'huge'"),
        ({"model": "vae"}, InvalidValueError, "no contrastive loss.*nll"),
        ({"model": "rim"}, InvalidValueError, "no contrastive loss"),
        ({"action_input": "all"}, InvalidValueError, "action_input belongs to the gnn"),
        ({"graph": ((0,),)}, InvalidValueError, "graph belongs to the learned_graph"),
        ({"model": "gnn", "width": 2}, InvalidValueError, "width belongs to modular"),
        ({"num_graphs": 5}, InvalidValueError, "num_graphs belongs to a learned_graph"),
        ({"sparsity": 0.1}, InvalidValueError, "sparsity belongs to a learned_graph"),
        ({"loss": "nll", "hinge": 2.0}, InvalidValueError, "hinge belongs to the contrastive"),
        ({"loss": "jepa", "hinge": 2.0}, InvalidValueError, "hinge belongs to the contrastive"),
        ({"loss": "nll", "sigma": 2.0}, InvalidValueError, "sigma belongs to the contrastive"),
        ({"loss": "nll", "energy": "mean"}, InvalidValueError, "energy belongs to the contrastive"),
        ({"loss": "nll", "negatives": "next"}, InvalidValueError, "negatives belongs to the"),
        ({"decoder_width": 16}, InvalidValueError, "decoder_width belongs to the nll loss"),
    ],
)
def test_a_config_refuses_what_it_would_ignore_or_cannot_be(choices, error, text):
    with pytest.raises(error, match=text):
        WorldModelConfig(**{"model": "modular", "objects": 3, **choices})
