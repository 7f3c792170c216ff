"""The flags of `interverse evaluate` and the metrics it takes are those of `evaluate` itself."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import interverse as iv
from interverse.cli import main
from interverse.cli.evaluate import Evaluate
from interverse.core.registry import Entry
from interverse.metrics import METRICS


def test_every_argument_is_a_flag_with_its_words(capsys):
    names = set(inspect.signature(iv.evaluate).parameters) - {"options", "progress"}
    flags = {item.name: item for item in dataclasses.fields(Evaluate)}
    assert flags.keys() - names <= {"option", "json", "run", "trust"}
    assert names <= flags.keys()
    with pytest.raises(SystemExit) as end:
        main(["evaluate", "--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0
    for name in flags.keys() - {"run"}:  # a place, not a flag
        assert f"--{name.replace('_', '-')}" in said


@pytest.mark.parametrize("name", list(METRICS))
def test_every_metric_of_the_table_can_be_named(name):
    found = iv.evaluate(
        "random", "trifinger/reaching-v1", "P0", episodes=1, max_steps=2, metrics=[name]
    )
    assert name in found.metrics


def test_a_row_of_the_table_is_all_that_a_metric_needs():
    METRICS.add("squared_return", Entry(f"{__name__}:squared_return", tags=("rewards",)))
    try:
        found = iv.evaluate(
            "random",
            "tutorial/slider-v1",
            "P0",
            episodes=2,
            max_steps=2,
            metrics=["squared_return"],
        )
    finally:
        del METRICS._rows["squared_return"]
    assert found.scores("squared_return") == pytest.approx(found.scores("return") ** 2)


def squared_return(rewards, length=None):
    return rewards.sum(axis=-1) ** 2
