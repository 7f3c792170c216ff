"""The benchmark of evaluation is in the table and measures what it says."""

import pytest

from interverse.bench import BENCHMARKS
from interverse.bench.evaluation import evaluation


def test_it_is_in_the_table():
    assert BENCHMARKS.load("evaluation") is evaluation


@pytest.mark.slow
def test_the_overhead_is_small():
    overhead, whole = evaluation()
    assert overhead.ratio < 1.2
    assert whole.value < 720
