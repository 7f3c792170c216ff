"""Student's t intervals over training runs: SciPy's ends, missing runs, coverage of few runs."""

import numpy as np
import pytest
from scipy import stats

from interverse.metrics.bootstrap import t_interval
from interverse.metrics.generalisation import generalisation_error_of_runs


def test_ends_are_scipy_s_and_missing_runs_are_left_out():
    runs = np.array([[3.0, 5.0, 10.0, np.nan], [1.0, 2.0, 3.0, 9.0]])
    found = t_interval(runs, confidence=0.9)
    for row, values in enumerate(([3.0, 5.0, 10.0], [1.0, 2.0, 3.0, 9.0])):
        known = stats.t.interval(0.9, len(values) - 1, np.mean(values), stats.sem(values))
        assert (found.low[row], found.high[row]) == pytest.approx(known)


@pytest.mark.parametrize("runs", [[4.0], [704.3, 704.3, 704.3], [], [np.nan]])
def test_a_single_run_or_equal_ones_have_no_interval(runs):
    assert np.isnan(t_interval(np.array(runs)).low)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_intervals_of_few_runs_cover_what_they_say(count):
    """A bootstrap covers 47% of the time with two runs, 85% with five."""
    runs = np.random.default_rng(0).normal(5.0, 2.0, (20_000, count))
    found = t_interval(runs)
    assert np.mean((found.low < 5.0) & (found.high > 5.0)) == pytest.approx(0.95, abs=0.006)


@pytest.mark.parametrize("count", [2, 5])
def test_errors_of_few_runs_cover_what_they_say(count):
    """Runs learn more or less, and keep about a third of it."""
    draw = np.random.default_rng(1).normal
    learned = draw(800.0, 120.0, (4000, count))
    kept = learned / 3 + draw(0.0, 40.0, (4000, count))
    found = [
        generalisation_error_of_runs(one, other) for one, other in zip(learned, kept, strict=True)
    ]
    covered = [f.low < 2 / 3 < f.high for f in found]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


def test_an_error_takes_each_run_with_both_scores():
    learned = np.array([400.0, 500.0, 700.0, 1000.0])
    near = generalisation_error_of_runs(learned, 0.2 * learned + [1.0, -1.0, 1.0, -1.0])
    assert [near.low, near.estimate, near.high] == pytest.approx([0.8, 0.8, 0.8], abs=0.005)
    apart = generalisation_error_of_runs(learned, 0.2 * learned[::-1])
    assert apart.low < 0.6 < 0.9 < apart.high
    torn = generalisation_error_of_runs([*learned, np.nan], [*(0.2 * learned), 900.0])
    assert float(torn.estimate) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("train", "test"),
    [([9.1], [4.7]), ([9.1] * 3, [4.7] * 3), ([9.1, 3.3], [9.1 / 7, 3.3 / 7]), ([], [])],
)
def test_an_error_of_one_run_or_of_equal_ones_has_no_interval(train, test):
    assert np.isnan(generalisation_error_of_runs(train, test).low)
