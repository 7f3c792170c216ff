"""Causes on the page: a causal graph as SVG, what a `do` lit up in it, the curve of a variable.

Causes are drawn above their effects, variables by their object. Large graphs are drawn around one
variable: its causes, its effects at once and in the next step.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from interverse.reports import palette
from interverse.scm import CausalGraph, Variable
from interverse.scm.graph import NEXT, layered_positions, now
from interverse.viewer.desk import PAD, Desk, listed
from interverse.viewer.history import Event

Light = Literal["do", "changed", "follows", "refused"]
Band = tuple[str, list[str]]  # a title and the variables under it

_WIDTH, _ROW, _PILL, _GAP, _BAND = 400.0, 22.0, 17.0, 5.0, 24.0
_LETTER, _BOLD = 5.4, 6.2  # width of a letter on average
_MOST = 60  # variables of a band; the rest are counted
_FILL = {"do": palette.DO, "changed": "#2f9e44", "follows": "#d3f9d8", "refused": "#ffc9c9"}
_INK = {"do": "#ffffff", "changed": "#ffffff", "refused": "#c92a2a"}
_LINES = {"lit": palette.DO, "constraint": "#868e96", "inert": "#ced4da", "plain": "#ced4da"}
LEGEND = (
    ("do", "do"),
    ("changed", "changed at once"),
    ("follows", "can follow"),
    ("refused", "refused"),
)
Trace = Sequence[Mapping[str, NDArray[Any]]]

_COLORS = ("#1c7ed6", "#e8590c", "#2f9e44", "#ae3ec9")
_HEIGHT, _LEFT, _BOTTOM, _TOP = 150.0, 46.0, 18.0, 8.0  # of a curve
_MOST_CURVES = len(_COLORS)  # numbers of a variable that are drawn
_MOST_WHOLE = 40  # variables of a graph; of more, their objects are drawn
_SCORE = "fractional_success"  # drawn first where there is one


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphMarks:
    """Marks on a drawn graph."""

    chosen: str  # the variable that is looked at
    lights: Mapping[str, Light]  # what a `do` lit up
    differing: frozenset[str] = frozenset()  # between fact and counterfactual


def lights_of(graph: CausalGraph, done: Iterable[str], changed: Iterable[str]) -> dict[str, Light]:
    """Returns what a `do` lights up: itself, what changed at once, what can follow later.

    >>> graph = CausalGraph.build(["a", "b", "c"], [("a", "b"), ("b", "c'")])
    >>> lights_of(graph, ["a"], ["a", "b"])
    {'c': 'follows', 'b': 'changed', 'a': 'do'}
    """
    names = list(done)
    later = {effect for name in names for effect in graph.effects_later(name)}
    order: list[tuple[Iterable[str], Light]] = [
        (sorted(later), "follows"),
        (sorted(changed), "changed"),
        (names, "do"),
    ]
    out: dict[str, Light] = {}
    for group, light in order:
        for name in group:
            out.pop(name, None)
            out[name] = light
    return out


def by_object(
    graph: CausalGraph, variables: Mapping[str, Variable], marks: GraphMarks
) -> tuple[CausalGraph, dict[str, Variable], GraphMarks]:
    """Returns the graph between objects, as many variables are too many to follow.

    An object is lit as the most telling of its variables is.
    """
    members: dict[str, list[str]] = {}
    for name in variables:
        members.setdefault(name.partition("/")[0], []).append(name)
    owner = {name: thing for thing, names in members.items() for name in names}
    pairs = {(owner[now(a)], owner[now(b)]) for a, b in graph.edges}
    folded = CausalGraph.build(
        list(members), [(a, f"{b}{NEXT}") for a, b in sorted(pairs) if a != b]
    )
    things = {
        thing: replace(
            variables[names[0]], name=thing, doc=", ".join(n.rpartition("/")[2] for n in names)
        )
        for thing, names in members.items()
    }
    lights: dict[str, Light] = {}
    for light in reversed(LEGEND):  # the last, "do", is what stays
        for name, own in marks.lights.items():
            if own == light[0]:
                lights[owner[name]] = own
    differing = frozenset(owner[name] for name in marks.differing)
    chosen = owner[marks.chosen]
    return folded, things, GraphMarks(chosen=chosen, lights=lights, differing=differing)


def graph_svg(
    graph: CausalGraph, variables: Mapping[str, Variable], marks: GraphMarks, *, whole: bool
) -> str:
    """Returns the drawing of the whole graph, or of the chosen variable's neighbourhood alone."""
    edges: dict[tuple[str, str], str] = {}  # between variables, whichever slice
    for a, b, data in graph.edges(data=True):
        kind = "inert" if data.get("inert") else "constraint" if data.get("constraint") else "plain"
        if now(a) != now(b) and edges.get((now(a), now(b)), "inert") == "inert":
            edges[now(a), now(b)] = kind
    bands = _layers(variables, edges) if whole else _around(graph, marks.chosen)
    places, texts, bottom = _placed(bands)
    shown = {pair: kind for pair, kind in edges.items() if set(pair) <= places.keys()}
    if not whole:
        shown = {pair: kind for pair, kind in shown.items() if marks.chosen in pair}
    lines = [_line(pair, kind, places, marks) for pair, kind in shown.items()]
    lines.sort(key=lambda line: 'data-kind="lit"' in line)  # lit ones on top
    pills = [_pill(variables[name], *place, marks) for name, place in places.items()]
    return (
        f'<svg id="graph" viewBox="0 0 {_WIDTH:g} {bottom:g}" width="100%"'
        ' font-family="system-ui, sans-serif" font-size="10">'
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5"'
        ' markerHeight="5" orient="auto"><path d="M0 0 L6 3 L0 6 z" fill="context-stroke"/>'
        f"</marker></defs>{''.join([*lines, *texts, *pills])}</svg>"
    )


