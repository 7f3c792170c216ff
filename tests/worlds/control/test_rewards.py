"""The reward curve of single numbers: bit for bit dm_control's, and used by our tasks alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from dm_control.utils import rewards as stock

from interverse.worlds.control.suite import suite, template, tolerance


@pytest.mark.parametrize("sigmoid", ["gaussian", "linear", "quadratic", "long_tail"])
@pytest.mark.parametrize("at_margin", [0.1, 0.5])
def test_every_bit_is_dm_controls(sigmoid, at_margin):
    rng = np.random.default_rng(0)
    for _ in range(300):
        low, number = rng.normal(), 5.0 * rng.normal()
        high = rng.choice([low, low + rng.exponential(), np.inf])
        margin = rng.choice([0.0, 3.0 * rng.exponential()])
        numbers = number, np.float64(number), np.array([number]), np.array([number, 0.0, -1.0])
        for x, bounds in itertools.product(numbers, ((low, high), (0.0, 0.0))):
            given = x, bounds, margin, sigmoid, at_margin
            wanted, found = stock.tolerance(*given), tolerance(*given)
            assert np.array_equal(wanted, found)
            assert type(wanted) is type(found)


def test_what_dm_control_refuses_is_refused():
    with pytest.raises(ValueError, match="Lower bound"):
        tolerance(0.0, (1.0, 0.0))
    with pytest.raises(ValueError, match="non-negative"):
        tolerance(0.5, (0.0, 1.0), -1.0)


def test_the_suite_itself_is_left_alone():
    ours, theirs = template("cartpole", "balance").task, suite.load("cartpole", "balance").task
    assert isinstance(ours, type(theirs))
    assert type(ours) is not type(theirs)
    assert type(theirs)._get_reward.__globals__["rewards"] is stock
    assert type(ours)._get_reward.__globals__["rewards"].tolerance is tolerance
