"""Metrics of one's own: what they are shown, what they become, their flags, what mistakes say."""

from __future__ import annotations

import dataclasses
import inspect
import threading

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.cli.evaluate import Evaluate
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.registry import Entry
from interverse.metrics import METRICS, success
from interverse.protocols.measures import Metric, Steps
from interverse.protocols.protocol import Protocol
from interverse.results import Results
from interverse.results.tables import generalisation_errors

SLIDER = "tutorial/slider-v1"
SETTINGS = {"task": SLIDER, "protocols": "P0,P5", "episodes": 4, "max_steps": 45}


def effort(steps: Steps) -> float:
    """Mean size of an action."""
    return float(np.abs(steps.actions).mean())


def summed(steps: Steps) -> float:
    """The return once more, and that everything has its length."""
    assert len(steps.observations) == len(steps) + 1 == len(steps.values["box/mass"]) + 0
    return float(steps.rewards.sum())


def heaviest(steps: Steps) -> float:
    """The largest mass that any action met."""
    return float(steps.values["box/mass"].max())


def both():
    return [
        effort,
        Metric(name="summed", function=summed, values=("box/mass",)),
        Metric(name="heaviest", function=heaviest, values=("box/mass",)),
    ]


def test_a_metric_is_a_column_and_sees_every_step():
    results = iv.evaluate("random", metrics=both(), **SETTINGS)
    assert {"effort", "summed", "heaviest"} <= set(results.metrics)
    assert np.allclose(results.scores("summed"), results.scores("return"))
    assert (np.abs(results.scores("effort") - 0.5) < 0.1).all()
    late = results.select(protocol="P5")
    drawn = [late.values(f"box/mass@{step}")[:, 0] for step in (20, 40)]
    assert np.allclose(late.scores("heaviest"), np.max([*drawn, np.full(4, 0.5)], axis=0))
    assert "effort" in results.table("csv")


def spoils(steps: Steps) -> float:
    """Sorts the rewards where they lie, as a careless metric may."""
    steps.rewards[:] = 0.0
    steps.values["box/mass"][:] = -1.0
    return 0.0


def test_a_metric_cannot_spoil_the_next():
    alone = iv.evaluate("random", metrics=both(), **SETTINGS)
    spoiler = Metric(name="spoils", function=spoils, values=("box/mass",))
    beside = iv.evaluate("random", metrics=[spoiler, *both()], **SETTINGS)
    for name in ("effort", "summed", "heaviest"):
        assert np.array_equal(beside.scores(name), alone.scores(name))


def test_workers_and_restarts_do_not_change_a_metric(tmp_path):
    one = iv.evaluate("random", metrics=both(), out=tmp_path / "one", **SETTINGS)
    two = iv.evaluate("random", metrics=both(), out=tmp_path / "two", workers=2, **SETTINGS)
    assert one.data.equals(two.data)
    again = iv.evaluate("random", metrics=both(), out=tmp_path / "one", **SETTINGS)
    assert again.data.equals(one.data)
    with pytest.raises(InvalidValueError, match="holds another evaluation"):
        iv.evaluate("random", metrics=[effort], out=tmp_path / "one", **SETTINGS)


def test_refused_episodes_have_no_metric():
    from tests.envs.toy import ID, Walk, ensure_registered

    ensure_registered()
    original = Walk.intervene
    Walk.intervene = lambda self, values, worlds: {int(w): "no" for w in worlds if w % 2}
    try:
        results = iv.evaluate(
            "random",
            task=ID,
            protocols=[Protocol(name="x", variables={"x": "A"})],
            episodes=4,
            metrics=[effort],
        )
    finally:
        Walk.intervene = original
    assert np.isnan(results.scores("effort")).tolist() == [False, True] * 2


def test_named_metrics_are_those_of_the_library():
    names = ["time_to_success", "last20_legacy", "peak_success"]
    chain = {"task": "chemistry/chain-v1", "episodes": 3, "max_steps": 30}
    results = iv.evaluate("random", metrics=names, **chain)
    shown = []

    def keep(steps):
        shown.append(steps.info["fractional_success"])
        return 0.0

    iv.evaluate("random", metrics=[keep], **chain)
    table = np.stack(shown[:3])
    assert np.array_equal(results.scores("last20_legacy"), success.last_20(table, legacy=True))
    assert np.array_equal(results.scores("time_to_success"), success.time_to_success(table))
    assert np.array_equal(results.scores("peak_success"), table.max(axis=1))


