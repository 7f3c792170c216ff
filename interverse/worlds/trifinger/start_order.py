"""The order in which episodes on a device take their starts.

Taken in one order for ever, starts and groups of worlds would keep step: so many groups start in
the time of an episode that a world could meet the same start again and again.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.core.rng import Noise

_NAME = "device/start_order"  # in the address of an order


@final
class StartOrder:
    """Starts in pass after pass, every one once a pass; orders are drawn by seed and pass.

    The first pass takes them as they were given.
    """

    def __init__(self, count: int, *, seed: int) -> None:
        self._count, self._seed = count, seed
        self._passes = np.zeros(1, dtype=np.int64)
        self._orders = np.arange(count)[None]  # of these passes, kept: many calls ask for one pass

    def rows(self, first: int, number: int) -> NDArray[np.int64]:
        """Returns which starts the episodes from `first` on take, (number,).

        >>> StartOrder(3, seed=0).rows(0, 3).tolist()
        [0, 1, 2]
        """
        places = np.arange(first, first + number)
        passes = np.arange(first // self._count, places[-1] // self._count + 1)
        if not np.array_equal(passes, self._passes):
            self._passes, self._orders = passes, self._drawn(passes)
        return self._orders[places // self._count - passes[0], places % self._count]

    def _drawn(self, passes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the order of every pass, (passes, count)."""
        noise = Noise(np.full_like(passes, self._seed), passes, np.zeros_like(passes))
        orders = np.argsort(noise.uniform(_NAME, (self._count,)), axis=1, kind="stable")
        orders[passes == 0] = np.arange(self._count)
        return orders
