"""CausalWorld's figures at the smoke budget: runs, resumes, draws; published scores are there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from interverse.core.errors import UnknownNameError

pytest.importorskip("torch")

from interverse.benchmarks.causalworld.answer import Mean, gain, half_width, joined
from interverse.benchmarks.causalworld.pages import (
    released_scores,
    stored_records,
    summary,
    unlike,
)
from interverse.benchmarks.causalworld.run import reproduce
from interverse.benchmarks.causalworld.settings import CausalWorldSettings


def test_smoke_writes_tables_and_figures_once(tmp_path: Path) -> None:
    settings = CausalWorldSettings(out=tmp_path, task=("pushing",), curriculum=(1,))
    found = reproduce(settings)
    assert found["complete"]
    assert found["runs"][0]["contact"] == "convex"
    text = (tmp_path / "summary.md").read_text()
    assert "released by the original" in text
    assert "| 1 | 0 | 256 | the defaults |" in text
    assert "mujoco with convex contacts" in text
    trained = json.loads((tmp_path / "runs" / "pushing_c1_s0" / "train.json").read_text())
    assert trained["engine"] == {"device": "torch", "contact": "convex"}
    assert (trained["space"], trained["horizon"]) == ("A", 8)
    assert {f.name for f in tmp_path.glob("*.png")} == {
        f"pushing_{kind}.png" for kind in ("bars", "curves", "radar")
    }
    scores = tmp_path / "runs" / "pushing_c1_s0" / "scores.json"
    before = scores.stat().st_mtime_ns
    reproduce(settings)
    assert scores.stat().st_mtime_ns == before
    assert (tmp_path / "summary.md").read_text() == text


def test_stored_runs_are_drawn_without_training(tmp_path: Path) -> None:
    runs = [
        {
            "task": "trifinger/pushing-v1",
            "curriculum": number,
            "seed": 0,
            "steps": 2_345_678,
            "engine": "mujoco_warp",
            "contact": "convex",
            "curve": [{"steps": 2_000_000, "fraction": 0.5}],
            "scores": {"P0": [1.0, 0.9, 0.8], "P5": [0.1 * number, 0.3 * number, 0.5 * number]},
        }
        for number in (1, 2)
    ]
    file = tmp_path / "runs.json"
    kept = {"P0": {"last_fractional_success": 0.5, "last_fractional_success_error": 0.1}}
    kept["P0"]["episodes"] = 4
    older = {**runs[0], "task": "trifinger/picking-v1", "scores": {}, "protocols": kept}
    other = {**runs[0], "variant": "TD3", "scores": {"P0": [0.0, 0.0]}}
    file.write_text(json.dumps({"runs": [*runs, other, older]}))
    found = reproduce(CausalWorldSettings(out=tmp_path / "out", stored=(file,)))
    assert [(run["task"], run["curriculum"]) for run in found["runs"]] == [
        ("picking", 1),
        ("pushing", 1),
        ("pushing", 1),
        ("pushing", 2),
    ]
    text = (tmp_path / "out" / "summary.md").read_text()
    assert "Curriculum 2 minus 1: P0 +0.00 [-0.23, +0.23], P5 +0.30 [-0.53, +1.13]." in text
    assert "| 1 | 0.50 ± 0.32 |" in text
    assert "| 2 | 0 | 2,345,678 | the defaults |" in text
    assert "unlike runs" not in text
    assert "†" not in text
    assert "mujoco_warp with convex contacts" in text
    assert "| 1, TD3 | 0.00 ± 0.00 |" in text
    assert "| pushing | 1, 2 (0.90) | 1, 2 (0.60) |" in text
    assert (tmp_path / "out" / "pushing_bars.png").exists()
    assert (tmp_path / "out" / "picking_bars.png").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"steps": 91_000_000}, ""),
        ({"steps": 60_000_000}, "60 to 100 million steps"),
        ({"plain": 0.5, "ppo": {"entropy": 0.001}}, "settings"),
        ({"steps": 28_000_000, "older": "older reward"}, "28 to 100 million steps and settings"),
    ],
)
def test_runs_that_are_unlike_are_told(more: dict[str, Any], told: str) -> None:
    run = {"task": "pushing", "seed": 0, "steps": 100_000_000, "curve": [], "rows": []}
    runs = [{**run, "curriculum": 1}, {**run, "curriculum": 2, **more}]
    assert unlike(runs) == {(1, 2): told}
    text = summary(runs)
    assert (f"(unlike runs: {told})" in text) == ("| pushing † |" in text) == bool(told)


def test_the_papers_budget_is_the_papers_preset(tmp_path: Path) -> None:
    sizes = CausalWorldSettings(out=tmp_path, budget="paper").sizes()
    ppo = sizes.ppo
    assert sizes.steps == 100_000_000
    assert sizes.num_worlds * ppo.horizon == 120_000
    assert (ppo.minibatches, ppo.epochs, ppo.gamma, ppo.entropy) == (40, 4, 0.99, 0.01)
    assert (ppo.rate, ppo.rates, ppo.hidden) == (2.5e-4, (2.5e-4, 2.5e-4), (256, 256))
    assert sizes.episodes == 200
    assert sizes.options == {"skip_frame": 3}


def test_results_that_are_kept_name_their_contacts() -> None:
    folder = Path(__file__).parents[2] / "results" / "causalworld"
    assert all(run["contact"] for run in json.loads((folder / "h200.json").read_text())["runs"])
    assert json.loads((folder / "h200_parity.json").read_text())["contact"] == "convex"


def test_the_page_is_printed_from_the_kept_runs() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "causalworld_results.md").read_text()
    assert page == summary(stored_records([root / "results" / "causalworld" / "h200.json"]))


def test_runs_that_disagree_widen_the_interval() -> None:
    found = joined([Mean(0.2, 0.01, 100, 99), Mean(0.8, 0.01, 100, 99)])
    assert found == pytest.approx((0.5, 0.3, 200, 1))


def test_intervals_over_few_runs_are_students_and_welchs() -> None:
    one, other = [0.87, 0.92, 0.38], [0.99, 0.97, 0.98]
    means = [joined([Mean(v, 1e-4, 1000, 999) for v in values]) for values in (one, other)]
    tested = stats.ttest_1samp(one, 0.0).confidence_interval(0.95)
    assert half_width(means[0]) == pytest.approx((tested.high - tested.low) / 2)
    welch = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    gap, half = gain(*means)
    assert (gap - half, gap + half) == pytest.approx((welch.low, welch.high))


def test_a_task_without_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="towers"):
        CausalWorldSettings(out=tmp_path, task=("towers",))


def test_released_scores_are_shares() -> None:
    scores = released_scores()
    assert set(scores) == {("pushing", 1), ("picking", 1), ("pick_and_place", 0), ("stacking2", 1)}
    assert all(0.0 <= v <= 1.0 for table in scores.values() for v in table.values())
