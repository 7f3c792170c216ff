"""Verdicts: noise gets none, effects get theirs, few seeds get none at all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from interverse.benchmarks.causaltriplet.compare import representation
from interverse.benchmarks.comparison import LEAST_SEEDS, judge, summary
from interverse.metrics.comparison import holm

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
