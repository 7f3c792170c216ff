"""Trials of a causal graph and what they show: changes, situations, edges credited.

An edge is credited where its child moved, its parent moved and nothing else that the child follows
from did: values set beside the parent to what they are hold the rest still.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from interverse.scm import Variable
from interverse.scm.graph import NEXT, CausalGraph, Edge

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
@dataclass(slots=True)
class Evidence:
    """Edges and variables that were seen to act, and what moved without a declared cause."""

    edges: dict[Edge, str] = field(default_factory=dict)  # edge -> how it was seen
    seen: set[str] = field(default_factory=set)  # variables that moved an observation
    stray: dict[str, set[str]] = field(default_factory=dict)  # variable -> what it moved
    steps: int = 0  # after the changes until the last of it was seen
    by_picture: bool = False

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
        moved = [f"do({name}) moves {sorted(what)}" for name, what in self.stray.items()]
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


def credit_now(graph: CausalGraph, moved: set[str], held: set[str]) -> set[Edge]:
    """Returns the edges within a moment that a change shows."""
    out: set[Edge] = set()
    for child in moved - held:
        parents = graph.parents(child) & moved
        others = parents - graph.twins(child)
        out |= {(p, child) for p in parents if not others - {p} - graph.twins(p)}
    return out


def credit_next(graph: CausalGraph, before: set[str], after: set[str]) -> set[Edge]:
    """Returns the edges into the next moment that a step shows.

    What moves along in the next moment itself cannot be held still: it does not count against a
    cause of the moment before.
    """
    out: set[Edge] = set()
    moved = {name + NEXT for name in after if name + NEXT in graph}
    for child in moved:
        parents = graph.parents(child)
        early, late = parents & before, parents & moved
        out |= {(p, child) for p in early if not early - {p} - graph.twins(p)}
        out |= {(p, child) for p in late if not early}
    return out


def plain(value: Any) -> Any:
    """Returns lists and numbers, rounded: what is stored is what was tried."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return float(f"{value:.6g}") if isinstance(value, float) else value
