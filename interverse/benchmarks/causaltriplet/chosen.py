"""Regularisers with the weight that is best on validation, chosen seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interverse.benchmarks.causaltriplet.settings import TripletSettings
from interverse.benchmarks.causaltriplet.variants import sweep_variant
from interverse.benchmarks.causaltriplet.verdicts import judge, summary

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
