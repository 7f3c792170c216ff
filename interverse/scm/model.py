"""A structural causal model in full: variables, pure mechanisms, addressed noise.

Small on purpose. Worlds run batched array code; this is the plain form that a physicist reads, that
pure worlds (chemistry) are checked against, and that records which parents a mechanism reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import networkx as nx

from interverse.core.errors import InterventionError, InvalidValueError, unknown
from interverse.core.rng import Noise
from interverse.scm.graph import CausalGraph
from interverse.scm.intervention import Do

Parents = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Mechanism:
    """How a variable comes about: a pure function of its parents' values and its own noise.

    `function(parents, noise)` gets the parents by name and a uniform number in [0, 1).
    """

    parents: tuple[str, ...]
    function: Callable[[Parents, float], Any]


class _Recorder(Mapping[str, Any]):
    """A view of the values that notes every name read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@final
class SCM:
    """Variables with mechanisms; `sample` sees, `sample(do=...)` does, `counterfactual` imagines.

    >>> rain = Mechanism((), lambda parents, noise: int(noise < 0.3))
    >>> wet = Mechanism(("rain",), lambda parents, noise: parents["rain"] or int(noise < 0.1))
    >>> model = SCM({"rain": rain, "wet": wet})
    >>> model.sample(Noise.single(seed=0), do=Do({"rain": 1}))["wet"]
    1
    """

    def __init__(self, mechanisms: Mapping[str, Mechanism]) -> None:
        self.mechanisms = dict(mechanisms)
        edges = [(p, child) for child, m in self.mechanisms.items() for p in m.parents]
        self.graph = CausalGraph.build(self.mechanisms, edges)
        if not nx.is_directed_acyclic_graph(self.graph):
            cycle = " -> ".join(a for a, _ in nx.find_cycle(self.graph))
            raise InvalidValueError(
                f"the mechanisms form a cycle: {cycle}", allowed="an acyclic graph"
            )
        self.order = tuple(nx.lexicographical_topological_sort(self.graph))

    def sample(self, noise: Noise, do: Do | None = None) -> dict[str, Any]:
        """Returns every variable's value for one world's noise, under an intervention."""
        return self._run(noise, do, record=None)

    def counterfactual(self, noise: Noise, fact: Do | None, do: Do) -> dict[str, Any]:
        """Returns what would have been: the same noise, the fact's intervention, `do` wins."""
        given = {} if fact is None else dict(fact.values)
        return self.sample(noise, Do(given | dict(do.values)))

    def reads(self, noise: Noise) -> dict[str, set[str]]:
        """Returns, for one run, which variables each mechanism read."""
        record: dict[str, set[str]] = {}
        self._run(noise, None, record)
        return record

    def _run(
        self, noise: Noise, do: Do | None, record: dict[str, set[str]] | None
    ) -> dict[str, Any]:
        fixed = {} if do is None else dict(do.values)
        for name in fixed.keys() - self.mechanisms.keys():
            raise InterventionError(unknown("variable", name, self.mechanisms), [name])
        out: dict[str, Any] = {}
        for name in self.order:
            if name in fixed:
                out[name] = fixed[name].item() if fixed[name].ndim == 0 else fixed[name]
                continue
            seen = _Recorder(out)
            out[name] = self.mechanisms[name].function(seen, float(noise.uniform(name)[0]))
            undeclared = seen.read - set(self.mechanisms[name].parents)
            if undeclared:
                raise InvalidValueError(
                    f"the mechanism of {name} reads {', '.join(sorted(undeclared))}",
                    allowed=f"its declared parents {self.mechanisms[name].parents}",
                )
            if record is not None:
                record[name] = seen.read
        return out
