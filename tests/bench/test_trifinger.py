"""The TriFinger measurements run and give rates; how high they are is no test's business."""

from __future__ import annotations

from interverse.bench import BENCHMARKS
from interverse.bench.trifinger import interventions, memory, pixels, single, trifinger


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
    assert all(row.value > 0 and row.ratio > 0 for row in rows)


def test_pictures_are_measured_beside_the_stock_renderer():
    row = pixels("fast", 25)
    assert row.value > 0
    assert "mujoco.Renderer" in row.baseline
    assert row.target == "at least 25"


def test_a_world_of_a_batch_is_smaller_than_an_mjdata():
    row = memory()
    assert 0 < row.value < 60
    assert row.ratio < 0.5
