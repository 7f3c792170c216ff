"""Aggregates of score tables, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from interverse.core.errors import InvalidValueError
from interverse.metrics import STATISTICS, statistics

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
