"""The controls of variables: which one a declaration asks for, and what it shows in viser."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.core.errors import InvalidValueError
from interverse.core.files.json_text import parse_json
from interverse.scm import Box, Integers, Space, Variable
from interverse.scm.space import UnitQuaternion

Kind = Literal[
    "slider", "switch", "choice", "number", "color", "rotation", "vector", "parts", "text"
]
Mark = tuple[float, str]

TOP = "world"  # the folder of variables that belong to no object
_COLOR = re.compile(r"(^|/)colou?r[^/]*$")
_WIDEST = 1e4  # span of a slider; wider domains stand for no bound at all
_MOST_STEPS = 1000  # whole numbers that a slider can still hit one by one
_MARGIN = 0.25  # of a published range, shown beyond it: there a `do` is refused
_TICKS = 200  # steps that a slider is divided into, at the least
_MOST_PARTS = 12  # numbers that still get a control each
TYPED = ("number", "vector", "rotation", "parts")  # an order for every key that is pressed
_NUMBER_STEP = 0.001
_MOST_TEXT = 40
Shown = Any  # bool, int, float, text, or a tuple of numbers, as the control holds it
_DIGITS = 6
_SAME = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Widget:
    """One variable's control.

    Attributes:
        name: the variable's; `folder` and `label`: where it stands and what it is called there.
        kind: slider (a number), switch (0 or 1), choice (whole numbers that have names), number
            (no useful range), color, rotation (as roll, pitch and yaw in degrees), vector (2 or 3
            numbers), parts (a control per number), text (JSON, with a button).
        low, high: the range, one per number; infinite where there is none. step: of a slider.
        marks: bounds of A and B on a slider, or its ends.
        hint: what the variable is, in words. read_only: shown, not set.
        labels: names of whole numbers, from `first` on.
    """

    name: str
    folder: str
    label: str
    kind: Kind
    shape: tuple[int, ...]
    whole: bool
    low: tuple[float, ...]
    high: tuple[float, ...]
    step: float
    marks: tuple[Mark, ...]
    hint: str
    read_only: bool
    labels: tuple[str, ...]
    first: int

    def range_with(self, number: float, part: int = 0) -> tuple[float, float]:
        """Returns the range of one number, widened to hold the number it has now."""
        return min(self.low[part], number), max(self.high[part], number)

    @property
    def bounded(self) -> bool:
        """Whether every number has a range that a slider can show."""
        spans = [b - a for a, b in zip(self.low, self.high, strict=True)]
        most = _MOST_STEPS if self.whole else _WIDEST
        return all(math.isfinite(span) and 0.0 < span <= most for span in spans)


def widgets(
    variables: Mapping[str, Variable], values: Mapping[str, NDArray[Any]]
) -> dict[str, list[Widget]]:
    """Returns every variable's control by folder: one per object, in declared order."""
    folders: dict[str, list[Widget]] = {}
    for name, variable in variables.items():
        widget = widget_of(variable, values[name])
        folders.setdefault(widget.folder, []).append(widget)
    return folders


def widget_of(variable: Variable, value: NDArray[Any]) -> Widget:
    """Returns a variable's control.

    >>> from interverse.envs import make
    >>> env = make("tutorial/slider-v1")
    >>> _ = env.reset(seed=0)
    >>> gravity = widget_of(env.variables["gravity"], env.values["gravity"])
    >>> gravity.kind, gravity.marks
    ('slider', ((-10.0, 'A'), (-7.0, 'A|B'), (-4.0, 'B')))
    """
    folder, _, label = variable.name.partition("/")
    low, high = _range(variable, np.asarray(value))
    ends = tuple((number, f"{number:.3g}") for number in (*low.tolist(), *high.tolist()))
    widget = Widget(
        name=variable.name,
        folder=folder if label else TOP,
        label=label or variable.name,
        kind="slider",
        shape=variable.shape,
        whole=variable.domain.integral,
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        step=_step(low, high, whole=variable.domain.integral),
        marks=_marks(variable) or ends if variable.shape == () else (),
        hint=_hint(variable),
        read_only=variable.read_only,
        labels=variable.labels,
        first=int(variable.domain.low) if variable.labels else 0,
    )
    return replace(widget, kind=_kind(widget, variable.domain))


def _kind(widget: Widget, domain: Space) -> Kind:
    size = math.prod(widget.shape)
    unit = isinstance(domain, Box) and np.all(domain.low == 0) and np.all(domain.high == 1)
    if _COLOR.search(widget.name) and widget.shape in ((3,), (4,)) and unit:
        return "color"
    if isinstance(domain, UnitQuaternion):
        return "rotation"
    if widget.labels:
        return "choice"
    if widget.shape == ():
        if widget.whole and domain.low == 0 and domain.high == 1:
            return "switch"
        return "slider" if widget.bounded else "number"
    if widget.shape in ((2,), (3,)):
        return "vector"
    return "parts" if len(widget.shape) == 1 and size <= _MOST_PARTS else "text"


