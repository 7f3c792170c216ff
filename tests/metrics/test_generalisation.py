"""Generalisation error, gaps from A to B, and which variable hurts most."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from interverse.core.errors import InvalidValueError
from interverse.metrics import generalisation


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_generalisation_error_is_the_share_lost():
    assert generalisation.generalisation_error([800, 1000, np.nan], [450]) == pytest.approx(0.5)
    assert generalisation.generalisation_error([10.0], [12.0]) == pytest.approx(-0.2)
    assert np.isnan(generalisation.generalisation_error([0.0], [1.0]))
    with pytest.raises(InvalidValueError, match="mean training score is -2"):
        generalisation.generalisation_error([-2.0], [-3.0])


def test_generalisation_error_interval_equals_scipy():
    train, test = rng(1).normal(900, 60, 100), rng(2).normal(300, 200, 300)
    found = generalisation.generalisation_error_interval(train, test, rng=rng(), resamples=20000)
    known = stats.bootstrap(
        (train, test),
        lambda a, b, axis: 1 - b.mean(axis=axis) / a.mean(axis=axis),
        n_resamples=20000,
        method="percentile",
        rng=rng(3),
    ).confidence_interval
    width = known.high - known.low
    assert abs(found.low - known.low) < 0.05 * width
    assert abs(found.high - known.high) < 0.05 * width


@pytest.mark.parametrize(("train", "test"), [([9.1] * 7, [4.7] * 9), ([8.0, 9.0, 7.5], [0.0] * 5)])
def test_equal_scores_have_no_generalisation_interval(train, test):
    """Whatever is drawn of them, the share is the same: that is no interval."""
    found = generalisation.generalisation_error_interval(train, test, rng=rng())
    assert found.estimate == pytest.approx(1 - np.mean(test) / np.mean(train))
    assert np.isnan([found.low, found.high]).all()


def test_equal_scores_have_no_effects_with_intervals():
    values = {"mass": rng(1).random(30)}
    (found,) = generalisation.effects([704.3] * 30, values, rng=rng())
    assert found.change.estimate == 0
    assert np.isnan([found.change.low, found.change.high]).all()


def test_gaps_rank_the_largest_loss_first():
    episodes = 400
    mass = np.where(rng(1).random(episodes) < 0.5, "A", "B")
    size = np.where(rng(2).random(episodes) < 0.5, "A", "B")
    size[:50] = ""
    scores = 0.9 - 0.4 * (mass == "B") - 0.1 * (size == "B") + rng(3).normal(0, 0.05, episodes)
    scores[:5] = np.nan
    found = generalisation.gaps(scores, {"size": size, "mass": mass}, rng=rng())
    assert [gap.variable for gap in found] == ["mass", "size"]
    assert found[0].loss.low < 0.4 < found[0].loss.high
    assert found[0].loss.low > found[1].loss.high
    assert found[1].episodes_a + found[1].episodes_b == 350
    assert found[0].episodes_a + found[0].episodes_b == 395


def test_a_gap_without_one_side_is_nan_and_last():
    scores = [0.5, 0.7, 0.9, 0.4]
    spaces = {"never": ["A", "A", "A", "A"], "mass": ["A", "A", "B", "B"]}
    found = generalisation.gaps(scores, spaces, rng=rng())
    assert [gap.variable for gap in found] == ["mass", "never"]
    assert np.isnan(found[1].loss.estimate)
    assert np.isnan(found[1].loss.low)


def test_effects_recover_known_slopes_and_equal_scipy_for_one_variable():
    mass = rng(1).uniform(0.015, 0.1, 300)
    scores = 1 - 5 * mass + rng(2).normal(0, 0.1, 300)
    (found,) = generalisation.effects(scores, {"mass": mass}, rng=rng())
    line = stats.linregress(mass, scores)
    span = found.to_value - found.from_value
    assert found.change.estimate == pytest.approx(line.slope * span)
    error = stats.t.ppf(0.975, 298) * line.stderr * span
    assert found.change.high - found.change.low == pytest.approx(2 * error, rel=0.15)
    assert found.worst == 1.0


def test_effects_name_the_variable_that_hurts_most():
    episodes = 500
    values = {
        "block_0/mass": rng(1).uniform(0.015, 0.1, episodes),
        "block_0/size": rng(2).uniform(0.05, 0.1, (episodes, 3)),
        "floor/friction": np.full(episodes, 0.5),
    }
    score = 1 - 6 * values["block_0/mass"] - 2 * values["block_0/size"][:, 2]
    score += rng(3).normal(0, 0.05, episodes)
    score[:20] = np.nan
    found = generalisation.effects(score, values, rng=rng())
    assert [effect.variable for effect in found[:2]] == ["block_0/mass", "block_0/size[2]"]
    assert {e.variable for e in found[2:]} == {"block_0/size[0]", "block_0/size[1]"}
    assert found[0].change.high < found[1].change.low < 0
    assert found[0].worst > 0.99
    for effect in found[2:]:
        assert effect.change.low < 0 < effect.change.high


def test_variables_that_move_together_share_the_effect():
    mass = rng(1).random(100)
    found = generalisation.effects(1 - mass, {"mass": mass, "weight": 9.81 * mass}, rng=rng())
    assert found[0].change.estimate == pytest.approx(found[1].change.estimate)
    total = found[0].change.estimate + found[1].change.estimate
    assert total == pytest.approx(-np.subtract(*np.quantile(mass, [0.95, 0.05])))


def test_a_variable_s_effect_is_read_where_it_was_set():
    """Heavy blocks come with far goals here; the two effects must not be mixed up."""
    mass, goal = rng(1).random(600), rng(2).random(600)
    mass[:200], goal[400:] = np.nan, np.nan  # mass alone, both, goal alone
    goal[:200] += 1.0
    scores = 1 - 0.2 * np.nan_to_num(mass, nan=0.5) - 0.4 * np.nan_to_num(goal, nan=0.2)
    found = generalisation.effects(scores, {"mass": mass, "goal": goal}, rng=rng())
    slopes = {e.variable: e.change.estimate / (e.to_value - e.from_value) for e in found}
    assert slopes == pytest.approx({"mass": -0.2, "goal": -0.4})


@pytest.mark.slow
def test_effect_intervals_cover():
    covered = 0
    for seed in range(300):
        mass = rng(seed).random(200)
        noise = rng(seed + 1000).normal(0, 0.1 + 0.3 * mass)  # unequal spread, as scores have
        (found,) = generalisation.effects(
            0.8 - 0.3 * mass + noise, {"mass": mass}, rng=rng(seed), resamples=500
        )
        truth = -0.3 * (found.to_value - found.from_value)
        covered += bool(found.change.low <= truth <= found.change.high)
    assert 0.91 <= covered / 300 <= 0.98


def test_nothing_varied_gives_no_effects():
    assert generalisation.effects([0.1, 0.2], {"mass": [1.0, 1.0]}, rng=rng()) == []
    assert generalisation.effects([], {"mass": []}, rng=rng()) == []


def test_bad_input_is_refused():
    with pytest.raises(InvalidValueError, match="3 episodes cannot tell 2 variables apart"):
        generalisation.effects([1, 2, 3], {"a": [1, 2, 3], "b": [3, 1, 2]}, rng=rng())
    with pytest.raises(InvalidValueError, match=r"values\['a'\] has shape \(2,\)"):
        generalisation.effects([1, 2, 3], {"a": [1, 2]}, rng=rng())
    with pytest.raises(InvalidValueError, match=r"spaces\['a'\] has shape"):
        generalisation.gaps([1, 2, 3], {"a": ["A"]}, rng=rng())
    with pytest.raises(InvalidValueError, match="confidence must be a share"):
        generalisation.gaps([1, 2], {"a": ["A", "B"]}, rng=rng(), confidence=2.0)
