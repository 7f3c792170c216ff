"""Requests of the browser, done in order by one thread: worlds and GL belong to a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import final

Order = Callable[[], None]


@final
class Orders:
    """A queue in which a newer order replaces an unfinished older one of the same key.

    A slider that is dragged asks many times a second, a number that is typed at every key: only
    the last is worth doing. `wait` is how long an order must have been the last of its key.
    """

    def __init__(self) -> None:
        self._orders: dict[str, tuple[float, Order]] = {}  # key -> when it is due
        self._news = threading.Condition()

    def put(self, key: str, order: Order, *, wait: float = 0.0) -> None:
        """Adds an order, or replaces the one of that key; from any thread."""
        with self._news:
            self._orders.pop(key, None)
            self._orders[key] = time.monotonic() + wait, order
            self._news.notify()

    def waiting(self, key: str) -> bool:
        """Returns whether an order of that key is still to be done."""
        with self._news:
            return key in self._orders

    def take(self, timeout: float) -> Order | None:
        """Returns the next order that is due, or None after so many seconds."""
        end = time.monotonic() + timeout
        with self._news:
            while True:
                now = time.monotonic()
                due = min(((when, key) for key, (when, _) in self._orders.items()), default=None)
                if due is not None and due[0] <= now:
                    return self._orders.pop(due[1])[1]
                if now >= end:
                    return None
                self._news.wait((end if due is None else min(end, due[0])) - now)
