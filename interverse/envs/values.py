"""Views on a world's variables: all of them, with an intervention laid over, of one world."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core import arrays
from interverse.core.notebook import table_html
from interverse.scm.graph import CausalGraph
from interverse.scm.variable import Variable, lookup
from interverse.worlds.world import Index, World

_MOST_SHOWN = 4  # numbers of a cell in a notebook

ItemT = TypeVar("ItemT", covariant=True)


class PresentItems(Mapping[str, ItemT]):
    """A mapping whose items are worked out when asked for; a copy or a pickle is a plain dict."""

    _names: Collection[str]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class WorldValues(PresentItems[Any]):
    """All variables now, read when asked for, as the world's own arrays or tensors."""

    _names: Mapping[str, Variable]

    def __init__(self, world: World) -> None:
        self._world, self._names = world, world.variables

    def __getitem__(self, name: str) -> Any:
        lookup(self._names, name)
        return self._world.read(name)


@final
class HostValues(WorldValues):
    """All variables now, as NumPy arrays of their declared type, wherever the world lives."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        kind = lookup(self._names, name).dtype
        return to_numpy(self._world.read(name), kind)


@final
class PresentVariables(PresentItems[Variable]):
    """All variables; the spaces of one are evaluated at the present values when it is asked for."""

    def __init__(self, variables: Mapping[str, Variable], values: Mapping[str, Any]) -> None:
        self._names = self._variables = variables
        self._values = values

    def __getitem__(self, name: str) -> Variable:
        return self._variables[name].resolve(self._values)

    def _repr_html_(self) -> str:
        """Shows every variable in a notebook, with its spaces as they are now."""
        rows = [
            (v.name, v.kind, v.unit, _few(v.default), _ends(v.space_a), _ends(v.space_b), v.doc)
            for v in self.values()
        ]
        header = ("variable", "kind", "unit", "default", "A: training", "B: test", "what it is")
        return table_html(header, rows)


def _few(value: Any) -> str:
    """Returns a value as text, of many numbers the count."""
    array = np.asarray(value)
    if array.size > _MOST_SHOWN:
        return f"{array.size} numbers"
    return ", ".join(f"{number:.4g}" for number in array.ravel())


def _ends(space: Any) -> str:
    if space is None:
        return ""
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    return type(space).__name__ if low is None else f"{_few(low)} to {_few(high)}"


@final
class Overlay(PresentItems[NDArray[Any]]):
    """Present values of some worlds with an intervention's values laid over them.

    Where the graph says that a variable always equals one that is given (the size of a block and of
    its goal), it has that value too.
    """

    def __init__(
        self, values: Mapping[str, NDArray[Any]], given: Any, index: Index, graph: CausalGraph
    ) -> None:
        self._names = self._values = values
        self._given, self._index, self._graph = given, index, graph

    def __getitem__(self, name: str) -> NDArray[Any]:
        for known in (name, *sorted(self._graph.equals(name))):
            if known in self._given:
                return self._given[known]
        return self._values[name][self._index]


@final
class FirstWorld(PresentItems[NDArray[Any]]):
    """The values of world 0, without the world axis."""

    def __init__(self, values: Mapping[str, NDArray[Any]]) -> None:
        self._names = self._values = values

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.asarray(self._values[name][0])


def to_numpy(array: Any, dtype: Any = None) -> NDArray[Any]:
    """Returns a fresh NumPy array from a NumPy array or a Torch tensor on any device."""
    return np.array(arrays.to_numpy(array), dtype=dtype)
