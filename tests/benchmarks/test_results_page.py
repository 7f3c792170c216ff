"""The page of results says what the rows say, and counts what it shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interverse.benchmarks.causalmbrl import results_page
from interverse.benchmarks.causalmbrl.option_figures import (
    OPTION_FIGURES,
    option_section,
    write_option_figures,
)
from interverse.benchmarks.causalmbrl.results_page import (
    ResultRow,
    beside,
    draws_section,
    knowledge_section,
)
from interverse.benchmarks.causalmbrl.yardsticks import (
    UNCHANGED,
    write_yardsticks,
    yardstick_values,
)
from interverse.fit.settings import budget
from interverse.models.checkpoint import read_json, write_json

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "causalmbrl"


def test_the_page_is_printed_from_the_rows():
    page = (ROOT / "docs" / "world_model_results.md").read_text()
    assert page == results_page.results_page(RESULTS)


def test_every_row_says_where_it_comes_from():
    rows = [*RESULTS.glob("*/rows/*.json"), *RESULTS.glob("fits/*/seed-*.json")]
    assert rows
    for path in rows:
        record = read_json(path)
        for run in record["runs"]:
            assert len(run["commit"]) == 40, path.name
            assert {"command", "device", "source"} <= set(run)
        if "model" in record:
            assert all(stage["epochs"] > 0 for stage in record["training"].values())


def test_numbers_are_counted_once():
    done, every = beside(RESULTS)
    assert every == 1404
    assert 0 < done < every
    counts = results_page.beside_by_budget(RESULTS)
    assert sum(map(sum, counts.values())) == done
    assert counts["the paper's budget"] == (42, 108)  # baselines are no models of a budget


def test_the_page_counts_models_and_baselines_apart(tmp_path):
    def content(budget: str, *models: tuple[str, str]) -> dict:
        shared = {"world": "w", "steps": 1, "metric": "Success", "published": 0.5}
        cells = [{**shared, "loss": loss, "model": model} for model, loss in models]
        return {"table": 9, "budget": budget, "comparable": budget == "full", "cells": cells}

    baselines = (("Random", "Baseline"), ("Greedy", "Baseline"))
    write_json(tmp_path / "full" / "table-09.json", content("full", *baselines, ("AE", "NLL")))
    small = content("reduced", *baselines, ("AE", "NLL"), ("GNN", "NLL"))
    write_json(tmp_path / "reduced" / "table-09.json", small)
    assert results_page._counted(tmp_path).startswith(
        "4 of the paper's 1404 printed numbers stand beside ours: 2 of trained models (1 at the"
        " paper's budget, 0 at fewer epochs, 1 at the reduced budget) and 2 of baselines"
    )


def test_replay_is_called_replay_and_the_page_says_why_it_can_be_beaten():
    sections = {name: (told, grid) for name, told, grid in results_page.table_sections(RESULTS)}
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
    assert knowledge_section(rows, "w", ROOT)[2][1][:3] == ["ae L, 1 epochs", "10", "45 +- 29"]
    told = "-1.00 (10 runs); within models -1.00 (p < 0.001, 10 runs)"
    assert results_page._overview(rows)[1][:4] == ["w", "10", "1", told]
    assert results_page._overview(rows[:9])[1][3] == "not given (9 runs)"


def test_a_correlation_of_models_is_none_of_their_runs():
    """Two models far apart, each with runs in no order: no p-value speaks of the 20 runs."""
    ranks = [(run, 4 * run % 11) for run in range(1, 11)]
    rows = [
        made(name, x, start + x, start + y)
        for name, start in (("ae", 0.0), ("gnn", 50.0))
        for x, y in ranks
    ]
    found = results_page._correlated(rows, "CF-H@1")
    assert found.across > 0.7
    assert abs(found.within) < 0.2 < found.chance
    constant = rows[:10] + [made("still", run, run, 7.0) for run in range(10)]
    assert results_page._correlated(constant, "CF-H@1").repeated == 10, "goes together with nothing"
    single = results_page._correlated([made(str(i), 1, i, i) for i in range(10)], "CF-H@1")
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
    (_, _, grid), names = knowledge_section(rows, rows[0].world, tmp_path), results_page._PATHS
    assert [line[0] for line in grid[1:8]] == [
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
    assert set(still) <= set(names)
    told = list(results_page._ignoring(rows, tmp_path))
    assert [text[:11] for text in told] == ["1 of 3 runs", "0 of 3 runs"]
    assert "the same probe reads them was measured in 0 of these runs" in told[1]


def test_runs_among_other_references_are_not_compared():
    row = made("ae", 1, 90.0, 1.0)
    few = replace(row, scores={"ranking": {"1": {"hits": 90.0, "references": 1000}}})
    assert (row.comparable, few.comparable) == (True, False)
    assert len(knowledge_section([row, few], "w", ROOT)[2]) == 2


def test_draws_of_the_mechanisms_stand_apart_with_the_ceilings_of_the_same_draws():
    fixed = {"fixed": {"f1": 1.0, "shd": 0}, "edges": {"average_precision": 1.0}}

    def drawn(draw, hits, ceiling):
        found = {"true world, other noise": {"hits": ceiling}}
        recovery = {"ceiling": fixed, "counterfactual_ceilings": found}
        scores = {"ranking": {"1": {"hits": hits}}, "recovery": recovery}
        return replace(made("ae", 1, 0.0, 0.0), draw=draw, scores=scores)

    rows = [drawn(0, 10.0, 40.0), drawn(1, 30.0, 60.0)]
    assert [row.comparable for row in rows] == [True, False]
    assert draws_section(rows[:1]) is None
    _, _, (head, world, model) = draws_section(rows)
    assert dict(zip(head, world, strict=True))["CF-H@1"] == "50 +- 10"
    assert dict(zip(head, world, strict=True))["graph F1"] == "1 +- 0"
    assert dict(zip(head, model, strict=True))["H@1 after 1"] == "20 +- 10"


def test_a_missing_score_is_no_number():
    assert made("ae", 1, 1.0, 1.0).value("planning success") != pytest.approx(0.0)


def test_option_figures_have_a_mark_per_seed_and_a_row_per_value(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        replace(made(model, seed, 10.0 * seed, 0.0), options={"movement": value})
        for model in ("ae", "gnn")
        for value in ("static", "dynamic")
        for seed in (1, 2, 3)
    ]
    skewness, movement = OPTION_FIGURES
    assert not skewness.rows(rows)
    assert not movement.rows(rows[:3])  # one value compares nothing
    _, _, grid = option_section(rows, movement, tmp_path)
    assert [line[:4] for line in grid[1:3]] == [
        ["static", "ae L, 1 epochs", "3", "20 +- 8.2"],
        ["static", "gnn L, 1 epochs", "3", "20 +- 8.2"],
    ]
    write_option_figures(tmp_path / "page.md", rows)
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["world_models_26.svg"]


def test_tables_have_one_draw_of_the_mechanisms():
    stored = [read_json(path) for path in RESULTS.glob("*/table-1[78].json")]
    named = {seed for content in stored for cell in content["cells"] for seed in cell["seeds"]}
    assert named
    assert {name.partition("/")[0] for name in named} == {"0"}
