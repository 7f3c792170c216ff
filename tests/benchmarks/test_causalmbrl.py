"""World models' tables made again: printed numbers, comparison, findings, and a whole run."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from interverse.benchmarks import driver
from interverse.benchmarks.causalmbrl.compare import difference_interval, numbers
from interverse.benchmarks.causalmbrl.figures import Point, correlation, draw, points
from interverse.benchmarks.causalmbrl.findings import CLAIMS, Runs, difference, findings
from interverse.benchmarks.causalmbrl.run import _MbrlWork, reproduce
from interverse.benchmarks.causalmbrl.settings import TABLES, MbrlRow, Settings, deviation, printed
from interverse.benchmarks.driver import compared, row_file, write_pages
from interverse.cli import main
from interverse.core.errors import InvalidValueError, MissingExtraError, UnknownNameError
from interverse.core.files.atomic import write_json
from interverse.data import load_dataset
from interverse.fit.work import Clock, OutOfTimeError, Record, run_stamp
from interverse.reports.sections import Score, pivot


def test_every_number_of_the_sixteen_tables_is_there():
    assert sum(len(printed(number)) for number in TABLES) == 1404
    assert all(entry["world"] in TABLES[n][1] for n in TABLES for entry in printed(n))


def test_a_printed_spread_is_a_deviation_but_for_chemistry_where_it_is_a_variance():
    assert all(deviation(3, entry) == entry.spread for entry in printed(3))
    for number in (17, 18):
        for entry in printed(number):
            if entry.spread is not None:
                assert deviation(number, entry) == pytest.approx(math.sqrt(entry.spread))


def test_read_as_deviations_a_chemistry_spread_would_be_impossible():
    # Three non-negative numbers of mean m have a population deviation of at most m * sqrt(2).
    mrr = [e for e in printed(17) if e["metric"] == "MRR"]
    impossible = [e for e in mrr if e.spread > e.value * math.sqrt(2)]
    assert impossible
    assert all(deviation(17, e) <= e.value * math.sqrt(2) for e in impossible)


def test_tables_share_the_models_of_their_world():
    together = Settings(table=(3, 9, 15))
    assert together.rows() == Settings(table=(3,)).rows()
    assert together.kinds("blocks/observed-3-v1") == ("planning", "ranking", "zero_shot")
    assert len(together.rows()) == 7


def test_rows_can_be_chosen():
    chosen = Settings(table=(17, 18), graphs=("chain",), models=("ae", "modular"))
    assert [(row.world, row.model, row.loss) for row in chosen.rows()] == [
        ("chemistry/chain-v1", "ae", "nll"),
        ("chemistry/chain-v1", "modular", "nll"),
    ]


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"table": (2,)}, UnknownNameError, "unknown table '?2.*18"),
        ({"models": ("rim",)}, UnknownNameError, "rim"),
        ({"losses": ("mse",)}, UnknownNameError, "mse"),
        ({"table": (17,), "graphs": ("tree",)}, UnknownNameError, "tree"),
        ({"table": ()}, InvalidValueError, "at least one table"),
        ({"seeds": 0}, InvalidValueError, "seeds is 0"),
        ({"models": ("vae",), "losses": ("contrastive",)}, InvalidValueError, "no row"),
    ],
)
def test_what_cannot_be_had_is_refused(wrong, error, told):
    with pytest.raises(error, match=told):
        Settings(**wrong)


ROW = MbrlRow(world="blocks/observed-3-v1", model="modular", loss="contrastive")


def ranked(hits: float) -> dict:
    one = dict.fromkeys(("published_hits", "published_mrr"), hits)
    one |= {"hits": hits - 1, "mrr": hits - 1, "reconstruction": None}
    return {"1": one, "5": one, "10": one}


def keep(settings: Settings, row: MbrlRow, seed: int, variant: str, **scores: dict) -> None:
    """Writes scores as a run leaves them."""
    asked = {**settings.asked(row), "seed": seed}
    record = Record(row_file(settings.out, row.name, seed), asked)
    for kind, score in scores.items():
        record.put(variant, kind, score)


@pytest.fixture
def settings(tmp_path):
    chosen = Settings(
        table=(3,), models=("modular",), losses=("contrastive",), seeds=2, out=tmp_path
    )
    for seed, hits in ((1, 90.0), (2, 92.0)):
        keep(chosen, ROW, seed, "Contrastive", ranking=ranked(hits))
    return chosen


def test_mean_deviation_difference_and_flag(settings):
    cells = compared(_MbrlWork, settings, 3)["cells"]
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
        compared(_MbrlWork, other, 3)


def test_the_pages_show_every_cell(settings):
    content = compared(_MbrlWork, settings, 3)
    head, line = numbers(content["cells"])
    assert head[:2] == ["model", "H@1 1"]
    assert line[0] == "Modular Contrastive"
    assert line[1].startswith("91.00 +- 1.00 (")
    write_pages(_MbrlWork, settings, [content], lambda text: None)
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
        about = {"world": ROW.world, "model": "Modular", "loss": "Contrastive", "steps": 1}
        return {**about, "metric": metric, "ours": value, "seeds": {"1": value}}

    graph = {"where": ROW.world, "who": "modular Contrastive", "what": "F1"}
    graph |= {"value": 0.8, "run": "1"}
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
        keep(settings, ROW, seed, "Contrastive", recovery=found, planning=planned)
    content = compared(_MbrlWork, settings, 3)
    head, *lines = pivot(Score(**row) for row in content["learned"])
    shown = {line[1]: dict(zip(head, line, strict=True)) for line in lines}
    own, ceiling = shown["modular Contrastive"], shown["true world"]
    assert (own["runs"], own["F1"], own["closed loop 5"]) == ("2", "0.5 +- 0", "0.75 +- 0")
    assert (own["open loop 5"], own["CF-H@1"]) == ("0.125 +- 0", "40 +- 0")
    assert (ceiling["runs"], ceiling["F1"], ceiling["CF-H@1"]) == ("", "1 +- 0", "100 +- 0")
    assert shown["true outcomes, read by the probe"]["effect"] == "0.25 +- 0"
    write_pages(_MbrlWork, settings, [content], lambda text: None)
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
    keep(chosen, row, 1, "NLL", ranking=ranked(12.0))
    content = compared(_MbrlWork, chosen, 17)
    assert {cell["published_plus_minus_is"] for cell in content["cells"]} == {"variance"}
    write_pages(_MbrlWork, chosen, [content], lambda text: None)
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
        keep(chosen, row, seed, "NLL", ranking=ranked(value))
    content = compared(_MbrlWork, chosen, 17)
    (cell,) = [c for c in content["cells"] if (c["metric"], c["steps"]) == ("H@1", 1)]
    assert (cell["ours"], cell["ours_deviation"]) == (4.5, 0.5)
    assert cell["seeds"] == {"0/1": 4.0, "0/2": 5.0}
    (other,) = [c for c in content["draws"] if (c["metric"], c["steps"]) == ("H@1", 1)]
    assert (other["draw"], other["ours"], other["ours_deviation"]) == (1, 14.0, 1.0)
    write_pages(_MbrlWork, chosen, [content], lambda text: None)
    text = (tmp_path / "summary.md").read_text()
    table, _, draws = text.partition("in chemistry/chain-v1, other draws")
    assert "| GNN NLL | 4.50 +- 0.50 (" in table
    assert "| GNN NLL, draw 1 | 14.00 +- 1.00 |" in draws


def test_the_test_is_welchs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1.0, 1.0, 6), rng.normal(0.0, 2.0, 9)
    found = difference(*(Runs(float(x.mean()), float(x.std(ddof=1)), len(x)) for x in (a, b)))
    told = stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(told.pvalue)
    interval = told.confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_so_many_seeds_find_the_difference_four_times_of_five():
    above, below = Runs(1.0, 1.0, 3), Runs(0.0, 1.0, 3)
    needed = difference(above, below).needed
    rng = np.random.default_rng(1)
    pairs = (rng.normal(m, 1.0, (2000, needed)) for m in (1.0, 0.0))
    found = (stats.ttest_ind(*pairs, axis=1, equal_var=False).pvalue < 0.05).mean()
    assert 0.75 < found < 0.88


def test_printed_numbers_alone_answer_every_claim_they_can(tmp_path, capsys):
    assert main(["reproduce", "--findings", "--out", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["findings"]
    assert len(rows) == sum(len(claim.worlds) for claim in CLAIMS)
    assert len(CLAIMS) >= 15
    words = {row["printed"]["verdict"] for row in rows}
    assert words == {"confirmed", "contradicted", "open", "no runs"}  # no closed loop is printed
    assert all(row["ours"] == {"verdict": "no runs"} for row in rows)
    known = [row["printed"] for row in rows if row["printed"]["verdict"] == "open"]
    assert all(one["seeds_needed"] is None or one["seeds_needed"] >= 3 for one in known)
    assert "confirmed" in (tmp_path / "findings" / "summary.md").read_text()


def test_our_runs_are_compared_at_the_same_length_of_training(tmp_path):
    def keep(model, seed, hits, epochs):
        score = {"10": {"published_hits": hits, "references": 10_000}}
        record = {"world": "blocks/observed-3-v1", "model": model, "loss": "contrastive"}
        record |= {"seed": seed, "sizes": {"epochs": epochs, "train": 1000}}
        record["scores"] = {"Contrastive": {"ranking": score}}
        write_json(tmp_path / f"{model}.{epochs}.seed-{seed}.json", record, sort_keys=False)

    for seed in range(4):
        keep("modular", seed, 50 + seed, 10)
        keep("ae", seed, 20 + seed, 10)
        keep("ae", seed, 90 + seed, 100)  # longer: no match for the other's
    rows = findings(tmp_path)
    first = next(row for row in rows if row["world"] == "blocks/observed-3-v1")
    assert first["claim"].startswith("Modular above AE, Contrastive: H@1")
    assert first["ours"]["verdict"] == "confirmed"
    assert math.isclose(first["ours"]["difference"], 30.0)


RECORDED = Path(__file__).parents[1] / "parity" / "data" / "gridworlds.json"

WITHOUT_SIMULATORS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mujoco", "pyarrow", "stable_baselines3", "minari"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Blocked())
from interverse.cli import main
sys.exit(main(sys.argv[1:]))
"""