def _range(variable: Variable, value: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns the least and greatest number to show: a bit more than A and B, or the domain."""
    domain = variable.domain
    low, high = np.ravel(domain.low).astype(float), np.ravel(domain.high).astype(float)
    spaces = [s for s in (variable.space_a, variable.space_b) if isinstance(s, Box | Integers)]
    if spaces:
        least = np.min([np.ravel(s.low) for s in spaces], axis=0).astype(float)
        most = np.max([np.ravel(s.high) for s in spaces], axis=0).astype(float)
        margin = (most - least) * _MARGIN
        margin = np.ceil(margin) if domain.integral else margin
        low, high = np.maximum(low, least - margin), np.minimum(high, most + margin)
    now = np.ravel(value).astype(float)
    return np.minimum(low, now), np.maximum(high, now)


def _step(low: NDArray[Any], high: NDArray[Any], *, whole: bool) -> float:
    """Returns a round step: 1, 2 or 5 times a power of ten."""
    span = float(np.min(high - low)) if len(low) else 0.0
    if whole or not math.isfinite(span) or span <= 0.0:
        return 1.0 if whole else 0.001
    rough = span / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    digit = max(d for d in (1.0, 2.0, 5.0) if d * power <= rough * (1.0 + 1e-9))
    return float(f"{digit * power:g}")


def _marks(variable: Variable) -> tuple[Mark, ...]:
    """Returns the bounds of A and B; a bound that both have is marked once."""
    a, b, domain = variable.space_a, variable.space_b, variable.domain
    alone = isinstance(a, Space) and b is None
    if alone and all(np.array_equal(getattr(a, e), getattr(domain, e)) for e in ("low", "high")):
        return ()  # A is all there is
    at: dict[float, list[str]] = {}
    for word, space in (("A", a), ("B", b)):
        if isinstance(space, Box | Integers) and space.shape == ():
            for bound in (space.low, space.high):
                words = at.setdefault(float(bound), [])
                words.extend([word] if word not in words else [])
    return tuple((number, "|".join(at[number])) for number in sorted(at))


def _hint(variable: Variable) -> str:
    parts = [variable.doc.rstrip(".") or variable.name]
    if variable.unit:
        parts.append(f"unit {variable.unit}")
    parts.append(variable.kind)
    for word, space in (("A", variable.space_a), ("B", variable.space_b)):
        if isinstance(space, Box | Integers):
            parts.append(f"{word} {_numbers(space.low)} to {_numbers(space.high)}")
    return ". ".join(parts) + "."


def _numbers(bound: Any) -> str:
    flat = np.unique(np.ravel(bound))
    shown = np.ravel(bound) if len(flat) > 1 else flat
    return ", ".join(f"{x:g}" for x in shown[:_MOST_PARTS])


# ------------------------------------------------------------------------------------ on the page


@final
class Control:
    """One variable's handles; `asks` gives one that is typed in whole, as JSON, its own button."""

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
            self._add(gui, shown(widget, value))

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
        parts = now if self.widget.kind == "parts" else (now,)
        for handle, part in zip(self.handles, parts, strict=True):
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

    def _add(self, gui: Any, now: Shown) -> None:
        """Puts the control on the page."""
        widget, label = self.widget, self.widget.label
        hint: dict[str, Any] = {"hint": widget.hint}
        match widget.kind:
            case "parts":
                self.folder = gui.add_folder(label, expand_by_default=not self.asks)
                with self.folder:
                    for part, number in enumerate(now):
                        self._add_number(gui, number, str(part), part)
                return
            case "slider" | "number":
                self._add_number(gui, now, label)
                return
            case "switch":
                made = gui.add_checkbox(label, now, **hint)
            case "choice":
                made = gui.add_dropdown(label, widget.labels, initial_value=now, **hint)
            case "color":
                made = (gui.add_rgb if len(now) == 3 else gui.add_rgba)(label, now, **hint)
            case "vector":
                add = gui.add_vector2 if len(now) == 2 else gui.add_vector3
                step = 1.0 if widget.whole else min(widget.step, 0.01)
                made = add(label, tuple(map(float, now)), step=step, **hint)
            case "rotation":
                told = f"Roll, pitch and yaw in degrees. {widget.hint}"
                made = gui.add_vector3(label, now, step=1.0, hint=told)
            case _:
                made = gui.add_text(label, now, multiline=True, **hint)
                if self.asks:
                    self.button = gui.add_button(f"do {label}", **hint)
        self.handles.append(made)

    def _add_number(self, gui: Any, now: Shown, label: str, part: int = 0) -> None:
        """Adds a slider, or a field for a number without a useful range."""
        widget = self.widget
        kind, hint = int if widget.whole else float, widget.hint
        if not widget.bounded:
            step = 1 if widget.whole else _NUMBER_STEP
            self.handles.append(gui.add_number(label, kind(now), step=step, hint=hint))
            return
        low, high = widget.range_with(now, part)
        marks = tuple((kind(at), word) for at, word in widget.marks) or None
        numbers = (kind(low), kind(high), kind(widget.step), kind(now))
        self.handles.append(gui.add_slider(label, *numbers, marks=marks, hint=hint))


def _set(handle: Any, value: Any) -> None:
    """Shows a value unless it is shown: viser checks and sends whatever it is given."""
    if handle.value != value:
        handle.value = value


def _text(widget: Widget, value: NDArray[Any]) -> str:
    if widget.kind == "choice":
        return str(shown(widget, value))
    numbers = ", ".join(f"{x:.4g}" for x in np.ravel(value)[:_MOST_TEXT])
    return numbers if np.ravel(value).size <= _MOST_TEXT else numbers + ", ..."


# -------------------------------------------------------------------------------------- translation


def shown(widget: Widget, value: NDArray[Any]) -> Shown:
    """Returns what a control shows for a value.

    >>> from interverse.envs import make
    >>> variable = make("tutorial/slider-v1").variables["box/color"]
    >>> shown(widget_of(variable, variable.default), variable.default)
    (217, 140, 128)
    """
    array = np.asarray(value)
    if widget.kind == "text":
        return json.dumps(_rounded(array).tolist())
    if widget.kind == "switch":
        return bool(array)
    if widget.kind == "choice":
        return widget.labels[int(array) - widget.first]
    if widget.kind == "color":
        return tuple(int(x) for x in np.round(255.0 * np.clip(array, 0.0, 1.0)))
    if widget.kind == "rotation":
        array = _angles(array)
    numbers = tuple(_tidy(x) for x in array.ravel().tolist())
    return numbers if array.ndim else numbers[0]


def value_from(widget: Widget, present: NDArray[Any], given: Shown) -> NDArray[Any]:
    """Returns the value that a changed control means.

    A number that the person left alone keeps every digit that it has in the world.
    """
    if widget.kind == "text":
        try:
            new = np.array(parse_json(given, widget.name))
        except (ValueError, OverflowError) as error:
            raise InvalidValueError(
                f"{widget.name} is {given[:60]!r}, which is no JSON: {error}",
                allowed=f"nested lists of shape {list(widget.shape)}",
            ) from error
        if new.shape != np.shape(present):
            return new  # the world says what shape it wants
        return np.where(_alike(_rounded(present), new), present, new)
    if widget.kind == "switch":
        return np.array(int(given))
    if widget.kind == "choice":
        if given not in widget.labels:
            raise InvalidValueError(
                f"{widget.name} is {str(given)[:60]!r}", allowed=", ".join(widget.labels)
            )
        return np.array(widget.labels.index(given) + widget.first)
    was = np.asarray(shown(widget, present), dtype=np.float64)
    new = np.asarray(given, dtype=np.float64)
    if widget.kind == "rotation":
        same = _alike(was, new)
        angles = np.where(same, _angles(present), new)
        turned = Rotation.from_euler("xyz", angles, degrees=True).as_quat(canonical=True)
        return np.array(present) if same.all() else turned
    scaled = new / 255.0 if widget.kind == "color" else new
    mixed = np.where(_alike(was, new), np.asarray(present, dtype=np.float64), scaled)
    return np.round(mixed).astype(np.int64) if widget.whole else mixed


def _alike(was: NDArray[Any], new: NDArray[Any]) -> NDArray[np.bool_]:
    return np.abs(was - new) <= _SAME * np.maximum(1.0, np.abs(was))


def _tidy(number: float | int) -> float | int:
    return number if isinstance(number, int) else float(f"{number:.{_DIGITS}g}")


def _rounded(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype.kind in "biu" else np.vectorize(_tidy, otypes=[float])(array)


def _angles(quaternion: NDArray[Any]) -> NDArray[np.float64]:
    """Returns roll, pitch and yaw in degrees."""
    return Rotation.from_quat(quaternion).as_euler("xyz", degrees=True) + 0.0  # no minus zero
