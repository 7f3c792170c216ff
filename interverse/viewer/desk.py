"""Shared parts of the page: its message line, and buttons whose clicks become orders.

Callbacks of viser run on threads of their own, so they only put orders; `Viewer` carries them out.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, final

from interverse.envs.checks import UNCHECKED
from interverse.viewer.orders import Orders
from interverse.viewer.session import Session

GOOD, BAD, PLAIN = "#087f5b", "#c92a2a", "#495057"
PAD = "padding:2px 12px 6px 12px;font-size:13px;line-height:1.45;overflow-wrap:anywhere"
BEYOND = "Beyond A and B"
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


def changed_text(names: tuple[str, ...]) -> str:
    """Returns what an intervention has changed, as HTML."""
    return f"Changed: {html.escape(', '.join(names))}." if names else "Nothing changed."