def smoke(out: Path, **choices) -> Settings:
    choices = {"table": (3, 9, 15), "models": ("modular",), "losses": ("contrastive",), **choices}
    return Settings(budget="smoke", seeds=2, out=out, **choices)


def cells(found: dict) -> list:
    return [table["cells"] for table in found["tables"]]


def test_rows_of_other_code_are_told_apart_and_kept(tmp_path, capsys):
    stamp = run_stamp("interverse reproduce", "cpu")
    paths = {name: tmp_path / "rows" / f"{name}.seed-1.json" for name in ("new", "old", "version")}
    for name, path in paths.items():
        record = Record(path, {"seed": 1})
        commit = "a" * 40 if name == "old" else stamp["commit"]
        source = "0" * 16 if name == "old" else stamp["source"]
        record.made_by_run({**stamp, "commit": commit, "source": source})
        if name == "version":
            record.content["made_by"] = {**record.content["made_by"], "interverse": "0.0.1"}
        record.put("Contrastive", "ranking", {"hits": 1.0})
    before = {path: path.read_bytes() for path in paths.values()}

    class Done(driver.Work):
        paper, title = "causalmbrl", "Nothing left to do"
        compare = staticmethod(lambda *_: {"cells": []})
        sections = staticmethod(lambda *_: [])
        run_all = staticmethod(lambda: None)

    asked = SimpleNamespace(device="cpu", time_limit=None, table=(3,), out=tmp_path)
    for kept in (paths, ["new"]):
        for name in paths.keys() - set(kept):
            paths[name].unlink()
        found = driver.reproduce(Done, asked)
        assert found["complete"]
        told = capsys.readouterr().err
        assert ("2 of 3 results are kept from other code" in told) == (len(kept) == 3)
        assert ("old.seed-1.json (commit aaaaaaaaaaaa;" in told) == (len(kept) == 3)
        assert ("; interverse 0.0.1)" in told) == (len(kept) == 3)
        assert "new.seed-1.json" not in told
    assert paths["new"].read_bytes() == before[paths["new"]]