@pytest.mark.parametrize(
    ("metrics", "error", "match"),
    [
        (["tim_to_success"], UnknownNameError, "Did you mean 'time_to_success'"),
        (effort, InvalidValueError, "a list of metrics"),
        ("time_to_success", InvalidValueError, "a list of metrics"),
        ([effort, effort], InvalidValueError, "'effort' exists already"),
        ([Metric(name="return", function=effort)], InvalidValueError, "'return' exists already"),
        ([3], InvalidValueError, "cannot be a int"),
        (
            [Metric(name="m", function=effort, values=("box/mas",))],
            UnknownNameError,
            "variable of metric m 'box/mas'",
        ),
        ([Metric(name="m", function=lambda s: s.rewards)], InvalidValueError, "one number per"),
        (["last20_legacy", lambda s: "x"], InvalidValueError, "one number per"),
    ],
    ids=range(9),
)
def test_mistakes(metrics, error, match):
    with pytest.raises(error, match=match):
        iv.evaluate("random", metrics=metrics, task=SLIDER, episodes=1, max_steps=3)


@pytest.mark.parametrize("metric", ["peak_success", "time_to_success", "last20_legacy"])
def test_a_metric_that_the_world_cannot_have_is_refused_before_anything_is_played(
    metric, monkeypatch, tmp_path
):
    def unreached(*_):
        raise AssertionError("a unit was played")

    monkeypatch.setattr("interverse.protocols.evaluate.run_unit", unreached)
    task = "control/cartpole_balance-v1"
    with pytest.raises(InvalidValueError, match=f"cartpole_balance-v1 tells .* has no {metric}"):
        iv.evaluate("random", task, metrics=[metric], out=tmp_path / "e", observation="state")
    assert not (tmp_path / "e").exists()


def test_a_metric_that_cannot_be_sent_needs_one_worker():
    lock = threading.Lock()
    with pytest.raises(InvalidValueError, match="a metric cannot be sent"):
        iv.evaluate("random", metrics=[lambda s: float(lock.locked())], workers=2, **SETTINGS)


@pytest.mark.parametrize("given", ["0.5", "good", {}, [[1.0], [1.0, 2.0]], 1j])
def test_a_metric_that_returns_no_number_is_refused(given):
    def judged(steps):
        return given

    with pytest.raises(InvalidValueError, match="metric judged returned"):
        iv.evaluate("random", **SETTINGS | {"episodes": 1, "max_steps": 1}, metrics=[judged])


def test_solved_stands_beside_the_fraction_and_follows_from_it_in_older_tables():
    found = iv.evaluate("scripted", "trifinger/reaching-v1", "P0", episodes=2)
    assert found.metrics[:2] == ["last_fractional_success", "solved"]
    assert (found.scores("solved") == (found.scores("last_fractional_success") > 0.9)).all()
    head = str(found.table("markdown")).splitlines()[2]
    assert "last_fractional_success | solved |" in head
    assert " success |" not in head, "the same column would stand there twice"
    older = found.data.drop_columns(["solved"])
    assert Results(data=older).data["solved"].equals(found.data["solved"])
    assert "solved" not in iv.evaluate("random", SLIDER, "P0", episodes=1).metrics


def test_a_metric_says_its_range_and_which_way_is_better():
    def first(steps):
        return float(1 + steps.episode + 10 * (steps.protocol == "P2"))

    given = {"episodes": 4, "max_steps": 3, "protocols": "P0,P2"}
    less = Metric(name="delay", function=first, range=(0.0, 50.0), better="less")
    more = Metric(name="delay", function=first)
    signs = []
    for metric in (less, more):
        found = iv.evaluate("random", SLIDER, metrics=[metric], **given)
        (row,) = generalisation_errors(found, "delay").rows
        signs.append(row[-1].value)
    assert signs[0] > 0 > signs[1] == -signs[0], "more of a delay is a loss"
    assert (
        "less is better"
        in generalisation_errors(
            iv.evaluate("random", SLIDER, metrics=[less], **given), "delay"
        ).caption
    )
    narrow = Metric(name="delay", function=first, range=(0.0, 2.0))
    with pytest.raises(InvalidValueError, match=r"returned 3\. Allowed: 0 to 2"):
        iv.evaluate("random", SLIDER, metrics=[narrow], **given)
    for wrong in ({"better": "lower"}, {"range": (1.0, 0.0)}):
        with pytest.raises((ValueError, UnknownNameError), match=r"better|range"):
            Metric(name="delay", function=first, **wrong)


def test_metrics_help_lists_each_row(capsys):
    assert main(["evaluate", "--metrics", "help"]) == 0
    said = capsys.readouterr().out
    for name in METRICS:
        assert name in said
    assert "infinite where it never did" in " ".join(said.split())


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
