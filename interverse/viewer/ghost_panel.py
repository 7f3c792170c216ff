"""The counterfactual on the page: what it should change, its outcome, and a look back in time."""

from __future__ import annotations

import html
from typing import Any, final

from interverse.core.errors import InterverseError, InvalidValueError, explain
from interverse.viewer.controls import Control
from interverse.viewer.desk import BEYOND, PAD, Desk
from interverse.viewer.ghost import Ghost
from interverse.viewer.translate import value_from
from interverse.viewer.widgets import widget_of

_FORM = 10.0  # place of the value's control among the others
_MOST_NAMES = 12


@final
class GhostPanel:
    """The form of a counterfactual, and the ghost that it made."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._session = desk, desk.session
        self.ghost: Ghost | None = None
        gui = desk.gui
        names = [name for name, v in self._session.env.variables.items() if not v.read_only]
        gui.add_markdown("The same seed and the same actions, had this been done:", order=1.0)
        self.chosen = gui.add_dropdown("do", names, order=2.0)
        self.chosen.on_update(
            lambda _: desk.order("ghost/variable", lambda: self.offer(self.chosen.value))
        )
        self._folder: Any = gui.add_folder("Value", order=_FORM)
        self.control = self._form(names[0])
        with gui.add_folder("Ghost", order=_FORM + 1):
            self.at = gui.add_number("Before action", 0, min=0, step=1)
            self._beyond = gui.add_checkbox(BEYOND, initial_value=False)
            desk.button("Imagine", self.imagine, "Play it as a ghost beside the fact")
            desk.button("Without my last do", self.imagine_without, "What if I had not?")
            desk.button("Clear", self.clear, "Remove the ghost")
            self._verdict = gui.add_html("")
        self.back = gui.add_slider("Look at step", 0, 1, 1, 0, order=_FORM + 2)
        self._live = True  # whether the present is looked at
        self.back.on_update(lambda event: self._look(event))

    # ----------------------------------------------------------------------- form

    def _form(self, name: str) -> Control:
        env = self._session.env
        value = env.values[name]
        with self._folder:
            return Control(self._desk.gui, widget_of(env.variables[name], value), value, asks=False)

    def offer(self, name: str) -> str:
        """Shows the control of another variable."""
        if name not in self._session.env.variables:
            raise InvalidValueError(explain(f"no variable {str(name)[:60]!r} to choose"))
        self.control.remove()
        self.control = self._form(name)
        return ""

    def imagine(self) -> str:
        """Makes the ghost of what the form says."""
        name = self.control.widget.name
        value = value_from(self.control.widget, self._session.env.values[name], self.control.read())
        return self._make({name: value}, int(self.at.value), f"had {name} been set")

    def imagine_without(self) -> str:
        """Makes the ghost of the world in which the last intervention was not made."""
        events = self._session.history.events
        if not events or events[-1].before is None:
            raise InvalidValueError(explain("no intervention was made here", fix="Drag a slider"))
        before = events[-1].before.history.trace[-1]
        do = {name: before[name] for name in events[-1].values}
        return self._make(do, events[-1].step, f"without the do on {', '.join(do)}")

    def _make(self, do: dict[str, Any], at: int, words: str) -> str:
        made = Ghost(self._session, do, at=at, check=not self._beyond.value)
        self.clear()
        self.ghost, self._words = made, words
        return "The ghost is the world that would have been; it goes on with the fact."

    def clear(self) -> str:
        """Removes the ghost."""
        if self.ghost is not None:
            self.ghost.close()
        self.ghost, self._verdict.content = None, ""
        return ""

    # ------------------------------------------------------------------------ time

    def _look(self, event: Any) -> None:
        if event.client_id is not None:  # not our own change
            self._live = self.back.value >= self.back.max
            self._desk.order("look", lambda: "")

    @property
    def step(self) -> int:
        """The step that is looked at."""
        last = self._session.steps
        return last if self._live or self._desk.playing else min(int(self.back.value), last)

    def follow(self) -> None:
        """Takes the ghost along with the session; one that cannot go on is removed."""
        last = self._session.steps
        self.back.max, self.back.disabled = max(1, last), last == 0
        self.back.value = self.step
        self._live = self.step == last
        if self.ghost is None:
            return
        try:
            if self.ghost.is_of(self._session.history):
                self.ghost.follow()
                self._tell(self.ghost)
            else:
                self.clear()
        except InterverseError as error:
            self.clear()
            self._desk.refuse(f"The ghost cannot go on. {error}")

    def _tell(self, ghost: Ghost) -> None:
        names = ghost.differing(self.step)
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        differing = (", ".join(names[:_MOST_NAMES]) or "nothing") + more
        self._verdict.content = (
            f'<div id="verdict" style="{PAD}">Return <b>{self._session.history.earned:.4g}</b> in'
            f" fact, <b>{ghost.earned:.4g}</b> {html.escape(self._words)} before action"
            f" {ghost.at}.<br>Different at step {self.step}: {html.escape(differing)}.</div>"
        )
