"""Timing: the best of several repeats, the baseline beside it in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, final

Clock = Callable[[], float]
CPU, WALL = time.process_time, time.perf_counter
_IN_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6}


def finished() -> float:
    """Returns the wall-clock time once a GPU, where there is one, has done what it was told."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return WALL()


@final
@dataclass(frozen=True, slots=True)
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


def time_row(
    name: str,
    metric: str,
    seconds: float,
    other: float | None = None,
    unit: str = "ms",
    **told: str,
) -> Row:
    """Returns the row of a duration, given in seconds as its baseline's is.

    `told` are `baseline` and `target`.
    """
    ratio = None if other is None else seconds / other
    return Row(name, metric, _IN_A_SECOND[unit] * seconds, unit, ratio, **told)


def rate_row(name: str, metric: str, rate: float, other: float | None = None, **told: str) -> Row:
    """Returns the row of things a second, beside its baseline's; `told` as for `time_row`."""
    return Row(name, metric, rate, "1/s", None if other is None else rate / other, **told)


def best_seconds(
    call: Callable[[], object], *, repeats: int = 5, warm: int = 1, clock: Clock = CPU
) -> float:
    """Returns the shortest time of several calls: the least disturbed one.

    The clock counts this process's CPU seconds, which other programs do not change, unless `WALL`
    or `finished` is asked for.
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


def plays(env: Any, actions: Iterable[Any]) -> Callable[[], None]:
    """Returns what steps an environment through actions."""

    def play() -> None:
        for action in actions:
            env.step(action)

    return play


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
