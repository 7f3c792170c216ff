"""Variables on the page: a folder per object, a control per variable, and each a `do`."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import partial
from typing import final

from interverse.core.errors import InterverseError
from interverse.viewer.controls import TYPED, Control
from interverse.viewer.desk import BEYOND, Desk, changed_text
from interverse.viewer.translate import Shown, value_from
from interverse.viewer.widgets import TOP, Widget, widgets

_DRAGGED, _TYPED = 0.05, 0.5  # seconds that a control must have rested
_OPEN, _OPEN_FOLDERS = 16, 2  # variables that are all shown; of more, some folders' are


@final
class VariablePanel:
    """The controls of all variables.

    Args:
        desk: the page's.
        on_refusal: called with the name of a variable whose `do` was refused.
    """

    def __init__(self, desk: Desk, on_refusal: Callable[[str], None]) -> None:
        self._desk, self._session, self._on_refusal = desk, desk.session, on_refusal
        self.controls: dict[str, Control] = {}
        env = self._session.env
        self._beyond = desk.gui.add_checkbox(
            BEYOND,
            initial_value=False,
            hint="Allow any value of a variable's domain, also outside its published spaces",
        )
        folders = widgets(env.variables, env.values)
        few = sum(map(len, folders.values())) <= _OPEN
        ordered = sorted(folders, key=lambda folder: self._rank(folder, folders[folder]))
        for place, folder in enumerate(ordered):
            with desk.gui.add_folder(folder, expand_by_default=few or place < _OPEN_FOLDERS):
                for widget in folders[folder]:
                    control = Control(desk.gui, widget, env.values[widget.name])
                    control.on_change(partial(self.set, control))
                    self.controls[widget.name] = control

    def _rank(self, folder: str, group: list[Widget]) -> int:
        """Returns where a folder stands: what moves first, then goals, then what has A and B."""
        declared = [self._session.env.variables[w.name] for w in group if not w.read_only]
        kinds = {variable.kind for variable in declared}
        placed = any(v.kind == "state" and v.space_a is not None for v in declared)
        if placed or kinds == {"state"}:
            return 0 if folder == TOP else 1
        if "goal" in kinds:
            return 2
        return 3 if any(variable.space_a is not None for variable in declared) else 4

    def set(self, control: Control, given: Shown) -> None:
        """Leaves the order to set a variable to what its control shows."""
        name, typed = control.widget.name, control.widget.kind in TYPED
        wait = _TYPED if typed else _DRAGGED
        self._desk.order(f"do/{name}", lambda: self._do(control, given), wait=wait)

    def _do(self, control: Control, given: Shown) -> str:
        name = control.widget.name
        try:
            value = value_from(control.widget, self._session.env.values[name], given)
            event = self._session.do({name: value}, check=not self._beyond.value)
        except InterverseError:
            self._on_refusal(name)
            raise
        return f"<code>do {html.escape(name)}</code>. {changed_text(event.changed)}"

    def refresh(self) -> None:
        """Shows the present values, but for controls that are being used."""
        values = self._session.env.values
        for name, control in self.controls.items():
            if not self._desk.orders.waiting(f"do/{name}"):
                control.show(values[name])
