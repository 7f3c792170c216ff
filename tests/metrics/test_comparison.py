"""Paired comparison, Holm's correction, generalisation errors and gaps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from interverse.core.errors import InvalidValueError
from interverse.metrics import comparison, generalisation

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def by_closed_testing(p_values):
    """Returns Holm's values from their definition: Bonferroni on every set that holds the test."""
    tests = range(len(p_values))
    sets = [s for size in tests for s in itertools.combinations(tests, size + 1)]
    return [
        max(min(1.0, len(s) * min(p_values[i] for i in s)) for s in sets if test in s)
        for test in tests
    ]


@given(probabilities)
def test_holm_equals_closed_testing(p_values):
    np.testing.assert_allclose(comparison.holm(p_values), by_closed_testing(p_values))


def test_holm_leaves_out_what_was_not_tested():
    found = comparison.holm([0.01, np.nan, 0.04])
    assert found[0] == pytest.approx(0.02)
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(0.04)
    assert comparison.holm([]).shape == (0,)


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(InvalidValueError, match=r"p_values must be .* got \[1.5\]"):
        comparison.holm([1.5])


@pytest.mark.parametrize("episodes", [12, 80])
def test_p_values_are_wilcoxon_s(episodes):
    rng = np.random.default_rng(2)
    first = rng.random((episodes, 2))
    second = first - rng.normal([0.05, 0.0], 0.1, (episodes, 2))
    found = comparison.compare(first, second, rng=rng)
    for task in (0, 1):
        known = stats.wilcoxon(first[:, task], second[:, task]).pvalue
        assert found.p_value[task] == pytest.approx(known, abs=5e-3)
    assert np.all(found.adjusted >= found.p_value)
    np.testing.assert_allclose(found.difference.estimate, (first - second).mean(axis=0))


def test_a_missing_episode_leaves_both_and_ties_prove_nothing():
    first = np.full((40, 3), 0.5)
    second = first.copy()
    second[0, 0] = 0.2  # one difference among 40 ties
    first[:10, 1] = np.nan
    first[:, 2] = np.nan
    found = comparison.compare(first, second, rng=np.random.default_rng(0))
    assert found.pairs.tolist() == [40, 30, 0]
    assert found.p_value[0] > 0.3
    assert found.p_value[1] == 1.0
    assert np.isnan(found.p_value[2])


def test_rounding_is_no_difference():
    """Returns that sum up in another order differ in their last bits, always the same way."""
    rng = np.random.default_rng(0)
    base = rng.random((40, 1)) + 700
    noise = rng.random((40, 1)) * 1e-11
    assert comparison.compare(base + noise, base, rng=rng).p_value[0] == 1.0
    found = comparison.compare_seeds(base + noise, base, np.repeat(np.arange(8), 5))
    assert (found.p_value[0], found.difference.estimate[0]) == (1.0, 0.0)


@pytest.mark.parametrize("pairs", [1, 2, 4, 10])
def test_few_tied_pairs_have_the_exact_p_value(pairs):
    found = comparison.compare(
        np.ones((pairs, 1)), np.zeros((pairs, 1)), rng=np.random.default_rng(0)
    )
    assert found.p_value[0] == pytest.approx(2 / 2**pairs)


def test_p_values_with_ties_are_those_of_all_signs():
    rng = np.random.default_rng(3)
    for _ in range(5):
        first = rng.integers(0, 4, (9, 1)).astype(float)
        found = comparison.compare(first, np.ones((9, 1)), rng=rng, resamples=2)
        (d,) = (first - 1).T
        ranks = stats.rankdata(np.abs(d)) * np.sign(d)
        known = stats.permutation_test((ranks,), np.sum, permutation_type="samples")
        assert found.p_value[0] == pytest.approx(known.pvalue)


def test_infinite_scores_of_both_are_ties_and_leave_no_mean():
    never = np.inf
    first = np.array([[3.0], [never], [never], [4.0], [5.0], [6.0]])
    second = np.array([[3.5], [never], [5.0], [7.0], [8.0], [9.0]])
    found = comparison.compare(first, second, rng=np.random.default_rng(0))
    assert found.pairs.tolist() == [6]
    assert np.isnan(found.difference.estimate[0])
    finite = [np.where(t == never, 10.0, t) for t in (first, second)]
    known = comparison.compare(*finite, rng=np.random.default_rng(0))
    assert found.p_value[0] == known.p_value[0]


def test_pairs_that_are_one_and_the_same_count_once_in_the_test():
    rng = np.random.default_rng(0)
    first = np.repeat([[1.0], [2.0], [3.0]], 20, axis=0)
    alike = np.repeat([0, 1, 2], 20)
    found = comparison.compare(first, np.zeros((60, 1)), rng=rng, alike=alike)
    assert found.p_value[0] == pytest.approx(0.25)
    assert found.difference.estimate[0] == pytest.approx(2.0)
    alone = comparison.compare(first, np.zeros((60, 1)), rng=rng)
    assert found.difference.low[0] < alone.difference.low[0]


def test_seeds_are_compared_by_students_t():
    rng = np.random.default_rng(0)
    seeds = np.repeat(np.arange(5), 20)
    scores = rng.normal(size=(2, 100, 1)) + rng.normal(size=(2, 5, 1)).repeat(20, axis=1)
    found = comparison.compare_seeds(*scores, seeds)
    means = scores.reshape(2, 5, 20).mean(axis=2)
    known = stats.ttest_rel(*means)
    assert found.p_value[0] == pytest.approx(known.pvalue)
    ends = known.confidence_interval()
    assert (found.difference.low[0], found.difference.high[0]) == pytest.approx(tuple(ends))
    assert found.pairs.tolist() == [5]
    same = comparison.compare_seeds(scores[0] + 1, scores[0], seeds)
    assert same.p_value[0] == 2 / 2**5  # no spread to judge by
    assert np.isnan(same.difference.low[0])
    assert comparison.compare_seeds(scores[0], scores[0], seeds).p_value[0] == 1.0


@pytest.mark.slow
def test_false_alarms_stay_below_five_in_a_hundred():
    """Under no difference, any of 12 corrected tests fires in at most about 5% of tables."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(400):
        scores = rng.random((2, 50, 12))
        found = comparison.compare(scores[0], scores[1], rng=rng, resamples=2)
        alarms += bool(np.any(found.adjusted < 0.05))
    assert alarms / 400 < 0.075


def test_paired_tables_must_match():
    with pytest.raises(InvalidValueError, match=r"\(3, 1\) and \(4, 1\).*Join them"):
        comparison.compare(np.zeros((3, 1)), np.zeros((4, 1)), rng=np.random.default_rng(0))
    with pytest.raises(InvalidValueError, match=r"seeds has shape \(2,\).*\(3,\)"):
        comparison.compare_seeds(np.zeros((3, 1)), np.zeros((3, 1)), [0, 1])


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
