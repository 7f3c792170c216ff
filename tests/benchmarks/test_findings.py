"""`interverse reproduce --findings`: the paper's claims, judged by its numbers and by ours."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from interverse.benchmarks.causalmbrl.findings import CLAIMS, Runs, difference, findings
from interverse.cli import main
from interverse.models.checkpoint import write_json


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
        write_json(tmp_path / f"{model}.{epochs}.seed-{seed}.json", record)

    for seed in range(4):
        keep("modular", seed, 50 + seed, 10)
        keep("ae", seed, 20 + seed, 10)
        keep("ae", seed, 90 + seed, 100)  # longer: no match for the other's
    rows = findings(tmp_path)
    first = next(row for row in rows if row["world"] == "blocks/observed-3-v1")
    assert first["claim"].startswith("Modular above AE, Contrastive: H@1")
    assert first["ours"]["verdict"] == "confirmed"
    assert math.isclose(first["ours"]["difference"], 30.0)
