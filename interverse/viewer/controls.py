"""The controls of variables in viser: made from `Widget`s, read and set as whole values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.viewer.translate import Shown, shown
from interverse.viewer.widgets import Widget

TYPED = ("number", "vector", "rotation", "parts")  # an order for every key that is pressed
_NUMBER_STEP = 0.001
_MOST_TEXT = 40


@final
class Control:
    """One variable's handles.

    Args:
        gui: viser's.
        widget: which control. value: what it shows first.
        asks: whether a control that is typed in whole, as JSON, has a button of its own.
    """

    def __init__(self, gui: Any, widget: Widget, value: NDArray[Any], *, asks: bool = True) -> None:
        self.widget, self.asks = widget, asks
        self.folder: Any = None
        self.handles: list[Any] = []
        self.button: Any = None
        self._text = ""  # what a text field was last given: it may be half typed
        if widget.read_only:
            text = _text(widget, value)
            field = gui.add_text(widget.label, text, disabled=True, hint=widget.hint)
            self.handles.append(field)
        else:
            _MAKERS[widget.kind](self, gui, shown(widget, value))

    def on_change(self, call: Callable[[Shown], None]) -> None:
        """Calls with what the control shows whenever a person changes it."""

        def changed(event: Any) -> None:
            if event.client_id is not None:  # not our own `show`
                call(self.read())

        if self.button is not None:
            self.button.on_click(changed)
        elif not self.widget.read_only:
            for handle in self.handles:
                handle.on_update(changed)

    def read(self) -> Shown:
        """Returns what the control shows."""
        if self.widget.kind == "parts":
            return tuple(handle.value for handle in self.handles)
        return self.handles[0].value

    def show(self, value: NDArray[Any]) -> None:
        """Shows a value."""
        if self.widget.read_only:
            _set(self.handles[0], _text(self.widget, value))
            return
        now = shown(self.widget, value)
        if self.widget.kind == "text":
            if now != self._text:
                self.handles[0].value = self._text = now
            return
        for handle, part in zip(self.handles, now if self.is_many else (now,), strict=True):
            limited = self.widget.bounded and self.widget.kind in ("slider", "parts")
            if limited and not handle.min <= part <= handle.max:
                handle.min, handle.max = min(handle.min, part), max(handle.max, part)
            _set(handle, part)

    def remove(self) -> None:
        """Takes the control off the page."""
        if self.folder is not None:
            self.folder.remove()  # and what is in it
            return
        for handle in self.handles:
            handle.remove()

    @property
    def is_many(self) -> bool:
        """Whether there is a handle for each number."""
        return self.widget.kind == "parts"


def _set(handle: Any, value: Any) -> None:
    """Shows a value unless it is shown: viser checks and sends whatever it is given."""
    if handle.value != value:
        handle.value = value


def _text(widget: Widget, value: NDArray[Any]) -> str:
    if widget.kind == "choice":
        return str(shown(widget, value))
    numbers = ", ".join(f"{x:.4g}" for x in np.ravel(value)[:_MOST_TEXT])
    return numbers if np.ravel(value).size <= _MOST_TEXT else numbers + ", ..."


def _slider(control: Control, gui: Any, now: Shown, label: str = "", part: int = 0) -> None:
    widget = control.widget
    low, high = widget.range_with(now, part)
    kind = int if widget.whole else float
    marks = tuple((kind(at), word) for at, word in widget.marks)
    handle = gui.add_slider(
        label or widget.label,
        kind(low),
        kind(high),
        kind(widget.step),
        kind(now),
        marks=marks or None,
        hint=widget.hint,
    )
    control.handles.append(handle)


def _number(control: Control, gui: Any, now: Shown, label: str = "") -> None:
    widget = control.widget
    kind, step = (int, 1) if widget.whole else (float, _NUMBER_STEP)
    handle = gui.add_number(label or widget.label, kind(now), step=step, hint=widget.hint)
    control.handles.append(handle)


def _switch(control: Control, gui: Any, now: Shown) -> None:
    widget = control.widget
    control.handles.append(gui.add_checkbox(widget.label, now, hint=widget.hint))


def _choice(control: Control, gui: Any, now: Shown) -> None:
    widget = control.widget
    made = gui.add_dropdown(widget.label, widget.labels, initial_value=now, hint=widget.hint)
    control.handles.append(made)


def _color(control: Control, gui: Any, now: Shown) -> None:
    widget = control.widget
    add = gui.add_rgb if len(now) == 3 else gui.add_rgba
    control.handles.append(add(widget.label, now, hint=widget.hint))


def _vector(control: Control, gui: Any, now: Shown) -> None:
    widget = control.widget
    add = gui.add_vector2 if len(now) == 2 else gui.add_vector3
    step = 1.0 if widget.whole else min(widget.step, 0.01)
    floats = tuple(map(float, now))
    control.handles.append(add(widget.label, floats, step=step, hint=widget.hint))


def _rotation(control: Control, gui: Any, now: Shown) -> None:
    widget = control.widget
    hint = f"Roll, pitch and yaw in degrees. {widget.hint}"
    control.handles.append(gui.add_vector3(widget.label, now, step=1.0, hint=hint))


def _parts(control: Control, gui: Any, now: Shown) -> None:
    control.folder = gui.add_folder(control.widget.label, expand_by_default=not control.asks)
    with control.folder:
        for part, number in enumerate(now):
            if control.widget.bounded:
                _slider(control, gui, number, str(part), part)
            else:
                _number(control, gui, number, str(part))


def _json(control: Control, gui: Any, now: Shown) -> None:
    widget = control.widget
    control.handles.append(gui.add_text(widget.label, now, multiline=True, hint=widget.hint))
    if control.asks:
        control.button = gui.add_button(f"do {widget.label}", hint=widget.hint)


_MAKERS: dict[str, Callable[..., None]] = {
    "choice": _choice,
    "color": _color,
    "number": _number,
    "parts": _parts,
    "rotation": _rotation,
    "slider": _slider,
    "switch": _switch,
    "text": _json,
    "vector": _vector,
}
