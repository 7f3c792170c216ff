"""Counterfactual scores: does a model know what would have happened?

A trial has a fact (a scene, an action, its outcome) and an intervention: one object of the scene
has another value, or in chemistry the painted object gets another colour. The true counterfactual
is what the world does then with *the same noise*; only a world with exact twins can tell it.

- CF-H@1, CF-MRR: the prediction for the altered trial is compared with the true counterfactuals and
  the facts, scenes and altered scenes of all trials. The rank of the own true counterfactual counts
  candidates of other pictures that are as near or nearer. Trials whose counterfactual is the fact
  are left out, so that copying the fact never hits.
- Effect error of an object: the mean difference between how far the model moves it by the
  intervention (total variation of its two predictions) and how far the world does (0 or 1), over
  trials in which another object was altered. *Missed* is its part where the world moves the object,
  *spurious* the one where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.core.arrays import to_numpy
from interverse.core.rng import generator
from interverse.metrics.recovery import Floats
from interverse.models.effects import (
    Ints,
    Respondent,
    Scenes,
    Trials,
    TrueWorld,
    in_contact,
    repainted,
)
from interverse.models.ranking import numbered, ranks_among
from interverse.worlds.world import World


def counterfactual_trials(world: World, *, seed: int) -> Trials:
    """Returns one trial per world of a batch of blocks or chemistry.

    In blocks one stands before another and moves towards it, and any of them is put elsewhere. In
    chemistry colours are drawn evenly; in half of the trials the paint is altered, else another
    object.
    """
    scenes, rows = Scenes(world, seed=seed), world.num_worlds
    n, values, every = len(scenes.names), scenes.values, np.arange(rows)
    rng = generator(
        seed=seed, name=f"counterfactuals/{'position' if scenes.in_blocks else 'color'}"
    )
    if not scenes.in_blocks:
        states = rng.integers(values, size=(rows, n))
        acted, paint = rng.integers(n, size=rows), rng.integers(values, size=rows)
        own = rng.random(rows) < 0.5
        altered = np.where(own, acted, (acted + rng.integers(1, n, size=rows)) % n)
        step = rng.integers(1, values, size=rows)
        return repainted(scenes, states, acted, altered, paint, step)
    acted, altered = rng.integers(n, size=(2, rows))
    states, direction = in_contact(rng, n, acted)
    order = np.argsort(rng.random((rows, values)), axis=1)
    taken = (order[:, :, None] == states[:, None]).any(-1)
    twins = states.copy()
    twins[every, altered] = order[every, np.argmin(taken, axis=1)]
    actions = acted * (scenes.actions // n) + direction
    told = {"actions": actions, "twin_actions": actions, "acted": acted, "altered": altered}
    return Trials(scenes=states, twins=twins, worlds=scenes, **told)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CounterfactualScore:
    """Scores of one respondent; ranks in percent, effects per object and their mean."""

    hits: float
    mrr: float
    effect_error: float
    effect_errors: tuple[float, ...]
    missed: tuple[float | None, ...]
    spurious: tuple[float | None, ...]
    trials: int
    ranked: int
    """Trials whose counterfactual is not the fact; ranks are of these."""

    def record(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def twin_ranks(respondent: Respondent, trials: Trials, predicted: Floats | None = None) -> Tensor:
    """Returns the ranks of the true counterfactuals that are not the fact, seen from predictions.

    `predicted` are (N, width) features of what the altered scenes become, if not its own
    answer.
    """
    states = np.concatenate([trials.truth, trials.outcomes, trials.scenes, trials.twins])
    features = torch.as_tensor(respondent.encode(states))
    told = torch.as_tensor(respondent.twin(trials) if predicted is None else predicted)
    pictures = torch.as_tensor(numbered(respondent.show(states)))
    moved = torch.as_tensor((trials.truth != trials.outcomes).any(axis=1))
    return ranks_among(told, features, pictures)[moved]


def percent_hit(ranks: Tensor) -> float:
    """Returns CF-H@1: how often the own true counterfactual comes first."""
    return 100.0 * float((ranks == 1).double().mean())


def score_counterfactuals(respondent: Respondent, trials: Trials) -> CounterfactualScore:
    """Returns how well a respondent knows what would have happened."""
    ranks = twin_ranks(respondent, trials)
    moved = (trials.truth != trials.outcomes).astype(float)
    errors = np.abs(moved - respondent.effects(trials))
    others = trials.altered[:, None] != np.arange(moved.shape[1])

    def means(rows: NDArray[np.bool_]) -> list[float | None]:
        pairs = zip(errors.T, rows.T, strict=True)
        return [round(float(own[here].mean()), 6) if here.any() else None for own, here in pairs]

    per_object = [one or 0.0 for one in means(others)]
    return CounterfactualScore(
        hits=percent_hit(ranks),
        mrr=100.0 * float((1.0 / ranks).double().mean()),
        effect_error=float(np.mean(per_object)),
        effect_errors=tuple(per_object),
        missed=tuple(means(others & (moved == 1))),
        spurious=tuple(means(others & (moved == 0))),
        trials=len(moved),
        ranked=len(ranks),
    )


# --------------------------------------------------------------------------------------- yardsticks


class NoEffect(TrueWorld):
    """Answers in states, and expects no effect of an alteration."""

    def effects(self, trials: Trials) -> Floats:
        """Returns zeros."""
        return np.zeros(trials.outcomes.shape)


@final
class CopyTheFact(NoEffect):
    """The baseline that takes the fact's outcome for the counterfactual."""

    def twin(self, trials: Trials) -> Floats:
        """Returns the facts' outcomes."""
        return self.encode(trials.outcomes)


