"""Choice of a variable's control, worked out from its declaration alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

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
    """Returns every variable's control by folder: one per object, in declared order.

    Args:
        variables: with their spaces as they are now.
        values: as they are now; ranges include them.
    """
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
