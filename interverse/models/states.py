"""States of any world with continuous actions: data, a network on them, and counterfactuals.

Worlds here never start anew by themselves, and `play` says how far every episode came. Whoever
collects drops or cuts what lies behind an end: a reset there would look like an effect of the
actions, and would undo what an intervention set.

The state is every real variable that random actions change, and beside it some that they do not
change but an intervention can: masses, frictions, colours. Their values are drawn anew for every
episode, so that a model can learn what they do.

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.rng import generator
from interverse.envs import WorldVectorEnv, make_vec
from interverse.envs.make import check_options
from interverse.models.ranking import ranks_among
from interverse.scm.space import Box

Floats = NDArray[np.float64]

_WIDEST = 16  # columns of a variable; longer ones are memories of commands
_MOST_CAUSES = 8
_PROBED = 5  # steps after which a variable that never changed is a constant
_HIDDEN, _BATCH, _RATE = 128, 256, 1e-3
_STILL = 1e-9  # units below which a variable has not moved


def state_worlds(id: str, count: int, *, steps: int, options: Mapping[str, Any]) -> WorldVectorEnv:
    """Returns worlds that stay where their episodes end; refused where those are too short.

    `steps` is how long an episode must last.
    """
    check_options(id, options)
    env = make_vec(id, count, autoreset_mode="disabled", **options)
    longest = int(env.world.max_steps)
    if longest < steps:
        env.close()
        raise InvalidValueError(
            f"an episode of {id} has {longest} steps, {steps} are needed",
            allowed=f"max_steps from {steps} on",
            fix=f"Raise max_steps (--option max_steps={steps})",
        )
    return env


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """What N worlds went through.

    Attributes:
        states: (N, steps + 1, ...); behind an episode's end they belong to no episode.
        lengths: (N,) how many steps belong to each world's episode, up to its end.
    """

    states: NDArray[Any]
    lengths: NDArray[np.int64]

    @property
    def whole(self) -> NDArray[np.bool_]:
        """(N,) whether no episode ended before the last step."""
        return self.lengths == self.states.shape[1] - 1

    @property
    def last(self) -> NDArray[Any]:
        """(N, ...) the states at the end, of the episode or of the play."""
        return self.states[np.arange(len(self.states)), self.lengths]


def play(
    env: WorldVectorEnv,
    actions: NDArray[Any],
    see: Callable[[Any], NDArray[Any]],
    first: Any = None,
) -> Played:
    """Returns what is seen while actions (steps, N, ...) are played.

    `see` takes an observation; `first` is that before the first action.
    """
    states, going = [see(first)], ~env.driver.ended
    lengths = np.zeros(env.num_envs, dtype=np.int64)
    for action in actions:
        states.append(see(env.step(action)[0]))
        lengths += going
        going &= ~env.driver.ended
    return Played(states=np.stack(states, axis=1), lengths=lengths)


def variables_of(env: WorldVectorEnv, names: Sequence[str]) -> Callable[[Any], Floats]:
    """Returns how the named variables of N worlds are seen: (N, D), side by side."""

    def see(observation: Any) -> Floats:
        parts = [np.array(env.values[name], dtype=np.float64) for name in names]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    return see


def columns_of(values: Mapping[str, NDArray[Any]], names: Sequence[str]) -> dict[str, slice]:
    """Returns which columns of `variables_of` each variable has."""
    out, start = {}, 0
    for name in names:
        width = int(np.prod(values[name].shape[1:], dtype=int))
        out[name] = slice(start, start + width)
        start += width
    return out


def column_units(states: Floats) -> Floats:
    """Returns (D,) the deviation of each column of (N, D); 1 where all values are the same.

    >>> column_units(np.full((3, 1), 0.1)).tolist()  # whose deviation rounds to 1e-17
    [1.0]
    """
    return np.where(np.ptp(states, axis=0) > 0.0, states.std(axis=0), 1.0)


def random_actions(env: Any, steps: int, seed: int) -> np.ndarray:
    """Returns (steps, worlds, ...) even draws of the action space."""
    space, shape = env.single_action_space, (steps, env.num_envs)
    rng = generator(seed=seed, name="state-network/actions")
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(int(space.n), size=shape)
    low, high = np.asarray(space.low), np.asarray(space.high)
    return rng.uniform(low, high, (*shape, *low.shape)).astype(space.dtype)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateEpisodes:
    """Episodes of a world under random actions.

    Attributes:
        moving: the variables that actions change.
        constant: variables that interventions alone change, one of each kind.
        columns: by variable, which columns of the states it has.
        states: (E, T + 1, D).
        actions: (E, T, A).
        lengths: (E,) how many actions belong to each episode, up to its end; None: all.
    """

    moving: tuple[str, ...]
    constant: tuple[str, ...]
    columns: Mapping[str, slice]
    states: Floats
    actions: Floats
    lengths: NDArray[np.int64] | None = None

    @property
    def taken(self) -> NDArray[np.bool_]:
        """(E, T) whether an action belongs to its episode."""
        steps = np.arange(self.actions.shape[1])
        lengths = np.full(len(self.actions), len(steps)) if self.lengths is None else self.lengths
        return steps < lengths[:, None]

    @property
    def lived(self) -> Floats:
        """(M, D) all states that belong to an episode."""
        starts = np.ones((len(self.states), 1), dtype=bool)
        return self.states[np.concatenate([starts, self.taken], axis=1)]

    @property
    def width(self) -> int:
        """How many columns the moving variables have, which come first."""
        return self.columns[self.moving[-1]].stop

    @property
    def names(self) -> list[str]:
        """All variables in the order of their columns."""
        return [*self.moving, *self.constant]


def collect_states(
    id: str, *, episodes: int, steps: int, seed: int, options: Mapping[str, Any]
) -> StateEpisodes:
    """Returns episodes of a world whose constants are drawn at every start.

    Episodes are played all at once, and have fewer steps where they end before; a world whose
    `max_steps` is less is refused.
    """
    env = state_worlds(id, episodes, steps=max(steps, _PROBED), options=options)
    try:
        space = env.single_action_space
        if not isinstance(space, gymnasium.spaces.Box):
            raise InvalidValueError(f"the actions of {id} are {space}", allowed="real numbers")
        moving, constant = _variables(env, seed)
        env.reset(seed=seed)
        rng = generator(seed=seed, name="state-network/constants")
        for name in constant:  # worlds that refuse a value keep theirs
            region = env.variables[name].region("A")
            assert region is not None
            env.do({name: np.stack([region.sample(rng) for _ in range(episodes)])})
        names = [*moving, *constant]
        actions = random_actions(env, steps, seed)
        played = play(env, actions, variables_of(env, names))
        columns = columns_of(env.values, names)
    finally:
        env.close()
    return StateEpisodes(
        moving=tuple(moving),
        constant=tuple(constant),
        columns=columns,
        states=played.states,
        actions=actions.swapaxes(0, 1).astype(np.float64),
        lengths=played.lengths,
    )


def _variables(env: Any, seed: int) -> tuple[list[str], list[str]]:
    """Returns the variables that random actions change, and others that can be set, by kind."""
    real = [
        name
        for name, values in env.values.items()
        if values.dtype.kind == "f" and values[0].size <= _WIDEST
    ]
    env.reset(seed=seed)
    before = {name: np.array(env.values[name]) for name in real}
    for action in random_actions(env, _PROBED, seed):
        env.step(action)
    moving = [name for name in real if not np.array_equal(before[name], env.values[name])]
    if not moving:
        raise InvalidValueError("random actions change no real variable of this world")
    constant: dict[str, str] = {}
    for name in real:
        if name not in moving and isinstance(env.variables[name].region("A"), Box):
            constant.setdefault(name.rpartition("/")[2], name)
    return moving, list(constant.values())[:_MOST_CAUSES]


@final
class StateNetwork(nn.Module):
    """s' = s + f(s, action), in units of each column's deviation; constants stay."""

    centre: Tensor
    scale: Tensor
    pace: Tensor

    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        for name, size in (("centre", states), ("scale", states), ("pace", states)):
            self.register_buffer(name, torch.ones(size, dtype=torch.float64))
        self.layers = nn.Sequential(
            nn.Linear(states + actions, _HIDDEN),
            nn.ReLU(),
            nn.Linear(_HIDDEN, _HIDDEN),
            nn.ReLU(),
            nn.Linear(_HIDDEN, states),
        )

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """Returns next states (N, D) of states (N, D) under actions (N, A), in float64."""
        shown = ((states - self.centre) / self.scale).float()
        change = self.layers(torch.cat([shown, actions.float()], dim=1)).double()
        return states + change * self.pace

    @torch.no_grad()
    def rollout(self, states: Floats, actions: Floats) -> Floats:
        """Returns (N, D) states after actions (N, steps, A)."""
        now, acts = torch.as_tensor(states), torch.as_tensor(actions)
        for step in range(acts.shape[1]):
            now = self(now, acts[:, step])
        return np.asarray(now)

    def answers(self, trials: StateTrials) -> Answers:
        """Returns the expected outcomes of facts and counterfactuals."""
        starts = (trials.before, trials.twins)
        fact, twin = (self.rollout(states, trials.actions) for states in starts)
        return fact, twin


def fit_state_network(
    data: StateEpisodes, *, epochs: int, seed: int
) -> tuple[StateNetwork, list[float]]:
    """Returns a trained network and its loss by epoch."""
    x = torch.as_tensor(data.states[:, :-1][data.taken])
    y = torch.as_tensor(data.states[:, 1:][data.taken])
    acts = torch.as_tensor(data.actions[data.taken].reshape(len(x), -1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = StateNetwork(x.shape[1], acts.shape[1])
    network.centre, network.scale = x.mean(0), torch.as_tensor(column_units(np.asarray(x)))
    pace = torch.where((y != x).any(0), (y - x).std(0), torch.zeros(()))
    network.pace = pace  # zero for constants, which therefore stay
    target = (y - x) / torch.where(pace > 0, pace, torch.ones_like(pace))
    shown = torch.cat([((x - network.centre) / network.scale).float(), acts.float()], dim=1)
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    rng, losses = generator(seed=seed, name="state-network/fit"), []
    for _ in range(epochs):
        total = 0.0
        for rows in np.array_split(rng.permutation(len(x)), max(1, len(x) // _BATCH)):
            loss = (network.layers(shown[rows]) - target[rows].float()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(rows)
        losses.append(total / len(x))
    return network.eval(), losses


# ---------------------------------------------------------------------------- counterfactuals


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
            raise InvalidValueError(f"{altered} has no space A to draw values from")
        value = np.stack([drawn.sample(rng) for _ in range(worlds)])
        applied = np.asarray(env.do({altered: value}).applied)
        twin = play(env, actions[steps:], see)
        columns = columns_of(env.values, names)
    finally:
        env.close()
    if not applied.any():
        raise InvalidValueError(f"every change of {altered} was refused")
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


Answers = tuple[Floats, Floats]
"""Outcomes (N, D) that are expected of the facts and of the counterfactuals: of the world itself,
the ceiling, `after` and `truth`; of a copy of the fact, which expects no effect, twice `after`."""


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

    def answers(self, trials: StateTrials) -> Answers:
        """Returns predictions from both starts."""
        starts = (_inputs(states, trials.actions) for states in (trials.before, trials.twins))
        fact, twin = (
            self._start + (x - self._centre) / self._scale @ self._weights for x in starts
        )
        return fact, twin


def _inputs(states: Floats, actions: Floats) -> Floats:
    return np.concatenate([states, actions.reshape(len(actions), -1)], axis=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateScore:
    """Scores of one respondent: ranks in percent, effects by tracked variable."""

    hits: float | None
    """None where no trial is ranked, as `mrr`."""
    mrr: float | None
    effect_errors: dict[str, float]
    missed: dict[str, float | None]
    spurious: dict[str, float | None]
    trials: int
    ranked: int
    """Trials with an effect on a tracked variable; ranks are of these."""


def score_states(answers: Answers, trials: StateTrials) -> StateScore:
    """Returns how well answers tell what would have happened to the states."""
    tracked = list(trials.columns) if trials.tracked is None else list(trials.tracked)
    fact, twin, after, truth = (
        part / trials.units for part in (*answers, trials.after, trials.truth)
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
    score = StateScore(
        hits=100.0 * float((found == 1).mean()) if len(found) else None,
        mrr=100.0 * float((1.0 / found).mean()) if len(found) else None,
        effect_errors={},
        missed={},
        spurious={},
        trials=len(truth),
        ranked=len(found),
    )
    for name in tracked:
        columns = trials.columns[name]
        effect, said = (truth - after)[:, columns], (twin - fact)[:, columns]
        length = np.linalg.norm(said - effect, axis=1)
        here = np.abs(effect).max(axis=1) > _STILL
        score.effect_errors[name] = float(length.mean())
        score.missed[name], score.spurious[name] = _mean(length[here]), _mean(length[~here])
    return score


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