@final
class KeepTheScene(NoEffect):
    """The baseline that takes the altered scene for what becomes of it, as if nothing were done."""

    def twin(self, trials: Trials) -> Floats:
        """Returns the altered scenes."""
        return self.encode(trials.twins)


@final
class MoveTheActed(NoEffect):
    """The baseline that knows what becomes of the acted object and of no other."""

    def twin(self, trials: Trials) -> Floats:
        """Returns the altered scenes in which the acted object alone has its true outcome."""
        states, rows = np.array(trials.twins), np.arange(len(trials.twins))
        states[rows, trials.acted] = trials.truth[rows, trials.acted]
        return self.encode(states)


class Chances(NamedTuple):
    """All that a scene may become."""

    states: Ints  # (M, objects)
    weights: Floats  # (M,), with sum 1


@final
class KnownChances:
    """Exact chances of the counterfactuals of chemistry's trials, without and with the facts.

    A painted object's descendants are drawn anew, each by one uniform number from its own chances.
    Without the fact these numbers are anything in [0, 1). The fact's outcome confines each to the
    interval of the colour that it gave, and the counterfactual reuses them: that is abduction.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials, self._tables = trials, trials.worlds.world.tables
        self._graph, self._colors = trials.graph.astype(bool), trials.worlds.values

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
        outcome = self._trials.outcomes[row]
        spans: dict[int, tuple[float, float]] = {}
        for v in self._reached(row):
            ends = self._ends(v, outcome[None])[0]
            color = int(outcome[v])
            spans[v] = (float(ends[color - 1]) if color else 0.0, float(ends[color]))
        return self._outcomes(row, spans)

    def _reached(self, row: int) -> list[int]:
        """Returns which objects are drawn anew, in their order."""
        reached, drawn = {int(self._trials.acted[row])}, []
        for v in range(1, len(self._graph)):
            if any(self._graph[v, j] for j in reached if j < v):
                reached.add(v)
                drawn.append(v)
        return drawn

    def _outcomes(self, row: int, spans: dict[int, tuple[float, float]]) -> Chances:
        acted, paint = divmod(int(self._trials.twin_actions[row]), self._colors)
        states, weights = np.array(self._trials.twins[row : row + 1]), np.ones(1)
        states[:, acted] = paint
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

    def _ends(self, v: int, states: Ints) -> Floats:
        """Returns (M, colours) cumulative chances of object v in these states."""
        table = self._tables[v]
        places = self._colors ** np.arange(len(table.parents))
        return np.asarray(to_numpy(table.cumulative)[states[:, list(table.parents)] @ places])
