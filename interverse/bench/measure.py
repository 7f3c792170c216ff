"""Timing: the best of several repeats, the baseline beside it in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, final

Clock = Callable[[], float]
CPU, WALL = time.process_time, time.perf_counter


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured number.

    Attributes:
        name: what was measured.
        metric: which number of it.
        value: the number, in `unit`.
        ratio: value over the baseline's value; None without a baseline in this run.
        baseline: what it is compared with.
        target: the bound the project has set itself, as text.
    """

    name: str
    metric: str
    value: float
    unit: str
    ratio: float | None = None
    baseline: str = ""
    target: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the row, JSON-ready."""
        return asdict(self)


def best_seconds(
    call: Callable[[], object], *, repeats: int = 5, warm: int = 1, clock: Clock = CPU
) -> float:
    """Returns the shortest time of several calls: the least disturbed one.

    The clock counts this process's CPU seconds, which other programs do not change, unless `WALL`
    is asked for.
    """
    for _ in range(warm):
        call()
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def best_pair(
    one: Callable[[], object],
    other: Callable[[], object],
    *,
    repeats: int = 7,
    clock: Clock = CPU,
) -> tuple[float, float]:
    """Returns the shortest times of two calls made in turn, so that noise hits both alike."""
    pairs = [
        tuple(best_seconds(call, repeats=1, warm=0, clock=clock) for call in (one, other))
        for _ in range(repeats + 1)
    ]
    return min(p[0] for p in pairs[1:]), min(p[1] for p in pairs[1:])


def resident_mb() -> float:
    """Returns the process's resident memory now, in megabytes; 0 where /proc is missing."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
