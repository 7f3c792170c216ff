"""Rules of epoch selection: four, side by side.

The published tables fit `best_each` (Table 4, most of 2 and 3) or `best_id` (slots): rules that
look at the test sets. `best_valid` and `last` do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

RULES = ("last", "best_valid", "best_id", "best_each")
"""last epoch; best on validation; best on the ID test; best per test set, on the set itself."""


def select(history: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Returns ID and OOD accuracy by rule; the first of equal epochs is taken.

    Args:
        history: one row per epoch with `epoch`, `valid`, `test_id`, `test_ood`.

    >>> rows = [{"epoch": 1, "valid": 0.5, "test_id": 0.6, "test_ood": 0.4},
    ...         {"epoch": 2, "valid": 0.7, "test_id": 0.6, "test_ood": 0.2}]
    >>> select(rows)["best_each"], select(rows)["best_valid"]["test_ood"]
    ({'test_id': 0.6, 'test_ood': 0.4, 'epoch_id': 1, 'epoch_ood': 1}, 0.2)
    """
    best = {name: int(np.argmax([row[name] for row in history])) for name in _SETS}
    epochs = {
        "last": (len(history) - 1,) * 2,
        "best_valid": (best["valid"],) * 2,
        "best_id": (best["test_id"],) * 2,
        "best_each": (best["test_id"], best["test_ood"]),
    }
    return {rule: _row(history, *epochs[rule]) for rule in RULES}


_SETS = ("valid", "test_id", "test_ood")


def _row(history: Sequence[Mapping[str, Any]], own: int, other: int) -> dict[str, float]:
    return {
        "test_id": history[own]["test_id"],
        "test_ood": history[other]["test_ood"],
        "epoch_id": history[own]["epoch"],
        "epoch_ood": history[other]["epoch"],
    }
