"""The TriFinger measurements run and give rates; how high they are is no test's business."""

from __future__ import annotations

from interverse.bench import BENCHMARKS
from interverse.bench.trifinger import interventions, single, trifinger


def test_the_table_has_it():
    assert BENCHMARKS.load("trifinger") is trifinger


def test_rates_are_measured_beside_a_loop():
    row = single()
    assert row.value > 0
    assert row.ratio > 0
    assert "MjData" in row.baseline


def test_every_kind_of_intervention_is_measured():
    rows = interventions()
    assert len({row.name for row in rows}) == 6
    assert all(row.value > 0 for row in rows)
