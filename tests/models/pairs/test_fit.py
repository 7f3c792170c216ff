"""Training on pairs: it learns, resumes, goes at once as one by one; regularisers do their work."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from interverse.core.errors import InvalidValueError
from interverse.core.files.tensor_files import write_safetensors
from interverse.data.pairs import SplitConfig, split_pairs
from interverse.models.pairs.config import EncoderConfig, PairFit, PairModelConfig, recipe
from interverse.models.pairs.fit import PairWork, cut, fit_pairs
from interverse.models.pairs.readout import (
    change_samples,
    change_table,
    citris_r2,
    factor_scores,
    feature_scores,
    object_predictability,
    picture_groups,
)
from interverse.models.pairs.stacked import HeadJob, fit_heads
from interverse.models.pairs.toy import toy_pairs
from interverse.models.pairs.yardsticks import RULES, select

TINY = EncoderConfig(scale="tiny")
VANILLA = PairModelConfig(encoder=TINY)
FAST = PairFit(epochs=2, batch_size=64, learning_rate=3e-3)


@pytest.fixture(scope="module")
def trained(pairs, split):
    """Vanilla, ICM and SMS, trained alike."""
    fit = replace(FAST, epochs=10)
    configs = {
        "vanilla": replace(VANILLA, independence=1e-9),  # a critic looks on, and changes nothing
        "icm": replace(VANILLA, independence=1.0),
        "sms": replace(VANILLA, sparsity=0.5),
    }
    return {name: fit_pairs(c, pairs, split, fit=fit, seed=1) for name, c in configs.items()}


def test_it_learns(trained):
    assert trained["vanilla"].history[0]["train"] < 0.4
    assert trained["vanilla"].history[-1]["train"] > 0.85
    assert trained["vanilla"].selection["last"]["test_id"] > 0.7


def test_the_critic_is_trained_and_evaded(trained):
    told = {name: [r["critic_loss"] for r in trained[name].history] for name in ("vanilla", "icm")}
    assert told["vanilla"][-1] < told["vanilla"][0] - 0.3  # it learns where nobody evades it
    assert told["icm"][-1] > told["vanilla"][-1] + 0.1
    assert trained["icm"].selection["last"]["test_id"] > 0.5
    found = object_predictability(trained["vanilla"])
    assert found["accuracy"] > found["commonest"]


def test_one_update_is_the_adversarial_one(pairs):
    work = PairWork(replace(VANILLA, independence=0.5), pairs, FAST, 3)
    before = {name: value.clone() for name, value in work.critic.state_dict().items()}
    rows = torch.arange(32)
    calls = []
    work.encoder.register_forward_hook(lambda *_: calls.append(1))
    work.optimizer.step = lambda: None  # keeps gradients and weights for the check below
    work._update(rows, 0)
    assert len(calls) == 1  # critic and model share one forward pass
    for name, value in work.critic.state_dict().items():
        assert not torch.equal(value, before[name]), name
    verb, noun = pairs.verb[rows], pairs.noun[rows]
    weight = work.head.action[0].weight
    found = weight.grad.clone()
    assert all(p.grad is not None for p in work.encoder.parameters())
    out = work.head(work.tokens(rows))
    loss = torch.nn.functional.cross_entropy(out.logits, verb)
    loss = loss - 0.5 * torch.nn.functional.cross_entropy(work.critic(out.action), noun)
    expected = torch.autograd.grad(loss, weight)[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


def test_a_second_critic_judges_the_features_of_each_picture(pairs):
    work = PairWork(replace(VANILLA, state_independence=0.5), pairs, FAST, 3)
    plain = PairWork(VANILLA, pairs, FAST, 3)
    rows = torch.arange(32)
    for name, value in plain.head.state_dict().items():
        assert torch.equal(work.head.state_dict()[name], value), "its weights are drawn apart"
    before = {name: value.clone() for name, value in work.state_critic.state_dict().items()}
    work.optimizer.step = lambda: None
    work._update(rows, 0)
    assert any(not torch.equal(v, before[n]) for n, v in work.state_critic.state_dict().items())
    weight = work.head.projection[0].weight
    found = weight.grad.clone()
    out = work.head(work.tokens(rows))
    states, nouns = out.features.mean(2).flatten(0, 1), pairs.noun[rows].repeat_interleave(2)
    loss = torch.nn.functional.cross_entropy(out.logits, pairs.verb[rows])
    loss = loss - 0.5 * torch.nn.functional.cross_entropy(work.state_critic(states), nouns)
    expected = torch.autograd.grad(loss, weight)[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)
    again = PairWork(replace(VANILLA, state_independence=0.5), pairs, FAST, 4)
    again.restore(work.state())
    for name, value in work.state_critic.state_dict().items():
        assert torch.equal(again.state_critic.state_dict()[name], value)


def test_training_pictures_are_cut_and_tests_are_not(pairs):
    rows = torch.arange(64)
    ramp = torch.arange(32.0) * 8
    images = torch.stack([ramp.expand(32, 32), ramp[:, None].expand(32, 32), ramp.expand(32, 32)])
    images = images.to(torch.uint8).expand(64, 2, 3, 32, 32)
    masks = torch.ones(64, 2, 32, 32, dtype=torch.bool)
    shown, held = cut(images, masks, rows, 0.5, 0, 0)
    assert shown.shape == images.shape
    assert held.all()
    span = shown.float().amax((-1, -2)) - shown.float().amin((-1, -2))  # widths and heights, x 8
    area = (span[..., 0] / 248) * (span[..., 1] / 248)
    assert 0.45 < area.min() < 0.6
    assert 0.9 < area.max() <= 1.0
    assert not torch.equal(shown[:, 0], shown[:, 1]), "each picture at a place of its own"
    assert torch.equal(cut(images, None, rows, 0.5, 0, 0)[0], shown)
    assert not torch.equal(cut(images, None, rows, 0.5, 0, 1)[0], shown), "another epoch"

    work = PairWork(replace(VANILLA, translation=0.5), pairs, FAST, 3)
    plain = PairWork(VANILLA, pairs, FAST, 3)
    with torch.no_grad():
        for one in (work, plain):
            one.encoder.eval()
        assert torch.equal(work.tokens(rows), plain.tokens(rows))
        assert not torch.equal(work.tokens(rows, 0), plain.tokens(rows, 0))
    with pytest.raises(InvalidValueError, match="sees a picture once"):
        PairModelConfig(encoder=TINY, frozen=True, translation=0.5)


def test_change_goes_to_its_own_block(trained):
    own = {name: change_table(trained[name])["own"] for name in ("vanilla", "sms")}
    assert own["vanilla"] < 0.29  # of four blocks
    assert own["sms"] > own["vanilla"] + 0.04
    change, groups = change_samples(trained["sms"])
    assert change.shape == (len(groups), 64)
    assert len(set(groups)) == 4


def test_the_analysis_tells_what_the_features_hold(trained):
    found = factor_scores(trained["vanilla"])
    assert set(found["names"]) == {"open", "on", "dirty", "broken"}
    for name in (
        "mcc_pearson",
        "block_mcc",
        "dci_informativeness",
        "sap",
        "mig",
        "citris_diagonal",
    ):
        assert 0 <= found[name] <= 1, name
    assert found["mcc_canonical"] > 0.5


def test_accuracy_weighs_every_pair_alike(trained):
    run = trained["vanilla"]
    rows = run.sets["test_id"][:7]
    logits = run.work.outputs(rows).logits
    expected = (logits.argmax(1) == run.work.data.verb[rows]).float().mean()
    assert run.work.accuracy(rows) == pytest.approx(float(expected))


def test_a_stopped_run_goes_on_to_the_same_end(tmp_path, pairs, split):
    config = replace(VANILLA, independence=0.1)
    fit = replace(FAST, epochs=3)
    whole = fit_pairs(config, pairs, split, fit=fit, seed=4)

    def stop(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_pairs(config, pairs, split, fit=replace(fit, out=tmp_path), seed=4, listeners=[stop])
    resumed = fit_pairs(config, pairs, split, fit=replace(fit, out=tmp_path), seed=4)
    for name, value in whole.work.weights().items():
        assert torch.equal(resumed.work.weights()[name], value), name
    timeless = [[{**row, "seconds": 0} for row in run.history] for run in (whole, resumed)]
    assert timeless[0] == timeless[1]
    again = fit_pairs(config, pairs, split, fit=replace(fit, out=tmp_path), seed=4)
    assert again.history == resumed.history
    with pytest.raises(InvalidValueError, match="another run"):
        fit_pairs(VANILLA, pairs, split, fit=replace(fit, out=tmp_path), seed=4)


def slots_file(path, pairs, seed):
    """Writes an encoder with random slots of a seed."""
    config = PairModelConfig(encoder=EncoderConfig(name="slots", scale="tiny"), frozen=True)
    network = PairWork(config, pairs, FAST, seed).encoder.network
    write_safetensors(path, {f"encoder.{k}": v for k, v in network.state_dict().items()})
    return replace(config, encoder=replace(config.encoder, weights=str(path)))


def test_other_weights_at_the_same_path_are_another_encoder(tmp_path, pairs, split):
    fit = replace(FAST, epochs=1, features=tmp_path / "features", out=tmp_path / "run")
    config = slots_file(tmp_path / "slots.safetensors", pairs, seed=1)
    first = fit_pairs(config, pairs, split, fit=fit, seed=3)
    assert fit_pairs(config, pairs, split, fit=fit, seed=3).history == first.history
    slots_file(tmp_path / "slots.safetensors", pairs, seed=2)
    with pytest.raises(InvalidValueError, match="another run: encoder"):
        fit_pairs(config, pairs, split, fit=fit, seed=3)
    changed = fit_pairs(config, pairs, split, fit=replace(fit, out=None), seed=3)
    assert not torch.equal(changed.work.kept, first.work.kept)
    assert len(list((tmp_path / "features").iterdir())) == 2
    slots_file(tmp_path / "slots.safetensors", pairs, seed=1)
    back = fit_pairs(config, pairs, split, fit=fit, seed=3)
    assert torch.equal(back.work.kept, first.work.kept)


def test_weights_nobody_wants_are_dropped(tmp_path, pairs, split):
    fit = replace(FAST, epochs=1, out=tmp_path, keep_weights=False)
    fit_pairs(VANILLA, pairs, split, fit=fit)
    assert {path.name for path in tmp_path.glob("*.*")} == {".lock", "run.json", "train.json"}


def test_kept_features_are_those_computed_each_time(pairs, split):
    config = replace(VANILLA, frozen=True)
    kept = fit_pairs(config, pairs, split, fit=FAST, seed=2)
    assert kept.work.kept is not None
    work = PairWork(config, pairs, FAST, 2)
    work.encoder.eval()
    rows = torch.arange(20)
    torch.testing.assert_close(work.tokens(rows), kept.work.kept[:20], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["fixed", "drift"])
def test_batch_norm_of_a_frozen_encoder(kind, pairs, split):
    config = replace(VANILLA, frozen=True, frozen_norm=kind)
    run = fit_pairs(config, pairs, split, fit=replace(FAST, epochs=1), seed=2)
    fresh = PairWork(config, pairs, FAST, 2).encoder.state_dict()
    moved = {
        name.rsplit(".", 1)[1]
        for name, value in run.work.encoder.state_dict().items()
        if not torch.equal(value, fresh[name])
    }
    drifting = {"running_mean", "running_var", "num_batches_tracked"}
    assert moved == (set() if kind == "fixed" else drifting)


def test_seeds_differ_and_repeat(pairs, split):
    fit = replace(FAST, epochs=1)
    runs = [fit_pairs(VANILLA, pairs, split, fit=fit, seed=seed) for seed in (1, 1, 2)]
    losses = [run.history[0]["loss"] for run in runs]
    assert losses[0] == losses[1] != losses[2]


def test_selection_rules_differ_where_they_should():
    history = [
        {"epoch": 1, "valid": 0.2, "test_id": 0.6, "test_ood": 0.5},
        {"epoch": 2, "valid": 0.9, "test_id": 0.8, "test_ood": 0.1},
        {"epoch": 3, "valid": 0.8, "test_id": 0.9, "test_ood": 0.2},
        {"epoch": 4, "valid": 0.1, "test_id": 0.7, "test_ood": 0.3},
    ]
    found = {rule: (row["test_id"], row["test_ood"]) for rule, row in select(history).items()}
    assert found == {
        "last": (0.7, 0.3),
        "best_valid": (0.8, 0.1),
        "best_id": (0.9, 0.2),
        "best_each": (0.9, 0.5),
    }
    assert tuple(found) == RULES


def test_bad_input_is_refused(pairs, split):
    empty = SimpleNamespace(**{**vars(split), "test_ood": np.array([], dtype=int)})
    with pytest.raises(InvalidValueError, match="test_ood set has 0 pairs"):
        fit_pairs(VANILLA, pairs, empty, fit=FAST)
    beyond = SimpleNamespace(**{**vars(split), "valid": np.array([900])})
    with pytest.raises(InvalidValueError, match="names pair 900 of 500"):
        fit_pairs(VANILLA, pairs, beyond, fit=FAST)
    unmasked = replace(pairs, masks=None)
    with pytest.raises(InvalidValueError, match="needs masks"):
        fit_pairs(replace(VANILLA, pairing="mask"), unmasked, split, fit=FAST)
    with pytest.raises(InvalidValueError, match="batch_size is 1"):
        PairFit(batch_size=1)
    if not torch.cuda.is_available():
        with pytest.raises(InvalidValueError, match="finds no GPU"):
            fit_pairs(VANILLA, pairs, split, fit=replace(FAST, device="cuda"))


def test_a_loss_that_explodes_is_told(pairs, split):
    with pytest.raises(InvalidValueError, match="no longer a number"):
        fit_pairs(VANILLA, pairs, split, fit=replace(FAST, learning_rate=1e30))


def test_the_citris_readout_finds_the_blocks():
    rng = np.random.default_rng(0)
    factors = np.stack(
        [rng.normal(size=800), rng.uniform(-3.1, 3.1, 800), rng.integers(3, size=800)], axis=1
    )
    latents = np.stack(
        [factors[:, 0] ** 3, np.sin(factors[:, 1]), np.cos(factors[:, 1]), factors[:, 2]], axis=1
    )
    kinds = ("continuous", "angle", "categorical")
    table = citris_r2(latents, factors, blocks=[0, 1, 1, 2], kinds=kinds, epochs=60)
    assert np.diag(table).min() > 0.8
    assert (table - np.diag(np.diag(table))).max() < 0.2


def test_near_copies_of_a_picture_do_not_help_its_readers():
    draw = np.random.default_rng(0)
    latents = draw.normal(size=(200, 8)).repeat(2, axis=0) + 0.05 * draw.normal(size=(400, 8))
    factors = {"light/brightness": draw.normal(size=200).repeat(2)}
    factors["object/position/x"] = draw.normal(size=200).repeat(2)
    groups = np.repeat(np.arange(200), 2)
    found = feature_scores(latents, factors, [0] * 4 + [1] * 4, 0, groups)
    for name in ("dci_informativeness", "citris_diagonal", "r2_diagonal", "explicitness"):
        assert found[name] < 0.15, name


def test_pictures_of_a_house_are_not_parted(pairs):
    rows = np.array([0, 1, 4, 8])  # of toy houses with 4 pairs each
    assert picture_groups(pairs, rows).tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert picture_groups(pairs, rows[:2]).tolist() == [0, 0, 1, 1]  # one house: by pair
    unknown = replace(pairs, extra={})
    assert picture_groups(unknown, rows).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_factor_scores_keep_houses_together(trained, monkeypatch):
    seen = {}
    monkeypatch.setattr(
        "interverse.models.pairs.readout.feature_scores",
        lambda *given: seen.update(groups=given[4]) or {"names": []},
    )
    run = trained["vanilla"]
    factor_scores(run)
    house = run.work.data.labels.house[run.sets["test_id"].cpu().numpy()]
    assert seen["groups"].tolist() == np.repeat(house, 2).tolist()


_BASE = recipe("lite0")
_TINY = replace(_BASE.model, encoder=replace(_BASE.model.encoder, scale="tiny"))
_FIT = replace(_BASE.fit, epochs=3, batch_size=32)


def _jobs(pairs):
    kinds = [("noun", 0.0, 0.0), ("noun", 0.05, 0.0), ("noun", 0.0, 10.0), ("comp", 0.0, 0.0)]
    for shift, independence, sparsity in kinds:
        config = replace(_TINY, independence=independence, sparsity=sparsity)
        split = split_pairs(pairs.labels, SplitConfig(shift=shift, variant="mended", valid=20), 1)
        yield HeadJob(config=config, split=split, seed=1)


def test_a_stack_equals_its_heads_one_by_one():
    pairs = toy_pairs(300, size=32, seed=0)
    jobs = list(_jobs(pairs))  # sets of unequal size, so batches are filled up
    for job, run in zip(jobs, fit_heads(jobs, pairs, fit=_FIT), strict=True):
        alone = fit_pairs(job.config, pairs, job.split, fit=_FIT, seed=job.seed)
        for name, value in alone.work.weights().items():
            torch.testing.assert_close(run.work.weights()[name], value, rtol=1e-3, atol=1e-4)
        assert len(run.history) == len(alone.history)
        for mine, theirs in zip(run.history, alone.history, strict=True):
            assert mine.keys() == theirs.keys()
            for name in mine.keys() - {"seconds"}:
                assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-3)


def test_models_that_cannot_share_features_are_refused():
    pairs = toy_pairs(300, size=32, seed=0)
    first, *_, last = _jobs(pairs)
    with pytest.raises(InvalidValueError, match="differ"):
        fit_heads([first, replace(last, config=replace(_TINY, width=32))], pairs, fit=_FIT)
    with pytest.raises(InvalidValueError, match="random"):
        fit_heads([first, replace(last, seed=2)], pairs, fit=_FIT)
