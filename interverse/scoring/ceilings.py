"""Exact counterfactuals of chemistry: every outcome with its chance, without and with the fact.

A painted object's descendants are drawn anew, each by one uniform number from its own chances.
Without the fact these numbers are anything in [0, 1). The fact's outcome confines each to the
interval of the colour that it gave, and the counterfactual reuses them: that is abduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import to_numpy
from interverse.metrics.recovery import Floats
from interverse.models.counterfactual import CounterfactualTrials, Facts, StateRespondent
from interverse.worlds.world import World

_Span = tuple[float, float]


class Chances(NamedTuple):
    """All that a scene may become."""

    states: NDArray[np.int64]  # (M, objects)
    weights: Floats  # (M,), with sum 1


@final
class KnownChances:
    """Exact chances of the counterfactuals of chemistry's trials, without and with the facts."""

    def __init__(self, trials: CounterfactualTrials) -> None:
        world: Any = trials.scenes.world
        self._tables, self._facts = world.tables, trials.states
        self._graph = to_numpy(world.read("graph/adjacency"))[0].astype(bool)
        self._colors = trials.values

    @staticmethod
    def suits(world: World) -> bool:
        """Returns whether a world's chances are tabulated, and the same in every copy of it."""
        tables: Sequence[Any] = getattr(world, "tables", ())
        return len(tables) > 0 and all(table is not None for table in tables)

    def prior(self, row: int) -> Chances:
        """Returns the chances of a twin's outcomes for one who knows the mechanisms alone."""
        return self._outcomes(row, {})

    def posterior(self, row: int) -> Chances:
        """Returns the same for one who saw the fact and its outcome, too."""
        outcome = np.asarray(self._facts.outcomes)[row]
        spans: dict[int, _Span] = {}
        for v in self._reached(row):
            ends = self._ends(v, outcome[None])[0]
            color = int(outcome[v])
            spans[v] = (float(ends[color - 1]) if color else 0.0, float(ends[color]))
        return self._outcomes(row, spans)

    def _reached(self, row: int) -> list[int]:
        """Returns which objects are drawn anew, in their order."""
        reached = {int(self._facts.actions[row]) // self._colors}
        drawn = []
        for v in range(1, len(self._graph)):
            if any(self._graph[v, j] for j in reached if j < v):
                reached.add(v)
                drawn.append(v)
        return drawn

    def _outcomes(self, row: int, spans: dict[int, _Span]) -> Chances:
        action = int(self._facts.twin_actions[row])
        states = np.array(np.asarray(self._facts.twins)[row : row + 1], dtype=np.int64)
        states[:, action // self._colors] = action % self._colors
        weights = np.ones(1)
        for v in self._reached(row):
            low, high = spans.get(v, (0.0, 1.0))
            ends = self._ends(v, states)
            starts = np.concatenate([np.zeros((len(ends), 1)), ends[:, :-1]], axis=1)
            shared = (np.minimum(ends, high) - np.maximum(starts, low)).clip(0.0)
            weights = (weights[:, None] * shared / shared.sum(1, keepdims=True)).ravel()
            states = np.repeat(states, self._colors, axis=0)
            states[:, v] = np.tile(np.arange(self._colors), len(ends))
            states, weights = states[weights > 0], weights[weights > 0]
        return Chances(states, weights)

    def _ends(self, v: int, states: NDArray[np.int64]) -> Floats:
        """Returns (M, colours) cumulative chances of object v in these states."""
        table = self._tables[v]
        places = self._colors ** np.arange(len(table.parents))
        return np.asarray(to_numpy(table.cumulative)[states[:, list(table.parents)] @ places])


@final
class LikelyOutcome(StateRespondent):
    """Answers with the likeliest outcome of each trial (mode), or with its chances (mean)."""

    def __init__(
        self, trials: CounterfactualTrials, chances: Sequence[Chances], by: Literal["mode", "mean"]
    ) -> None:
        super().__init__(trials.values)
        self._chances, self._by = chances, by

    def predict(self, facts: Facts) -> Floats:
        """Returns the likeliest states, or the mean of their one-hot forms."""
        if self._by == "mode":
            best = [one.states[one.weights.argmax()] for one in self._chances]
            return self.encode(np.stack(best))
        return np.stack([one.weights @ self.encode(one.states) for one in self._chances])

    def effects(self, facts: Facts) -> Floats:
        """Returns the chance that each object's outcome is another than in the fact."""
        outcomes = np.asarray(facts.outcomes)
        rows = zip(self._chances, outcomes, strict=True)
        return np.stack([one.weights @ (one.states != fact) for one, fact in rows])
