"""CausalWorld's figures at the smoke budget: runs, resumes, draws; published scores are there."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError

pytest.importorskip("torch")

from interverse.agents.batch.train import DeviceTrain
from interverse.agents.policies import TRAINED, trained_policy
from interverse.benchmarks.causalworld import run
from interverse.benchmarks.causalworld.pages import _curves, summary, unlike
from interverse.benchmarks.causalworld.run import play_released, released_page, reproduce
from interverse.benchmarks.causalworld.scores import (
    ONE_START,
    Mean,
    baseline_means,
    by_curriculum,
    differences,
    gain,
    half_width,
    joined,
    kept_mean,
    released_scores,
    sampled,
    stored_records,
)
from interverse.benchmarks.causalworld.settings import (
    CURRICULA,
    FIGURE_TASKS,
    CausalWorldSettings,
)
from interverse.fit.work import commit
from interverse.protocols.protocol import select_protocols
from interverse.reports.sections import grouped
from interverse.results import Results
from interverse.rollouts import saved as known
from interverse.rollouts.exported import ExportedPolicy
from tests.rollouts.test_archives import second_version
from tools import causalworld_page
from tools.causalworld_page import cost_table

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "causalworld"
RUNS = [KEPT / "h200.json", KEPT / "cpu_runs.json"]
_SCORE = "last_fractional_success"


def test_smoke_writes_tables_and_figures_once(tmp_path: Path) -> None:
    settings = CausalWorldSettings(out=tmp_path, task=("pushing",), curriculum=(1,))
    found = reproduce(settings)
    assert found["complete"]
    assert found["runs"][0]["contact"] == "convex"
    text = (tmp_path / "summary.md").read_text()
    assert "released by the original" in text
    learned = "worlds 8, max_steps 8, horizon 8, epochs 1, minibatches 1, hidden [16]"
    assert f"| 1 | 0 | 256 | 256 | 8 | {learned} | {commit()[:7]} |" in text
    assert "mujoco with convex contacts" in text
    trained = json.loads((tmp_path / "runs" / "pushing_c1_s0" / "train.json").read_text())
    assert trained["engine"] == {"device": "torch", "contact": "convex"}
    assert (trained["space"], trained["horizon"]) == ("A", 8)
    assert {f.name for f in tmp_path.glob("*.png")} == {
        f"pushing_{kind}.png" for kind in ("bars", "curves", "radar")
    }
    scores = tmp_path / "runs" / "pushing_c1_s0" / "scores.json"
    before = scores.stat().st_mtime_ns
    reproduce(replace(settings, device="cpu"))  # MuJoCo on the CPU by another name
    assert scores.stat().st_mtime_ns == before
    assert (tmp_path / "summary.md").read_text() == text
    kept = json.loads(scores.read_text())
    assert (kept["engine"], kept["diverged"]) == ("mujoco", 0)
    (made,) = kept["runs"]
    assert (made["commit"], made["device"]) == (commit(), "CPU")
    assert made["command"]
    rows = Results.from_rows(kept["rows"], {})
    assert set(rows.column("experiment")) == {"pushing_c1_s0"}
    with pytest.raises(InvalidValueError, match=r"other settings: worlds was 8.*hidden"):
        reproduce(replace(settings, budget="gpu"))


def test_runs_of_other_seeds_meet_the_same_draws_and_say_whose_seed_is_whose(
    tmp_path: Path,
) -> None:
    settings, policy = CausalWorldSettings(out=tmp_path), trained_policy("pushing_1")
    first, second = (
        run._tested(run.training(settings, "pushing", 1, seed), settings.sizes().episodes, policy)
        for seed in (0, 1)
    )
    assert {row["experiment"] for row in first["rows"]} == {"pushing_c1_s0"}
    assert second["rows"] == [{**row, "experiment": "pushing_c1_s1"} for row in first["rows"]]
    assert {row["seed"] for row in second["rows"]} == {0}


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
    mean = {"last_fractional_success": 0.5, "last_fractional_success_error": 0.1, "episodes": 256}
    kept = {"P0": mean, "P1": {**mean, "last_fractional_success": 0.25, "episodes": 4}}
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
    single = "(one run under 1 and 2, so no stars)"
    for told in (
        f"Curriculum 2 minus 1 {single}: P0 +0.00, P5 +0.30 [-0.70, +1.00].",
        "| 1 | 0.50 | 0.25 ± 0.60 |",
        "| 2 | 0 | 2,345,678 |  |  | the defaults |",
        "mujoco_warp with convex contacts",
        "| 1, TD3 | 0.00 |",
        "| pushing ‡ | 1, 2 (0.90) | 1, 2 (0.60) |",
    ):
        assert told in text
    assert "unlike runs" not in text
    assert "‡ †" not in text
    bars = {path.name for path in (tmp_path / "out").glob("*_bars.png")}
    assert bars == {"pushing_bars.png", "picking_bars.png"}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"steps": 91_000_000}, ""),
        ({"steps": 60_000_000}, "60 to 100 million steps"),
        ({"plain": 0.5, "ppo": {"entropy": 0.001}}, "settings or learner"),
        ({"planned_steps": 1_000_000_000}, "100 to 1000 million planned"),
        (
            {"steps": 28_000_000, "older": "older reward"},
            "28 to 100 million steps, settings or learner",
        ),
    ],
)
def test_runs_that_are_unlike_are_told(more: dict[str, Any], told: str) -> None:
    run = {"task": "pushing", "seed": 0, "steps": 100_000_000, "curve": [], "rows": []}
    run["planned_steps"] = 100_000_000
    runs = [{**run, "curriculum": 1}, {**run, "curriculum": 2, **more}]
    assert unlike(runs) == {(1, 2): told}
    text = summary(runs)
    assert (f"unlike runs: {told})" in text) == ("| pushing ‡ † |" in text) == bool(told)


def test_the_papers_budget_is_the_papers_preset(tmp_path: Path) -> None:
    sizes = CausalWorldSettings(out=tmp_path, budget="paper").sizes()
    ppo = sizes.ppo
    assert sizes.steps == 100_000_000
    assert sizes.num_worlds * ppo.horizon == 120_000
    assert (ppo.minibatches, ppo.epochs, ppo.gamma, ppo.entropy) == (40, 4, 0.99, 0.01)
    assert (ppo.rate, ppo.rates, ppo.hidden) == (2.5e-4, (2.5e-4, 2.5e-4), (256, 256))
    assert sizes.episodes == 200
    assert sizes.options == {"skip_frame": 3}
    settings = CausalWorldSettings(out=tmp_path, budget="paper")
    config = run.training(settings, "pushing", 1, 0)
    assert (config.brief, config.plain) == (0.0, 0.0)
    record = {**_run(1, 0, {}), "commit": "e6fca7a1", "caution": sizes.caution}
    said = "Of the runs under 1 (seed 0, e6fca7a): not all is the paper's: ELU for its tanh"
    assert said in summary([record])


def test_one_start_is_recorded_where_one_is_drawn(tmp_path: Path) -> None:
    settings = CausalWorldSettings(out=tmp_path)
    configs = [run.training(settings, "pushing", number, 0) for number in CURRICULA]
    assert [run._made_with(config)["starts"] for config in configs] == [1, 8, 8]


def test_a_curve_of_one_point_is_seen() -> None:
    record = {**_run(1, 0, {}), "curve": [{"steps": 256, "fraction": 0.5}]}
    many = {**record, "curve": [{"steps": 256 * k, "fraction": 0.5} for k in range(1, 20)]}
    (one,), (line,) = (_curves([r]).axes[0].lines for r in (record, many))
    assert (one.get_marker(), line.get_marker()) == ("o", "None")


def test_runs_on_the_same_episodes_are_averaged_before_their_error_is_taken() -> None:
    rng = np.random.default_rng(0)
    solved = (rng.random(256) < 0.5).astype(float)
    near = [{"P5": np.clip(solved + rng.normal(0, 0.01, 256), 0, 1).tolist()} for _ in range(3)]
    found = by_curriculum([_run(0, k, scores) for k, scores in enumerate(near)])[0]["P5"]
    alone = by_curriculum([_run(0, 0, near[0])])[0]["P5"]
    assert found.runs == 3
    assert found.episodes == 768
    assert half_width(found) == pytest.approx(half_width(alone), rel=0.05), "one sample, not three"
    other = [{"P5": rng.permutation(scores["P5"]).tolist()} for scores in near]
    apart = by_curriculum([_run(0, k, scores) for k, scores in enumerate(other)])[0]["P5"]
    assert half_width(apart) == pytest.approx(half_width(alone) / 3**0.5, rel=0.1)


def test_intervals_stay_within_scores_and_need_three_episodes() -> None:
    two, three = {"P1": [0.0, 0.8]}, {"P1": [0.0, 0.0, 1.0]}
    assert "| 0 | 0.40 |" in summary([_run(0, 0, two)])
    assert "| 0 | 0.33 ± 1.00 |" in summary([_run(0, 0, three)])
    text = summary([_run(0, 0, three), _run(1, 0, {"P1": [1.0, 1.0, 0.9]})])
    assert "P1 +0.63 [-0.57, +1.00]." in text
    assert "Told from the released policy: none." in summary([_run(0, 0, two)])


def test_a_difference_is_no_surer_than_its_means() -> None:
    """Ten episodes that are all alike leave room for a third of another kind, on either side."""
    one, other = sampled(0.5, 0.0, 10), sampled(0.9, 0.0, 10)
    gap, half, p_value = gain(one, other)
    assert half == pytest.approx(2**0.5 * (1 - 0.025**0.1))
    assert gap < half
    assert p_value > 0.05


def test_runs_by_another_learner_say_so() -> None:
    """Before d86b528 the range of the KL divergence stayed as it was in the second half."""
    for kept in json.loads((KEPT / "h200.json").read_text())["runs"]:
        if kept["commit"] in ("e6fca7a", "3c1a594", "f3dea68"):
            assert kept["older"].startswith("older code: ")
        if kept.get("brief") == 0.75 and kept["starts"] > 1:
            assert "began all of these but the first at the same 2,048" in kept["caution"]
    told = unlike(grouped(stored_records(RUNS), "task")["pushing"])
    assert all(text.endswith("settings or learner") for text in told.values())


def test_a_row_that_is_not_of_p0_names_the_shift() -> None:
    page = summary(stored_records(RUNS))
    assert "convex contacts, 24 episodes | 0.97 | " in page
    assert "not P0 itself: its block moved by up to 1e-06 m, 96 episodes | 0.88 ± 0.04 |" in page
    text = (KEPT / "gpu.md").read_text()
    for row in json.loads((KEPT / "h200_parity.json").read_text())["P0"]["rows"]:
        if "cpu" in row:
            assert f"{_short(row['cpu'], 3)} | {_short(row['device'], 3)} | " in text


def test_results_that_are_kept_name_their_contacts() -> None:
    runs = json.loads((KEPT / "h200.json").read_text())["runs"]
    assert all(kept["contact"] for kept in runs)
    assert all(kept["cpu_engine"]["contact"] for kept in runs if "cpu_engine" in kept)
    assert json.loads((KEPT / "h200_parity.json").read_text())["contact"] == "convex"


def test_kept_runs_name_what_was_planned() -> None:
    """Entropy and step size go down by the share of the planned steps."""
    for kept in json.loads((KEPT / "h200.json").read_text())["runs"]:
        if kept["engine"] != "mujoco_warp":
            continue
        assert f"--steps {kept['planned_steps']} " in kept["command"]
        assert kept["steps"] < 1.02 * kept["planned_steps"]
        shipped = kept.get("variant", "").removeprefix("shipped as ")
        if shipped in TRAINED:
            card = ExportedPolicy.load(trained_policy(shipped)).card
            assert card.trained["config"]["steps"] == kept["planned_steps"]


def test_scores_on_the_cpu_engine_stand_in_the_docs_beside_those_of_the_gpu() -> None:
    """Measured with the GPU's contacts they are within .03; the page says so and lists them."""
    page = (KEPT / "gpu.md").read_text()
    kept = json.loads((KEPT / "cpu.json").read_text())
    for row in (row for row in kept["policies"] if row["contact"] == "convex"):
        card = ExportedPolicy.load(trained_policy(row["policy"])).card
        there, here = card.trained["scores"]["last_fractional_success"], row[_SCORE]
        if drawn := [name for name in here if name != ONE_START]:
            assert all(abs(here[name] - there[name]) < 0.03 for name in drawn)
            listed = [p for p in drawn if p in ("P1", "P4", "P5", "P6", "P7", "P10")]
            cells = [f"{_short(here[p])}, {_short(there[p])}" for p in listed]
            assert f"| `{row['policy']}` | {' | '.join(cells)} |" in page
    for row in kept["paired"]:
        gap = f"{row['exact_minus_convex']:+.3f} ± {row['standard_error']:.3f}"
        assert f"| `{row['policy']}` | {row['protocol']} |" in page
        assert gap in page


