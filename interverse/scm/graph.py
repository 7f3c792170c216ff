"""The causal graph of a world: a networkx DiGraph over variable names, with a few views on it.

A name that ends in `'` is the variable in the next time slice: `object_0/color'`. An edge marked
`constraint=True` joins two descriptions of one thing (a position in two coordinates, a goal and
the block of its size): intervening on either changes both, so such edges come in pairs.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, check_name
from interverse.core.files.json_text import parse_json
from interverse.core.notebook import table_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEXT = "'"
Edge = tuple[str, str]


def now(name: str) -> str:
    """Returns the variable a node stands for, whichever time slice it is in."""
    return name.removesuffix(NEXT)


class _FixedData(dict[str, Any]):
    """What is known of an edge or a node of a frozen graph: read like any dict, never changed."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise nx.NetworkXError("Frozen graph can't be modified")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = _refuse
    pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@final
class CausalGraph(nx.DiGraph):
    """A directed graph over variable names; every networkx function works on it.

    What `build` returns is frozen (`networkx.freeze`), since worlds share it: an edit raises
    NetworkXError. Its `copy()` may be edited.

    >>> graph = CausalGraph.build(["mass", "speed"], [("mass", "speed'"), ("speed", "speed'")])
    >>> sorted(graph.descendants("mass"))
    ["speed'"]
    """

    @classmethod
    def build(
        cls,
        names: Iterable[str],
        edges: Iterable[Edge],
        constraints: Iterable[Edge] = (),
        inert: Mapping[Edge, str] | None = None,
        outcomes: Mapping[str, Iterable[str]] | None = None,
    ) -> CausalGraph:
        """Returns the graph, frozen; an edge to or from an undeclared variable raises.

        Args:
            names: the variables.
            edges: causes and their effects.
            constraints: pairs of variables that describe one thing.
            inert: edges that are there in principle and never act, with the reason.
            outcomes: what follows from variables and is none itself, such as the reward, with its
                causes; `parents` answers for it.
        """
        graph = cls()
        if outcomes:
            graph.graph["outcomes"] = {name: sorted(causes) for name, causes in outcomes.items()}
        graph.add_nodes_from(names)
        known = set(graph.nodes)
        both_ways = [(a, b) for pair in constraints for a, b in (pair, pair[::-1])]
        for parent, child in [*edges, *both_ways]:
            if now(parent) not in known or now(child) not in known:
                raise InvalidValueError(
                    f"edge {parent} -> {child} names an undeclared variable",
                    fix="Declare the variable or correct the edge",
                )
            graph.add_edge(parent, child, constraint=(parent, child) in both_ways)
        for (parent, child), reason in (inert or {}).items():
            graph.add_edge(parent, child, constraint=False, inert=reason)
        # Frozen is also what is known of nodes and edges.
        for parent, child, data in list(graph.edges(data=True)):
            graph._adj[parent][child] = graph._pred[child][parent] = _FixedData(data)
        for name, data in graph.nodes(data=True):
            graph._node[name] = _FixedData(data)
        nx.freeze(graph)
        return graph

    @property
    def inert(self) -> dict[Edge, str]:
        """The edges that never act, with the reason."""
        return {(a, b): d["inert"] for a, b, d in self.edges(data=True) if d.get("inert")}

    def parents(self, name: str) -> set[str]:
        """Returns the direct causes of a variable, of its next value ('), or of the reward.

        Most causes act on the next slice, so those of a variable are of either slice, without the
        mark. networkx's `predecessors` are of the node alone.

        >>> graph = CausalGraph.build(["mass", "speed"], [("mass", "speed'"), ("speed", "speed'")])
        >>> sorted(graph.parents("speed"))
        ['mass', 'speed']
        """
        outcomes: Mapping[str, list[str]] = self.graph.get("outcomes", {})
        if name in outcomes:
            return set(outcomes[name])
        check_name("variable of the graph", name, [*self.nodes, *outcomes])
        found = set(self.predecessors(name))
        if name.endswith(NEXT) or name + NEXT not in self:
            return found
        return {now(cause) for cause in found.union(self.predecessors(name + NEXT))}

    def children(self, name: str) -> set[str]:
        """Returns the direct effects of a node."""
        return set(self.successors(name))

    def descendants(self, name: str) -> set[str]:
        """Returns everything a change of this node can reach, itself left out."""
        return set(nx.descendants(self, name))

    def ancestors(self, name: str) -> set[str]:
        """Returns everything that can reach this node."""
        return set(nx.ancestors(self, name))

    def effects_now(self, name: str) -> set[str]:
        """Returns the variables of the same time slice that follow at once from this one."""
        return self._reached({name}, at_once=True) - {name}

    def _reached(self, starts: Iterable[str], *, at_once: bool = False) -> set[str]:
        """Returns the ends of all paths from some nodes; `at_once`: within this time slice."""
        left_out = {node for node in self if node.endswith(NEXT)} if at_once else set()
        found = set(left_out)
        waiting = list(starts)
        while waiting:
            fresh = self._adj[waiting.pop()].keys() - found
            found |= fresh
            waiting += fresh
        return found - left_out

    def twins(self, name: str) -> set[str]:
        """Returns the other descriptions of the thing that this variable describes."""
        return {a for a, edge in self._pred[name].items() if edge.get("constraint")}

    def with_twins(self, names: Iterable[str]) -> set[str]:
        """Returns variables, known or not, and the other descriptions of the same things."""
        given = set(names)
        return given.union(*(self.twins(name) for name in given if name in self))

    def equals(self, name: str) -> set[str]:
        """Returns the twins that always have the same value: one quality of two things."""
        quality = name.rpartition("/")[2]
        return {twin for twin in self.twins(name) if twin.rpartition("/")[2] == quality}

    def updated(self, earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
        """Returns both sets of values; of two descriptions of one thing the later one stands."""
        twins = {twin for name in later if name in self for twin in self.twins(name)}
        return {name: x for name, x in earlier.items() if name not in twins} | dict(later)

    def effects_later(self, name: str, slices: int | None = None) -> set[str]:
        """Returns the variables that can differ in a later slice, this one left out or not.

        At most so many slices later; None stands for any number.
        """
        reached: set[str] = set()
        frontier = {name} | self.effects_now(name)
        for _ in itertools.count() if slices is None else range(slices + 1):
            if not frontier - reached:
                break
            reached |= frontier
            steps = {now(n) for n in self._reached(frontier)}
            frontier = steps | self._reached(steps, at_once=True)
        loops = name in map(now, self._reached(reached))
        return reached if loops else reached - {name}

    def adjacency_matrix(self, order: Sequence[str]) -> NDArray[np.int64]:
        """Returns a[i, j] = 1 where order[j] is a parent of order[i].

        Of variables alone it is the summary graph: a parent within a slice or of the next one.
        Where names of the next slice (') are listed, each entry is one edge of the graph.
        """
        for name in order:
            check_name("variable of the graph", name, self.nodes)
        if not any(name.endswith(NEXT) for name in order):
            causes = [self.parents(name) for name in order]
            return np.array([[int(n in own) for n in order] for own in causes], dtype=np.int64)
        matrix = nx.to_numpy_array(self, nodelist=list(order), weight=None, dtype=np.int64)
        return np.ascontiguousarray(matrix.T)

    def unrolled(self, steps: int) -> nx.DiGraph:
        """Returns the graph over (name, t) for t = 0..steps: the same edges at every step."""
        out = nx.DiGraph()
        names = [n for n in self if not n.endswith(NEXT)]
        out.add_nodes_from((n, t) for t in range(steps + 1) for n in names)
        for parent, child in self.edges:
            crosses = child.endswith(NEXT) and not parent.endswith(NEXT)
            later = parent.endswith(NEXT)
            for t in range(steps if crosses else steps + 1):
                if later and t == 0:
                    continue  # a mechanism of the next slice first acts at t = 1
                out.add_edge((now(parent), t), (now(child), t + 1 if crosses else t))
        return out

    def _repr_html_(self) -> str:
        """Shows in a notebook what each variable follows from; `plot` draws it."""
        rows = [(name, ", ".join(sorted(self.predecessors(name)))) for name in self.nodes]
        title = f"{len(self)} variables, {self.number_of_edges()} edges; name' is the next step"
        return table_html(("variable", "follows from"), [r for r in rows if r[1]], title=title)

    def to_json(self) -> str:
        """Returns nodes and edges as JSON, for `from_json`."""
        return json.dumps(as_graph_json(self))

    @classmethod
    def from_json(cls, text: str) -> CausalGraph:
        """Returns the graph that `to_json` wrote."""
        try:
            data = parse_json(text, "the graph")
            graph = cls()
            graph.add_nodes_from(data["nodes"])
            for parent, child, constraint in data["edges"]:
                graph.add_edge(parent, child, constraint=constraint)
            for parent, child, reason in data.get("inert", ()):
                graph.edges[parent, child]["inert"] = reason
            if "outcomes" in data:
                graph.graph["outcomes"] = dict(data["outcomes"])
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(
                f"not a causal graph in JSON: {error}", fix="Write it with to_json"
            ) from error
        return graph

    def to_dot(self) -> str:
        """Returns Graphviz DOT text; next-slice nodes are drawn as boxes."""
        lines = ["digraph causal {", "  rankdir=LR;"]
        for node in self.nodes:
            shape = "box" if node.endswith(NEXT) else "ellipse"
            lines.append(f'  "{node}" [shape={shape}];')
        for parent, child, data in self.edges(data=True):
            style = " [style=dashed]" if data.get("constraint") else ""
            lines.append(f'  "{parent}" -> "{child}"{style};')
        return "\n".join([*lines, "}"]) + "\n"

    def to_mermaid(self) -> str:
        """Returns Mermaid text; next-slice nodes are boxes, constraints are dotted.

        >>> print(CausalGraph.build(["a"], [("a", "a'")]).to_mermaid())
        flowchart LR
          n0(["a"])
          n1["a'"]
          n0 --> n1
        <BLANKLINE>
        """
        number = {node: f"n{i}" for i, node in enumerate(self.nodes)}
        lines = ["flowchart LR"]
        for node in self.nodes:
            shape = '["{}"]' if node.endswith(NEXT) else '(["{}"])'
            lines.append(f"  {number[node]}{shape.format(node)}")
        for parent, child, data in self.edges(data=True):
            arrow = "-.->" if data.get("constraint") else "-->"
            lines.append(f"  {number[parent]} {arrow} {number[child]}")
        return "\n".join(lines) + "\n"

    def plot(self, ax: Axes, positions: Mapping[str, tuple[float, float]] | None = None) -> None:
        """Draws the graph on matplotlib axes, causes to the left of their effects."""
        where = layered_positions(self) if positions is None else positions
        later = [n.endswith(NEXT) for n in self]
        colours = ["#56b4e9" if is_later else "#f0e442" for is_later in later]
        nx.draw_networkx(
            self, where, ax=ax, node_color=colours, font_size=7, node_size=500, arrowsize=9
        )
        ax.set_axis_off()


def layered_positions(graph: nx.DiGraph) -> dict[str, tuple[float, float]]:
    """Returns a place for each node: its layer is its longest path from a cause."""
    condensed = nx.condensation(graph)  # a constraint pair is one component
    depth: dict[int, int] = {}
    for component in nx.topological_sort(condensed):
        before = [depth[p] + 1 for p in condensed.predecessors(component)]
        depth[component] = max(before, default=0)
    layers: dict[int, list[str]] = {}
    for component, data in condensed.nodes(data=True):
        layers.setdefault(depth[component], []).extend(sorted(data["members"]))
    return {
        node: (float(layer), -float(row - (len(nodes) - 1) / 2))
        for layer, nodes in layers.items()
        for row, node in enumerate(sorted(nodes))
    }


def as_graph_json(graph: CausalGraph) -> dict[str, Any]:
    """Returns the graph as a JSON-ready mapping."""
    edges = [[a, b, bool(d.get("constraint"))] for a, b, d in graph.edges(data=True)]
    inert = [[a, b, reason] for (a, b), reason in graph.inert.items()]
    some = {"inert": inert, "outcomes": graph.graph.get("outcomes")}
    told = {name: part for name, part in some.items() if part}
    return {"nodes": list(graph.nodes), "edges": edges, **told}
