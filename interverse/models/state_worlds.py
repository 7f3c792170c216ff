"""Worlds that data of states come from: no transition of them crosses the end of an episode.

They never start anew by themselves, and `play` says how far every episode came. Whoever collects
drops or cuts what lies behind an end: a reset there would look like an effect of the actions, and
would undo what an intervention set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.envs import WorldVectorEnv, make_vec
from interverse.envs.make import check_options

Floats = NDArray[np.float64]


def state_worlds(id: str, count: int, *, steps: int, options: Mapping[str, Any]) -> WorldVectorEnv:
    """Returns worlds that stay where their episodes end; refused where those are too short.

    Args:
        id: a registered world.
        count: how many worlds.
        steps: the steps that an episode must last.
        options: of the world.
    """
    check_options(id, options)
    env = make_vec(id, count, autoreset_mode="disabled", **options)
    longest = int(env.world.max_steps)
    if longest < steps:
        env.close()
        raise InvalidValueError(
            explain(
                f"an episode of {id} has {longest} steps, {steps} are needed",
                allowed=f"max_steps from {steps} on",
                fix=f"Raise max_steps (--option max_steps={steps})",
            )
        )
    return env


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """What N worlds went through.

    Attributes:
        states: (N, steps + 1, D); behind an episode's end they belong to no episode.
        lengths: (N,) how many steps belong to each world's episode, up to its end.
    """

    states: Floats
    lengths: NDArray[np.int64]

    @property
    def whole(self) -> NDArray[np.bool_]:
        """(N,) whether no episode ended before the last step."""
        return self.lengths == self.states.shape[1] - 1

    @property
    def last(self) -> Floats:
        """(N, D) the states at the end, of the episode or of the play."""
        return self.states[np.arange(len(self.states)), self.lengths]


def play(env: WorldVectorEnv, names: Sequence[str], actions: NDArray[Any]) -> Played:
    """Returns the states of some variables while actions (steps, N, A) are played."""
    states = [states_of(env.values, names)]
    going = ~env.driver.ended
    lengths = np.zeros(env.num_envs, dtype=np.int64)
    for action in actions:
        env.step(action)
        states.append(states_of(env.values, names))
        lengths += going
        going &= ~env.driver.ended
    return Played(states=np.stack(states, axis=1), lengths=lengths)


def states_of(values: Mapping[str, NDArray[Any]], names: Sequence[str]) -> Floats:
    """Returns (N, D): the named variables of N worlds, side by side."""
    parts = [np.array(values[name], dtype=np.float64) for name in names]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def columns_of(values: Mapping[str, NDArray[Any]], names: Sequence[str]) -> dict[str, slice]:
    """Returns which columns of `states_of` each variable has."""
    out, start = {}, 0
    for name in names:
        width = int(np.prod(values[name].shape[1:], dtype=int))
        out[name] = slice(start, start + width)
        start += width
    return out
