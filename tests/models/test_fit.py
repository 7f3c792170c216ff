"""Training: it learns, it repeats, it resumes, and it touches only what a stage trains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from interverse.core.errors import FileFormatError, InterverseError, InvalidValueError
from interverse.models import fit as fit_module
from interverse.models.fit import Feed, Fit, ModelStage, train_stages
from interverse.models.learner import Learner
from interverse.models.source import ArraySource, DataWorld
from interverse.models.world_fit import STAGES, Fitted, fit_world_model

TWO = Fit(epochs=2, batch_size=16)


class Killed(Exception):
    """Stands for the end of the process."""


def kill_after(epochs: int):
    seen = []

    def listener(epoch) -> None:
        seen.append(epoch)
        if len(seen) == epochs:
            raise Killed

    return listener


def same_weights(a: Fitted, b: Fitted) -> bool:
    return all(
        torch.equal(a.weights[stage][name], b.weights[stage][name])
        for stage in a.weights
        for name in a.weights[stage]
    )


def test_contrastive_training_learns_to_predict(squares, valid, tiny):
    source = ArraySource(*squares(20, 10, seed=2)[:2])
    how = Fit(epochs=10, batch_size=16, learning_rate=2e-3)
    (fitted,) = fit_world_model(tiny(), how, source, valid)
    losses = [row["train"] for row in fitted.history]
    assert losses[-1] < 0.25 * losses[0]


@pytest.mark.parametrize("model", ["ae", "vae", "gnn", "learned_graph", "lstm", "rssm"])
def test_likelihood_stages_each_lower_their_loss(model, train, valid, tiny):
    how = Fit(epochs=2, batch_size=16, learning_rate=2e-3)
    (fitted,) = fit_world_model(tiny(model, "nll"), how, train, valid)
    for stage in STAGES["nll"]:
        losses = [row["train"] for row in fitted.history if row["stage"] == stage]
        assert losses[-1] < losses[0], stage


@pytest.mark.parametrize("model", ["rim", "scoff"])
def test_block_recurrent_models_train_through_all_stages(model, train, valid, tiny):
    (fitted,) = fit_world_model(tiny(model, "nll"), Fit(epochs=1, batch_size=32), train, valid)
    assert list(fitted.weights) == list(STAGES["nll"])
    assert all(np.isfinite(row["valid"]) for row in fitted.history)


def test_the_transition_stage_leaves_encoder_and_decoder_as_they_were(train, valid, tiny):
    (fitted,) = fit_world_model(tiny("ae", "nll"), TWO, train, valid)
    plain, tuned = fitted.weights["transition"], fitted.weights["finetune"]
    # The last pretraining epoch was its best here, so both files hold the same encoder.
    pretrain = [row["valid"] for row in fitted.history if row["stage"] == "pretrain"]
    assert pretrain[-1] == min(pretrain)
    for name, value in fitted.weights["pretrain"].items():
        rests = not name.startswith("transition")
        assert torch.equal(plain[name], value) == rests, name
    assert not torch.equal(plain["encoder.maps.0.weight"], tuned["encoder.maps.0.weight"])


@pytest.mark.parametrize(("one", "other"), [("gnn", "modular"), ("ae", "rssm")])
def test_models_with_the_same_eyes_have_the_same_pretraining(one, other, train, valid, tiny):
    """Rows of results/causalmbrl that took another model's pretraining rest on this."""
    how = Fit(epochs=1, batch_size=32, finetune=False, seeds=(3,))
    first, second = (
        fit_world_model(tiny(model, "nll"), how, train, valid)[0].weights["pretrain"]
        for model in (one, other)
    )
    shared = [name for name in first if not name.startswith("transition")]
    assert len(shared) > 10
    assert all(torch.equal(first[name], second[name]) for name in shared)


class _Point(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(()))


class _Distance(nn.Module):
    def __init__(self, model: _Point) -> None:
        super().__init__()
        self.model = model

    def forward(self, goal, draw):
        return (self.model.place - goal.mean()).abs()


def test_the_best_weights_are_kept_not_the_last():
    # Training walks from 0 to 1 in steps of 0.1; validation likes 0.3 best.
    stage = ModelStage(
        name="walk",
        objective=_Distance,
        parts=("place",),
        feeds=lambda _: (
            Feed(1, lambda chosen: torch.ones(1)),
            Feed(1, lambda chosen: torch.full((1,), 0.3)),
        ),
        batch_size=1,
    )
    learner = Learner([_Point()], torch.device("cpu"))
    best, _ = train_stages(learner, [stage], Fit(epochs=8, learning_rate=0.1), seeds=(0,))
    assert float(best["walk"]["place"][0]) == pytest.approx(0.3, abs=1e-4)
    assert float(learner.state()["place"]) == pytest.approx(0.8, abs=1e-4)


