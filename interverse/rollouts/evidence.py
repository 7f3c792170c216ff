"""Trials of a causal graph and what they show: edges that act, and moves that none explains.

Each variable follows from its parents alone. So whatever moves has a parent that moved; and where
one of its parents was set and no other moved, that edge acts: without it the move had no
explanation. A parent that moved by itself shows nothing, for its cause may have moved the child.
Only parents that nobody can set are judged by their moves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from interverse.scm import Variable
from interverse.scm.graph import NEXT, CausalGraph, Edge, now

WITNESS_LAWS = (
    "every declared edge is seen to act",
    "every variable moves something observable",
    "what an intervention moves is declared",
)
Findings = dict[str, list[str]]  # law -> what breaks it
# Of so many, one of a kind (a block's mass, a block's mass and another block's velocity) stands for
# all: the same code makes them.
MANY_EDGES = 500
MANY_VARIABLES = 100
_NUMBER = re.compile(r"\d+")


@final
@dataclass(frozen=True, slots=True, eq=False)
class WitnessChange:
    """What one world of a trial gets: values to set, or another action.

    Attributes:
        do: values by variable; None holds a variable at its present value.
        action: what this world does in the first step instead of the trial's action.
    """

    do: Mapping[str, Any]
    action: Any = None

    @property
    def name(self) -> str:
        """The variable that is tried; empty where the action is."""
        return next((name for name, value in self.do.items() if value is not None), "")


@final
@dataclass(frozen=True, slots=True, eq=False)
class WitnessTrial:
    """One situation and the changes tried in it.

    Attributes:
        seed: of the episode.
        before: what brings the situation about: `("do", values)`, `("play", steps)` with addressed
            actions, `("scripted", steps)` with the world's own policy.
        actions: those of the steps that follow the changes.
        changes: one world each.
        at_reset: whether episodes start under the changes.
        drawn: whether pictures count as observations.
    """

    seed: int
    before: Sequence[tuple[str, Any]]
    actions: Sequence[Any]
    changes: Sequence[WitnessChange]
    at_reset: bool = False
    drawn: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns the trial with plain lists and numbers."""
        rows = [
            {"do": plain(c.do)} | ({} if c.action is None else {"action": plain(c.action)})
            for c in self.changes
        ]
        flags = {name: True for name in ("at_reset", "drawn") if getattr(self, name)}
        before = {"before": [[kind, plain(what)] for kind, what in self.before]}
        return {
            "seed": self.seed,
            **(before if self.before else {}),
            **flags,
            "actions": plain(self.actions),
            "changes": rows,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WitnessTrial:
        """Returns the trial that `to_json` wrote."""
        changes = [WitnessChange(row["do"], row.get("action")) for row in data["changes"]]
        rest = {name: data[name] for name in ("at_reset", "drawn") if name in data}
        before = [(kind, what) for kind, what in data.get("before", [])]
        return cls(data["seed"], before, data["actions"], changes, **rest)


@final
@dataclass(frozen=True, slots=True, eq=False)
class WitnessMoment:
    """The variables that differ from the fact after an intervention or a step.

    Attributes:
        what: was changed, in words.
        moved: variables that differ by more than rounding.
        clearly: of them, those that no rounding grown in a step can explain.
        held: variables that the intervention set.
        before: what differed before the step; None at the intervention.
        at_reset: whether an episode began under the intervention.
        acted: the variables that another action of this step set; None where it may have moved
            anything, so that nothing is told.
        settable: variables that an intervention can set.
    """

    what: str
    moved: frozenset[str]
    clearly: frozenset[str]
    held: frozenset[str] = frozenset()
    before: frozenset[str] | None = None
    at_reset: bool = False
    acted: frozenset[str] | None = frozenset()
    settable: frozenset[str] = frozenset()

    def edges(self, graph: CausalGraph) -> set[Edge]:
        """Returns the edges from what was set without which what moved would have no cause."""
        out = set[Edge]()
        if self.acted is None:
            return out
        sources = self._sources(graph)
        moved = self._changed(graph) | sources
        kept = self.held if self.before is None else self.acted
        for child in self._nodes(graph, self.clearly - kept):
            if self.before is not None and not child.endswith(NEXT):
                continue  # it stayed as it was set
            acting = self._parents(graph, child) & moved
            twins = set() if graph.twins(child) & sources else graph.twins(child)
            around = twins | {child}
            for parent in set(graph.predecessors(child)) & acting:
                if not self._was_set(graph, parent):
                    continue  # it may have moved beside the child, by a cause of both
                if self.at_reset and graph.has_edge(parent + NEXT, child + NEXT):
                    continue  # it is the later moments' edge that made the start
                # Another description of the child is the child itself: where it was not set, and
                # nothing but the parent can have moved it.
                same = {t for t in twins if not self._parents(graph, t) & moved - around - {parent}}
                if not acting - same - {parent} - graph.equals(parent):
                    out.add((parent, child))
        return out

    def unexplained(self, graph: CausalGraph) -> set[str]:
        """Returns what clearly moved, and not from the causes by way of what moved."""
        if self.acted is None:
            return set()
        reached = self._sources(graph)
        left = self._changed(graph) - reached
        while fresh := {node for node in left if self._parents(graph, node) & reached}:
            reached |= fresh
            left -= fresh
        return {now(node) for node in left if now(node) in self.clearly}

    def _was_set(self, graph: CausalGraph, parent: str) -> bool:
        """Returns whether a parent was set, and differs for no other reason; or cannot be set.

        A variable of the next moment counts as set by an action, or where it was set just before.
        """
        name = now(parent)
        if name not in self.settable:
            return True
        names = {name} | graph.twins(name)  # descriptions of one thing
        if parent.endswith(NEXT) and not names.isdisjoint(self.acted or ()):
            return True
        rest = (self.before or frozenset()) - names
        return not names.isdisjoint(self.held) and rest <= graph.effects_now(name)

    def _changed(self, graph: CausalGraph) -> set[str]:
        """Returns what may have moved: what a start draws may be drawn from before it is set."""
        out = self._nodes(graph, self.moved)
        if self.at_reset:
            out |= {n for n in self.held if self._parents(graph, n) - graph.twins(n)}
        return out

    def _sources(self, graph: CausalGraph) -> set[str]:
        """Returns what differs without a cause in this moment."""
        if self.before is None:
            return set(self.held & self.moved)
        return self._nodes(graph, self.moved & (self.acted or frozenset())) | self.before

    def _nodes(self, graph: CausalGraph, names: Set[str]) -> set[str]:
        """Returns the nodes of variables: after a step, those of the next moment if there are."""
        if self.before is None:
            return set(names)
        return {name + NEXT if name + NEXT in graph else name for name in names}

    def _parents(self, graph: CausalGraph, node: str) -> set[str]:
        """Returns what a node follows from; a start is made by what joins a later moment, too."""
        out = set(graph.predecessors(node))
        if self.at_reset and node + NEXT in graph:
            out |= {now(p) for p in graph.predecessors(node + NEXT) if p.endswith(NEXT)}
        return out


@final
@dataclass(slots=True)
class Evidence:
    """Edges and variables that were seen to act, and what moved without a declared cause."""

    edges: dict[Edge, str] = field(default_factory=dict)  # edge -> how it was seen
    seen: set[str] = field(default_factory=set)  # variables that moved an observation
    stray: dict[str, set[str]] = field(default_factory=dict)  # what was done -> what it moved
    steps: int = 0  # after the changes until the last of it was seen
    by_picture: bool = False
    moments: list[tuple[CausalGraph, WitnessMoment]] = field(default_factory=list)  # all judged

    def judge(self, graph: CausalGraph, moment: WitnessMoment, how: str = "") -> None:
        """Adds the edges that a moment shows, and what moved in it without a declared cause."""
        self.moments.append((graph, moment))
        for edge in moment.edges(graph):
            self.edges.setdefault(edge, how)
        stray = moment.unexplained(graph)
        if stray:
            self.stray.setdefault(moment.what, set()).update(stray)

    def missing_edges(self, graph: CausalGraph) -> list[Edge]:
        """Returns the declared edges without a witness, inert ones left out."""
        idle = graph.inert
        missing = [edge for edge in graph.edges if edge not in self.edges and edge not in idle]
        if graph.number_of_edges() <= MANY_EDGES:
            return missing
        known = {edge_kind(edge) for edge in self.edges}
        return [edge for edge in missing if edge_kind(edge) not in known]

    def missing_variables(self, variables: Mapping[str, Variable]) -> list[str]:
        """Returns the variables that can be set and moved nothing that can be observed."""
        acting = [n for n, v in variables.items() if not (v.read_only or v.inert)]
        missing = [name for name in acting if name not in self.seen]
        if len(variables) <= MANY_VARIABLES:
            return missing
        known = {_NUMBER.sub("#", name) for name in self.seen}
        return [name for name in missing if _NUMBER.sub("#", name) not in known]

    def broken(self, graph: CausalGraph, variables: Mapping[str, Variable]) -> Findings:
        """Returns, for each of the three laws, a line for each thing that breaks it."""
        idle = [edge for edge in graph.inert if edge in self.edges]
        acting = [f"edge {a} -> {b} is called inert" for a, b in idle]
        seen = [f"{name} is called inert" for name in self.seen if variables[name].inert]
        moved = [f"{name} moves {sorted(what)}" for name, what in self.stray.items()]
        edges = [f"edge {a} -> {b} has no witness" for a, b in self.missing_edges(graph)]
        unseen = [f"{name} moves nothing" for name in self.missing_variables(variables)]
        return dict(zip(WITNESS_LAWS, (edges + acting, unseen + seen, moved), strict=True))


def edge_kind(edge: Edge) -> tuple[str, str, bool]:
    """Returns the edge without numbers, and whether both ends have the same ones.

    >>> edge_kind(("block_3/mass", "block_11/mass"))
    ('block_#/mass', 'block_#/mass', False)
    """
    parent, child = edge
    own = _NUMBER.findall(parent) == _NUMBER.findall(child)
    return _NUMBER.sub("#", parent), _NUMBER.sub("#", child), own


def plain(value: Any) -> Any:
    """Returns lists and numbers, rounded: what is stored is what was tried."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return float(f"{value:.6g}") if isinstance(value, float) else value
