"""Comparisons of experiments and of results: what is compared, and how often it errs."""

import numpy as np
import pytest

from interverse.results import Results
from interverse.results.comparisons import comparisons, scored
from tests.results.synthetic import read_csv, row


def compared(rows, metric="return", provenance=None):
    table = comparisons(Results.from_rows(rows, provenance), metric)
    (found,) = read_csv(table)
    return found, table.caption


def played(rng, *, seeds):
    """Two experiments of one population: each seed has its own luck."""
    return [
        row(experiment=x, seed=s, episode=e, **{"return": float(luck + 0.1 * rng.normal())})
        for x in "ab"
        for s, luck in enumerate(rng.normal(size=seeds))
        for e in range(20)
    ]


def test_several_seeds_are_compared_and_not_their_episodes():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(40):
        found, caption = compared(played(rng, seeds=5))
        alarms += found["p (Holm)"].startswith("<") or float(found["p (Holm)"]) < 0.05
    assert alarms <= 6  # 2 are expected
    assert (found["by"], found["episodes"]) == ("seed (5)", "100")
    assert "tells training methods apart" in caption


def test_one_seed_a_side_tells_runs_apart():
    found, caption = compared(played(np.random.default_rng(0), seeds=1))
    assert (found["by"], found["p (Holm)"]) == ("episode", "< 0.001")
    assert "tells these runs apart, not methods" in caption


@pytest.mark.parametrize(("policies", "by"), [("ab", "episode"), ((None, "b"), "seed (5)")])
def test_seeds_of_one_policy_are_episodes(policies, by):
    """`evaluate` with `seeds` plays one policy, known by its content, or unknown."""
    runs = [
        {"experiment": x, "task": "t/x-v1", "policy": policy}
        for x, policy in zip("ab", policies, strict=True)
    ]
    found, _ = compared(played(np.random.default_rng(0), seeds=5), provenance={"runs": runs})
    assert found["by"] == by
    trained = [run | {"policy": f"{run['experiment']}{s}"} for run in runs for s in range(5)]
    found, _ = compared(played(np.random.default_rng(0), seeds=5), provenance={"runs": trained})
    assert found["by"] == "seed (5)"


def test_times_that_are_infinite_in_both_are_ties():
    times = {"a": [3, np.inf, np.inf, 4, 5, 6], "b": [3.5, np.inf, 5, 7, 8, 9]}
    rows = [
        row(experiment=x, episode=e, **{"score:time_to_success": float(t)})
        for x, listed in times.items()
        for e, t in enumerate(listed)
    ]
    found, _ = compared(rows, "time_to_success")
    assert found["episodes"] == "6"
    assert found["time_to_success, difference"] == ""


def test_repeated_pairs_count_in_the_difference_and_not_in_the_test():
    rows = [
        row(experiment=x, episode=e, trace=str(e % 3), **{"return": score + e % 3})
        for x, score in (("a", 1.0), ("b", 0.0))
        for e in range(30)
    ]
    found, _ = compared(rows)
    assert (found["episodes"], found["p (Holm)"]) == ("30", "0.250")
    assert float(found["return, difference"]) == 1.0


def episodes(score, **given):
    return [row(episode=e, **{"return": score + e}, **given) for e in range(8)]


def differ(a, b):
    table = scored(Results.from_rows(a), Results.from_rows(b))
    return read_csv(table), table.caption


def test_experiments_are_compared_with_their_own_name_in_any_order_of_rows():
    good, bad = episodes(10.0, experiment="good"), episodes(0.0, experiment="bad")
    for rows in (good + bad, bad + good):
        (found,), caption = differ(rows, good)
        assert (found["experiment"], found["verdict"], found["shared"]) == ("good", "same", "8")
        assert "8 are in A alone, 0 in B alone" in caption


def test_one_experiment_each_is_compared_whatever_its_name():
    (found,), _ = differ(episodes(1.0, experiment="new"), episodes(0.0, experiment="old"))
    assert (found["experiment"], found["verdict"]) == ("new vs old", "differs")
    assert float(found["A minus B"]) == 1.0


def test_the_last_step_is_differ():
    early, late = episodes(0.0, step=0), episodes(100.0, step=100)
    for rows in (early + late, late + early):
        (found,), _ = differ(rows, late)
        assert found["verdict"] == "same"


def test_tasks_are_compared_apart():
    one, other = (
        episodes(a, task="a/x-v1") + episodes(b, task="b/x-v1")
        for a, b in ((1000.0, 1.0), (1001.0, 0.0))
    )
    found, _ = differ(one, other)
    steps = {r["task"]: float(r["A minus B"]) for r in found}
    assert steps == {"a/x-v1": -1.0, "b/x-v1": 1.0}
    assert {r["verdict"] for r in found} == {"differs"}


def test_times_never_reached_are_ties():
    times = [row(episode=e, **{"score:time_to_success": t}) for e, t in enumerate([3.0, np.inf])]
    (found,), _ = differ(times, times)
    assert (found["verdict"], found["A minus B"]) == ("same", "")


def test_several_trainings_are_compared_by_seed():
    rng = np.random.default_rng(0)
    one, other = (
        [r | {"seed": s} for s in range(4) for r in episodes(float(rng.normal()))] for _ in range(2)
    )
    (found,), _ = differ(one, other)
    assert (found["by"], found["shared"]) == ("seed (4)", "32")