@pytest.mark.slow
def test_the_time_limit_stops_it_and_the_same_command_goes_on(tmp_path):
    chosen = {"table": (3, 9), "epochs": 2}
    whole = reproduce(smoke(tmp_path / "whole", **chosen))
    assert whole["complete"]
    parts = tmp_path / "parts"
    assert not reproduce(smoke(parts, **chosen, time_limit=0.0))["complete"]
    found = reproduce(smoke(parts, **chosen, time_limit=1.5))
    for _ in range(30):
        if found["complete"]:
            break
        found = reproduce(smoke(parts, **chosen, time_limit=1.5))
    assert cells(found) == cells(whole)
    for name in ("summary.md", "index.html", "figure-21.svg", "table-03.json", "table-09.json"):
        assert (parts / name).exists()
    before = {path: path.stat().st_mtime_ns for path in (parts / "rows").iterdir()}
    reproduce(smoke(parts, **chosen))
    assert before == {path: path.stat().st_mtime_ns for path in (parts / "rows").iterdir()}


def test_another_budget_in_the_same_folder_is_refused(tmp_path):
    chosen = {"table": (3,), "models": ("ae",)}
    reproduce(smoke(tmp_path, **chosen))
    with pytest.raises(InvalidValueError, match="made with other settings"):
        reproduce(smoke(tmp_path, **chosen, epochs=2))


