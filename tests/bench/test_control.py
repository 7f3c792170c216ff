"""The benchmark's parts measure what they say; speeds themselves are not tested."""

from __future__ import annotations

import pytest

from interverse.bench import BENCHMARKS
from interverse.bench.control import _batch, _construction, _states, _steps, _switch
from interverse.cli.bench import Bench, _chosen
from interverse.core.errors import InvalidValueError


@pytest.mark.slow
def test_rows_have_a_value_and_a_baseline():
    assert "control" in BENCHMARKS
    steps, switch, made = (
        _steps("pendulum", "fast"),
        _switch("pendulum_swingup"),
        _construction("pendulum_swingup"),
    )
    assert steps.ratio > 1.0  # against the stock suite's own renderer
    assert steps.value > 1.0
    assert switch.ratio > 0.5
    assert 0.0 < made.value < 10_000.0
    assert _batch("pendulum_swingup").value > 1.0
    assert all(row.value > 0.0 and row.ratio > 0.0 for row in _states("pendulum", 2))


def test_a_gpu_measures_worlds_and_the_learner_of_pictures():
    assert set(_chosen(Bench(device="cuda"))) == {"device", "pictures", "pixels"}
    assert set(_chosen(Bench(device="cuda", only=("pixels",)))) == {"pixels"}
    with pytest.raises(
        InvalidValueError, match=r"only rooms on cuda. Allowed: device, pictures, pixels"
    ):
        _chosen(Bench(device="cuda", only=("rooms",)))
