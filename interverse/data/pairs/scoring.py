"""Scores of anyone's predictions on pairs: accuracy in and out of distribution, with baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.metrics.student import t_interval

_NEEDED = ("prediction", "verb", "set")
_LEVEL = 0.95


def score_pairs(table: Mapping[str, ArrayLike]) -> dict[str, dict[str, Any]]:
    """Returns how well actions were told, for each set of pairs (such as ID and OOD).

    Args:
        table: columns of one length, a row for each pair and seed: `prediction` and `verb` (names
            or numbers), `set` (its name), and where there are several runs `seed`. A data frame
            will do.

    Returns:
        By set: `pairs` (of one seed, the most where they differ), `accuracy`, `balanced` (mean
        over actions), `constant` (what always naming the commonest action of the set gives), with
        several seeds `seeds`, how many, and where these differ `low` and `high`, the ends of the
        95% t interval over them; equal ones say nothing of the spread.

    >>> rows = {"prediction": ["open", "open"], "verb": ["open", "close"], "set": ["ID", "OOD"]}
    >>> found = score_pairs(rows)
    >>> found["ID"]["accuracy"], found["OOD"]["accuracy"]
    (1.0, 0.0)
    """
    columns = _columns(table)
    right = columns["prediction"] == columns["verb"]
    out = {}
    for name in dict.fromkeys(columns["set"].tolist()):
        rows = columns["set"] == name
        out[str(name)] = _scores(right[rows], columns["verb"][rows], columns["seed"][rows])
    return out


def _scores(right: NDArray[np.bool_], verb: NDArray[Any], seed: NDArray[Any]) -> dict[str, Any]:
    counts = np.unique(verb, return_counts=True)[1]
    seeds, rows = np.unique(seed, return_counts=True)
    runs = np.array([right[seed == one].mean() for one in seeds])
    found: dict[str, Any] = {
        "pairs": int(rows.max()),
        "accuracy": float(runs.mean()),
        "balanced": float(np.mean([right[verb == one].mean() for one in np.unique(verb)])),
        "constant": float(counts.max() / counts.sum()),
    }
    if len(seeds) > 1:
        found["seeds"] = len(seeds)
    ends = t_interval(runs, confidence=_LEVEL)
    if not np.isnan(ends.low):
        found |= {"low": float(ends.low), "high": float(ends.high)}
    return found


def _columns(table: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    if not hasattr(table, "keys"):
        raise InvalidValueError(
            explain(f"the table is a {type(table).__name__}", allowed="columns by name")
        )
    names = [str(name) for name in table]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise InvalidValueError(
            explain(
                f"the table lacks {', '.join(missing)}; it has {', '.join(names) or 'nothing'}",
                allowed=f"{', '.join(_NEEDED)}, and seed where there are several runs",
            )
        )
    columns = {name: np.asarray(table[name]) for name in _NEEDED}
    count = len(columns["verb"])
    columns["seed"] = np.asarray(table["seed"]) if "seed" in names else np.zeros(count, int)
    lengths = {name: column.shape for name, column in columns.items()}
    if not count or set(lengths.values()) != {(count,)}:
        raise InvalidValueError(
            explain(f"columns have shapes {lengths}", allowed="one row for each pair, at least one")
        )
    for name in ("seed", "set"):
        _check_known(columns[name].tolist(), name)
    named = [_named(np.asarray(table[name], object), name) for name in ("prediction", "verb")]
    if named[0] != named[1]:
        raise InvalidValueError(
            explain("prediction and verb differ: names in one, numbers in the other")
        )
    if named[0]:
        _check_names(columns)
    return columns


def _named(column: NDArray[Any], name: str) -> bool:
    """Returns whether a column has names, not numbers; gaps and mixtures raise."""
    _check_known(column.tolist(), name)
    kinds = {isinstance(value, str) for value in column.tolist()}
    if len(kinds) > 1:
        told = f"{name} has names and numbers"
        raise InvalidValueError(explain(told, allowed="all names or all numbers"))
    return kinds == {True}


def _check_known(column: list[Any], name: str) -> None:
    """Raises for a column with a gap: None, or a number that is none."""
    gaps = [at for at, value in enumerate(column) if value is None or value != value]
    if gaps:
        raise InvalidValueError(
            explain(f"{name} has no value in row {gaps[0]}", allowed="one in every row")
        )


def _check_names(columns: Mapping[str, NDArray[Any]]) -> None:
    """Raises for a prediction that is an action of the table but for case or spaces around it."""
    known = set(columns["verb"].tolist())
    plain = {verb.strip().lower(): verb for verb in known}
    for told in set(columns["prediction"].tolist()) - known:
        meant = plain.get(told.strip().lower())
        if meant is not None:
            raise InvalidValueError(explain(f"prediction {told!r}", fix=f"Write {meant!r}"))