# --------------------------------------------------------------------------- choice


def _layers(variables: Mapping[str, Variable], edges: Iterable[tuple[str, str]]) -> list[Band]:
    linked = nx.DiGraph(list(edges))
    layers: dict[float, list[str]] = {}
    for name, (layer, _) in layered_positions(linked).items():
        layers.setdefault(layer, []).append(name)
    last = max(layers, default=0.0)
    titles = {0.0: "causes", last: "effects"}
    bands = [(titles.get(layer, ""), layers[layer]) for layer in sorted(layers)]
    alone = [name for name in variables if name not in linked]
    return [*bands, *([("no links to other variables", alone)] if alone else [])]


def _around(graph: CausalGraph, name: str) -> list[Band]:
    at_once = graph.effects_now(name) - {name}
    later = effects_next(graph, name) - at_once - {name}
    before = causes_of(graph, name) - at_once - later - {name}
    bands = [
        ("it follows from", sorted(before)),
        ("chosen", [name]),
        ("changes at once with it", sorted(at_once)),
        ("changes in the next step", sorted(later)),
    ]
    return [(title, names) for title, names in bands if names]


def causes_of(graph: CausalGraph, name: str) -> set[str]:
    """Returns the variables that a variable follows from, in this step or in the next."""
    return graph.parents(name) - {name} if name in graph else set()


def effects_next(graph: CausalGraph, name: str) -> set[str]:
    """Returns the variables that change in the next step with a variable or its effects now."""
    nodes = {name + NEXT} & set(graph) | {name} | graph.effects_now(name)
    children = {child for node in nodes for child in graph.children(node)}
    return {now(child) for child in children if child.endswith(NEXT)}


# ---------------------------------------------------------------------------- layout


def _placed(bands: Sequence[Band]) -> tuple[dict[str, tuple[float, float]], list[str], float]:
    """Returns the middle of every pill, the texts between them, and the height of it all."""
    places: dict[str, tuple[float, float]] = {}
    texts: list[str] = []
    y = 0.0
    for number, (title, names) in enumerate(bands):
        hidden = f", {len(names) - _MOST} more" if len(names) > _MOST else ""
        texts.append(_text(2.0, y + _BAND - 4.0, title + hidden, "#868e96"))
        y += _BAND
        for row in _rows(names[:_MOST]):
            free = _WIDTH - sum(width for _, _, width in row)
            shift = (0.5, 0.32, 0.68)[number % 3]  # or arrows between single pills would coincide
            x = free * shift
            for name, text, width in row:
                if name:
                    places[name] = (x + (width - _GAP) / 2, y + _ROW / 2)
                else:
                    texts.append(_text(x + 2.0, y + _ROW / 2 + 3.5, text, "#343a40", bold=True))
                x += width
            y += _ROW
    return places, texts, y + 4.0


