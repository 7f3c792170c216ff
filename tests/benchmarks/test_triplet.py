"""Causal Triplet's tables made again: printed numbers, the work, verdicts, confounding curves."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from interverse.benchmarks.causaltriplet import compare, confounding
from interverse.benchmarks.causaltriplet.compare import representation
from interverse.benchmarks.causaltriplet.figures import sweep_figure
from interverse.benchmarks.causaltriplet.run import _TripletWork, reproduce
from interverse.benchmarks.causaltriplet.settings import (
    TripletSettings,
    found_in,
    logged,
    printed,
    sweep_variant,
    table_variants,
    wanted,
)
from interverse.benchmarks.comparison import LEAST_SEEDS, judge, summary
from interverse.benchmarks.driver import row_file, write_pages
from interverse.cli import main
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.files.atomic import write_json
from interverse.fit.work import Clock
from interverse.metrics.comparison import holm
from interverse.models.pairs.config import PairFit
from interverse.models.pairs.tensors import save
from interverse.models.pairs.toy import toy_pairs


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pairs")
    for crop in ("single", "multi"):
        save(toy_pairs(240, size=32, crop=crop), folder / f"{crop}.npz")
    return folder / "single.npz", folder / "multi.npz"


# ------------------------------------------------------------------------ what was published


def test_printed_numbers():
    found = {(e["shift"], e["method"], e["split"]): (e.value, e.spread) for e in printed(2)}
    assert len(found) == 12
    assert found["compositional", "vanilla", "OOD"] == (0.36, 0.13)
    assert len(printed(3)) == len(printed(4)) == 10
    with pytest.raises(UnknownNameError, match="table 5"):
        printed(5)


def test_logs_stand_beside_their_rows():
    entry = next(e for e in printed(4) if (e["method"], e["split"]) == ("group-token", "OOD"))
    found = logged(4, entry)
    assert found["best_each"] == (0.2714, 0.0311)
    assert found["last"] == (0.2119, 0.0365)
    for e in printed(4):  # the rule that fits Table 4, all rows to 0.01
        assert logged(4, e)["best_each"][0] == pytest.approx(e.value, abs=0.01)
    for e in printed(3):  # slots: the epoch that is best on ID
        if e["method"] in ("slot-avg", "slot-match"):
            assert logged(3, e)["best_id"][0] == pytest.approx(e.value, abs=0.01)
            assert compare.paper_rule(3, e["method"]) == "best_id"


def test_sweeps_and_seeds_of_the_logs():
    assert found_in("text_4.1.1")[0].value == 0.87
    assert len(found_in("fig7_log_max")) == 30
    values = {float(e["method"].split("=")[1]) for e in found_in("fig10_log_max")}
    assert values == {1, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001}
    seeds = {int(e["setting"].split("=")[1]) for e in found_in("fig13_log_max")}
    assert seeds == set(range(1, 11))


# ---------------------------------------------------------------------------- what is trained


def test_sweeps_share_their_models_with_the_tables():
    assert sweep_variant(7, 0.0) == table_variants(2)["compositional", "vanilla"]
    assert sweep_variant(7, 0.1) == table_variants(2)["compositional", "SMS"]
    assert sweep_variant(10, 1.0) == table_variants(3)["systematic", "resnet"]
    assert sweep_variant(10, 0.01) == table_variants(3)["systematic", "oracle-mask"]
    assert sweep_variant(7, 5.0).name == "single.compositional.sms.sparsity=5"
    assert sweep_variant(7, 5.0).settings("code").model.sparsity == 5


def test_tables_name_what_they_need():
    sweeps = {6: (0.0, 0.1), 7: (0.0, 1.0), 10: (1.0, 0.5)}
    assert len({v.name for v in wanted([2], [], sweeps)}) == 6
    assert len({v.name for v in wanted([3, 4], [], sweeps)}) == 10
    assert len({v.name for v in wanted([4], [13], sweeps)}) == 6
    assert {v.recipe for v in wanted([], [6], sweeps)} == {"vanilla", "icm"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"table": (7,)}, "unknown table 7"),
        ({"models": ("vanila",)}, "unknown model 'vanila'"),
        ({"models": ("clip",)}, "in no table"),
        ({"weights": ("vgg=here",)}, "ENCODER=FOLDER"),
        ({"epic": (Path("frames"),)}, "annotations, then frames"),
        ({"budget": "smoke", "seeds": 1, "data": (Path("none"),)}, "is no folder"),
    ],
)
def test_bad_settings_are_refused(tmp_path, given, told):
    with pytest.raises((InvalidValueError, UnknownNameError), match=told):
        reproduce(TripletSettings(out=tmp_path, **given))


# ----------------------------------------------------------------------------------- the work


def _settings(data, out, **fields) -> TripletSettings:
    usual = {"budget": "smoke", "seeds": 1, "analysis": False, "baselines": False}
    return TripletSettings(data=data, out=out, **usual | fields)


@pytest.mark.slow
def test_everything_runs_once_and_is_compared(tmp_path, data, capfd):
    settings = _settings(data, tmp_path, table=(2, 3))
    settings = replace(settings, models=("vanilla", "sms", "oracle-mask", "slot-match"))
    found = reproduce(settings)
    assert found["complete"]
    rows = sorted(path.name for path in (tmp_path / "rows").glob("*.json"))
    assert len(rows) == 7
    told = json.loads((tmp_path / "table-3.json").read_text())
    cells = {(c["method"], c["split"]): c for c in told["cells"]}
    assert set(cells) == set(
        itertools.product(("resnet", "oracle-mask", "slot-match"), ("ID", "OOD"))
    )
    cell = cells["resnet", "OOD"]
    assert cell["published"] == 0.30
    for rule, ours in cell["ours"].items():
        assert ours["difference"] == pytest.approx(ours["mean"] - 0.30, abs=1e-4), rule
    assert cell["weights"] == ["resnet18: random"]
    assert not told["comparable"]
    assert "slots.safetensors" in cells["slot-match", "ID"]["weights"][0]
    page = (tmp_path / "summary.md").read_text()
    assert "oracle-mask" in page
    assert (tmp_path / "index.html").read_text().startswith("<!doctype html>")
    assert {p.name for p in tmp_path.glob("*.svg")} == {"table-2.svg", "table-3.svg"}
    assert {p.name for p in tmp_path.glob("*.png")} == {"figure-8.png"}
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()}
    capfd.readouterr()
    reproduce(settings)
    assert capfd.readouterr().err.count("done before") == 7
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()}
    with pytest.raises(InvalidValueError, match="made with other settings"):
        reproduce(replace(settings, epochs=3))


def test_baselines_and_the_weight_chosen_on_validation_stand_beside_the_table(tmp_path, data):
    settings = _settings(data, tmp_path, shifts=("compositional",), figures=(7,), baselines=True)
    settings = replace(settings, encoder="lite0", models=("vanilla", "sms", "oracle-mask"))
    reproduce(settings)
    told = json.loads((tmp_path / "table-2.json").read_text())
    names = {entry["name"] for entry in told["baselines"]}
    assert names == {"constant answer", "object only", "changed-pixel crop", "oracle mask"}
    for entry in told["baselines"]:
        assert 0 <= entry["OOD"]["mean"] <= 1
    (sms,) = told["chosen"]
    assert sms["method"] == "SMS"
    assert sms["weights"]["1"] in sms["values"]
    assert sms["gain"]["verdict"] == "too few seeds"
    assert {cell["weights"][0] for cell in told["cells"]} == {"lite0: random"}, "tiny encoders"
    assert "oracle mask" in (tmp_path / "summary.md").read_text()
    assert len(list((tmp_path / "work" / "features").iterdir())) == 3, "whole, cut, masked"
    other = _TripletWork(replace(settings, split="reference"), Clock(None))
    with pytest.raises(InvalidValueError, match="other settings: split was mended"):
        other._answer(*settings.answers()[0], 1)


def test_a_row_holds_what_made_it(tmp_path, data):
    settings = _settings(data, tmp_path, models=("icm",), shifts=("compositional",), analysis=True)
    reproduce(settings)
    (path,) = (tmp_path / "rows").glob("*.json")
    row = json.loads(path.read_text())
    assert row["weights"] == "random"
    assert row["model"]["independence"] == 0.05
    assert len(row["history"]) == row["fit"]["epochs"] == 2
    assert set(row["selection"]) == {"last", "best_valid", "best_id", "best_each"}
    assert {"object", "change", "factors"} == set(row["analysis"])
    assert row["held"]
    held = {tuple(pair) for pair in row["held"]}
    pairs = toy_pairs(240, size=32)
    seen = set(zip(pairs.verb.tolist(), pairs.noun.tolist(), strict=True))
    assert held < seen


def test_time_that_is_up_loses_nothing(tmp_path, data):
    settings = _settings(data, tmp_path, models=("vanilla",), shifts=("systematic",))
    settings = replace(settings, time_limit=0.0)
    assert not reproduce(settings)["complete"]
    assert not (tmp_path / "rows").exists()
    assert reproduce(replace(settings, time_limit=None))["complete"]


def test_a_failing_model_does_not_stop_the_others(tmp_path, data):
    unmasked = tmp_path / "unmasked.npz"
    save(replace(toy_pairs(240, size=32, crop="multi"), masks=None), unmasked)
    settings = _settings((unmasked,), tmp_path / "o", table=(3,), models=("vanilla", "oracle-mask"))
    with pytest.raises(InvalidValueError, match="oracle-mask seed 1: pairing 'mask' needs masks"):
        reproduce(settings)
    assert len(list((tmp_path / "o" / "rows").glob("*.json"))) == 1


def test_figures_show_what_is_on_disk(tmp_path):
    settings = _settings((), tmp_path, table=(4,), figures=(6, 7, 10, 13), seeds=2)
    assert write_pages(_TripletWork, settings, [], print) == []
    for place, variant in enumerate(settings.variants()):
        for seed in (1, 2):
            row = {"test_id": 0.9 - 0.02 * place, "test_ood": 0.3 + 0.02 * seed}
            record = {
                "seed": seed,
                "selection": dict.fromkeys(("last", "best_each"), row),
                "analysis": {"object": {"accuracy": 0.5}},
            }
            write_json(row_file(tmp_path, variant.name, seed), record, sort_keys=False)
    names = write_pages(_TripletWork, settings, [], print)
    assert names == ["figure-6.svg", "figure-7.svg", "figure-10.svg", "figure-13.svg"]
    drawn = (tmp_path / "figure-7.svg").read_text()
    assert drawn.count("<path") > 20
    lines = sweep_figure(settings, 6).axes[0].get_lines()
    ours = {line.get_label(): line.get_ydata().tolist() for line in lines}
    assert ours["OOD, last"] == pytest.approx([0.33, 0.33])
    assert ours["object told from action embedding"] == [0.5, 0.5]


# ----------------------------------------------------------------------------- command line


def test_the_command_line_chooses_the_benchmark(tmp_path, data, capsys):
    argv = ["reproduce", "--benchmark", "causaltriplet", "--table", "2", "--budget", "smoke"]
    argv += ["--models", "vanilla", "--shifts", "systematic", "--data", str(data[0])]
    assert main([*argv, "--seeds", "1", "--out", str(tmp_path), "--no-analysis", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tables"][0]["cells"][0]["method"] == "vanilla"
    assert main(["reproduce", "--benchmark=causaltriplet", "--table", "9"]) == 2
    assert "unknown table 9" in capsys.readouterr().err


def test_training_from_the_command_line(tmp_path, data, capsys):
    argv = ["train", "--task", "rooms/single-v1", "--data", str(data[0]), "--epochs", "1"]
    argv += ["--batch-size", "64", "--model", "resnet-frozen", "--out", str(tmp_path)]
    assert main(argv) == 0
    told = capsys.readouterr().out
    assert "best_valid" in told
    assert "encoder weights: random" in told
    assert json.loads((tmp_path / "result.json").read_text())["sizes"]["train"] > 50
    assert main([*argv[:2], "rooms/none-v1", "--out", str(tmp_path)]) == 2
    assert "unknown task 'rooms/none-v1'" in capsys.readouterr().err


def test_pairs_are_read_and_split_without_a_simulator(tmp_path, data):
    script = (
        "import sys\n"
        "for name in ('mujoco', 'dm_control', 'stable_baselines3'): sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "import interverse.cli.reproduce as cli\n"
        "from interverse.fit.work import Clock\n"
        "from interverse.benchmarks.causaltriplet.run import _TripletWork\n"
        "make = cli.command_of('causaltriplet')\n"
        f"settings = make(budget='smoke', data=(Path({str(data[0])!r}),))\n"
        "split = _TripletWork(settings, Clock(None)).split('single', 'systematic', 1)\n"
        "sys.exit(0 if len(split.test_ood) else 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_it_runs_on_a_gpu(tmp_path, data):
    settings = _settings(data, tmp_path, table=(2, 3), device="cuda", precision="bf16")
    assert reproduce(settings)["complete"]


def test_pictures_of_one_object_are_not_taken_for_scenes(tmp_path):
    from interverse.data.pairs import CollectPairs, collect_pairs

    asked = CollectPairs(
        id="rooms/single-v1", out=tmp_path / "single", pairs=2, options={"image_size": 64}
    )
    settings = TripletSettings(data=(collect_pairs(asked),), size=32, out=tmp_path)
    made = _TripletWork(settings, Clock(None))
    assert made._rooms("single").crop == "single"
    with pytest.raises(InvalidValueError, match="no pairs of crop 'multi'"):
        made._rooms("multi")


NOISES = {
    "normal": lambda rng, shape: rng.normal(0, 0.05, shape),
    "uniform": lambda rng, shape: rng.uniform(-0.1, 0.1, shape),
    "heavy": lambda rng, shape: 0.03 * rng.standard_t(3, shape),
}


def claims(values):
    return [{str(seed): float(v) for seed, v in enumerate(row)} for row in values]


def share_of_verdicts(draw, *, families, claims_each, seeds):
    rng = np.random.default_rng(7)
    tables = 0
    for _ in range(families):
        found = judge(claims(draw(rng, (claims_each, seeds))))
        tables += any(f["verdict"] in ("confirmed", "contradicted") for f in found)
    return tables / families


@pytest.mark.parametrize("noise", NOISES)
def test_noise_gets_a_verdict_in_at_most_six_percent_of_cases(noise):
    share = share_of_verdicts(NOISES[noise], families=800, claims_each=1, seeds=LEAST_SEEDS)
    assert share <= 0.06


def test_a_whole_table_of_noise_gets_any_verdict_in_at_most_six_percent_of_cases():
    share = share_of_verdicts(NOISES["normal"], families=200, claims_each=12, seeds=LEAST_SEEDS)
    assert share <= 0.06


def test_a_score_that_is_no_number_gets_no_verdict():
    clear = {str(seed): 0.1 + 0.001 * seed for seed in range(10)}
    found = judge([clear | {"3": float("nan")}, clear])
    assert [claim["verdict"] for claim in found] == ["a score is no number", "confirmed"]


def test_three_seeds_never_get_a_verdict():
    assert share_of_verdicts(NOISES["normal"], families=200, claims_each=3, seeds=3) == 0


def test_effects_are_found_with_their_sign():
    rng = np.random.default_rng(0)
    found = judge(claims([rng.normal(mean, 0.02, 10) for mean in (0.1, -0.1, 0.0)]))
    assert [f["verdict"] for f in found] == ["confirmed", "contradicted", "open"]
    assert judge([{}])[0]["verdict"] == "no common seed"
    same = judge(claims([[0.25] * 10, [0.0] * 10]))
    assert [f["verdict"] for f in same] == ["confirmed", "open"]


def test_intervals_and_correction_are_scipys():
    values = np.random.default_rng(1).normal(0.3, 0.1, 10)
    found = summary(claims([values])[0])
    known = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((known.low, known.high), rel=1e-12)
    weak = np.random.default_rng(2).normal(0.03, 0.1, 10)
    assert judge(claims([weak]))[0]["p"] == pytest.approx(
        stats.ttest_1samp(weak, 0).pvalue, abs=1e-4
    )
    # Holm 1979, by hand: sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, never falling.
    assert holm(np.array([0.03, 0.005, 0.04, 0.01])) == pytest.approx([0.06, 0.02, 0.06, 0.03])
    assert summary({"1": 0.5})["low"] is None


def test_numbers_are_rounded_once_when_they_are_printed():
    values = {"1": 0.76947, "2": 0.76945}  # 0.7695 to four digits, 0.770 from there to three
    found = summary(values)
    assert found["seeds"] == values
    assert found["mean"] == np.mean([*values.values()])
    assert found["deviation"] == np.std([*values.values()])
    assert f"{found['mean']:.3f}" == "0.769"
    held = [{"object": {"accuracy": v}, "change": {"own": v}} for v in values.values()]
    assert representation(held)["own_change"] == np.mean([*values.values()])


def pairs_of(strength, count=240):
    """Toy pairs in 12 houses: with this probability, noun n goes with verb n alone."""
    found = toy_pairs(count, size=16, seed=0)
    follows = np.random.default_rng(1).random(count) < strength
    noun = torch.where(torch.as_tensor(follows), found.verb, found.noun)
    return replace(found, noun=noun, extra={"scenes": np.arange(count) % 12})


def test_no_house_of_a_test_is_trained_in():
    confounded, plain = pairs_of(0.9), pairs_of(0.0)
    split = confounding.confounded_split(confounded, plain, seed=3)
    houses = np.concatenate([confounded.extra["scenes"], plain.extra["scenes"]])
    trained = set(houses[np.concatenate([split.train, split.valid])])
    tested = set(houses[np.concatenate([split.test_id, split.test_ood])])
    assert len(tested) == 3
    assert not trained & tested
    assert split.train.max() < len(confounded) <= split.test_ood.min()
    assert len(split.train) + len(split.valid) + len(split.test_id) == len(confounded)


def test_an_answer_by_the_object_alone_falls_with_the_confounder(tmp_path):
    sets = {0.0: pairs_of(0.0), 1.0: pairs_of(1.0)}
    found = confounding.confounding_curve(sets, tmp_path, models=(), seeds=2, say=lambda _: None)
    by = {(row["model"], row["strength"]): row for row in found}
    known = by["object only", 1.0]
    assert known["test_id"]["mean"] == 1.0  # the object tells the action
    assert known["test_ood"]["mean"] < 0.5
    assert by["object only", 0.0]["test_id"] == by["object only", 0.0]["test_ood"]
    assert known["sizes"]["test_id"] == 60


def test_a_trained_model_is_kept_and_not_trained_again(tmp_path, monkeypatch):
    sets = {0.0: pairs_of(0.0, 36)}
    how = {"models": ("lite0",), "seeds": 1, "fit": PairFit(epochs=1, batch_size=16)}
    monkeypatch.setattr(confounding, "recipe", _tiny)
    first = confounding.confounding_curve(sets, tmp_path, **how, say=lambda _: None)
    monkeypatch.setattr(confounding, "fit_heads", None)
    assert confounding.confounding_curve(sets, tmp_path, **how, say=lambda _: None) == first
    assert {row["model"] for row in first} == {"constant answer", "object only", "lite0"}


def test_a_set_without_the_confounder_is_needed(tmp_path):
    with pytest.raises(InvalidValueError, match="0 among them"):
        confounding.confounding_curve({0.5: pairs_of(0.5)}, tmp_path)


def _tiny(name):
    from interverse.models.pairs.config import recipe

    found = recipe(name)
    encoder = replace(found.model.encoder, scale="tiny")
    return replace(found, model=replace(found.model, encoder=encoder))


def test_claims_on_a_curve_are_one_corrected_family_and_it_can_be_drawn():
    def told(mean):
        seeds = {str(seed): mean + 0.001 * (seed % 3) for seed in range(10)}
        return confounding.summary(seeds)

    means = {("lite0", 0.0): 0.9, ("lite0", 1.0): 0.7, ("lite0-sms", 0.0): 0.9}
    means |= {("lite0-sms", 1.0): 0.8, ("object only", 0.0): 0.5, ("object only", 1.0): 0.4}
    rows = [
        {"model": m, "strength": s, "test_id": told(0.9), "test_ood": told(mean)}
        for (m, s), mean in means.items()
    ]
    found = {name: verdict["verdict"] for name, verdict in confounding.curve_claims(rows)}
    assert found == {
        "lite0: OOD at strength 0 above that at 1": "confirmed",
        "lite0-sms: OOD at strength 0 above that at 1": "confirmed",
        "lite0-sms above lite0 out of distribution at strength 0": "open",
        "lite0-sms above lite0 out of distribution at strength 1": "confirmed",
    }
    assert len(confounding.curve_figure(rows).axes) == 2
