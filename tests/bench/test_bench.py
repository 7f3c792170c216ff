"""The benchmarks measure what they say and give rates; how high they are is no test's business."""

import pytest

from interverse.bench import BENCHMARKS, library, worlds
from interverse.bench.control import _batch, _construction, _states, _steps, _switch
from interverse.bench.trifinger import interventions, memory, pixels, single
from interverse.cli.bench import Bench, _chosen
from interverse.core.errors import InvalidValueError


def test_every_row_of_the_table_loads():
    assert all(callable(BENCHMARKS.load(name)) for name in BENCHMARKS)


@pytest.mark.parametrize("id", ["blocks/observed-3-v1", "chemistry/chain-v1"])
def test_a_ratio_stands_only_where_both_sides_ran(monkeypatch, id):
    """The original of the grid worlds does not: their rates stand by themselves."""
    monkeypatch.setattr(worlds, "_GRIDS", 8)
    for row in worlds.steps_with_images(id, target=""):
        assert (row.ratio, row.baseline) == (None, "")


@pytest.mark.slow
def test_the_overhead_of_evaluation_is_small():
    overhead, whole = library.evaluation()
    assert overhead.ratio < 1.2
    assert whole.value < 720


def test_a_picture_of_a_room_costs_more_than_its_mask():
    row = worlds._picture()
    assert row.value > 0
    assert row.ratio > 1


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
