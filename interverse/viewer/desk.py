"""Shared parts of the page: its message line, and buttons whose clicks become orders.

Callbacks of viser run on threads of their own, so they only put orders; `Viewer` carries them out.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from interverse.envs.interventions import UNCHECKED
from interverse.viewer.session import Session

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


GOOD, BAD, PLAIN = "#087f5b", "#c92a2a", "#495057"
PAD = "padding:2px 12px 6px 12px;font-size:13px;line-height:1.45;overflow-wrap:anywhere"
BEYOND = "Beyond A and B"
_MOST_NAMES = 12
PageOrder = Callable[[], str]  # returns what to tell the person


@final
class Desk:
    """A session, viser's controls, and the queue that joins them."""

    def __init__(self, gui: Any, session: Session, orders: Orders) -> None:
        self.gui, self.session, self.orders = gui, session, orders
        self.playing = False
        self.message = gui.add_html("")

    def say(self, text: str, color: str = GOOD) -> None:
        """Shows one line of HTML under the status."""
        self.message.content = f'<div id="message" style="{PAD};color:{color}">{text}</div>'

    def refuse(self, reason: str) -> None:
        """Shows why something was not done."""
        told = reason.replace(UNCHECKED, f"Tick “{BEYOND}” to allow any value in its domain")
        self.say(f"<b>Refused.</b> {html.escape(told)}", BAD)

    def order(self, key: str, order: PageOrder, *, wait: float = 0.0) -> None:
        """Leaves an order to the world's thread; what it returns is told."""

        def carry_out() -> None:
            text = order()
            if text:
                self.say(text)

        self.orders.put(key, carry_out, wait=wait)

    def button(self, label: str, order: PageOrder, hint: str) -> Any:
        """Returns a button that puts an order."""
        button = self.gui.add_button(label, hint=hint)
        button.on_click(lambda _: self.order(label, order))
        return button

    def buttons(self, label: str, orders: Mapping[str, PageOrder], hint: str) -> None:
        """Adds a row of buttons."""
        group = self.gui.add_button_group(label, tuple(orders), hint=hint)

        def clicked(event: Any) -> None:
            chosen = event.target.value
            self.order(f"{label}/{chosen}", orders[chosen])

        group.on_click(clicked)


def listed(names: Sequence[str]) -> str:
    """Returns names as a sentence has them; of many the first twelve."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (", ".join(names[:_MOST_NAMES]) or "nothing") + more


def changed_text(names: tuple[str, ...]) -> str:
    """Returns what an intervention has changed, as HTML."""
    return f"Changed: {html.escape(', '.join(names))}." if names else "Nothing changed."