def _short(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def test_ours_are_told_from_the_released_policies_by_both_errors() -> None:
    scores = {"P6": [0.0, 1.0] * 128, "P8": [0.4] * 256, "P10": [0.2, 0.3] * 128}
    text = summary([_run(1, 0, {ONE_START: [0.0] * 256, **scores})])
    assert "Told from the released policy: 1 is below in P10; 1 is above in P6.\n" in text


def test_the_docs_tell_from_the_released_policies_what_the_page_does() -> None:
    """Word for word, so that nothing unfavourable is left out."""
    page = summary(stored_records(RUNS))
    text = (KEPT / "gpu.md").read_text()
    for part in page.split("\n## ")[2:]:
        for line in part.splitlines():
            if line.startswith("Told from the released policy: "):
                said = line.removeprefix("Told from the released policy: ")
                assert f"- {part.splitlines()[0]}: {said}\n" in text


def test_policies_that_nobody_trained_stand_below_ours() -> None:
    rows = {"scripted": (0.95, 0.02), "still": (0.1, 0.02)}
    kept = {
        name: {"P6": kept_mean("P6", value, error, 128), ONE_START: kept_mean(ONE_START, 1, 0, 1)}
        for name, (value, error) in rows.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interverse.benchmarks.causalworld.pages.baseline_means", lambda _: kept)
        text = summary([_run(1, 0, {ONE_START: [0.0] * 256, "P6": [0.0, 1.0] * 128})])
    assert "| none: scripted | 1.00 | 0.95 ± 0.04 |" in text
    assert "| none: still | 1.00 | 0.10 ± 0.04 |" in text
    assert "Told from the scripted baseline: 1 is below in P6.\n" in text


def test_the_kept_baselines_cover_the_tasks_of_the_page() -> None:
    for task, _ in released_scores():
        found = baseline_means(task)
        assert list(found) == ["scripted", "still"]
        for means in found.values():
            assert {"P0", "P1", "P5", "P10", "P11"} <= set(means)
            assert all(0.0 <= mean.value <= 1.0 for mean in means.values())


def test_the_costs_of_variables_are_printed_from_the_kept_scores() -> None:
    kept = json.loads((KEPT / "explained.json").read_text())
    page = (KEPT / "README.md").read_text()
    assert str(cost_table(kept["explained"]).render("markdown")) in page
    assert kept["commit"]
    for held in kept["explained"]:
        assert {len(row["scores"]) for row in held["conditions"]} == {64}


def test_the_released_policies_are_printed_from_the_kept_scores() -> None:
    kept = json.loads((KEPT / "released.json").read_text())
    page = released_page(kept["policies"], kept["episodes"])
    assert page[page.index("| policy") :] in (KEPT / "README.md").read_text()
    by_name = {row["policy"]: row["scores"] for row in kept["policies"]}
    assert np.mean(by_name["pushing_ppo_curr1"]["P0"]) > 0.95
    assert all(len(s) == 20 for scores in by_name.values() for s in scores.values())


def test_the_page_is_printed_from_the_kept_runs() -> None:
    assert causalworld_page.main(["--check"]) == 0, "run: python tools/causalworld_page.py"


def test_runs_that_disagree_widen_the_interval() -> None:
    found = joined([Mean(0.2, 0.01, 100, 99), Mean(0.8, 0.01, 100, 99)])
    assert found == pytest.approx((0.5, 0.3, 200, 1, 2, 0))


def test_intervals_over_few_runs_are_students_and_welchs() -> None:
    one, other = [0.87, 0.92, 0.38], [0.99, 0.97, 0.98]
    means = [joined([Mean(v, 1e-4, 1000, 999) for v in values]) for values in (one, other)]
    tested = stats.ttest_1samp(one, 0.0).confidence_interval(0.95)
    assert half_width(means[0]) == pytest.approx((tested.high - tested.low) / 2)
    welch = stats.ttest_ind(other, one, equal_var=False)
    inside = welch.confidence_interval(0.95)
    gap, half, p_value = gain(*means)
    assert (gap - half, gap + half) == pytest.approx((inside.low, inside.high))
    assert p_value == pytest.approx(welch.pvalue)


def test_the_protocol_of_one_start_is_the_one_that_draws_nothing() -> None:
    for task in FIGURE_TASKS:
        protocols = select_protocols(f"trifinger/{task}-v1", "P0-P11")
        assert [p.name for p in protocols if not (p.variables or p.everything)] == [ONE_START]


def test_paths_from_one_start_are_no_sample() -> None:
    rounding = [0.5, 0.5001, 0.4999] * 80
    scores = {ONE_START: rounding, "P1": rounding}
    text = summary([_run(0, 0, scores), _run(1, 0, {p: [0.9] * 240 for p in scores})])
    assert "| 0 | 0.50 | 0.50 ± 0.02 |" in text
    assert "P0 +0.40, P1 +0.40 [+0.38, +0.42]." in text
    assert "| pushing ‡ | 0, 1 (0.90) | 1 (0.90) |" in text


def test_runs_are_the_sample_of_one_start() -> None:
    scores = {0: (0.1, 0.2, 0.3), 1: (0.9, 0.9, 0.9), 2: (0.8, 0.85, 0.9)}
    runs = [
        _run(c, k, {ONE_START: [v] * 9}) for c, held in scores.items() for k, v in enumerate(held)
    ]
    text = summary(runs)
    assert "| 0 | 0.20 ± 0.25 |" in text
    assert "| 1 | 0.90 |" in text  # runs that agree say nothing of how far others lie
    assert "Curriculum 1 minus 0: P0 +0.70." in text


def test_a_star_needs_two_runs_and_holms_rule() -> None:
    def runs(seeds: int, low: list[float]) -> list[dict[str, Any]]:
        return [
            _run(c, k, {f"P{n}": values for n in range(1, 12)})
            for c, values in ((0, low), (1, [0.9, 0.95, 1.0] * 9))
            for k in range(seeds)
        ]

    assert r"\*" not in summary(runs(1, [0.0] * 27)).split("## pushing")[1]
    assert summary(runs(2, [0.0] * 27)).count(r"]\*") == 11
    near = [0.0, 1.0] * 8 + [1.0] * 11  # told from the other at 5% alone, not among eleven
    (gap, half, p_value), *_ = [gain(*(s["P1"] for s in by_curriculum(runs(2, near)).values()))]
    assert 0.05 / 11 < p_value < 0.05
    assert abs(gap) > half
    assert not any(d.told for d in differences(by_curriculum(runs(2, near))).values())


def test_a_sample_without_spread_has_an_interval() -> None:
    exact = stats.binomtest(256, 256).proportion_ci(0.95, method="exact")
    assert half_width(sampled(1.0, 0.0, 256)) == pytest.approx(1 - exact.low)
    assert half_width(sampled(0.5, 0.1, 256)) == pytest.approx(0.1 * stats.t.ppf(0.975, 255))


def _run(curriculum: int, seed: int, scores: dict[str, list[float]]) -> dict[str, Any]:
    """Returns the record of a run whose episodes scored so."""
    rows = [
        {"protocol": name, "episode": k, "refused": False, "last_fractional_success": value}
        for name, values in scores.items()
        for k, value in enumerate(values)
    ]
    return {"task": "pushing", "curriculum": curriculum, "seed": seed, "curve": [], "rows": rows}


_STORED = {"stored": (Path("runs.json"),)}
_DRAWN = "stored draws all runs.* {} would"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        *[
            ({"device": device}, f"device is '{device}'. Allowed: cpu, torch")
            for device in ("foo", "cuda:x", "mps", "")
        ],
        ({"task": ("towers",)}, "towers"),
        (_STORED | {"task": ("pushing",)}, _DRAWN.format("task")),
        (_STORED | {"curriculum": (1,)}, _DRAWN.format("curriculum")),
        (_STORED | {"seeds": 3}, _DRAWN.format("seeds")),
        (
            _STORED | {"budget": "paper", "device": "cuda", "time_limit": 1.0},
            _DRAWN.format("budget, device, time_limit"),
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=told):
        CausalWorldSettings(out=Path("out"), **given)


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    file = ROOT / "results" / "bench_h200.json"
    with pytest.raises(FileFormatError, match="no result file of CausalWorld runs"):
        reproduce(CausalWorldSettings(out=tmp_path, stored=(file,)))


@pytest.mark.parametrize(
    ("budget", "given"),
    [
        ("gpu", {"device": "cuda"}),
        ("cpu", {"device": "torch", "num_envs": 1024, "steps": 30_000_000}),
    ],
)
def test_a_budget_is_that_of_train_for_all_curricula(
    tmp_path: Path, budget: Any, given: dict[str, Any]
) -> None:
    settings = CausalWorldSettings(out=tmp_path, budget=budget, device=given["device"])
    for task, number in itertools.product(FIGURE_TASKS, CURRICULA):
        config = run.training(settings, task, number, 0)
        same = {"curriculum": number, "shown": 0.0, **given}
        assert config == DeviceTrain(task=config.task, out=config.out, **same)


def test_released_scores_are_shares() -> None:
    scores = released_scores()
    assert set(scores) == {("pushing", 1), ("picking", 1), ("pick_and_place", 0), ("stacking2", 1)}
    assert all(0.0 <= v <= 1.0 for table in scores.values() for v in table.values())


def test_released_policies_stand_beside_the_originals_numbers(tmp_path, monkeypatch):
    zips = tmp_path / "zips"
    zips.mkdir()
    second_version(zips / "theirs.zip")
    second_version(zips / "other.zip", seen=20)
    number = hashlib.sha256((zips / "theirs.zip").read_bytes()).hexdigest()
    monkeypatch.setitem(known.RELEASED, number, known.Released("pushing", 1))
    monkeypatch.setattr("interverse.benchmarks.causalworld.run._PROTOCOLS", "P0")
    (made,) = play_released([zips], tmp_path / "out", episodes=1)
    assert made["policy"] == "theirs"
    assert len(made["scores"]["P0"]) == 1
    page = (tmp_path / "out" / "summary.md").read_text()
    assert "| theirs | original | 1.00 |" in page
    with pytest.raises(InvalidValueError, match="baseline_actors"):
        play_released([zips / "other.zip"], tmp_path)
    with pytest.raises(InvalidValueError, match="released plays its files, and budget"):
        CausalWorldSettings(out=tmp_path, released=(zips,), budget="cpu")
