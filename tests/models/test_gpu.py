"""On a GPU: recorded updates equal plain ones, seeds at once equal seeds alone, bf16 learns."""

from __future__ import annotations

import pytest

from interverse.models.fit import Fit
from interverse.models.ranking import evaluate_ranking
from interverse.models.source import ArraySource
from interverse.models.world_fit import fit_world_model

pytestmark = pytest.mark.gpu

MODELS = [("modular", "contrastive"), ("gnn", "contrastive"), ("ae", "nll"), ("vae", "nll")]


def sources(squares, episodes: int = 8):
    return tuple(ArraySource(*squares(episodes, 10, seed=s)[:2], device="cuda") for s in (0, 1))


def losses(config, train, valid, **how):
    how = {"epochs": 3, "batch_size": 16, "device": "cuda", **how}
    return [
        [row["valid"] for row in fitted.history]
        for fitted in fit_world_model(config, Fit(**how), train, valid)
    ]


@pytest.mark.parametrize(("model", "loss"), MODELS)
def test_recorded_updates_equal_plain_ones(model, loss, squares, tiny):
    train, valid = sources(squares)
    config = tiny(model, loss, encoder="medium")
    (plain,) = losses(config, train, valid, cuda_graphs=False)
    (recorded,) = losses(config, train, valid)
    assert recorded == pytest.approx(plain, rel=1e-2)


@pytest.mark.parametrize(("model", "loss"), MODELS)
def test_seeds_at_once_equal_seeds_alone(model, loss, squares, tiny):
    train, valid = sources(squares)
    config = tiny(model, loss, encoder="medium")
    alone = losses(config, train, valid, seeds=(1, 2), at_once="never")
    together = losses(config, train, valid, seeds=(1, 2), at_once="always")
    for one, other in zip(alone, together, strict=True):
        assert other == pytest.approx(one, rel=1e-2)


@pytest.mark.parametrize("choices", [{"precision": "bf16"}, {"precision": "tf32"}])
def test_reduced_precision_learns(choices, squares, tiny):
    train, valid = sources(squares, 40)
    how = Fit(epochs=30, batch_size=32, learning_rate=2e-3, device="cuda", **choices)
    (fitted,) = fit_world_model(tiny(embedding=8, hidden=96), how, train, valid)
    score = evaluate_ranking(fitted.model(device="cuda"), valid, horizons=(1,))[1]
    assert score.hits > 80.0


def test_compiled_training_equals_plain(squares, tiny):
    train, valid = sources(squares)
    (plain,) = losses(tiny(), train, valid)
    (compiled,) = losses(tiny(), train, valid, compile=True)
    assert compiled == pytest.approx(plain, rel=1e-2)


def test_recurrent_and_learned_graph_models_train(squares, tiny):
    train, valid = sources(squares)
    for model, loss in (("rim", "nll"), ("learned_graph", "contrastive")):
        assert losses(tiny(model, loss), train, valid, epochs=1)
