"""Bootstrap intervals: against scipy, and by counting how often they cover the truth."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from interverse.core.errors import InvalidValueError
from interverse.metrics import bootstrap, statistics

TABLES = 2000
SCORES = 200


def often_perfect(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """Returns success scores as benchmarks give them (60% perfect, 20% zero) and their mean."""
    kind = rng.random(shape)
    partial = rng.beta(2, 2, shape)
    return np.where(kind < 0.6, 1.0, np.where(kind < 0.8, 0.0, partial)), 0.7


def rarely_failing(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """Returns scores that are 1 nine times in ten: as skewed as they come."""
    return np.where(rng.random(shape) < 0.9, 1.0, rng.random(shape)), 0.95


def near_one(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """Returns smooth, skewed scores and their interquartile mean."""
    law = stats.beta(5, 1)
    middle = law.expect(lambda x: x, lb=law.ppf(0.25), ub=law.ppf(0.75)) / 0.5
    return rng.beta(5, 1, shape), float(middle)


def coverage(draw, layout, statistic, method):
    """Returns the share of tables whose interval holds the truth; 50 at a time share the draws."""
    rng = np.random.default_rng(11)
    covered = []
    for _ in range(TABLES // 50):
        scores, truth = draw(rng, (50, *layout))
        found = bootstrap.interval(scores, statistic, rng=rng, resamples=1000, method=method)
        covered += ((found.low <= truth) & (truth <= found.high)).tolist()
    assert len(covered) == TABLES
    return np.mean(covered)


@pytest.mark.parametrize(
    ("draw", "layout", "statistic", "method"),
    [
        (often_perfect, (SCORES, 1), statistics.mean, "bca"),
        (often_perfect, (10, 20), statistics.mean, "percentile"),
    ],
)
def test_intervals_cover(draw, layout, statistic, method):
    assert 0.93 <= coverage(draw, layout, statistic, method) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("method", bootstrap.METHODS)
@pytest.mark.parametrize("layout", [(SCORES, 1), (10, 20)])
@pytest.mark.parametrize(
    ("draw", "statistic"),
    [
        (often_perfect, statistics.mean),
        (rarely_failing, statistics.mean),
        (near_one, statistics.iqm),
    ],
)
def test_intervals_cover_everywhere(draw, layout, statistic, method):
    assert 0.93 <= coverage(draw, layout, statistic, method) <= 0.97


@pytest.mark.parametrize("method", bootstrap.METHODS)
@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_one_task_equals_scipy(method, statistic):
    scores = np.random.default_rng(5).beta(5, 1, 400)
    ours = {np.mean: statistics.mean, np.median: statistics.median}[statistic]
    found = bootstrap.interval(
        scores[:, None], ours, rng=np.random.default_rng(0), resamples=20000, method=method
    )
    known = stats.bootstrap(
        (scores,),
        statistic,
        n_resamples=20000,
        method=method,
        vectorized=True,
        rng=np.random.default_rng(1),
    ).confidence_interval
    width = known.high - known.low
    assert found.estimate == pytest.approx(statistic(scores))
    assert abs(found.low - known.low) < 0.04 * width
    assert abs(found.high - known.high) < 0.04 * width


@pytest.mark.parametrize("method", bootstrap.METHODS)
def test_strata_equal_scipy(method):
    """Scipy's bootstrap of several samples draws within each: our tasks, of unequal size."""
    rng = np.random.default_rng(6)
    columns = [rng.beta(5, 1, 300), rng.beta(1, 4, 150), rng.beta(2, 2, 200)]
    table = np.full((300, 3), np.nan)
    for task, column in enumerate(columns):
        table[: len(column), task] = column
    found = bootstrap.interval(table, rng=np.random.default_rng(0), resamples=20000, method=method)
    known = stats.bootstrap(
        columns,
        lambda a, b, c, axis: (a.mean(axis=axis) + b.mean(axis=axis) + c.mean(axis=axis)) / 3,
        n_resamples=20000,
        method=method,
        rng=np.random.default_rng(1),
    ).confidence_interval
    width = known.high - known.low
    assert abs(found.low - known.low) < 0.04 * width
    assert abs(found.high - known.high) < 0.04 * width


def test_few_runs_get_the_width_theory_gives():
    """With n - 1 of n drawn, the spread of a mean is the sample's standard error, not less."""
    table = np.random.default_rng(7).normal(size=(5, 30))
    found = bootstrap.interval(table, rng=np.random.default_rng(0), resamples=20000)
    error = np.sqrt(np.sum(table.var(axis=0, ddof=1) / 5)) / 30
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("method", bootstrap.METHODS)
def test_same_seed_same_interval_in_any_order_of_runs_and_chunks(method, monkeypatch):
    scores = np.random.default_rng(9).random((3, 30, 4))
    scores[1, :7, 2] = np.nan
    first = bootstrap.interval(scores, rng=np.random.default_rng(1), resamples=200, method=method)
    monkeypatch.setattr(bootstrap, "_NUMBERS_AT_ONCE", 1)
    shuffled = np.random.default_rng(2).permuted(scores, axis=1)
    second = bootstrap.interval(
        shuffled, rng=np.random.default_rng(1), resamples=200, method=method
    )
    np.testing.assert_allclose(first.low, second.low, rtol=1e-12)
    np.testing.assert_allclose(first.high, second.high, rtol=1e-12)


def test_a_profile_gets_a_band():
    scores = np.random.default_rng(4).random((20, 3))
    levels = np.linspace(0, 1, 11)
    profile = functools.partial(statistics.performance_profile, thresholds=levels)
    for method in bootstrap.METHODS:
        band = bootstrap.interval(
            scores, profile, rng=np.random.default_rng(0), resamples=300, method=method
        )
        assert band.low.shape == band.high.shape == (11,)
        assert np.all(band.low <= band.estimate)
        assert np.all(band.estimate <= band.high)


@pytest.mark.parametrize("method", bootstrap.METHODS)
def test_too_few_scores_have_no_interval_and_equal_ones_neither(method):
    def ends(scores):
        found = bootstrap.interval(scores, rng=np.random.default_rng(0), method=method)
        return float(found.estimate), float(found.low), float(found.high)

    assert np.isnan(ends(np.zeros((0, 1)))).all()
    assert np.isnan(ends([[np.nan], [np.nan]])).all()
    estimate, low, high = ends([[0.4]])
    assert estimate == 0.4
    assert np.isnan([low, high]).all()
    for scores in ([[1.0]] * 5, [[704.3]] * 19 + [[704.3 + 1e-12]]):
        estimate, low, high = ends(scores)
        assert estimate == pytest.approx(scores[0][0])
        assert np.isnan([low, high]).all()
    assert ends([[1.0, 0.2], [1.0, 0.4]])[1] < 0.65, "one task that varies is enough"


def test_infinite_scores_do_not_become_nan():
    times = np.array([[1.0], [2.0], [3.0], [np.inf], [np.inf]])
    found = bootstrap.interval(times, statistics.median, rng=np.random.default_rng(0))
    assert found.estimate == 3.0
    assert found.high == np.inf


def test_bad_settings_are_refused():
    rng = np.random.default_rng(0)
    scores = np.zeros((3, 1))
    with pytest.raises(InvalidValueError, match="confidence must be a share, got 95"):
        bootstrap.interval(scores, rng=rng, confidence=95)
    with pytest.raises(InvalidValueError, match="resamples must be at least 1"):
        bootstrap.interval(scores, rng=rng, resamples=0)
    with pytest.raises(InvalidValueError, match=r"unknown method 'normal'.*percentile, bca"):
        bootstrap.interval(scores, rng=rng, method="normal")
