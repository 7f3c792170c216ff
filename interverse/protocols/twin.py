"""A twin: one episode of an evaluation, played again among other neighbours, step for step alike.

A score is to depend on its address alone. It does not where a policy takes one world's action for
all, normalises by the batch, remembers an earlier episode or draws from a global generator, or
where a world of one's own keeps a state that its reset does not clear. Each of these gives the twin
another course.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.envs.values import to_numpy

_LEAST = 3  # steps, however small the share is
_NEAR = {"rtol": 1e-3, "atol": 1e-4}  # of actions, where physics do not repeat to the last bit


@final
class Course:
    """What one row of a unit sees, does and gets, for so many steps of its episode.

    Args:
        share: of an episode, so that a twin costs little whatever it is a twin of.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self.seen: list[bytes] = []
        self.actions: list[NDArray[Any]] = []
        self.gains: list[tuple[float, bool]] = []  # a step's reward, and whether it was the last

    def wants(self, length: int) -> bool:
        """Returns whether it takes another step of an episode that may have so many."""
        over = bool(self.gains) and self.gains[-1][1]
        return not over and len(self.actions) < max(_LEAST, math.ceil(self._share * length))

    def meets(self, row: int, observation: Any, actions: Any) -> None:
        """Takes in what the row sees and does."""
        digest = hashlib.blake2b(digest_size=16)
        _add(digest, observation, row)
        self.seen.append(digest.digest())
        self.actions.append(np.array(to_numpy(actions)[row]))

    def gets(self, row: int, reward: Any, terminated: Any, truncated: Any) -> None:
        """Takes in what the row's action gave."""
        ended = bool(terminated[row]) or bool(truncated[row])
        self.gains.append((float(reward[row]), ended))


def check_twin(first: Course, again: Course, episode: int, *, exact: bool) -> None:
    """Raises unless a twin went the course of its episode.

    Args:
        first: of the episode, among the others of its unit.
        again: of its twin.
        episode: the episode's number, for the message.
        exact: whether the world repeats to the last bit; else the first action alone is compared.
    """
    for step, (one, other) in enumerate(zip(first.actions, again.actions, strict=False)):
        if exact and first.seen[step] != again.seen[step]:
            _refuse_world(f"its observation before action {step} is another one", episode)
        alike = one.shape == other.shape and (
            np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
            if exact
            else np.allclose(one, other, **_NEAR, equal_nan=True)
        )
        if not alike:
            raise InvalidValueError(
                explain(
                    f"the policy acts otherwise when episode {episode} is played again among other"
                    f" worlds: its action {step} is {_shown(one)} and then {_shown(other)}, for"
                    " the same observation",
                    allowed="actions that follow from the world's own row of the observations and"
                    " from what its episode showed before",
                    fix="Act for each row apart (no mean over rows, no row that stands for all),"
                    " and give a policy that remembers or draws a reset(mask, seeds): it forgets"
                    " there, and draws from the seeds",
                )
            )
        if not exact:
            return
        if first.gains[step] != again.gains[step]:
            told = [f"reward {reward!r}{', its last' * ended}" for reward, ended in
                    (first.gains[step], again.gains[step])]  # fmt: skip
            _refuse_world(f"action {step} gives {told[0]} and then {told[1]}", episode)


def _refuse_world(what: str, episode: int) -> None:
    raise InvalidValueError(
        explain(
            f"the world goes another way when episode {episode} is played again with the same"
            f" actions, among other worlds: {what}",
            allowed="a course that follows from seed, episode and actions",
            fix="Keep all state in the world, one row each, write all of it in `reset`, and draw"
            " from the noise that is passed. `interverse check ID` finds where it is not so",
        )
    )


def _add(digest: Any, seen: Any, row: int) -> None:
    if isinstance(seen, Mapping):
        for part in seen.values():
            _add(digest, part, row)
        return
    digest.update(np.ascontiguousarray(to_numpy(seen)[row]).tobytes())


def _shown(action: NDArray[Any]) -> str:
    return np.array2string(action.ravel()[:4], precision=4, separator=", ")
