"""Time: how much has passed, when to stop, and a log that says so."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import final

from interverse.core.errors import InvalidValueError, explain
from interverse.models.fit import Epoch

_LINES = 5  # per stage, where no terminal shows a bar


class OutOfTimeError(Exception):
    """The time limit has passed; what was done is on disk."""


def raise_failures(failures: Mapping[str, Exception]) -> None:
    """Raises if some of a reproduction failed: the rest is done and written."""
    if failures:
        lines = "; ".join(f"{name}: {error}" for name, error in failures.items())
        raise InvalidValueError(explain(f"all is written but what failed: {lines}"))


@final
class Clock:
    """Counts from its making; writes to standard error.

    Args:
        limit: seconds after which `check` raises; None never.
        now: where the time comes from.
    """

    def __init__(self, limit: float | None, now: Callable[[], float] = time.monotonic) -> None:
        if limit is not None and not limit >= 0:
            raise InvalidValueError(explain(f"time_limit is {limit}", allowed="seconds from 0 on"))
        self._limit, self._now, self._began = limit, now, now()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return self._now() - self._began

    def check(self) -> None:
        """Raises if the time is up."""
        if self._limit is not None and self.elapsed > self._limit:
            raise OutOfTimeError

    def say(self, text: str) -> None:
        """Writes one line with the time it was written at."""
        sys.stderr.write(f"[{self.elapsed:7.1f} s] {text}\n")
        sys.stderr.flush()

    def ends(self, work: Callable[[], None]) -> bool:
        """Does the work; returns whether it came to its end, and says so where time did first."""
        try:
            work()
        except OutOfTimeError:
            self.say("time is up; the same command goes on from here")
            return False
        return True

    @contextmanager
    def timed(self, text: str) -> Iterator[None]:
        """Says afterwards what was done and how long it took."""
        began = self.elapsed
        yield
        self.say(f"{text}: {self.elapsed - began:.1f} s")

    def watch(self, name: str, epochs: int, *, saved_every: int) -> Callable[[Epoch], None]:
        """Returns a listener of training that tells a few times per stage, and minds the limit.

        It stops training only after an epoch whose end was saved.
        """
        spent: dict[str, float] = {}

        def listener(epoch: Epoch) -> None:
            before = 0.0 if epoch.epoch == 1 else spent.get(epoch.stage, 0.0)
            spent[epoch.stage] = before + epoch.seconds
            if epoch.epoch % max(1, epochs // _LINES) == 0 or epoch.epoch == epochs:
                valid = " ".join(f"{value:.4g}" for value in epoch.valid)
                self.say(
                    f"{name}: {epoch.stage} {epoch.epoch}/{epochs} epochs,"
                    f" {spent[epoch.stage]:.1f} s ({epoch.seconds:.2f} s the last), valid {valid}"
                )
            if epoch.epoch % saved_every == 0 or epoch.epoch == epochs:
                self.check()

        return listener
