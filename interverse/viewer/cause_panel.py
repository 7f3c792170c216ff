"""Causes on the page: the graph, what a `do` lit up in it, and the curve of one variable."""

from __future__ import annotations

from typing import final

from interverse.viewer.causes import causes_text
from interverse.viewer.curve import Trace, curve_svg
from interverse.viewer.desk import PAD, Desk
from interverse.viewer.graph import GraphMarks, Light, graph_svg, legend_html, lights_of
from interverse.viewer.history import Event

_MOST_WHOLE = 40  # variables of a graph that is first drawn whole


@final
class CausePanel:
    """The graph beside the scene."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._session = desk, desk.session
        self._lights: dict[str, Light] = {}
        self._last: Event | None = None
        self._drawn: GraphMarks | None = None
        gui, names = desk.gui, list(self._session.env.variables)
        self.chosen = gui.add_dropdown("Variable", names, hint="Drawn as a graph and a curve")
        self._whole = gui.add_checkbox("Whole graph", initial_value=len(names) <= _MOST_WHOLE)
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
        self._light_up()
        name, env = self.chosen.value, self._session.env
        marks = GraphMarks(chosen=name, lights=dict(self._lights), differing=differing)
        if marks != self._drawn:
            self._drawn = marks
            svg = graph_svg(env.graph, env.world.variables, marks, whole=self._whole.value)
            self._graph.content = f'<div style="{PAD}">{svg}</div>'
        also = " (solid) and in the ghost (dashed)" if ghost else ""
        self._title.content = f'<div style="{PAD}"><b>{name}</b> in fact{also}</div>'
        svg = curve_svg(name, self._session.history.trace, ghost, at=at)
        self._curve.content = f'<div style="{PAD}">{svg}</div>'

    def _light_up(self) -> None:
        events = self._session.history.events
        last = events[-1] if events else None
        if last is not self._last:
            self._last = last
            self._lights = {}
            if last is not None:
                self._lights = lights_of(self._session.env.graph, last.values, last.changed)
                self.chosen.value = next(iter(last.values))
