"""A policy that always sees a batch of one size, whatever the number of worlds it acts in.

A network's output may differ in the last bit with the size of its batch and with the row in it, so
what must be repeatable gives a policy the same rows of the same batch, and fills the others. The
number of threads that share a product differs between machines, and matters likewise: here it is
one, in Torch and in NumPy's BLAS.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from interverse.core.errors import ActionError, explain
from interverse.envs.values import to_numpy
from interverse.rollouts.policy import GoalPolicy, Policy


@final
class FixedBatchPolicy:
    """A policy whose batch has `rows` rows, of which each world has one of its own."""

    def __init__(self, policy: Policy, numbers: NDArray[np.int64], rows: int) -> None:
        """Gives every world a row.

        Args:
            policy: what acts.
            numbers: of the worlds' episodes, all of one block of `rows`; each has its row in it.
            rows: of the batch; those without a world show what the first world shows.
        """
        self._policy, self._seats = policy, numbers % rows
        self._numbers = numbers[0] // rows * rows + np.arange(rows)  # of every row
        self._shown = np.zeros(rows, dtype=np.int64)
        self._shown[self._seats] = np.arange(len(numbers))
        if isinstance(policy, GoalPolicy):
            policy.shown = self._shown

    def start(self, seed: int) -> None:
        """Starts the episodes of a seed, in rows without a world too: those must not matter."""
        every = np.ones(len(self._numbers), dtype=bool)
        self._policy.reset(every, seed + (self._numbers << 32))

    def __call__(self, observations: Any) -> Any:
        """Returns one action per world."""
        with one_thread():
            told = self._policy(_rows(observations, self._shown))
        if isinstance(told, tuple):  # as `predict` of Stable-Baselines3 gives a state as well
            raise ActionError(
                explain(
                    "the policy returned a tuple", allowed="actions", fix="Return its first part"
                )
            )
        actions = to_numpy(told)
        # A hand-written policy may read the worlds themselves, and then it acts for those alone.
        check_rows(actions, len(self._shown), len(self._seats))
        return actions[self._seats] if len(actions) == len(self._shown) else actions


def check_rows(actions: NDArray[Any], *worlds: int) -> None:
    """Raises unless a policy returned an action for each world, of which there are so many."""
    if (len(actions) if actions.ndim else 0) not in worlds:
        raise ActionError(
            explain(
                f"the policy returned actions of shape {actions.shape}",
                allowed=f"one row for each of {worlds[0]} worlds",
                fix="Give every row of the observations its action",
            )
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps matrix products to one thread: long sums are cut differently by several."""
    torch = sys.modules.get("torch")
    threads = None if torch is None else torch.get_num_threads()
    try:
        if torch is not None:
            torch.set_num_threads(1)
        with _libraries(len(sys.modules)).limit(limits=1):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Returns the libraries with threads of their own; a module loaded since may have one more."""
    return ThreadpoolController()


def _rows(observations: Any, index: NDArray[np.int64]) -> Any:
    if isinstance(observations, dict):
        return {name: _rows(part, index) for name, part in observations.items()}
    seen = observations if isinstance(observations, np.ndarray) else to_numpy(observations)
    return seen[index]  # a policy sees NumPy arrays, wherever the world lives
