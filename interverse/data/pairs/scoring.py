"""Scores of anyone's predictions on pairs: accuracy in and out of distribution, with baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError
from interverse.metrics.bootstrap import t_interval

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
    out: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(columns["set"].tolist()):
        rows = columns["set"] == name
        verb, seed = columns["verb"][rows], columns["seed"][rows]
        right = columns["prediction"][rows] == verb
        seeds, pairs = np.unique(seed, return_counts=True)
        runs = np.array([right[seed == one].mean() for one in seeds])
        actions, counts = np.unique(verb, return_counts=True)
        found = out[str(name)] = {
            "pairs": int(pairs.max()),
            "accuracy": float(runs.mean()),
            "balanced": float(np.mean([right[verb == one].mean() for one in actions])),
            "constant": float(counts.max() / counts.sum()),
        }
        if len(seeds) > 1:
            found["seeds"] = len(seeds)
        ends = t_interval(runs, confidence=_LEVEL)
        if not np.isnan(ends.low):
            found |= {"low": float(ends.low), "high": float(ends.high)}
    return out


def _columns(table: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    """Returns the columns of a table that has what it needs: names or numbers in every row."""
    if not hasattr(table, "keys"):
        raise InvalidValueError(f"the table is a {type(table).__name__}", allowed="columns by name")
    names = [str(name) for name in table]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise InvalidValueError(
            f"the table lacks {', '.join(missing)}; it has {', '.join(names) or 'nothing'}",
            allowed=f"{', '.join(_NEEDED)}, and seed where there are several runs",
        )
    columns = {name: np.asarray(table[name]) for name in _NEEDED}
    count = len(columns["verb"])
    columns["seed"] = np.asarray(table["seed"]) if "seed" in names else np.zeros(count, int)
    lengths = {name: column.shape for name, column in columns.items()}
    if not count or set(lengths.values()) != {(count,)}:
        raise InvalidValueError(
            f"columns have shapes {lengths}", allowed="one row for each pair, at least one"
        )
    given = {name: columns[name].tolist() for name in ("seed", "set")}
    given |= {name: np.asarray(table[name], object).tolist() for name in ("prediction", "verb")}
    for name, column in given.items():
        gaps = [at for at, value in enumerate(column) if value is None or value != value]
        if gaps:
            raise InvalidValueError(
                f"{name} has no value in row {gaps[0]}", allowed="one in every row"
            )
    kinds = {n: {isinstance(v, str) for v in given[n]} for n in ("prediction", "verb")}
    for name, kind in kinds.items():
        if len(kind) > 1:
            told = f"{name} has names and numbers"
            raise InvalidValueError(told, allowed="all names or all numbers")
    if kinds["prediction"] != kinds["verb"]:
        raise InvalidValueError("prediction and verb differ: names in one, numbers in the other")
    known = set(columns["verb"].tolist())
    plain = {verb.strip().lower(): verb for verb in known if isinstance(verb, str)}
    for told in set(columns["prediction"].tolist()) - known:
        meant = plain.get(str(told).strip().lower())
        if meant is not None:  # but for case or spaces around it
            raise InvalidValueError(f"prediction {told!r}", fix=f"Write {meant!r}")
    return columns