def test_training_repeats_and_leaves_the_global_generator_alone(train, valid, tiny):
    before = torch.get_rng_state()
    one = Fit(epochs=1, batch_size=32)
    (first,) = fit_world_model(tiny("rim", "nll"), one, train, valid)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    (second,) = fit_world_model(tiny("rim", "nll"), one, train, valid)
    assert same_weights(first, second)


@pytest.mark.parametrize(("model", "loss"), [("modular", "contrastive"), ("vae", "nll")])
@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_a_killed_run_ends_like_an_unbroken_one(model, loss, killed_after, squares, tmp_path, tiny):
    train, valid = (ArraySource(*squares(4, 5, seed=s)[:2]) for s in (0, 1))
    config, how = tiny(model, loss), Fit(epochs=3, batch_size=8, seeds=(4,))
    (unbroken,) = fit_world_model(config, how, train, valid)
    kept = Fit(epochs=3, batch_size=8, seeds=(4,), out=tmp_path)
    with pytest.raises(Killed):
        fit_world_model(config, kept, train, valid, listeners=[kill_after(killed_after)])
    (resumed,) = fit_world_model(config, kept, train, valid)
    assert same_weights(unbroken, resumed)
    assert [r["valid"] for r in resumed.history] == [r["valid"] for r in unbroken.history]
    assert same_weights(Fitted.load(tmp_path / "seed-4"), unbroken)


def test_a_corrupt_checkpoint_and_another_run_are_refused(squares, tmp_path, tiny):
    train, valid = (ArraySource(*squares(4, 5, seed=s)[:2]) for s in (0, 1))
    how = Fit(epochs=1, batch_size=8, out=tmp_path)
    fit_world_model(tiny(), how, train, valid)
    with pytest.raises(InvalidValueError, match=r"another run: fit.epochs 1 there, 2 here"):
        fit_world_model(tiny(), Fit(epochs=2, batch_size=8, out=tmp_path), train, valid)
    for tensors in (tmp_path / "training-0" / "checkpoint").glob("*.safetensors"):
        tensors.write_bytes(b"not a file of tensors")
    with pytest.raises(FileFormatError, match=r"every checkpoint in .* is damaged"):
        fit_world_model(tiny(), how, train, valid)


@pytest.mark.parametrize(
    ("model", "loss", "encoder", "order_seed"),
    [
        ("modular", "contrastive", "medium", None),
        ("gnn", "contrastive", "small", 0),
        ("vae", "nll", "small", None),
        ("ae", "nll", "medium", 0),
        ("ae", "nll", "medium", None),
    ],
)
def test_seeds_trained_at_once_equal_seeds_trained_alone(
    model, loss, encoder, order_seed, squares, tiny
):
    train, valid = (ArraySource(*squares(2, 4, seed=s)[:2]) for s in (0, 1))
    config = tiny(model, loss, encoder=encoder)
    runs = {
        mode: fit_world_model(
            config,
            Fit(epochs=2, batch_size=4, seeds=(1, 2), at_once=mode, order_seed=order_seed),
            train,
            valid,
        )
        for mode in ("never", "always")
    }
    for alone, together in zip(runs["never"], runs["always"], strict=True):
        assert alone.seed == together.seed
        expected = [row["valid"] for row in alone.history]
        assert [row["valid"] for row in together.history] == pytest.approx(expected, rel=2e-3)
    first, second = ([row["valid"] for row in run.history] for run in runs["always"])
    assert first != second


def test_every_seed_visits_the_samples_in_an_order_of_its_own(train, valid, tiny, monkeypatch):
    seen = []
    real = fit_module.batch_order
    monkeypatch.setattr(
        fit_module, "batch_order", lambda *a, **k: seen.append(real(*a, **k)) or seen[-1]
    )
    fit_world_model(tiny(), Fit(epochs=1, batch_size=8, seeds=(1, 2)), train, valid)
    assert not np.array_equal(*seen)
    seen.clear()
    fit_world_model(tiny(), Fit(epochs=1, batch_size=8, seeds=(1, 2), order_seed=0), train, valid)
    assert np.array_equal(*seen)


def test_models_that_cannot_train_at_once_say_so(train, valid, tiny):
    how = Fit(epochs=1, seeds=(1, 2), at_once="always", order_seed=0)
    with pytest.raises(InvalidValueError, match=r"cannot train at once.*ae, gnn, modular, vae"):
        fit_world_model(tiny("lstm", "nll"), how, train, valid)


def test_reference_sampling_of_latents_changes_the_vae_transition(train, valid, tiny):
    means = fit_world_model(tiny("vae", "nll"), TWO, train, valid)[0]
    sampled = Fit(epochs=2, batch_size=16, sample_latents=True)
    drawn = fit_world_model(tiny("vae", "nll"), sampled, train, valid)[0]
    assert same_weights_of(means, drawn, "pretrain")
    assert not same_weights_of(means, drawn, "transition")


def same_weights_of(a: Fitted, b: Fitted, stage: str) -> bool:
    return all(torch.equal(a.weights[stage][n], b.weights[stage][n]) for n in a.weights[stage])


