"""The variables of many pairs as two matrices, real and whole numbers, so that few reads load all.

A world has some hundred variables; as arrays of their own they would take longer to open than the
pictures to decode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain

Values = Mapping[str, NDArray[Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairLayout:
    """Which variables there are: their shapes, and which of them hold whole numbers."""

    shapes: Mapping[str, tuple[int, ...]]
    whole: frozenset[str]

    @classmethod
    def of(cls, values: Values) -> PairLayout:
        """Returns the layout of one pair's variables."""
        arrays = {name: np.asarray(values[name]) for name in sorted(values)}
        return cls(
            shapes={name: array.shape for name, array in arrays.items()},
            whole=frozenset(n for n, array in arrays.items() if array.dtype.kind in "iub"),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, sorted: the order of everything that is kept by variable."""
        return tuple(self.shapes)

    def to_json(self) -> dict[str, Any]:
        """Returns what JSON can hold; `from_json` reads it."""
        return {
            name: {"shape": list(shape), "whole": name in self.whole}
            for name, shape in self.shapes.items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PairLayout:
        """Returns the layout that `to_json` told of."""
        return cls(
            shapes={name: tuple(data[name]["shape"]) for name in sorted(data)},
            whole=frozenset(name for name in data if data[name]["whole"]),
        )

    def pack(self, rows: Sequence[Values]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Returns two matrices, one row a pair; a pair of another layout raises."""
        for row in rows:
            if PairLayout.of(row) != self:
                raise InvalidValueError(
                    explain(
                        f"pairs differ in their variables: {_difference(self, PairLayout.of(row))}",
                        allowed="the same names, shapes and kinds in every pair of a data set",
                    )
                )
        parts: dict[bool, list[Any]] = {False: [], True: []}
        for name, shape in self.shapes.items():
            column = np.array([row[name] for row in rows]).reshape(len(rows), math.prod(shape))
            parts[name in self.whole].append(column)
        nothing = np.zeros((len(rows), 0))
        real = np.concatenate([nothing, *parts[False]], axis=1)
        return real, np.concatenate([nothing.astype(np.int64), *parts[True]], axis=1)

    def unpack(self, real: NDArray[np.float64], whole: NDArray[np.int64]) -> dict[str, Any]:
        """Returns each variable's values, (N, *shape)."""
        out: dict[str, Any] = {}
        at = {False: 0, True: 0}
        for name, shape in self.shapes.items():
            group = name in self.whole
            start, at[group] = at[group], at[group] + math.prod(shape)
            source = whole if group else real
            out[name] = source[:, start : at[group]].reshape(len(source), *shape)
        return out


def _difference(one: PairLayout, other: PairLayout) -> str:
    for name in sorted({*one.shapes, *other.shapes}):
        mine, theirs = one.shapes.get(name), other.shapes.get(name)
        if mine != theirs:
            return f"{name} has shape {mine} in one and {theirs} in another"
    names = sorted(one.whole ^ other.whole)
    return f"{', '.join(names)} are whole numbers in one and not in another"
