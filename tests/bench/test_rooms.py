"""The benchmark of rooms measures what it says."""

from __future__ import annotations

from interverse.bench import BENCHMARKS
from interverse.bench import rooms as bench


def test_a_picture_costs_more_than_its_mask():
    assert BENCHMARKS.load("rooms") is bench.rooms
    row = bench._picture()
    assert row.value > 0
    assert row.ratio > 1
