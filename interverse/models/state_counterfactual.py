"""Counterfactual scores on states: what would the variables have become?

A trial starts at a moment of a world, plays some actions (the fact), goes back, changes one
variable, and plays the same actions with the same noise (the counterfactual). Any model that maps
states and actions to later states can be scored, in every world whose variables are real numbers.

Only tracked variables are judged. The altered one is a part of the states that a model sees, and
counts only where it is tracked too: else writing down the value that was set would look like
knowledge of its effects.

- CF-H@1, CF-MRR: the predicted counterfactual is compared with the true counterfactuals and facts
  of all trials, each column in units of its deviation. Trials whose counterfactual is the fact, in
  all tracked variables, are left out.
- Effect error of a variable: the mean length of (predicted effect - true effect), an effect being
  the counterfactual minus the fact, in units of the variable's deviation over outcomes. *Missed* is
  the mean over trials where the world moves the variable, *spurious* over the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, final

import numpy as np
import torch

from interverse.core.errors import InvalidValueError, check_name, explain
from interverse.core.rng import generator
from interverse.models.ranking import ranks_among
from interverse.models.state_network import (
    Floats,
    column_units,
    columns_of,
    play,
    state_worlds,
    variables_of,
)

_STILL = 1e-9  # units below which a variable has not moved


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateTrials:
    """N trials; states are (N, D), the columns of each variable named in `columns`.

    Attributes:
        columns: by variable, which columns it has.
        altered: the variable that the counterfactual changes, among the columns.
        before, twins: states at the start, as they were and as they were changed.
        actions: (N, steps, A).
        after, truth: states after the actions: the fact and the counterfactual.
        tracked: the variables whose outcomes are judged; None: all of `columns`.
    """

    columns: Mapping[str, slice]
    altered: str
    before: Floats
    twins: Floats
    actions: Floats
    after: Floats
    truth: Floats
    tracked: Sequence[str] | None = None

    @property
    def units(self) -> Floats:
        """(D,) deviation of each column over outcomes; 1 where there is none."""
        return column_units(np.concatenate([self.after, self.truth]))


def state_trials(
    id: str,
    altered: str,
    tracked: Sequence[str],
    *,
    worlds: int = 64,
    steps: int = 5,
    seed: int = 0,
    **options: Any,
) -> StateTrials:
    """Returns trials of a world under random actions.

    Refused interventions are left out, and trials whose episode ends before the last action.

    Args:
        id: a registered world with continuous actions.
        altered: the variable to change, to a value drawn from its space A.
        tracked: the variables whose outcomes are judged.
        worlds: how many trials are tried.
        steps: actions before the moment, and again after it.
        seed: of worlds, actions and values.
        **options: of the world; `max_steps` must be twice `steps` at least.
    """
    env = state_worlds(id, worlds, steps=2 * steps, options=options)
    try:
        for name in (altered, *tracked):
            check_name("variable", name, env.variables)
        names = list(dict.fromkeys([*tracked, altered]))
        rng = generator(seed=seed, name="state-counterfactuals")
        space = env.single_action_space
        env.reset(seed=seed)
        low, high = np.asarray(space.low), np.asarray(space.high)  # type: ignore[attr-defined]
        actions = rng.uniform(low, high, (2 * steps, worlds, *low.shape)).astype(space.dtype)
        see = variables_of(env, names)
        play(env, actions[:steps], see)
        moment = env.snapshot()
        fact = play(env, actions[steps:], see)
        env.restore(moment)
        drawn = env.variables[altered].region("A")
        if drawn is None:
            raise InvalidValueError(explain(f"{altered} has no space A to draw values from"))
        value = np.stack([drawn.sample(rng) for _ in range(worlds)])
        applied = np.asarray(env.do({altered: value}).applied)
        twin = play(env, actions[steps:], see)
        columns = columns_of(env.values, names)
    finally:
        env.close()
    if not applied.any():
        raise InvalidValueError(explain(f"every change of {altered} was refused"))
    kept = applied & fact.whole & twin.whole
    if not kept.any():
        raise InvalidValueError(
            f"every trial of {altered} ended before {2 * steps} steps were over",
            allowed=f"episodes that last {steps} steps before the change and {steps} after it",
            fix="Take fewer steps",
        )
    return StateTrials(
        columns=columns,
        altered=altered,
        before=fact.states[kept, 0],
        twins=twin.states[kept, 0],
        actions=actions[steps:, kept].swapaxes(0, 1).astype(np.float64),
        after=fact.states[kept, -1],
        truth=twin.states[kept, -1],
        tracked=tuple(tracked),
    )


class StateRespondent(Protocol):
    """A model, a world or a rule that says what states become."""

    def answers(self, trials: StateTrials) -> tuple[Floats, Floats]:
        """Returns the expected outcomes (N, D) of the facts and of the counterfactuals."""
        ...


@final
class TrueStates:
    """The world itself, with its noise: the ceiling."""

    def answers(self, trials: StateTrials) -> tuple[Floats, Floats]:
        """Returns what happened and what would have."""
        return trials.after, trials.truth


@final
class CopiedStates:
    """The baseline that takes the fact for the counterfactual: no effect on anything."""

    def answers(self, trials: StateTrials) -> tuple[Floats, Floats]:
        """Returns the facts twice."""
        return trials.after, trials.after


@final
class LinearStates:
    """Ridge regression of outcomes on states and actions, fitted to the facts of other trials."""

    def __init__(self, trials: StateTrials, *, ridge: float = 1e-3) -> None:
        inputs = _inputs(trials.before, trials.actions)
        self._centre, spread = inputs.mean(axis=0), inputs.std(axis=0)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        self._start = trials.after.mean(axis=0)
        x = (inputs - self._centre) / self._scale
        gram = x.T @ x + ridge * len(x) * np.eye(x.shape[1])
        self._weights = np.linalg.solve(gram, x.T @ (trials.after - self._start))

    def answers(self, trials: StateTrials) -> tuple[Floats, Floats]:
        """Returns predictions from both starts."""
        return self._predict(trials.before, trials), self._predict(trials.twins, trials)

    def _predict(self, states: Floats, trials: StateTrials) -> Floats:
        x = (_inputs(states, trials.actions) - self._centre) / self._scale
        return self._start + x @ self._weights


def _inputs(states: Floats, actions: Floats) -> Floats:
    return np.concatenate([states, actions.reshape(len(actions), -1)], axis=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateScore:
    """Scores of one respondent: ranks in percent, effects by tracked variable."""

    hits: float | None
    """None where no trial is ranked, as `mrr`."""
    mrr: float | None
    effect_errors: Mapping[str, float]
    missed: Mapping[str, float | None]
    spurious: Mapping[str, float | None]
    trials: int
    ranked: int
    """Trials with an effect on a tracked variable; ranks are of these."""

    def record(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return asdict(self)


def score_states(respondent: StateRespondent, trials: StateTrials) -> StateScore:
    """Returns how well a respondent knows what would have happened to the states."""
    tracked = list(trials.columns) if trials.tracked is None else list(trials.tracked)
    fact, twin, after, truth = (
        part / trials.units for part in (*respondent.answers(trials), trials.after, trials.truth)
    )
    judged = np.concatenate([np.arange(truth.shape[1])[trials.columns[name]] for name in tracked])
    moved = np.abs(truth - after)[:, judged].max(axis=1) > _STILL
    candidates = np.concatenate([truth, after])[:, judged]
    _, pictures = np.unique(np.round(candidates, 9), axis=0, return_inverse=True)
    found = ranks_among(
        torch.as_tensor(twin[:, judged]),
        torch.as_tensor(candidates),
        torch.as_tensor(pictures.reshape(-1)),
    ).numpy()[moved]
    errors: dict[str, tuple[float, float | None, float | None]] = {}
    for name in tracked:
        columns = trials.columns[name]
        wrong = (twin - fact - (truth - after))[:, columns]
        length = np.linalg.norm(wrong, axis=1)
        here = np.abs((truth - after)[:, columns]).max(axis=1) > _STILL
        errors[name] = float(length.mean()), _mean(length[here]), _mean(length[~here])
    return StateScore(
        hits=100.0 * float((found == 1).mean()) if len(found) else None,
        mrr=100.0 * float((1.0 / found).mean()) if len(found) else None,
        effect_errors={name: each[0] for name, each in errors.items()},
        missed={name: each[1] for name, each in errors.items()},
        spurious={name: each[2] for name, each in errors.items()},
        trials=len(truth),
        ranked=len(found),
    )


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
