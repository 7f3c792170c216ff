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


def test_gaps_are_in_the_order_given_so_that_none_is_singled_out():
    episodes = 400
    mass = np.where(rng(1).random(episodes) < 0.5, "A", "B")
    size = np.where(rng(2).random(episodes) < 0.5, "A", "B")
    size[:50] = ""
    scores = 0.9 - 0.4 * (mass == "B") - 0.1 * (size == "B") + rng(3).normal(0, 0.05, episodes)
    scores[:5] = np.nan
    found = generalisation.gaps(scores, {"size": size, "mass": mass}, rng=rng())
    assert [gap.variable for gap in found] == ["size", "mass"]
    found = found[::-1]
    assert found[0].loss.low < 0.4 < found[0].loss.high
    assert found[0].loss.low > found[1].loss.high
    assert found[1].episodes_a + found[1].episodes_b == 350
    assert found[0].episodes_a + found[0].episodes_b == 395


def test_a_gap_without_one_side_is_nan():
    scores = [0.5, 0.7, 0.9, 0.4]
    spaces = {"never": ["A", "A", "A", "A"], "mass": ["A", "A", "B", "B"]}
    found = generalisation.gaps(scores, spaces, rng=rng())
    assert [gap.variable for gap in found] == ["never", "mass"]
    assert np.isnan(found[0].loss.estimate)
    assert np.isnan(found[0].loss.low)


def test_bad_input_is_refused():
    with pytest.raises(InvalidValueError, match=r"spaces\['a'\] has shape"):
        generalisation.gaps([1, 2, 3], {"a": ["A"]}, rng=rng())
    with pytest.raises(InvalidValueError, match="confidence must be a share"):
        generalisation.gaps([1, 2], {"a": ["A", "B"]}, rng=rng(), confidence=2.0)
