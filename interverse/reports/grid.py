"""Grid of letters under the bars: what each protocol varies.

Read from the provenance (`protocols`), and where that is silent from the values in the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from interverse.results.tables import space_labels

if TYPE_CHECKING:
    from interverse.results.results import Results

_MOST_ROWS = 8
VARIED = "\N{BULLET}"  # varied, in a space we are not told


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of variables, columns of protocols; a cell is the space's name, or empty."""

    protocols: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # label, one cell per protocol


def protocol_grid(results: Results) -> Grid:
    """Returns which variables each protocol of the results draws, and from which space."""
    protocols = results.protocols
    cells: dict[str, dict[str, str]] = {}
    for protocol in protocols:
        for variable, space in _varied(results, protocol).items():
            cells.setdefault(variable, {})[protocol] = space
    patterns: dict[tuple[str, ...], list[str]] = {}
    for variable, row in cells.items():
        patterns.setdefault(tuple(row.get(p, "") for p in protocols), []).append(variable)
    rows = [(_label(names), pattern) for pattern, names in patterns.items()]
    # The rows that tell most protocols apart come first; the paper's grid is short too.
    kept = sorted(rows, key=lambda row: -sum(map(bool, row[1])))[:_MOST_ROWS]
    return Grid(tuple(protocols), tuple(row for row in rows if row in kept))


def _varied(results: Results, protocol: str) -> dict[str, str]:
    """Returns variable -> space for one protocol."""
    declared = results.provenance.get("protocols", {}).get(protocol)
    if declared is not None:
        named = declared.get("variables") or {}
        if not isinstance(named, Mapping):
            named = dict.fromkeys(named, declared.get("space") or VARIED)
        everything = declared.get("everything")
        named = dict(named) | ({"everything": everything} if everything else {})
        named |= dict.fromkeys(declared.get("grid") or {}, VARIED)
        return {_plain(name): str(space) for name, space in named.items()}
    part = results.select(protocol=protocol)
    found: dict[str, str] = {}
    for variable in part.variables:
        values = part.values(variable)
        if _varies(values):
            found[_plain(variable)] = _space(values, results.about(variable))
    return found


def _varies(values: Any) -> bool:
    known = values[~np.isnan(values).any(axis=1)]
    return len(known) > 1 and bool(np.ptp(known, axis=0).any())


def _space(values: Any, spaces: Mapping[str, Any]) -> str:
    if not spaces:
        return VARIED
    labels = set(space_labels(values[~np.isnan(values).any(axis=1)], spaces))
    return labels.pop() or VARIED if len(labels) == 1 else "A_B" if labels == {"A", "B"} else VARIED


def _plain(name: str) -> str:
    """Returns a variable's or pattern's name for readers: `block_*/mass` is "block mass".

    >>> _plain("block_0/cylindrical_position"), _plain("goal_*/size")
    ('block cylindrical position', 'goal size')
    """
    return re.sub(r"[_/*]+", " ", re.sub(r"_[\d*]+(?=/|$)", "", name)).strip()


def _label(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return (
        unique[0]
        if len(unique) == 1
        else f"{unique[0]}, {unique[1]}" + (f" + {len(unique) - 2} more" if len(unique) > 2 else "")
    )
