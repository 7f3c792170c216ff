"""The difference of two results: which rows are compared with which."""

from __future__ import annotations

import csv
import io

import numpy as np

from interverse.results import Results
from interverse.results.comparisons import scored


def row(**given):
    return {"task": "t/x-v1", "protocol": "P0", "seed": 0, "episode": 0, **given}


def played(score, **given):
    return [row(episode=e, **{"return": score + e}, **given) for e in range(8)]


def compared(a, b):
    table = scored(Results.from_rows(a), Results.from_rows(b))
    return list(csv.DictReader(io.StringIO(table.render("csv")))), table.caption


def test_experiments_are_compared_with_their_own_name_in_any_order_of_rows():
    good, bad = played(10.0, experiment="good"), played(0.0, experiment="bad")
    for rows in (good + bad, bad + good):
        (found,), caption = compared(rows, good)
        assert (found["experiment"], found["verdict"], found["shared"]) == ("good", "same", "8")
        assert "8 are in A alone, 0 in B alone" in caption


def test_one_experiment_each_is_compared_whatever_its_name():
    (found,), _ = compared(played(1.0, experiment="new"), played(0.0, experiment="old"))
    assert (found["experiment"], found["verdict"]) == ("new vs old", "differs")
    assert float(found["A minus B"]) == 1.0


def test_the_last_step_is_compared():
    early, late = played(0.0, step=0), played(100.0, step=100)
    for rows in (early + late, late + early):
        (found,), _ = compared(rows, late)
        assert found["verdict"] == "same"


def test_tasks_are_compared_apart():
    one, other = (
        played(a, task="a/x-v1") + played(b, task="b/x-v1")
        for a, b in ((1000.0, 1.0), (1001.0, 0.0))
    )
    found, _ = compared(one, other)
    steps = {r["task"]: float(r["A minus B"]) for r in found}
    assert steps == {"a/x-v1": -1.0, "b/x-v1": 1.0}
    assert {r["verdict"] for r in found} == {"differs"}


def test_times_never_reached_are_ties():
    times = [row(episode=e, **{"score:time_to_success": t}) for e, t in enumerate([3.0, np.inf])]
    (found,), _ = compared(times, times)
    assert (found["verdict"], found["A minus B"]) == ("same", "")


def test_several_trainings_are_compared_by_seed():
    rng = np.random.default_rng(0)
    one, other = (
        [r | {"seed": s} for s in range(4) for r in played(float(rng.normal()))] for _ in range(2)
    )
    (found,), _ = compared(one, other)
    assert (found["by"], found["shared"]) == ("seed (4)", "32")
