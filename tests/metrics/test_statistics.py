"""Aggregates of score tables against scipy, and successes of episodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from interverse.core.errors import InvalidValueError
from interverse.metrics import STATISTICS, statistics, success

tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.floats(-5, 5)
)
AGGREGATES = [STATISTICS.load(name) for name in STATISTICS if "table" in STATISTICS[name].tags]


@given(tables)
def test_aggregates_equal_scipy_and_numpy(table):
    assert statistics.iqm(table) == pytest.approx(stats.trim_mean(table.ravel(), 0.25))
    assert statistics.mean(table) == pytest.approx(table.mean())
    assert statistics.median(table) == pytest.approx(np.median(table))
    assert statistics.median_task(table) == pytest.approx(np.median(table.mean(axis=0)))
    gap = 1.0 - np.minimum(table, 1.0).mean()
    assert statistics.optimality_gap(table) == pytest.approx(gap)


@given(tables, st.integers(0, 2**32 - 1))
def test_aggregates_ignore_the_order_of_runs_and_batch(table, seed):
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(table, axis=0)
    for aggregate in AGGREGATES:
        alone = aggregate(table)
        assert aggregate(shuffled) == pytest.approx(alone)
        batch = aggregate(np.stack([table, shuffled]))
        np.testing.assert_allclose(batch, [alone, aggregate(shuffled)], rtol=1e-12)


@given(tables, st.data())
def test_missing_scores_are_left_out(table, data):
    """A column with holes scores as the shorter column without them."""
    column = table[:, :1]
    holes = data.draw(st.integers(0, 4))
    padded = np.concatenate([column, np.full((holes, 1), np.nan)])
    for aggregate in AGGREGATES:
        assert aggregate(padded) == pytest.approx(float(aggregate(column)), nan_ok=True)


def test_nothing_scored_is_nan_without_a_warning():
    for aggregate in AGGREGATES:
        assert np.isnan(aggregate(np.full((3, 2), np.nan)))
        assert np.isnan(aggregate(np.zeros((0, 2))))


@given(tables, tables)
def test_probability_of_improvement_is_mann_whitney(first, second):
    tasks = min(first.shape[1], second.shape[1])
    first, second = first[:, :tasks], second[:, :tasks]
    found = statistics.probability_of_improvement(first, second)
    terms = [
        stats.mannwhitneyu(first[:, t], second[:, t]).statistic / (len(first) * len(second))
        for t in range(tasks)
    ]
    assert found == pytest.approx(np.mean(terms))
    back = statistics.probability_of_improvement(second, first)
    assert found + back == pytest.approx(1.0)


def test_profile_is_the_survival_function():
    scores = np.random.default_rng(3).random((40, 1))
    levels = np.linspace(-0.1, 1.1, 25)
    found = statistics.performance_profile(scores, levels)
    known = stats.ecdf(scores.ravel()).sf.evaluate(levels)
    np.testing.assert_allclose(found, known, atol=1e-12)
    assert np.all(np.diff(found) <= 0)
    assert found[0] == 1.0
    assert found[-1] == 0.0


def test_bad_tables_are_refused():
    with pytest.raises(InvalidValueError, match=r"\(\.\.\., run, task\)"):
        statistics.iqm([0.1, 0.2])
    with pytest.raises(InvalidValueError, match="same tasks"):
        statistics.probability_of_improvement(np.zeros((3, 2)), np.zeros((3, 1)))


steps_and_padding = st.tuples(
    hnp.arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 1)), st.integers(0, 30)
)


@given(steps_and_padding)
def test_padding_never_counts(pair):
    episode, extra = pair
    padded = np.concatenate([episode, np.full(extra, 7.0)])[None]
    length = [len(episode)]
    for metric in (
        success.last,
        success.mean,
        success.last_20,
        success.time_to_success,
        success.episode_return,
    ):
        np.testing.assert_allclose(metric(padded, length), metric(episode[None]), rtol=1e-12)


@given(hnp.arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 1)))
def test_against_plain_slices(episode):
    assert success.last(episode) == episode[-1]
    assert success.mean(episode) == pytest.approx(np.mean(episode))
    assert success.last_20(episode) == pytest.approx(np.mean(episode[-20:]))
    assert success.episode_return(episode) == pytest.approx(sum(episode))


def test_legacy_is_the_first_step_and_the_last_19():
    episode = np.linspace(0.0, 1.0, 251)
    by_index = np.mean([episode[i] for i in range(-19, 1)])  # the original's loop
    assert success.last_20(episode, legacy=True) == pytest.approx(by_index)
    assert success.last_20(episode) != pytest.approx(by_index)


def test_time_to_success_is_the_first_time_and_infinite_without():
    steps = np.array([[0.0, 1.0, 0.0, 1.0], [0.98, 0.98, 0.98, 1.0], [0.0, 0.0, 0.0, 0.0]])
    found = success.time_to_success(steps, length=[4, 3, 4], dt=0.04)
    assert found.tolist() == [0.08, np.inf, np.inf]
    assert success.time_to_success(steps[1], threshold=0.9) == 1.0


@pytest.mark.parametrize(
    ("values", "length", "text"),
    [
        ([], None, "at least one step"),
        ([[0.1, 0.2]], [0], "length must count steps"),
        ([[0.1, 0.2]], [3], "whole numbers from 1 to 2"),
        ([[0.1, 0.2]], [1.5], "length must count steps"),
        ([[0.1, 0.2]], [1, 2, 1], "one length per episode"),
    ],
)
def test_bad_episodes_are_refused(values, length, text):
    with pytest.raises(InvalidValueError, match=text):
        success.last(values, length)


def test_dt_must_be_positive():
    with pytest.raises(InvalidValueError, match="dt must be > 0"):
        success.time_to_success([0.1], dt=0.0)
