"""The benchmark of evaluation is in the table and measures what it says."""

import pytest

from interverse.bench import BENCHMARKS, grids
from interverse.bench.evaluation import evaluation


def test_it_is_in_the_table():
    assert BENCHMARKS.load("evaluation") is evaluation


@pytest.mark.parametrize("id", ["blocks/observed-3-v1", "chemistry/chain-v1"])
def test_a_ratio_stands_only_where_both_sides_ran(monkeypatch, id):
    """The original of the grid worlds does not: their rates stand by themselves."""
    monkeypatch.setattr(grids, "_WORLDS", 8)
    for row in grids.steps_with_images(id, target=""):
        assert (row.ratio, row.baseline) == (None, "")


@pytest.mark.slow
def test_the_overhead_is_small():
    overhead, whole = evaluation()
    assert overhead.ratio < 1.2
    assert whole.value < 720