def test_epochs_of_the_first_stage_belong_to_nll_and_to_the_record():
    chosen = Settings(table=(3,), losses=("nll",), pretrain_epochs=2, epochs=5)
    (row, *_) = chosen.rows()
    assert chosen.budget_of(row).record()["pretrain_epochs"] == 2
    assert "--pretrain-epochs 2" in chosen.command()
    assert "pretrain_epochs" not in Settings(table=(3,)).budget_of(row).record()
    with pytest.raises(InvalidValueError, match="no row has a first stage"):
        Settings(table=(3,), losses=("contrastive",), pretrain_epochs=2)


def test_no_gpu_is_said_in_one_line(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(InvalidValueError, match="no GPU"):
        reproduce(smoke(tmp_path, device="cuda"))


@pytest.mark.slow
def test_the_command_needs_no_simulator_and_prints_json(tmp_path):
    words = "reproduce --table 17 --graphs chain --models ae --budget smoke --seeds 1 --json --out"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SIMULATORS, *words.split(), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["complete"]
    assert {cell["loss"] for cell in found["tables"][0]["cells"]} == {"NLL", "NLL Finetuned"}
    assert "pretrain 1/1 epochs" in done.stderr


def test_a_clock_counts_and_stops():
    times = iter([0.0, 1.0, 3.0])
    clock = Clock(2.0, now=lambda: next(times))
    clock.check()
    with pytest.raises(OutOfTimeError):
        clock.check()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_reduced_budget_matches_the_original_code(tmp_path):
    settings = Settings(
        table=(3,), models=("modular",), losses=("contrastive",), seeds=1, out=tmp_path
    )
    found = {
        cell["steps"]: cell["ours"]
        for cell in reproduce(settings)["tables"][0]["cells"]
        if cell["metric"] == "H@1"
    }
    runs = json.loads(RECORDED.read_text())["reduced_reference_observed3"]["runs"]
    wanted = {"model": "Modular", "loss": "Contrastive", "encoder": "small", "seed": 1}
    (reference,) = [run for run in runs if wanted.items() <= run.items()]
    assert found[1] >= reference["test"]["K=1"]["h1"] - 5.0


_HAS_EXTRA = importlib.util.find_spec("causallearn") is not None
installed = pytest.mark.skipif(not _HAS_EXTRA, reason="causal-learn is an extra")


@pytest.mark.skipif(_HAS_EXTRA, reason="causal-learn is installed")
def test_without_the_library_the_extra_is_named(monkeypatch):
    # Collecting doctests leaves a half-loaded module behind.
    monkeypatch.delitem(sys.modules, "interverse.benchmarks.causalmbrl.discovery", raising=False)
    with pytest.raises(MissingExtraError, match="discovery"):
        importlib.import_module("interverse.benchmarks.causalmbrl.discovery")


@installed
@pytest.mark.parametrize("method", ["pc", "ges"])
def test_the_skeleton_of_a_chain_is_found(method, tmp_path):
    from interverse.benchmarks.causalmbrl.discovery import discovery_scores, start_states

    data = load_dataset("chemistry/chain-v1", "test", folder=tmp_path, episodes=2000)
    score = discovery_scores(start_states(data), np.eye(5, k=-1, dtype=np.int64), method)
    assert score["skeleton_f1"] >= 0.85
    assert score["samples"] == 2000


@installed
def test_a_collider_has_its_directions():
    from interverse.benchmarks.causalmbrl.discovery import discover

    rng = np.random.default_rng(0)
    causes = rng.integers(0, 3, (4000, 2))
    effect = np.where(rng.random(4000) < 0.1, rng.integers(0, 3, 4000), causes.max(1))
    found = discover(np.column_stack([causes, effect]), "pc")
    assert found.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 0]]


@installed
def test_blocks_are_refused(tmp_path):
    from interverse.benchmarks.causalmbrl.discovery import start_states

    data = load_dataset("blocks/observed-3-v1", "test", folder=tmp_path, episodes=4)
    with pytest.raises(InvalidValueError, match="chemistry"):
        start_states(data)
