"""DMC Remastered made again: published numbers, analyses, the work, the comparison."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from interverse.agents import AGENTS
from interverse.agents.pixel.config import plan
from interverse.agents.pixel.train import train
from interverse.benchmarks import driver
from interverse.benchmarks.dmcr import figures, run
from interverse.benchmarks.dmcr.compare import (
    lost_percent,
    numbers,
    printed_returns,
    schedule_cells,
    scored,
)
from interverse.benchmarks.dmcr.figures import look_curves
from interverse.benchmarks.dmcr.run import _DmcrWork, reproduce
from interverse.benchmarks.dmcr.settings import (
    BUDGETS,
    CONDITIONS,
    METHODS,
    TASKS,
    RemasteredSettings,
    figure_variants,
    paper_augmentations,
    printed,
    rows,
    shown_variants,
    sweep_variants,
    swept_tasks,
    table_variant,
    wanted,
)
from interverse.benchmarks.driver import compared, row_file, write_pages
from interverse.cli import main
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.fit.work import Clock, OutOfTimeError
from interverse.reports.attribution import Attribution
from interverse.reports.episodes import side_by_side
from interverse.rollouts.exported import PixelCard, PixelPolicy
from interverse.worlds import WORLDS
from tests.conformance.cases import TEXTURES
from tools import dmcr_page
from tools.dmcr_page import FACTORS, cost_table, kept_figure, kept_table

_CARTPOLE = "Cartpole Balance"


def _smoke(out: Path, **given) -> RemasteredSettings:
    return RemasteredSettings(**{"budget": "smoke", "out": out, **given})


# ------------------------------------------------------------------------ what was published


def test_printed_numbers():
    assert len(printed(1)) == 6 * 3 * 3
    found = {(r["task"], r["method"], r["condition"]): r.value for r in printed(2)}
    assert found["Ball in Cup Catch", "SAC+NR+AUG", "Floor"] == 932.6
    assert ("Finger Spin", "SAC+NR+AUG", "None") not in found  # damaged in our text of the paper
    assert {r["condition"] for r in printed(2)} == set(CONDITIONS)
    with pytest.raises(UnknownNameError, match="table 4"):
        printed(4)


def test_names_of_the_paper_are_ours():
    assert {task for task, _ in rows(1)} == set(TASKS)
    assert {method for _, method in rows(2)} == set(METHODS)
    assert set(TASKS.values()) <= set(WORLDS)
    assert set(METHODS.values()) <= set(AGENTS)


def test_our_arithmetic_gives_the_printed_percentages():
    """E_G of the printed returns against the printed E_G, some of which is cut, not rounded."""
    losses = [row for row in printed(1) if row["metric"] == "EG_percent"]
    assert len(losses) == 18
    for row in losses:
        theirs = printed_returns(1, row["task"], row["method"])
        assert lost_percent(theirs["train"], theirs["all"]) == pytest.approx(row.value, abs=0.11)
    cup = printed_returns(2, "Ball in Cup Catch", "SAC+NR+AUG")
    assert lost_percent(cup["train"], cup["floor"]) == pytest.approx(1.7, abs=0.05)
    assert lost_percent(None, 3.0) is None
    assert lost_percent(0.0, 3.0) is None


def test_training_lengths_are_the_printed_ones():
    assert len(schedule_cells()) == 12
    assert all(cell["difference"] == 0 for cell in schedule_cells())


# ---------------------------------------------------------------------------- what is trained


def test_tables_and_figures_share_their_agents():
    full = BUDGETS["full"]
    assert len(wanted([1], [], full)) == 18
    assert len(wanted([2], [], full)) == len(rows(2)) == 27
    both = wanted([1, 2], [3, 4], full)
    assert len(both) == 27
    assert all(v.protocols == set(CONDITIONS.values()) for v in both)
    assert {v.protocols for v in wanted([1], [], full)} == {frozenset({"train", "all"})}
    assert shown_variants(4, full)[0] == table_variant("Ball in Cup Catch", "SAC+AUG")


@pytest.mark.parametrize("method", ["DrQ", "SVEA", "TD-MPC2"])
def test_agents_that_the_paper_has_not_have_rows_too(tmp_path, method):
    settings = _smoke(tmp_path, methods=(method,), table=(2,))
    (variant,) = settings.variants()
    assert (variant.task, variant.protocols) == (_CARTPOLE, set(CONDITIONS.values()))
    assert plan(settings.training(variant, 0)).hyper.batch == 8
    path = row_file(tmp_path, variant.name, 0)
    path.parent.mkdir()
    scores = {name: {"return": {"returns": [1.0, 2.0]}} for name in CONDITIONS.values()}
    path.write_text(json.dumps({"scores": scores}))
    cells = compared(_DmcrWork, settings, 2)["cells"]
    assert [cell["condition"] for cell in cells] == list(CONDITIONS.values())
    assert all(cell["published"]["return"] is None for cell in cells)
    assert numbers(cells, "return")[1][0] == f"Cartpole Balance {method}"
    assert all(shown.endswith(" (-)") for shown in numbers(cells, "return")[1][1:])


def test_figure_2_trains_in_many_looks():
    found = figure_variants(2, BUDGETS["full"])
    walkers = [v for v in found if v.task == "Walker Walk"]
    assert [v.visual_seed for v in walkers] == 4 * [0, 6985, 2000, 2001]
    assert list(dict.fromkeys(v.method for v in walkers)) == ["SAC+AE", "CURL", "SAC+AUG", "DrQ"]
    cups = {(v.method, v.visual_seed) for v in found if v.task == "Ball in Cup Catch"}
    assert cups == {(m, seed) for m in ("SAC+AUG", "CURL") for seed in range(61)}


def test_figures_train_no_method_but_those_asked_for(tmp_path):
    asked = {"budget": "full", "out": tmp_path, "methods": ("CURL",)}
    looks = RemasteredSettings(figures=(2,), **asked).variants()
    assert {v.method for v in looks} == {"CURL"}
    assert len(looks) == 4 + 61
    assert RemasteredSettings(figures=(3, 4, 5, 6, 7), **asked).variants() == []
    others = {**asked, "methods": ("DrQ", "SAC+NR+AUG")}
    found = RemasteredSettings(figures=(2, 3), **others).variants()
    assert {(v.task, v.method) for v in found} == {
        ("Walker Walk", "DrQ"),
        ("Ball in Cup Catch", "SAC+NR+AUG"),
    }


def test_a_part_of_figure_2_has_the_task_of_its_caption(tmp_path):
    asked = {"budget": "full", "out": tmp_path, "figures": (2,), "runs": 1}
    cup = RemasteredSettings(tasks=("Ball in Cup Catch",), **asked)
    assert len(cup.variants()) == 2 * 61
    for variant in cup.variants():
        path = row_file(tmp_path, variant.name, 0)
        path.parent.mkdir(exist_ok=True)
        curve = [{"step": 5, "mean": 1.0}, {"step": 9, "mean": float(variant.visual_seed)}]
        path.write_text(json.dumps({"seed": 0, "evaluations": curve, "scores": {}}))
    (panel,) = look_curves(cup).axes
    assert panel.get_title(loc="left") == "Ball in Cup Catch"
    labels = [f"{m}, {look}" for m in ("SAC+AUG", "CURL") for look in ("default look", "new looks")]
    assert [line.get_label() for line in panel.lines] == labels
    assert [line.get_ydata()[-1] for line in panel.lines] == [0.0, 30.5, 0.0, 30.5]
    other = RemasteredSettings(tasks=(_CARTPOLE,), **asked).variants()
    assert {v.task for v in other} == {_CARTPOLE}, "a task of no caption stands for the first"


def test_sweeps_have_the_papers_settings():
    full = BUDGETS["full"]
    walker = "Walker Walk"
    augmentations = sweep_variants(7, full, walker)
    assert set(augmentations) == set(paper_augmentations())
    assert len(augmentations) == 11
    rotate = {"augmentation": "rotate", "beta": 0.9, "invariance": 1.5e-3}
    assert dict(augmentations["rotate"].hyper) == rotate
    assert all(dict(v.hyper)["beta"] == 1.0 for v in sweep_variants(6, full, walker).values())
    names = {v.name for n in (5, 6, 7) for v in sweep_variants(n, full, walker).values()}
    assert len(names) == 6 + 6 + 11
    captions = {5: (walker, "Cartpole Balance"), 6: (walker,), 7: (walker,)}
    assert {n: swept_tasks(n, full) for n in (5, 6, 7)} == captions


def test_figures_show_what_their_captions_say():
    shown = ["walker/walk", "cartpole/swingup", "walker/walk", "reacher/easy", "finger/spin"]
    assert dict(zip((1, 10, 11, 12, 13), shown, strict=True)) == figures.SHEETS
    assert figures.TRAJECTORY == "hopper/hop"


def test_pictures_of_one_s_own(tmp_path):
    settings = _smoke(tmp_path, textures=TEXTURES)
    config = settings.training(table_variant(_CARTPOLE, "CURL"), 0)
    assert config.options["textures"] == str(TEXTURES)
    own = figures.one_state("cartpole/swingup", 2, 24, settings.world_options)
    painted = figures.one_state("cartpole/swingup", 2, 24, {})
    np.testing.assert_array_equal(own[0], painted[0])
    assert (own[1] != painted[1]).mean() > 0.3


def test_figure_8_and_9_are_drawn_without_training(tmp_path):
    settings = _smoke(tmp_path, figures=(8, 9), table=(3,))
    assert write_pages(_DmcrWork, settings, [], print) == ["figure-8.png", "figure-9.png"]
    seen = figures.trajectory(2, 3, 24, {})
    assert seen.shape == (6, 24, 24, 3)
    assert all((seen[i] != seen[i + 3]).mean() > 0.3 for i in range(3)), "another look"
    assert (seen[0] != seen[2]).any(), "another moment"


def test_full_tests_are_the_papers(tmp_path):
    settings = RemasteredSettings(budget="full", out=tmp_path)
    protocols = settings.protocols()
    assert protocols["train"][1] == 100
    assert {protocols[name][1] for name in CONDITIONS.values() if name != "train"} == {300}
    config = settings.training(table_variant("Walker Walk", "CURL"), 3)
    assert (config.preset, config.steps, config.seed) == ("paper", 250_000, 3)
    tiny = _smoke(tmp_path).training(table_variant(_CARTPOLE, "CURL"), 0)
    assert plan(tiny).hyper.render_size == 38  # crops of 32 pixels


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"table": (4,)}, "table 4"),
        ({"figures": (14,)}, "figure 14"),
        ({"tasks": ("Walker Fly",)}, "Walker Fly"),
        ({"methods": ("sac_aug",)}, "sac_aug"),
        ({"together": 17}, "together is 17"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, given, told):
    with pytest.raises((InvalidValueError, UnknownNameError), match=told):
        _smoke(tmp_path, **given)


# ----------------------------------------------------------------------------------- analyses


def test_encoder_spread_by_hand():
    features = np.array([[1.0, 3.0, 0.0], [1.0, -3.0, 2.0]])
    assert figures.encoder_spread(features).tolist() == [0.0, 1.0, 3.0]
    random = torch.randn(40, 7, generator=torch.Generator().manual_seed(0))
    expected = random.std(0, unbiased=False).sort().values
    np.testing.assert_allclose(figures.encoder_spread(random.numpy()), expected, rtol=1e-5)


def test_attention_by_hand():
    activations = torch.zeros(2, 4, 2, 2)
    activations[0, :, 0, 1] = torch.tensor([1.0, -1.0, 2.0, 0.0])
    activations[0, 0, 1, 0] = 2.0
    found = figures.attention(activations, 2)
    assert found[0].tolist() == [[0.0, 1.0], [0.5, 0.0]]
    assert found[1].max() == 0.0  # nothing is active, nothing is divided by
    large = figures.attention(activations[:1], 8)[0]
    assert large.shape == (8, 8)
    assert large.argmax() in (6, 7, 14, 15)  # the upper right corner
    assert large.max() == 1.0


def test_attention_and_features_of_a_policy():
    """A policy whose first filter passes red through: attention lies where there is red."""
    weights = {"conv.0.weight": torch.zeros(1, 3, 3, 3), "conv.0.bias": torch.zeros(1)}
    weights["conv.0.weight"][0, 0, 1, 1] = 1.0
    weights |= {"trunk.weight": torch.ones(2, 49), "trunk.bias": torch.tensor([0.0, 1.0])}
    weights |= {"norm.weight": torch.ones(2), "norm.bias": torch.zeros(2)}
    card = {"observation": [3, 16, 16], "image_size": 16, "convolutions": 1, "layers": 0}
    policy = PixelPolicy(PixelCard(**card, low=[-1.0], high=[1.0], trained={}), weights)
    pictures = np.zeros((70, 3, 16, 16), np.uint8)
    pictures[1, 0, 10:14, 2:6] = 255
    pictures[1, 2, 0:4, 10:14] = 255  # blue is not looked at
    maps = figures.attention_of(policy, pictures[:2])
    assert maps.shape == (2, 16, 16)
    assert maps[1, 10:14, 2:6].mean() > 0.5
    assert maps[1, 0:4, 10:14].max() == 0.0
    assert figures.features(policy, pictures).shape == (70, 2)
    frame = figures.newest_frame(pictures[:, :, 2:-2, 2:-2], 8)
    assert frame.shape == (70, 8, 8, 3)


def test_looks_of_one_state():
    options = {"image_size": 24, "frame_stack": 1, "quality": "fast", "vary": ("floor",)}
    seen = figures.looks_of_a_state("control/reacher_easy-v1", (0, 5, 6, 5), options)
    assert seen.shape == (4, 3, 24, 24)
    assert (seen[1] != seen[0]).mean() > 0.3
    assert (seen[1] != seen[2]).mean() > 0.3
    np.testing.assert_array_equal(seen[1], seen[3])


def test_contact_sheets():
    seen = figures.one_state("cartpole/swingup", 3, 24, {})
    assert seen.shape == (3, 24, 24, 3)
    assert all((seen[i] != seen[i - 1]).mean() > 0.3 for i in range(3))
    made = side_by_side(seen, 2, gap=1)
    assert made.shape == (49, 49, 3)
    np.testing.assert_array_equal(made[25:, :24], seen[2])
    assert (made[25:, 25:] == 255).all()


# --------------------------------------------------------------------------------- comparison


def _record(train: list[float], test: list[float]) -> dict:
    scores = {"train": train, "all": test}
    return {"scores": {name: {"return": {"returns": r}} for name, r in scores.items()}}


def test_scores_by_hand():
    one = scored([_record([100.0, 300.0], [50.0, 50.0])], "all")
    assert one["return"]["mean"] == 50.0
    assert one["E_G"]["mean"] == 75.0
    assert (one["runs"], one["episodes"]) == (1, 2)
    assert one["return"]["low"] is one["E_G"]["low"] is None, "one run has no interval"
    runs = [_record([100.0, 300.0], [80.0]), _record([400.0], [10.0]), _record([600.0], [0.0])]
    three = scored(runs, "all")
    assert three["E_G"]["mean"] == 92.5  # (400 - 30) / 400
    assert three["return"]["low"] < 30.0 < three["return"]["high"]
    ends = stats.t.interval(0.95, 2, 30.0, stats.sem([80.0, 10.0, 0.0]))
    assert [three["return"]["low"], three["return"]["high"]] == pytest.approx(ends, abs=0.01)
    assert scored(runs, "train")["E_G"]["mean"] == 0.0
    assert scored(runs, "light") is None
    assert scored([], "all") is None


def test_runs_that_lose_the_same_share_have_no_interval():
    runs = [_record([full], [0.2 * full]) for full in (400.0, 500.0, 700.0, 850.0, 1000.0)]
    assert scored(runs, "all")["E_G"] == {"mean": 80.0, "low": None, "high": None}


def test_only_runs_that_have_both_tests_count():
    """The tests of a run are played one after the other, so an interrupted one lacks the last."""
    whole = [_record([400.0], [100.0]), _record([800.0], [200.0])]
    torn = _record([], [900.0])
    del torn["scores"]["train"]
    assert scored([*whole, torn], "all") == scored(whole, "all")
    assert scored([torn], "all") is None


def test_table_beside_the_printed_one(tmp_path):
    settings = _smoke(tmp_path, runs=2)
    variant = table_variant(_CARTPOLE, "SAC+AUG")
    for number, returns in enumerate([([900.0], [200.0]), ([1000.0], [180.0])]):
        path = row_file(tmp_path, variant.name, number)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(_record(*returns)))
    content = compared(_DmcrWork, settings, 1)
    learned, tested = content["cells"]
    assert learned["published"]["return"] == 987.4
    assert learned["published"]["return_difference"] == pytest.approx(950 - 987.4)
    assert tested["ours"]["E_G"]["mean"] == 80.0
    assert tested["published"]["E_G"] == 77.8
    assert not content["comparable"]
    assert json.loads((tmp_path / "table-1.json").read_text()) == content


# -------------------------------------------------------------------------------- the whole


def _stop() -> None:
    raise OutOfTimeError


@pytest.mark.slow
def test_a_stopped_training_goes_on(tmp_path, monkeypatch):
    given = {"table": (3,), "figures": (2,), "methods": ("SAC+AUG",), "time_limit": 1e6}
    monkeypatch.setattr(run, "_PIECE", 20)
    with monkeypatch.context() as hurried:
        looks = iter([None, None])  # at the row, before its first piece; then the time is up
        hurried.setattr(Clock, "check", lambda clock: next(looks, OutOfTimeError) and _stop())
        assert not reproduce(_smoke(tmp_path, **given))["complete"]
    policy = _smoke(tmp_path).folder(table_variant(_CARTPOLE, "SAC+AUG"), 0) / "policy"
    assert PixelPolicy.load(policy).card.trained["steps"] == 20
    assert not list(tmp_path.glob("figure-2*"))
    assert reproduce(_smoke(tmp_path, **given))["complete"]
    assert (tmp_path / "figure-2.svg").stat().st_size > 2000
    unbroken = _smoke(tmp_path / "unbroken").training(table_variant(_CARTPOLE, "SAC+AUG"), 0)
    whole, mended = (PixelPolicy.load(folder).weights for folder in (train(unbroken), policy))
    assert all(torch.equal(mended[name], whole[name]) for name in whole)
    assert not (policy.parent / "checkpoint").exists()


def _policies(out: Path) -> dict[str, bytes]:
    found = sorted(out.glob("work/*/policy/policy.safetensors"))
    return {path.parts[-3]: path.read_bytes() for path in found}


def test_runs_trained_together_are_the_same_also_when_stopped(tmp_path, monkeypatch, capsys):
    """Three seeds, two at a time, in pieces of 10 decisions; the time is up after the first."""
    given = {"table": (3,), "figures": (7,), "runs": 3, "steps": 16, "time_limit": 1e6}
    monkeypatch.setattr(run, "_PIECE", 10)
    monkeypatch.setattr(driver, "write_pages", lambda *_: None)
    variants = _smoke(tmp_path, **given).variants()[:1]
    monkeypatch.setattr(RemasteredSettings, "variants", lambda _: variants)
    made = []
    original = run.train_together

    def told(configs):
        made.append([(config.seed, config.steps) for config in configs])
        return original(configs)

    monkeypatch.setattr(run, "train_together", told)
    assert reproduce(_smoke(tmp_path / "alone", **given))["complete"]
    assert made == [[(seed, n)] for seed in (0, 1, 2) for n in (10, 16)]
    made.clear()
    together = _smoke(tmp_path / "together", together=2, **given)
    with monkeypatch.context() as hurried:
        looks = iter([None])  # before the first piece; then the time is up
        hurried.setattr(Clock, "check", lambda clock: next(looks, OutOfTimeError) and _stop())
        assert not reproduce(together)["complete"]
    assert reproduce(together)["complete"]
    assert made == [[(0, 10), (1, 10)], [(0, 16), (1, 16)], [(2, 10)], [(2, 16)]]
    assert _policies(tmp_path / "together") == _policies(tmp_path / "alone")
    assert not list(tmp_path.rglob("checkpoint"))
    capsys.readouterr()
    assert reproduce(together)["complete"]
    assert "trained" not in capsys.readouterr().err


def test_a_run_that_fails_together_costs_the_others_nothing(tmp_path, monkeypatch, capsys):
    given = {"table": (3,), "figures": (7,), "together": 2}
    settings = _smoke(tmp_path, **given)
    monkeypatch.setattr(driver, "write_pages", lambda *_: None)
    first, second = settings.variants()
    original = run.train_together

    def failing(configs):
        lucky = [config for config in configs if config.out != settings.folder(first, 0)]
        made = original(lucky) if lucky else []
        if lucky != configs:
            raise InvalidValueError("no luck")
        return made

    monkeypatch.setattr(run, "train_together", failing)
    with pytest.raises(InvalidValueError, match=f"what failed: {first.name} seed 0: no luck"):
        reproduce(settings)
    assert "training together failed" in capsys.readouterr().err
    assert list(_policies(tmp_path)) == [f"{second.name}.seed-0"]
    assert not list(tmp_path.rglob("checkpoint")), "what is trained gives up its replay buffer"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_is_done_is_not_done_again(tmp_path, capsys):
    given = {"methods": ("SAC+AUG",), "table": (1, 3)}
    found = reproduce(_smoke(tmp_path, **given))
    assert found["complete"]
    cells = found["tables"][0]["cells"]
    assert [cell["condition"] for cell in cells] == ["train", "all"]
    assert all(cell["ours"]["episodes"] == 3 for cell in cells)
    assert all(0.0 <= cell["ours"]["return"]["mean"] <= 32.0 for cell in cells)
    text = (tmp_path / "summary.md").read_text()
    assert "(987.4)" in text
    assert "not the paper's budget" in text
    assert capsys.readouterr().err.count("trained") == 1
    assert reproduce(_smoke(tmp_path, **given)) == found
    assert "trained" not in capsys.readouterr().err
    with pytest.raises(InvalidValueError, match="steps was 24"):
        reproduce(_smoke(tmp_path, steps=30, **given))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_everything_in_small(tmp_path, capsys):
    """Every table and every figure, through the command line."""
    numbers = [str(number) for number in range(1, 14)]
    asked = ["reproduce", "--benchmark", "dmcr", "--table", "1", "2", "3", "--figures", *numbers]
    assert main([*asked, "--budget", "smoke", "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["complete"]
    conditions = [c["condition"] for c in found["tables"][1]["cells"] if c["method"] == "SAC+AUG"]
    assert conditions == list(CONDITIONS.values())
    made = {path.stem for path in tmp_path.glob("figure-*")}
    assert made == {f"figure-{number}" for number in numbers}


def test_figures_asked_for_without_a_table_train_no_table(tmp_path, capsys):
    assert RemasteredSettings().table == (1,)
    assert not RemasteredSettings(figures=(8, 9)).variants()
    asked = ["reproduce", "--benchmark", "dmcr", "--figures", "8", "--budget", "smoke"]
    assert main([*asked, "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"complete": True, "tables": []}
    assert {path.stem for path in tmp_path.iterdir()} >= {"figure-8", "summary"}
    assert not (tmp_path / "rows").exists()


def test_a_page_of_figures_says_what_they_are_of(tmp_path):
    settings = _smoke(tmp_path, figures=(2, 7, 9), methods=("SAC+AUG",))
    path = row_file(tmp_path, figure_variants(7, settings.sizes())[0].name, 0)
    path.parent.mkdir()
    path.write_text(json.dumps({"evaluations": [{"step": 24, "mean": 3.0}], "seed": 0}))
    write_pages(_DmcrWork, settings, [], print)
    text = (tmp_path / "summary.md").read_text()
    assert "This is not the paper's budget" in text
    assert "Floors and backgrounds are generated ones" in text
    assert "| 2 | Cartpole Balance | SAC+AUG | 24 | 0 of 2 |" in text
    assert "| 7 | Cartpole Balance | SAC+AUG | 24 | 1 of 2 |" in text
    assert "| 9 | hopper/hop | none |" in text


def test_rows_of_another_precision_are_refused(tmp_path):
    variant = table_variant(_CARTPOLE, "SAC+AUG")
    settings = [_smoke(tmp_path), _smoke(tmp_path, precision="bf16")]
    plain, half = (_DmcrWork(one, Clock(None)) for one in settings)
    plain._record(variant, 0)
    with pytest.raises(InvalidValueError, match="precision was None"):
        half._record(variant, 0)
    half._record(variant, 1)
    with pytest.raises(InvalidValueError, match="precision was bf16"):
        plain._record(variant, 1)


@pytest.mark.parametrize("asked", [("--table", "3"), ("--figures", "1")])
@pytest.mark.parametrize(("name", "told"), [("empty", "holds no images"), ("none", "none")])
def test_a_folder_without_pictures_is_refused(tmp_path, capsys, asked, name, told):
    (tmp_path / "empty").mkdir()
    given = ["--textures", str(tmp_path / name), "--out", str(tmp_path / "out")]
    assert main(["reproduce", "--benchmark", "dmcr", *asked, *given]) == 2
    assert told in "".join(capsys.readouterr().err.split("\n"))
    assert not (tmp_path / "out" / "summary.md").exists()


KEPT = Path(__file__).parents[2] / "results" / "dmcr"


def _kept(name: str, what: str = "runs") -> list:
    return json.loads((KEPT / name).read_text())[what]


TOLD = "\n".join((KEPT / name).read_text() for name in ("README.md", "tables.md"))


def test_the_kept_table_is_printed_from_the_kept_episodes():
    files = [_kept("h200.json"), _kept("shipped.json")]
    assert all(str(kept_table(runs).render("markdown")) in TOLD for runs in files)
    small = _kept("reduced.json")
    assert str(kept_table(small, beside_paper=False).render("markdown")) in TOLD
    for kept in itertools.chain(*files, small):
        assert all(len(set(returns)) == len(returns) for returns in kept["returns"].values()), (
            "no episode counts twice"
        )


def test_the_short_table_is_printed_from_the_kept_episodes():
    assert dmcr_page.main(["--check"]) == 0, "run: python tools/dmcr_page.py"


def test_the_page_claims_of_small_runs_what_their_episodes_say():
    text = " ".join(TOLD.split())
    runs = _kept("reduced.json")
    means = [{p: np.mean(r) for p, r in run["returns"].items()} for run in runs]
    short = [i for i, run in enumerate(runs) if run["decisions"] == 8_000]
    (long,) = set(range(len(runs))) - set(short)
    learned = [i for i in short if runs[i]["agent"] != "svea"]
    most = [max(means[i][p] for i in learned) for p in ("floor", "body", "background")]
    told = "none has more than {:.0f} on floors, {:.0f} with bodies, {:.0f} with skies"
    assert told.format(*most) in text
    kept = [means[long][p] for p in ("floor", "none", "body", "background", "all")]
    told = "keeps {:.0f} of {:.0f} on other floors and {:.0f} with other bodies; other skies leave"
    assert (told + " {:.0f}, everything at once {:.0f}").format(*kept) in text
    tests = [
        stats.ttest_ind(
            *([means[i][p] for i in short if runs[i]["agent"] == a] for a in pair), equal_var=False
        ).pvalue
        for pair in itertools.combinations(("sac_aug", "curl", "drq", "svea"), 2)
        for p in FACTORS
    ]
    assert len(tests) == 48
    assert f"least p alone is {min(tests):.3f}".replace("0.", ".") in text
    assert 48 * min(tests) > 0.05, "so none is told apart by Holm's rule"


def test_the_kept_costs_are_printed_from_the_kept_scores():
    policies = _kept("explained.json", "policies")
    for small in (True, False):
        some = [held for held in policies if (held.get("preset") == "small") == small]
        table, _, caption = str(cost_table(some).render("markdown")).rpartition("\n\n")
        assert table in TOLD
        assert caption in TOLD
    assert all(held["commit"] for held in policies)
    (held,) = [held for held in policies if held["agent"] == "svea"]
    scores = {tuple(row["factors"]): np.array(row["scores"]) for row in held["conditions"]}
    lost = 100 * (1 - scores["sky",].mean() / scores[()].mean())
    name = "SVEA (one random filter a batch)"
    assert f"| {name} | 50,000 | {len(scores[()])} | {scores[()].mean():.1f} | {lost:.0f} [" in TOLD


def test_the_page_says_of_costs_no_more_than_explain_does():
    text = " ".join(TOLD.split())
    policies = _kept("explained.json", "policies")
    told: dict[str, list[str]] = {}
    for held in policies:
        found = Attribution.from_json(held)
        kind = "walker" if "walker" in held["task"] else held.get("preset")
        surely = [n for n in found.factors if n != "sky" and found.lead("sky", n).low > 0]
        told[f"{held['agent']} {kind}"] = sorted(surely)
    assert told == {
        "sac_aug None": ["camera", "floor", "light"],
        "drq None": ["camera", "floor", "light"],
        "curl None": ["camera", "light"],
        "sac_aug small": ["camera", "light"],
        "svea None": ["light"],
        "sac_aug walker": ["body", "light"],
    }
    assert "surely more than light, and more than the camera in all but that SVEA" in text
    assert "More than floors is sure in SAC+AUG (50,000 decisions) and DrQ alone" in text
    assert "more than the colour of the body in none" in text
    (walker,) = [Attribution.from_json(held) for held in policies if "walker" in held["task"]]
    assert walker.may_cost_most() == ["floor", "sky"]
    assert "floors surely more than camera, body and light, skies than body and light" in text


def test_the_map_of_returns_shows_every_run_and_factor():
    pytest.importorskip("matplotlib")
    runs = _kept("h200.json")[:2]
    (panel,) = kept_figure(runs).axes
    means = [f"{np.mean(run['returns'][name]):.0f}" for run in runs for name in FACTORS]
    told = [cell.get_text().split("\n") for cell in panel.texts]
    assert [mean for mean, _ in told] == means
    assert told[3][1] == "[409, 627]", "the table's interval"
    labels = [label.get_text() for label in panel.get_yticklabels()]
    about = [f"Cartpole Balance: SAC+AUG\nseed {seed}, 50,000 decisions" for seed in (0, 1)]
    assert labels == about
