"""Memory of a carrying policy: what it keeps of every world from step to step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.scripted.senses import Floats


class Phase(IntEnum):
    """What a world's fingers are doing."""

    RAISE = 0
    TRAVEL = 1
    DESCEND = 2
    CLOSE = 3
    LIFT = 4
    CARRY = 5
    LOWER = 6
    LOOSEN = 7
    OPEN = 8


@final
@dataclass(slots=True, eq=False)
class Memory:
    """What the machine remembers of N worlds."""

    phase: NDArray[np.int64]
    since: Floats  # seconds in this phase
    job: NDArray[np.int64]  # which block
    blocked: NDArray[np.int64]  # how often the fingers could not get beside the block
    slips: NDArray[np.int64]  # how often it slipped
    grasp: NDArray[np.int64]
    command: Floats  # tips, (N, 3, 3)
    path: Floats  # where the held block should be now, (N, 3)
    offset: Floats  # integral of its errors, (N, 3)
    level: Floats  # integral of how much it leans down at each tip, (N, 3)
    yaw: Floats  # of the held block as it should be now
    twist: Floats  # integral of its errors
    started: NDArray[np.bool_]

    @classmethod
    def of(cls, n: int) -> Memory:
        """Returns the memory of N worlds that have not started."""
        phase, job, blocked, slips, grasp = (np.zeros(n, dtype=np.int64) for _ in range(5))
        one, two, three = (np.zeros((n, 3)) for _ in range(3))
        return cls(
            phase,
            np.zeros(n),
            job,
            blocked,
            slips,
            grasp,
            np.zeros((n, 3, 3)),
            one,
            two,
            three,
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, dtype=bool),
        )

    def forget(self, mask: NDArray[np.bool_]) -> None:
        """Puts the worlds in the mask back to before their start."""
        for field in fields(self):
            getattr(self, field.name)[mask] = 0
