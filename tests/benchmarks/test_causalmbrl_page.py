"""The tables of world models say what the rows say, and the page's table is of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from interverse.core.files.json_text import read_json_object
from interverse.fit.settings import budget
from interverse.reports.sections import pivot
from tools import causalmbrl_page
from tools.causalmbrl_page import (
    _KNOWS,
    UNCHANGED,
    ResultRow,
    beside,
    load_rows,
    write_yardsticks,
    yardstick_values,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "causalmbrl"
YARDSTICKS = RESULTS / "yardsticks"


def test_tables_and_page_are_printed_from_the_rows():
    assert causalmbrl_page.main(["--check"]) == 0, "run: python tools/causalmbrl_page.py"


def test_numbers_in_the_findings_are_those_of_the_rows():
    text = " ".join((ROOT / "docs" / "world_model_results.md").read_text().split())
    rows = [row for row in load_rows(RESULTS) if row.comparable]
    own = causalmbrl_page.scored(rows)
    assert len(own) == 54
    knows = [row.value("in-scene H@1", _KNOWS) for row in own]
    assert f"{sum(value < 1 for value in knows)} of the 54 runs have less than 1" in text
    assert {row.value("latent true 1", _KNOWS) for row in own} == {1.0}
    learned = [row.value("reward true 1", _KNOWS) for row in own]
    idle = [row.scores["asked"]["planning"]["reward_true"]["1"]["do_nothing"] for row in own]
    worse = sum(value < still for value, still in zip(learned, idle, strict=True))
    assert f"finds {np.mean(learned):.0%}, and in {worse} runs less than doing nothing" in text
    for name, told in (("in-scene H@1", "planning is"), ("H@1 after 1", "after one step")):
        found, low, high = causalmbrl_page.goes_with_planning(rows, name)
        assert f"{told} {found:.2f} ({low:.2f} to {high:.2f})" in text
    full = [read_json_object(path) for path in (RESULTS / "full").glob("table-*.json")]
    judged = [c["differs"] for one in full for c in one["cells"] if c["differs"] is not None]
    assert f"Of {len(judged)} numbers" in text
    assert not any(judged)
    done, every = beside(RESULTS)
    assert f"{done} of the paper's {every:,} printed numbers" in text


def test_every_row_says_where_it_comes_from():
    rows = [*RESULTS.glob("*/rows/*.json"), *RESULTS.glob("fits/*/seed-*.json")]
    assert rows
    for path in rows:
        record = read_json_object(path)
        for run in record["runs"]:
            assert len(run["commit"]) == 40, path.name
            assert {"command", "device", "source"} <= set(run)
        if "model" in record:
            assert all(stage["epochs"] > 0 for stage in record["training"].values())


def test_numbers_are_counted_once():
    done, every = beside(RESULTS)
    assert every == 1404
    assert done == 627


def test_replay_is_called_replay_and_the_page_says_why_it_can_be_beaten():
    sections = {name: (told, grid) for name, told, grid in causalmbrl_page.table_sections(RESULTS)}
    told, grid = sections["Table 18, chemistry/collider-v1"]
    assert "Replay (the paper's Optimal) Baseline" in [line[0] for line in grid]
    assert "no upper bound" in " ".join(told)
    told, _ = sections["Table 9, blocks/observed-3-v1"]
    assert "no upper bound" not in " ".join(told)


def made(model: str, seed: int, hits: float, counterfactual: float) -> ResultRow:
    scores = {
        "ranking": {"1": {"hits": hits}},
        "recovery": {"counterfactual": {"hits": counterfactual}},
    }
    return ResultRow(
        world="w", options={}, model=model, loss="L", seed=seed, epochs="1 epochs", scores=scores
    )


def test_means_and_correlations_are_those_of_the_runs():
    rows = [made("ae", seed, 10.0 * seed, 100.0 - seed) for seed in range(10)]
    grid = pivot(score for row in rows for score in row.tidy(("H@1 after 1", "CF-H@1")))
    assert grid[1][:4] == ["w", "ae L, 1 epochs", "10", "45 +- 29"]
    told = "-1.00 (10 runs); within models -1.00 (p < 0.001, 10 runs)"
    assert causalmbrl_page.overview(rows)[1][:4] == ["w", "10", "1", told]
    assert causalmbrl_page.overview(rows[:9])[1][3] == "not given (9 runs)"


def test_a_correlation_of_models_is_none_of_their_runs():
    """Two models far apart, each with runs in no order: no p-value speaks of the 20 runs."""
    ranks = [(run, 4 * run % 11) for run in range(1, 11)]
    rows = [
        made(name, x, start + x, start + y)
        for name, start in (("ae", 0.0), ("gnn", 50.0))
        for x, y in ranks
    ]
    found = causalmbrl_page.correlated(rows, "CF-H@1")
    assert found.across > 0.7
    assert abs(found.within) < 0.2 < found.chance
    constant = rows[:10] + [made("still", run, run, 7.0) for run in range(10)]
    assert causalmbrl_page.correlated(constant, "CF-H@1").repeated == 10, (
        "goes together with nothing"
    )
    single = causalmbrl_page.correlated([made(str(i), 1, i, i) for i in range(10)], "CF-H@1")
    assert str(single) == "1.00 (10 runs); within models not given (0 runs)"


def test_yardsticks_stand_above_the_models_and_tell_who_ignores_the_action(tmp_path):
    sizes = replace(budget("smoke", "contrastive"), test=30, trials=300)
    write_yardsticks(tmp_path, "blocks/observed-3-v1", sizes)
    assert [path.name for path in tmp_path.iterdir()] == ["blocks-observed-3-v1.json"]  # no data
    still = dict(yardstick_values(tmp_path, "blocks/observed-3-v1"))[UNCHANGED]
    rows = [
        replace(made("ae", seed, 99.0, still["CF-H@1"] + 10 * seed), world="blocks/observed-3-v1")
        for seed in range(3)
    ]
    grid = pivot(causalmbrl_page.causes(rows, tmp_path))
    assert [line[1] for line in grid[1:]] == [
        "true world",
        "true world, other noise",
        "copy of the fact",
        UNCHANGED,
        "acted object alone",
        "all edges",
        "ae L, 1 epochs",
    ]
    assert dict(zip(grid[0], grid[6], strict=True))["graph AP"] == "0.5"
    assert dict(zip(grid[0], grid[1], strict=True))["graph F1"] == "1"
    assert [line[2] for line in grid[6:]] == ["", "3"], "yardsticks are no runs"
    assert causalmbrl_page.ignoring(rows, tmp_path) == (1, 0, 3)


def test_runs_among_other_references_are_not_compared():
    row = made("ae", 1, 90.0, 1.0)
    few = replace(row, scores={"ranking": {"1": {"hits": 90.0, "references": 1000}}})
    assert (row.comparable, few.comparable) == (True, False)


def test_draws_of_the_mechanisms_stand_apart_with_the_ceilings_of_the_same_draws():
    fixed = {"fixed": {"f1": 1.0, "shd": 0}, "edges": {"average_precision": 1.0}}

    def drawn(draw, hits, ceiling):
        found = {"true world, other noise": {"hits": ceiling}}
        recovery = {"ceiling": fixed, "counterfactual_ceilings": found}
        scores = {"ranking": {"1": {"hits": hits}}, "recovery": recovery}
        return replace(made("ae", 1, 0.0, 0.0), draw=draw, scores=scores)

    rows = [drawn(0, 10.0, 40.0), drawn(1, 30.0, 60.0)]
    assert [row.comparable for row in rows] == [True, False]
    (_, *top), (_, *below) = (
        pivot(causalmbrl_page.ceilings(rows)),
        pivot(score for row in rows for score in row.tidy(("H@1 after 1",))),
    )
    head = pivot(causalmbrl_page.ceilings(rows))[0]
    found = dict(zip(head, top[0], strict=True))
    assert (found["CF-H@1"], found["graph F1"], found["runs"]) == ("50 +- 10", "1 +- 0", "2")
    assert below[0][3] == "20 +- 10"


def test_a_missing_score_is_no_number():
    assert made("ae", 1, 1.0, 1.0).value("planning success") != pytest.approx(0.0)


def test_options_have_a_row_per_value_and_the_dynamics_track_its_ceiling(tmp_path):
    rows = [
        replace(made(model, seed, 10.0 * seed, 0.0), options={"movement": value})
        for model in ("ae", "gnn")
        for value in ("static", "dynamic")
        for seed in (1, 2, 3)
    ]
    grid = pivot(causalmbrl_page.over_options(rows, tmp_path))
    assert [line[:4] for line in grid[1:3]] == [
        ["w, movement=dynamic", "ae L, 1 epochs", "3", "20 +- 8.2"],
        ["w, movement=dynamic", "gnn L, 1 epochs", "3", "20 +- 8.2"],
    ]
    stored = pivot(causalmbrl_page.dynamics(RESULTS / "dynamics"))
    true = [line for line in stored if line[1] == "true graph"]
    assert len(true) > 5
    assert all(line[3].startswith("1") for line in true)


def test_tables_have_one_draw_of_the_mechanisms():
    stored = [read_json_object(path) for path in RESULTS.glob("*/table-1[78].json")]
    named = {seed for content in stored for cell in content["cells"] for seed in cell["seeds"]}
    assert named
    assert {name.partition("/")[0] for name in named} == {"0"}
