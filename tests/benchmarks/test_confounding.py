"""Confounding curves on toy pairs whose lamp tells the action in training alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from interverse.benchmarks.causaltriplet import confounding
from interverse.core.errors import InvalidValueError
from interverse.models.pairs.config import PairFit
from interverse.models.pairs.toy import toy_pairs


def pairs_of(strength, count=240):
    """Toy pairs in 12 houses: with this probability, noun n goes with verb n alone."""
    found = toy_pairs(count, size=16, seed=0)
    follows = np.random.default_rng(1).random(count) < strength
    noun = torch.where(torch.as_tensor(follows), found.verb, found.noun)
    return replace(found, noun=noun, extra={"scenes": np.arange(count) % 12})


def test_no_house_of_a_test_is_trained_in():
    confounded, plain = pairs_of(0.9), pairs_of(0.0)
    split = confounding.confounded_split(confounded, plain, seed=3)
    houses = np.concatenate([confounded.extra["scenes"], plain.extra["scenes"]])
    trained = set(houses[np.concatenate([split.train, split.valid])])
    tested = set(houses[np.concatenate([split.test_id, split.test_ood])])
    assert len(tested) == 3
    assert not trained & tested
    assert split.train.max() < len(confounded) <= split.test_ood.min()
    assert len(split.train) + len(split.valid) + len(split.test_id) == len(confounded)


def test_an_answer_by_the_object_alone_falls_with_the_confounder(tmp_path):
    sets = {0.0: pairs_of(0.0), 1.0: pairs_of(1.0)}
    found = confounding.confounding_curve(sets, tmp_path, models=(), seeds=2, say=lambda _: None)
    by = {(row["model"], row["strength"]): row for row in found}
    known = by["object only", 1.0]
    assert known["test_id"]["mean"] == 1.0  # the object tells the action
    assert known["test_ood"]["mean"] < 0.5
    assert by["object only", 0.0]["test_id"] == by["object only", 0.0]["test_ood"]
    assert known["sizes"]["test_id"] == 60


def test_a_trained_model_is_kept_and_not_trained_again(tmp_path, monkeypatch):
    sets = {0.0: pairs_of(0.0, 36)}
    how = {"models": ("lite0",), "seeds": 1, "fit": PairFit(epochs=1, batch_size=16)}
    monkeypatch.setattr(confounding, "recipe", _tiny)
    first = confounding.confounding_curve(sets, tmp_path, **how, say=lambda _: None)
    monkeypatch.setattr(confounding, "fit_heads", None)
    assert confounding.confounding_curve(sets, tmp_path, **how, say=lambda _: None) == first
    assert {row["model"] for row in first} == {"constant answer", "object only", "lite0"}


def test_a_set_without_the_confounder_is_needed(tmp_path):
    with pytest.raises(InvalidValueError, match="0 among them"):
        confounding.confounding_curve({0.5: pairs_of(0.5)}, tmp_path)


def _tiny(name):
    from interverse.models.pairs.config import recipe

    found = recipe(name)
    encoder = replace(found.model.encoder, scale="tiny")
    return replace(found, model=replace(found.model, encoder=encoder))


def test_claims_on_a_curve_are_one_corrected_family_and_it_can_be_drawn():
    def told(mean):
        seeds = {str(seed): mean + 0.001 * (seed % 3) for seed in range(10)}
        return confounding.summary(seeds)

    means = {("lite0", 0.0): 0.9, ("lite0", 1.0): 0.7, ("lite0-sms", 0.0): 0.9}
    means |= {("lite0-sms", 1.0): 0.8, ("object only", 0.0): 0.5, ("object only", 1.0): 0.4}
    rows = [
        {"model": m, "strength": s, "test_id": told(0.9), "test_ood": told(mean)}
        for (m, s), mean in means.items()
    ]
    found = {name: verdict["verdict"] for name, verdict in confounding.curve_claims(rows)}
    assert found == {
        "lite0: OOD at strength 0 above that at 1": "confirmed",
        "lite0-sms: OOD at strength 0 above that at 1": "confirmed",
        "lite0-sms above lite0 out of distribution at strength 0": "open",
        "lite0-sms above lite0 out of distribution at strength 1": "confirmed",
    }
    assert len(confounding.curve_figure(rows).axes) == 2