def _rows(names: Iterable[str]) -> Iterator[list[tuple[str, str, float]]]:
    """Returns rows of (variable or nothing, text, width); an object's stay together if they can."""
    row: list[tuple[str, str, float]] = []
    used = 0.0
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: ("/" in name, name)):  # what has no object first
        groups.setdefault(name.rpartition("/")[0], []).append(name)
    for group, members in groups.items():
        items = [("", group, _BOLD * len(group) + 8.0)] if group else []
        items += [(name, "", _width(name) + _GAP) for name in members]
        whole = sum(width for _, _, width in items)
        if row and used + min(whole, _WIDTH) > _WIDTH and group:
            yield row
            row, used = [], 0.0
        for item in items:
            if row and used + item[2] > _WIDTH:
                yield row
                row, used = [], 0.0
            row.append(item)
            used += item[2]
    yield row


def _width(name: str) -> float:
    return _LETTER * len(name.rpartition("/")[2]) + 12.0


# --------------------------------------------------------------------------- drawing


def _text(x: float, y: float, text: str, color: str, *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    halo = ' stroke="#ffffff" stroke-width="3" paint-order="stroke"'  # over the arrows
    return f'<text x="{x:g}" y="{y:g}" fill="{color}"{weight}{halo}>{html.escape(text)}</text>'


def _line(
    pair: tuple[str, str], kind: str, places: Mapping[str, tuple[float, float]], marks: GraphMarks
) -> str:
    (x1, y1), (x2, y2) = places[pair[0]], places[pair[1]]
    lit = kind != "inert" and marks.lights.get(pair[0], "refused") != "refused"
    lit = lit and pair[1] in marks.lights
    down = 1 if y2 >= y1 else -1
    y1, y2 = y1 + down * _PILL / 2, y2 - down * (_PILL / 2 + 1.0)
    bend = max(12.0, abs(y2 - y1) / 2) * down
    dash = {"constraint": ' stroke-dasharray="4 3"', "inert": ' stroke-dasharray="1 3"'}
    tip = "" if kind == "constraint" else ' marker-end="url(#tip)"'
    shown = "lit" if lit else kind
    return (
        f'<path data-kind="{shown}" d="M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + bend:.1f}'
        f' {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}" fill="none" stroke="{_LINES[shown]}"'
        f' stroke-width="{1.2 if lit else 0.7}"{dash.get(kind, "")}{tip}/>'
    )


def _pill(variable: Variable, x: float, y: float, marks: GraphMarks) -> str:
    name = variable.name
    light, width = marks.lights.get(name, ""), _width(name)
    chosen, differs = name == marks.chosen, name in marks.differing
    edge = palette.TWIN if differs else "#1c7ed6" if chosen else "#adb5bd"
    dash = ' stroke-dasharray="2 2"' if variable.inert else ""
    style = ' font-style="italic"' if variable.read_only else ""
    ink = _INK.get(light, "#868e96" if variable.read_only or variable.inert else "#212529")
    told = [name, variable.doc, f"Inert: {variable.inert}" if variable.inert else ""]
    told += ["differs in the counterfactual"] if differs else []
    title = html.escape(". ".join(filter(None, told)))
    return (
        f'<g class="node" data-name="{html.escape(name)}" data-state="{light}"'
        f' data-differs="{int(differs)}"><title>{title}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - _PILL / 2:.1f}" width="{width:.1f}"'
        f' height="{_PILL:g}" rx="6" fill="{_FILL.get(light, "#f8f9fa")}" stroke="{edge}"'
        f' stroke-width="{2.0 if chosen or differs else 0.8}"{dash}/>'
        f'<text x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle" fill="{ink}"{style}>'
        f"{html.escape(name.rpartition('/')[2])}</text></g>"
    )


def legend_html() -> str:
    """Returns one line that explains the colours."""
    dots = [
        f'<span style="display:inline-block;width:9px;height:9px;border-radius:3px;'
        f'background:{_FILL[light]};margin:0 3px 0 8px"></span>{word}'
        for light, word in LEGEND
    ]
    ring = (
        '<span style="display:inline-block;width:7px;height:7px;border-radius:3px;'
        'border:2px solid #7048e8;margin:0 3px 0 8px"></span>differs in ghost'
    )
    return f'<div style="font-size:11px;color:#495057">{"".join([*dots, ring])}</div>'


# ---------------------------------------------------------------------------- the panel


def curve_svg(name: str, fact: Trace, ghost: Trace, *, at: int) -> str:
    """Returns the drawing of a variable's first four numbers, a line at the step looked at.

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
    lines += [f"- **{label}**: {listed(sorted(names))}" for label, names in rows]
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
        """Shows the last `do` and what differs in the ghost in the graph, and the chosen curve."""
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
