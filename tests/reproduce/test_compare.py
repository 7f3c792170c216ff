"""Our numbers beside printed ones, from hand-made records."""

from __future__ import annotations

import math

import pytest

from interverse.reproduce.compare import compare
from interverse.reproduce.figures import Point, correlation, points
from interverse.reproduce.pages import numbers, write_pages
from interverse.reproduce.rows import Record, Row, row_file
from interverse.reproduce.settings import Settings
from interverse.reproduce.train import asked

ROW = Row(world="blocks/observed-3-v1", model="modular", loss="contrastive")


def ranked(hits: float) -> dict:
    one = {
        "hits": hits,
        "mrr": hits,
        "guarded_hits": hits - 1,
        "guarded_mrr": hits - 1,
        "reconstruction": None,
    }
    return {"1": one, "5": one, "10": one}


@pytest.fixture
def settings(tmp_path):
    chosen = Settings(
        table=(3,), models=("modular",), losses=("contrastive",), seeds=2, out=tmp_path
    )
    for seed, hits in ((1, 90.0), (2, 92.0)):
        record = Record(row_file(tmp_path, ROW.name, seed), {**asked(chosen, ROW), "seed": seed})
        record.put("Contrastive", "ranking", ranked(hits))
    return chosen


def test_mean_deviation_difference_and_flag(settings):
    cells = compare(settings, 3)["cells"]
    assert {(c["model"], c["loss"]) for c in cells} == {("Modular", "Contrastive")}
    (cell,) = [c for c in cells if c["metric"] == "H@1" and c["steps"] == 1]
    assert (cell["ours"], cell["ours_deviation"], cell["ours_guarded"]) == (91.0, 1.0, 90.0)
    assert cell["difference"] == pytest.approx(91.0 - cell["published"])
    far = abs(cell["difference"]) > 2 * cell["published_deviation"] + 0.005
    assert cell["beyond_two_deviations"] is far
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
    write_pages(settings.out, [content], lambda text: None)
    text = (settings.out / "summary.md").read_text()
    assert "91.00 +- 1.00" in text
    assert "not the paper's budget" in text
    assert "<td>Modular Contrastive</td>" in (settings.out / "index.html").read_text()


def test_points_join_what_tables_say_of_one_model():
    def cell(metric: str, value: float) -> dict:
        return {
            "world": ROW.world,
            "model": "Modular",
            "loss": "Contrastive",
            "steps": 1,
            "metric": metric,
            "ours": value,
        }

    graph = {"world": ROW.world, "model": "modular", "loss": "Contrastive", "f1": 0.8}
    tables = [
        {"kind": "ranking", "cells": [cell("H@1", 90.0)], "recovery": [graph], "discovery": []},
        {"kind": "planning", "cells": [cell("Success", 0.5)], "recovery": [graph], "discovery": []},
    ]
    assert points(tables, [ROW.world]) == [Point("Modular Contrastive", 1, 90.0, 0.5, 0.8)]


def test_correlation_needs_three_models_that_differ():
    line = [Point(str(i), 1, float(i), 2.0 * i, 1.0) for i in range(3)]
    assert correlation(line, "hits", "success", 1) == pytest.approx(1.0)
    assert math.isnan(correlation(line, "hits", "graph", 1))
    assert math.isnan(correlation(line[:2], "hits", "success", 1))
    assert math.isnan(correlation(line, "hits", "success", 5))
