"""Scores of episodes from their steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from interverse.core.errors import InvalidValueError
from interverse.metrics import success

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
