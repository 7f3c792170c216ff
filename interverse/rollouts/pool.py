"""A pool of workers as its users see it: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol


class LostError(Exception):
    """A worker, or the machine it ran on, went away before its unit was done."""


class Pool(Protocol):
    """Where units run. A ticket stands for a unit that was started; it can be hashed."""

    at_once: int

    def start(self, unit: Any) -> Any:
        """Starts a unit; returns its ticket."""

    def wait(self, tickets: Collection[Any]) -> Any:
        """Returns a ticket whose unit has ended, well or not."""

    def result(self, ticket: Any) -> Any:
        """Returns what the unit gave, or raises what it raised; `LostError` if it may be redone."""

    def close(self) -> None:
        """Gives up what still runs and leaves no process behind."""
