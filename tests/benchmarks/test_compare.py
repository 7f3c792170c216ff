"""Our numbers beside printed ones, from hand-made records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from interverse.benchmarks.causalmbrl.compare import (
    compare,
    difference_interval,
    numbers,
    write_pages,
)
from interverse.benchmarks.causalmbrl.figures import Point, correlation, draw, points
from interverse.benchmarks.causalmbrl.settings import MbrlRow, Settings
from interverse.benchmarks.driver import row_file
from interverse.benchmarks.tidy import Score, pivot
from interverse.fit.work import Record, run_stamp

ROW = MbrlRow(world="blocks/observed-3-v1", model="modular", loss="contrastive")


def ranked(hits: float) -> dict:
    one = {
        "hits": hits - 1,
        "mrr": hits - 1,
        "published_hits": hits,
        "published_mrr": hits,
        "reconstruction": None,
    }
    return {"1": one, "5": one, "10": one}


@pytest.fixture
def settings(tmp_path):
    chosen = Settings(
        table=(3,), models=("modular",), losses=("contrastive",), seeds=2, out=tmp_path
    )
    for seed, hits in ((1, 90.0), (2, 92.0)):
        record = Record(row_file(tmp_path, ROW.name, seed), {**chosen.asked(ROW), "seed": seed})
        record.put("Contrastive", "ranking", ranked(hits))
    return chosen


def test_mean_deviation_difference_and_flag(settings):
    cells = compare(settings, 3)["cells"]
    assert {(c["model"], c["loss"]) for c in cells} == {("Modular", "Contrastive")}
    (cell,) = [c for c in cells if c["metric"] == "H@1" and c["steps"] == 1]
    assert (cell["ours"], cell["ours_deviation"], cell["ours_own_rule"]) == (91.0, 1.0, 90.0)
    assert cell["difference"] == pytest.approx(91.0 - cell["published"])
    low, high = cell["difference_interval"]
    assert low < cell["difference"] < high
    assert cell["differs"] is (low > 0.005 or high < -0.005)
    assert (settings.out / "table-03.json").exists()


def test_a_record_of_other_settings_is_refused(settings, tmp_path):
    other = Settings(
        table=(3,), models=("modular",), losses=("contrastive",), epochs=3, out=tmp_path
    )
    with pytest.raises(ValueError, match="made with other settings"):
        compare(other, 3)


def test_the_pages_show_every_cell(settings):
    content = compare(settings, 3)
    head, line = numbers(content["cells"])
    assert head[:2] == ["model", "H@1 1"]
    assert line[0] == "Modular Contrastive"
    assert line[1].startswith("91.00 +- 1.00 (")
    write_pages(settings, [content], lambda text: None)
    text = (settings.out / "summary.md").read_text()
    assert "91.00 +- 1.00" in text
    assert "not the paper's budget" in text
    assert "<td>Modular Contrastive</td>" in (settings.out / "index.html").read_text()


def test_cells_are_rounded_once_when_they_are_printed():
    seeds = {"1": 88.67495, "2": 88.67494}  # 88.6749 and 88.675 to four digits
    shared = {"world": "w", "loss": "NLL", "model": "AE", "steps": 1, "metric": "H@1"}
    rounded = {"ours": 88.675, "ours_own_rule": 88.675, "ours_deviation": 0.005}
    cell = {**shared, **rounded, "seeds": seeds, "seeds_own_rule": seeds, "published": None}
    assert numbers([cell])[1] == ["AE NLL", "88.67 +- 0.00"]
    assert numbers([{**cell, **rounded, "seeds": {"1": 88.6751}}])[1][1] == "88.68"


def test_points_join_what_tables_say_of_one_model():
    def cell(metric: str, value: float) -> dict:
        return {
            "world": ROW.world,
            "model": "Modular",
            "loss": "Contrastive",
            "steps": 1,
            "metric": metric,
            "ours": value,
            "seeds": {"1": value},
        }

    graph = {
        "where": ROW.world,
        "who": "modular Contrastive",
        "what": "F1",
        "value": 0.8,
        "run": "1",
    }
    tables = [
        {"kind": "ranking", "cells": [cell("H@1", 90.0)], "learned": [graph]},
        {"kind": "planning", "cells": [cell("Success", 0.5)], "learned": [graph]},
    ]
    assert points(tables, [ROW.world]) == [Point("Modular Contrastive", 1, 90.0, 0.5, 0.8)]


def test_what_models_learned_stands_below_its_ceilings(settings, tmp_path):
    found = {
        "fixed": {"f1": 0.5, "shd": 2.0},
        "edges": {"average_precision": 0.75},
        "ceiling": {"fixed": {"f1": 1.0, "shd": 0.0}, "edges": {"average_precision": 1.0}},
        "counterfactual": {"hits": 40.0, "mrr": 50.0, "effect_error": 0.3},
        "counterfactual_ceilings": {
            "true world": {"hits": 100.0, "mrr": 100.0, "effect_error": 0.0}
        },
        "read": {"counterfactual": {"effect_error": 0.25}},
    }
    planned = {"5": {"open": {"success": 0.125}, "closed": {"success": 0.75}}}
    for seed in (1, 2):
        record = Record(row_file(tmp_path, ROW.name, seed), {**settings.asked(ROW), "seed": seed})
        record.put("Contrastive", "recovery", found)
        record.put("Contrastive", "planning", planned)
    content = compare(settings, 3)
    head, *lines = pivot(Score(**row) for row in content["learned"])
    shown = {line[1]: dict(zip(head, line, strict=True)) for line in lines}
    own, ceiling = shown["modular Contrastive"], shown["true world"]
    assert (own["runs"], own["F1"], own["closed loop 5"]) == ("2", "0.5 +- 0", "0.75 +- 0")
    assert (own["open loop 5"], own["CF-H@1"]) == ("0.125 +- 0", "40 +- 0")
    assert (ceiling["runs"], ceiling["F1"], ceiling["CF-H@1"]) == ("", "1 +- 0", "100 +- 0")
    assert shown["true outcomes, read by the probe"]["effect"] == "0.25 +- 0"
    write_pages(settings, [content], lambda text: None)
    assert "Planning and causes in blocks/observed-3-v1" in (tmp_path / "summary.md").read_text()


def test_a_correlation_needs_ten_seeds_that_differ():
    line = [Point(str(i), 1, float(i), 2.0 * i, 1.0) for i in range(10)]
    assert correlation(line, "hits", "success", 1) == (pytest.approx(1.0), 10)
    assert math.isnan(correlation(line, "hits", "graph", 1)[0])
    assert math.isnan(correlation(line[:9], "hits", "success", 1)[0])
    assert correlation(line, "hits", "success", 5)[1] == 0


def test_welch_is_scipys_test_for_the_same_numbers():
    """Three printed seeds with a population deviation d are those of a sample d * sqrt(3 / 2)."""
    ours = [90.0, 94.0, 97.0, 91.0]
    low, high = difference_interval(ours, 85.0, 4.0)
    found = stats.ttest_ind_from_stats(
        np.mean(ours), np.std(ours, ddof=1), 4, 85.0, 4.0 * math.sqrt(1.5), 3, equal_var=False
    )
    reach, error = (high - low) / 2, (np.mean(ours) - 85.0) / found.statistic
    freedom = found.df if hasattr(found, "df") else None
    assert (low + high) / 2 == pytest.approx(np.mean(ours) - 85.0)
    if freedom is not None:
        assert reach == pytest.approx(stats.t.ppf(0.975, freedom) * error)
    assert (low > 0) == (found.pvalue < 0.05)
    assert difference_interval([1.0], 2.0, 1.0) is None


def test_the_root_of_a_variance_is_never_taken_in_silence(settings, tmp_path):
    chosen = Settings(
        table=(17,), models=("ae",), graphs=("chain",), seeds=1, out=tmp_path / "chain"
    )
    row = MbrlRow(world="chemistry/chain-v1", model="ae", loss="nll")
    record = Record(row_file(chosen.out, row.name, 1), {**chosen.asked(row), "seed": 1})
    record.put("NLL", "ranking", ranked(12.0))
    content = compare(chosen, 17)
    assert {cell["published_plus_minus_is"] for cell in content["cells"]} == {"variance"}
    write_pages(chosen, [content], lambda text: None)
    assert "taken for variances" in (chosen.out / "summary.md").read_text()


def test_a_legend_lists_each_model_once():
    found = [Point("AE NLL", 1, float(i), float(i), 0.5) for i in range(4)]
    found += [Point("AE NLL Finetuned", 1, float(i), float(i), 0.5) for i in range(4)]
    labels = draw(found).axes[0].get_legend_handles_labels()[1]
    assert sorted(labels) == ["AE NLL", "AE NLL Finetuned"]


def test_a_row_of_scores_names_its_run_and_drops_scores_of_another_training(settings, tmp_path):
    record = Record(row_file(tmp_path, "row", 1), {"seed": 1})
    stamp = run_stamp(settings.command(), settings.device)
    assert stamp["command"].startswith("interverse reproduce --table 3 --seeds 2 --models modular")
    assert len(stamp["source"]) == 16
    for weights, kinds in (("a", {"ranking", "planning"}), ("b", {"recovery"})):
        record.made_by_run(stamp)
        record.trained_as({"contrastive": {"weights": weights}})
        for kind in kinds:
            record.put("Contrastive", kind, {})
        assert set(record.content["scores"]["Contrastive"]) == kinds
    assert record.content["runs"] == [stamp]


def test_another_draw_of_the_mechanisms_is_no_further_run_of_the_first(tmp_path):
    chosen = Settings(
        table=(17,), models=("gnn",), graphs=("chain",), seeds=2, cpt_seeds=2, out=tmp_path
    )
    hits = {(0, 1): 4.0, (0, 2): 5.0, (1, 1): 13.0, (1, 2): 15.0}
    for (draw_, seed), value in hits.items():
        row = MbrlRow(world="chemistry/chain-v1", model="gnn", loss="nll", cpt_seed=draw_)
        record = Record(row_file(tmp_path, row.name, seed), {**chosen.asked(row), "seed": seed})
        record.put("NLL", "ranking", ranked(value))
    content = compare(chosen, 17)
    (cell,) = [c for c in content["cells"] if (c["metric"], c["steps"]) == ("H@1", 1)]
    assert (cell["ours"], cell["ours_deviation"]) == (4.5, 0.5)
    assert cell["seeds"] == {"0/1": 4.0, "0/2": 5.0}
    (other,) = [c for c in content["draws"] if (c["metric"], c["steps"]) == ("H@1", 1)]
    assert (other["draw"], other["ours"], other["ours_deviation"]) == (1, 14.0, 1.0)
    write_pages(chosen, [content], lambda text: None)
    text = (tmp_path / "summary.md").read_text()
    table, _, draws = text.partition("in chemistry/chain-v1, other draws")
    assert "| GNN NLL | 4.50 +- 0.50 (" in table
    assert "| GNN NLL, draw 1 | 14.00 +- 1.00 |" in draws