def test_order_of_samples_and_of_validation_are_choices(train, valid, tiny):
    base = fit_world_model(tiny(), TWO, train, valid)[0].history
    other = fit_world_model(tiny(), Fit(epochs=2, batch_size=16, order_seed=1), train, valid)[0]
    mixed = Fit(epochs=2, batch_size=16, validation_order="shuffled")
    shuffled = fit_world_model(tiny(), mixed, train, valid)[0].history
    assert base[0]["train"] != other.history[0]["train"]
    assert [r["train"] for r in base] == [r["train"] for r in shuffled]
    assert [r["valid"] for r in base] != [r["valid"] for r in shuffled]


def test_a_diverged_run_says_so(train, valid, tiny):
    how = Fit(epochs=1, batch_size=16, learning_rate=1e30)
    with pytest.raises(InvalidValueError, match=r"never a number.*learning_rate"):
        fit_world_model(tiny(), how, train, valid)


def test_the_first_stage_can_have_epochs_of_its_own(train, valid, tiny):
    how = Fit(epochs=3, pretrain_epochs=1, batch_size=16, finetune=False)
    (fitted,) = fit_world_model(tiny(loss="nll"), how, train, valid)
    assert [row["stage"] for row in fitted.history] == ["pretrain"] + 3 * ["transition"]
    assert Fit(epochs=3).decides() == {
        name: value for name, value in how.decides().items() if name != "pretrain_epochs"
    } | {"batch_size": 512, "finetune": True}


@pytest.mark.parametrize("which", ["train", "validation"])
def test_a_folder_of_other_data_is_refused(which, squares, tmp_path, tiny):
    """It would give back the model of the old data."""
    one, two, other = (ArraySource(*squares(4, 5, seed=seed)[:2]) for seed in (0, 1, 2))
    how = Fit(epochs=1, batch_size=8, out=tmp_path)
    fit_world_model(tiny(), how, one, two)
    sources = (other, two) if which == "train" else (one, other)
    with pytest.raises(InvalidValueError, match=f"another run: {which}.content .* there, "):
        fit_world_model(tiny(), how, *sources)
    again = (ArraySource(*squares(4, 5, seed=seed)[:2]) for seed in (0, 1))
    fit_world_model(tiny(), how, *again)


def test_a_folder_of_another_world_is_refused(squares, tmp_path, tiny):
    data = squares(4, 5, seed=0)[:2]
    one, other = (
        ArraySource(*data, world=DataWorld("chemistry/chain-v1", {"cpt_seed": seed}))
        for seed in (0, 1)
    )
    how = Fit(epochs=1, batch_size=8, out=tmp_path)
    fit_world_model(tiny(), how, one, one)
    with pytest.raises(InvalidValueError, match=r"train.options.cpt_seed 0 there, 1 here, valid"):
        fit_world_model(tiny(), how, other, other)
    assert Fitted.load(tmp_path / "seed-0").model().trained_in == one.world


def test_bar_and_curves_are_written(squares, tmp_path, tiny, capsys):
    train, valid = (ArraySource(*squares(3, 4, seed=s)[:2]) for s in (0, 1))
    how = Fit(epochs=1, batch_size=8, out=tmp_path, progress=True, tensorboard=True)
    fit_world_model(tiny(), how, train, valid)
    assert "contrastive" in capsys.readouterr().err
    assert list((tmp_path / "training-0" / "tensorboard").glob("events.*"))


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({"epochs": 0}, "epochs is 0. Allowed: a whole number from 1"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0"),
        ({"seeds": ()}, "seeds must be distinct"),
        ({"seeds": (1, 1)}, "seeds must be distinct"),
        ({"tensorboard": True}, "tensorboard=True needs a folder"),
        ({"seeds": 3}, "seeds is 3. Allowed: a list whose every value is a whole number"),
        ({"epochs": "many"}, "epochs is 'many'. Allowed: a whole number"),
        ({"seeds": (0.5,)}, "seed must be a whole number, got 0.5"),
        ({"precision": "fp16"}, "unknown precision 'fp16'"),
        ({"at_once": "often"}, "unknown at_once 'often'"),
        ({"epoch": 1}, "unknown argument 'epoch'. Did you mean 'epochs'"),
    ],
)
def test_bad_settings_are_refused(choices, text):
    with pytest.raises(InterverseError, match=text):
        Fit(**choices)


@pytest.mark.parametrize("place", [(0, 0), (7, 9)])
def test_actions_that_the_model_cannot_tell_apart_are_refused(place, squares, valid, tiny):
    images, actions, _ = squares(8, 10, seed=3)
    actions[place] = 15  # three objects of five moves: 0 to 14
    hidden = ArraySource(images, actions)
    for sources in ((hidden, valid), (valid, hidden)):
        with pytest.raises(InvalidValueError, match=r"to 15.* knows 15: 3 objects x 5"):
            fit_world_model(tiny(), TWO, *sources)
    fit_world_model(tiny(objects=4), Fit(epochs=1, batch_size=16), hidden, hidden)
