"""The episode of a session beside the episode that would have been."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.envs import WorldEnv, make
from interverse.rollouts import AppliedDo, Episode, Recorder, counterfactual
from interverse.viewer.session import Session

_MOST_PICTURES = 24
_GAP = 4  # white columns between the two pictures


@final
@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """Fact and counterfactual: the same seed, the same actions.

    Attributes:
        fact, twin: the episodes.
        steps: (K,) the moments of the pictures.
        pictures: (K, rows, columns, 3), the fact left, the twin right.
    """

    fact: Episode
    twin: Episode
    steps: NDArray[np.int64]
    pictures: NDArray[np.uint8]

    @property
    def differing(self) -> list[str]:
        """The variables that differ at the end."""
        mine, theirs = self.fact.values, self.twin.values
        return [name for name in mine if not np.array_equal(mine[name][-1], theirs[name][-1])]


def imagine(session: Session, do: Mapping[str, Any], *, at: int = 0) -> Twins:
    """Returns this episode and the one that `do` before action `at` would have made of it.

    >>> session = Session("tutorial/slider-v1")
    >>> session.step()
    >>> imagine(session, {"box/mass": 0.9}).differing
    ['box/mass', 'box/position', 'box/velocity']
    """
    actions = session.history.actions
    steps = np.unique(np.linspace(0, len(actions), _MOST_PICTURES).round().astype(np.int64))
    fact, left = _played(session, session.record(), actions, steps)
    twin = counterfactual(fact, do, at)
    _, right = _played(session, twin.interventions, tuple(twin.actions), steps)
    right += [right[-1]] * (len(left) - len(right))  # a twin may end before the fact
    pairs = [_beside(a, b) for a, b in zip(left, right, strict=True)]
    return Twins(fact, twin, steps, np.stack(pairs))


def _played(
    session: Session, record: Sequence[AppliedDo], actions: Sequence[Any], steps: NDArray[np.int64]
) -> tuple[Episode, list[NDArray[np.uint8]]]:
    """Returns the episode of a record, played in a world of its own, and pictures of it."""
    env = make(session.id, render_mode="rgb_array", **session.options)
    pictures: list[NDArray[np.uint8]] = []

    def look(step: int) -> None:
        if step in steps:
            pictures.append(np.asarray(env.render(), dtype=np.uint8))

    try:
        given = {k: v for item in record if item.at_reset for k, v in item.values.items()}
        env.reset(seed=session.seed, options={"do": given} if given else None)
        with Recorder(env, env.observe()) as recorder:
            _replay(env, record, actions, look)
            return recorder.episode(), pictures
    finally:
        env.close()


def _replay(
    env: WorldEnv,
    record: Sequence[AppliedDo],
    actions: Sequence[Any],
    look: Callable[[int], None],
) -> None:
    for step in range(len(actions) + 1):
        for item in record:
            if item.step == step and not item.at_reset and item.values:
                env.do(dict(item.values), check=False)
        look(step)
        if step < len(actions):
            env.step(actions[step])


def _beside(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.uint8]:
    gap = np.full((len(left), _GAP, 3), 255, dtype=np.uint8)
    return np.concatenate([left, gap, right], axis=1)
