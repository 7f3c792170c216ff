"""Verdicts on claims: paired t-tests over seeds, Holm's correction over the claims of a table.

A bootstrap of three seeds gave a verdict on pure noise in 24% of cases. Ten seeds are the least
here, and the chance that any claim of a family gets a verdict without an effect is at most 5%, as
far as differences between seeds are spread evenly about their mean: for strongly skewed ones it is
greater. Seeds split the same pairs anew, so they say nothing of other pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from interverse.benchmarks.causaltriplet.settings import TripletSettings
from interverse.benchmarks.causaltriplet.variants import sweep_variant
from interverse.metrics.comparison import holm
from interverse.metrics.student import standard_error, t_reach

LEAST_SEEDS = 10
LEVEL = 0.05


def summary(values: Mapping[str, float]) -> dict[str, Any]:
    """Returns mean, deviation and 95% t interval over seeds; no interval from one seed.

    Nothing is rounded: who prints rounds, once.
    """
    array = np.array(list(values.values()), dtype=float)
    low, high = _interval(array)
    return {
        "mean": float(array.mean()),
        "deviation": float(array.std()),
        "low": low,
        "high": high,
        "seeds": {seed: float(value) for seed, value in values.items()},
    }


def judge(family: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Returns the verdict on each claim of a family: is its mean difference above zero?

    Args:
        family: for each claim, the difference by seed that the claim says is positive.

    >>> clear = {str(seed): 0.1 + 0.001 * seed for seed in range(10)}
    >>> [found["verdict"] for found in judge([clear, dict(list(clear.items())[:3])])]
    ['confirmed', 'too few seeds']
    """
    enough = [
        len(claim) >= LEAST_SEEDS and bool(np.isfinite([*claim.values()]).all()) for claim in family
    ]
    raw = [_p_value(claim) for claim, asked in zip(family, enough, strict=True) if asked]
    corrected = iter(holm(raw).tolist())
    out = []
    for claim, asked in zip(family, enough, strict=True):
        if not claim:
            out.append({"verdict": "no common seed"})
        elif not np.isfinite([*claim.values()]).all():
            out.append({"verdict": "a score is no number"})
        elif not asked:
            out.append({"verdict": "too few seeds", **summary(claim)})
        else:
            p = next(corrected)
            out.append({"verdict": _word(claim, p), **summary(claim), "p": round(p, 4)})
    return out


def _word(claim: Mapping[str, float], p: float) -> str:
    if p >= LEVEL:
        return "open"
    return "confirmed" if np.mean(list(claim.values())) > 0 else "contradicted"


def _p_value(claim: Mapping[str, float]) -> float:
    values = np.array(list(claim.values()), dtype=float)
    if np.ptp(values) == 0:  # no spread: the same in every seed
        return 1.0 if values[0] == 0 else 0.0
    error = standard_error(values)
    return float(2 * stats.t.sf(abs(values.mean()) / error, len(values) - 1))


def _interval(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    if len(values) < 2:
        return None, None
    half = t_reach(values, 1 - LEVEL)
    return float(values.mean() - half), float(values.mean() + half)


Records = Sequence[Mapping[str, Any]]
_SWEEPS = {"ICM": 6, "SMS": 7}


def chosen_weights(settings: TripletSettings, read: Any) -> list[dict[str, Any]]:
    """Returns per regulariser what its best weight on ID validation gives, and the gain over none.

    Args:
        settings: which rows are on disk.
        read: gives the records of a variant.
    """
    out, gains = [], []
    for method, figure in _SWEEPS.items():
        rows = {
            v: read(settings, sweep_variant(figure, v)) for v in settings.sizes().sweeps[figure]
        }
        rows = {value: found for value, found in rows.items() if found}
        if 0.0 not in rows or len(rows) < 2:
            continue
        best = {seed: _best(rows, seed) for seed in _seeds(rows[0.0])}
        plain = {str(r["seed"]): r["selection"]["best_valid"] for r in rows[0.0]}
        out.append(
            {
                "method": method,
                "values": sorted(rows),
                "weights": {seed: value for seed, (value, _) in best.items()},
                "ID": summary({seed: row["test_id"] for seed, (_, row) in best.items()}),
                "OOD": summary({seed: row["test_ood"] for seed, (_, row) in best.items()}),
                "sweep": [_point(value, found, plain) for value, found in sorted(rows.items())],
            }
        )
        gains.append({s: row["test_ood"] - plain[s]["test_ood"] for s, (_, row) in best.items()})
    for entry, verdict in zip(out, judge(gains), strict=True):
        entry["gain"] = verdict
    return out


def _best(rows: Mapping[float, Records], seed: str) -> tuple[float, Mapping[str, float]]:
    """Returns the weight whose best epoch is best on validation, and its accuracies there."""
    held = {
        value: next(record for record in found if str(record["seed"]) == seed)
        for value, found in rows.items()
        if seed in _seeds(found)
    }
    value = max(held, key=lambda v: max(row["valid"] for row in held[v]["history"]))
    return value, held[value]["selection"]["best_valid"]


def _point(value: float, found: Records, plain: Mapping[str, Any]) -> dict[str, Any]:
    rows = {str(r["seed"]): r["selection"]["best_valid"] for r in found}
    gain = {s: row["test_ood"] - plain[s]["test_ood"] for s, row in rows.items() if s in plain}
    return {
        "weight": value,
        "ID": summary({seed: row["test_id"] for seed, row in rows.items()}),
        "OOD": summary({seed: row["test_ood"] for seed, row in rows.items()}),
        "gain": summary(gain),
    }


def _seeds(found: Records) -> list[str]:
    return [str(record["seed"]) for record in found]
