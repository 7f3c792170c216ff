"""Causes on the page: the graph, what a `do` lit up in it, and the curve of one variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.reports import palette
from interverse.scm import CausalGraph, Variable
from interverse.viewer.desk import PAD, Desk
from interverse.viewer.graph import (
    GraphMarks,
    Light,
    by_object,
    causes_of,
    effects_next,
    graph_svg,
    legend_html,
    lights_of,
)
from interverse.viewer.history import Event

Trace = Sequence[Mapping[str, NDArray[Any]]]

_COLORS = ("#1c7ed6", "#e8590c", "#2f9e44", "#ae3ec9")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 400.0, 150.0, 46.0, 18.0, 8.0
_MOST_CURVES = len(_COLORS)  # numbers of a variable that are drawn
_MOST = 12  # names in a sentence
_MOST_WHOLE = 40  # variables of a graph; of more, their objects are drawn
_SCORE = "fractional_success"  # drawn first where there is one


def curve_svg(name: str, fact: Trace, ghost: Trace, *, at: int) -> str:
    """Returns the drawing of a variable's first numbers, four at most.

    Args:
        name: the variable's.
        fact: its values at every step.
        ghost: those of the counterfactual; may be empty.
        at: the step that is looked at, marked by a line.

    >>> fact = [{"mass": np.array(1.0)}, {"mass": np.array(2.0)}]
    >>> curve_svg("mass", fact, fact[:1], at=1).count("<polyline")
    2
    """
    solid = _numbers(name, fact)
    dashed = _numbers(name, ghost) if ghost else np.empty((0, solid.shape[1]))
    every = np.concatenate([solid, dashed])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    last = max(1, len(fact) - 1, len(ghost) - 1)

    def points(column: NDArray[np.float64]) -> str:
        x = _LEFT + (_WIDTH - _LEFT - 4.0) * np.arange(len(column)) / last
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1.0 - (column - low) / (high - low))
        pairs = zip(x, np.nan_to_num(y), strict=True)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)

    bottom, here = _HEIGHT - _BOTTOM, _LEFT + (_WIDTH - _LEFT - 4.0) * at / last
    ends = [f"{end:.3g}" if abs(end) < 1000.0 else f"{end:.0f}" for end in (low, high)]
    parts = [
        f'<path d="M{_LEFT} {_TOP} V{bottom} H{_WIDTH - 4}" fill="none" stroke="#adb5bd"/>'
        f'<path d="M{here:.1f} {_TOP} V{bottom}" stroke="#dee2e6"/>'
        '<g fill="#868e96">'
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{ends[1]}</text>'
        f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">{ends[0]}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">0</text>'
        f'<text x="{_WIDTH - 4}" y="{_HEIGHT - 4}" text-anchor="end">step {last}</text></g>'
    ]
    alone = solid.shape[1] == 1  # the colours of fact and twin; else one a number, twins dashed
    for data, kind, style in ((solid, "fact", ""), (dashed, "ghost", ' stroke-dasharray="5 3"')):
        one = palette.FACT if kind == "fact" else palette.TWIN
        for column, color in zip(data.T, (one,) if alone else _COLORS, strict=False):
            if len(column):
                parts.append(
                    f'<polyline data-kind="{kind}" points="{points(column)}" fill="none"'
                    f' stroke="{color}" stroke-width="1.6" stroke-linecap="round"{style}'
                    ' marker-end="url(#dot)"/>'
                )
    return (
        f'<svg id="curve" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="100%"'
        ' font-family="system-ui, sans-serif" font-size="10"><defs><marker id="dot"'
        ' viewBox="0 0 6 6" refX="3" refY="3" markerWidth="4" markerHeight="4">'
        '<circle cx="3" cy="3" r="3" fill="context-stroke"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


def _numbers(name: str, trace: Trace) -> NDArray[np.float64]:
    """Returns (steps, numbers) of a variable."""
    return np.array([np.ravel(values[name])[:_MOST_CURVES] for values in trace], dtype=np.float64)


def causes_text(graph: CausalGraph, variable: Variable) -> str:
    """Returns Markdown: causes and effects of a variable in this step and in the next.

    >>> from interverse.scm import Box
    >>> import numpy as np
    >>> mass = Variable(name="mass", kind="latent", default=np.array(1.0), domain=Box(0, 2))
    >>> graph = CausalGraph.build(["mass", "speed"], [("mass", "speed'"), ("speed", "speed'")])
    >>> print(causes_text(graph, mass).splitlines()[-1])
    - **in the next step, it changes**: speed
    """
    name = variable.name
    rows = (
        ("it follows from", causes_of(graph, name)),
        ("a `do` on it changes at once", graph.effects_now(name)),
        ("in the next step, it changes", effects_next(graph, name)),
    )
    head = f"`{name}` ({variable.kind}{', ' + variable.unit if variable.unit else ''})"
    text = f"{head}: {variable.doc}" if variable.doc else head
    lines = [text, ""]
    for label, names in rows:
        found = sorted(names)
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        lines.append(f"- **{label}**: {', '.join(found[:_MOST]) or 'nothing'}{more}")
    return "\n".join(lines)


@final
class CausePanel:
    """The graph beside the scene."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._session = desk, desk.session
        self._lights: dict[str, Light] = {}
        self._last: Event | None = None
        self._drawn: GraphMarks | None = None
        gui, names = desk.gui, list(self._session.env.variables)
        self.chosen = gui.add_dropdown(
            "Variable",
            names,
            initial_value=_SCORE if _SCORE in names else names[0],
            hint="Drawn as a graph and a curve",
        )
        self._whole = gui.add_checkbox("Whole graph", initial_value=True)
        self._legend, self._graph = gui.add_html(""), gui.add_html("")
        self._legend.content = f'<div style="{PAD}">{legend_html()}</div>'
        self._title, self._curve = gui.add_html(""), gui.add_html("")
        with gui.add_folder("In words", expand_by_default=False):
            self._words = gui.add_markdown("")
        for handle in (self.chosen, self._whole):
            handle.on_update(lambda _: desk.orders.put("causes", self._choose))
        self._choose()

    def _choose(self) -> None:
        env = self._session.env
        self._words.content = causes_text(env.graph, env.world.variables[self.chosen.value])
        self._drawn = None
        self.refresh((), frozenset(), self._session.steps)

    def refuse(self, name: str) -> None:
        """Lights up a variable whose `do` was refused."""
        self._lights = {name: "refused"}
        self.chosen.value = name

    def refresh(self, ghost: Trace, differing: frozenset[str], at: int) -> None:
        """Shows the last `do` in the graph, and the chosen variable's curve.

        Args:
            ghost: the counterfactual's values at every step; may be empty.
            differing: the variables that differ in it now.
            at: the step that is looked at.
        """
        events = self._session.history.events
        last = events[-1] if events else None
        if last is not self._last:
            self._last, self._lights = last, {}
            if last is not None:
                self._lights = lights_of(self._session.env.graph, last.values, last.changed)
                self.chosen.value = next(iter(last.values))
        name, env = self.chosen.value, self._session.env
        marks = GraphMarks(chosen=name, lights=dict(self._lights), differing=differing)
        if marks != self._drawn:
            self._drawn = marks
            graph, variables = env.graph, env.world.variables
            if self._whole.value and len(variables) > _MOST_WHOLE:
                graph, variables, marks = by_object(graph, variables, marks)
            svg = graph_svg(graph, variables, marks, whole=self._whole.value)
            self._graph.content = f'<div style="{PAD}">{svg}</div>'
        also = " (solid) and in the ghost (dashed)" if ghost else ""
        self._title.content = f'<div style="{PAD}"><b>{name}</b> in fact{also}</div>'
        svg = curve_svg(name, self._session.history.trace, ghost, at=at)
        self._curve.content = f'<div style="{PAD}">{svg}</div>'
