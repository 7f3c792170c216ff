"""Causal graphs by name, by text, by matrix or by chance; always a[i, j] = 1 where j causes i.

Edges go from lower to higher index, so every graph is acyclic by construction; what would close a
cycle or run backwards is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, namespace
from interverse.core.errors import InvalidValueError, explain, unknown
from interverse.core.rng import Noise

Adjacency = NDArray[np.int64]  # (n, n); [i, j] = 1: j is a parent of i
Edge = tuple[int, int]  # parent, child

RANDOM = "random"
_MOST_PARENTS = 5.0
_MOST_DRAWS = 2000  # of graphs, until one has the chain that was asked for
_RANDOM_NAMES = (RANDOM, "none")  # the text "None" means: no graph given
_HINT = "a family such as 'chain', edges such as '0->1->2,{0-2}->4', a 0/1 matrix, or None"


FAMILIES: dict[str, Callable[[int], list[Edge]]] = {
    "bidiag": lambda n: [(i - step, i) for step in (1, 2) for i in range(step, n)],
    "chain": lambda n: [(i - 1, i) for i in range(1, n)],
    "collider": lambda n: [(i, n - 1) for i in range(n - 1)],
    "full": lambda n: [(j, i) for i in range(n) for j in range(i)],
    "jungle": lambda n: [  # a tree, and from each object to those two below
        *((_above(i), i) for i in range(1, n)),
        *((_above(_above(i)), i) for i in range(3, n)),
    ],
    "tree": lambda n: [(_above(i), i) for i in range(1, n)],
}
# Published with three objects, where they are other families' graphs.
_OF_THREE = {"confounder": "full", "fork": "tree"}
# Graphs that the worlds without a target have when none is named.
HARD_WIRED: dict[int, list[Edge]] = {
    3: [(0, 1), (0, 2)],
    5: [(0, 1), (0, 2), (0, 3), (1, 3), (2, 4)],
}


def _above(i: int) -> int:
    return (i - 1) // 2


def parse(graph: str | Sequence[Any] | NDArray[Any], objects: int) -> Adjacency | None:
    """Returns the adjacency a name, a text or a matrix stands for; None for a random one.

    >>> parse("0->1,{0-1}->2", 3).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    """
    if not isinstance(graph, str):
        return _from_matrix(graph, objects)
    text = "".join(graph.split())
    if text.lower() in _RANDOM_NAMES:
        return None
    if re.fullmatch(r"[A-Za-z]\w*", text):
        return _from_family(text.lower(), objects)
    return adjacency_of(_edges_of(text, objects), objects)


def adjacency_of(edges: Iterable[Edge], objects: int) -> Adjacency:
    """Returns the matrix of a list of edges (parent, child); one out of range or order raises."""
    matrix = np.zeros((objects, objects), dtype=np.int64)
    for parent, child in edges:
        for node in (parent, child):
            _check_node(node, objects)
        matrix[child, parent] = 1
    wrong = disorder(matrix)
    if wrong:
        raise InvalidValueError(wrong)
    return matrix


def edges_of(adjacency: NDArray[Any]) -> list[Edge]:
    """Returns the edges (parent, child) of a matrix, children ascending.

    >>> edges_of(np.array([[0, 0], [1, 0]]))
    [(0, 1)]
    """
    return [(int(j), int(i)) for i, j in np.argwhere(adjacency)]


def disorder(adjacency: NDArray[Any]) -> str:
    """Returns why a matrix is no graph of this world, naming the cycle; empty if it is one."""
    edges = edges_of(adjacency)
    backward = [(j, i) for j, i in edges if j >= i]
    if not backward:
        return ""
    graph = nx.DiGraph(edges)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [a for a, _ in nx.find_cycle(graph)]
        first = cycle.index(min(cycle))
        path = " -> ".join(str(n) for n in [*cycle[first:], *cycle[:first], min(cycle)])
        return explain(f"the graph has a cycle: {path}", allowed="edges to higher indices only")
    named = ", ".join(f"{j}->{i}" for j, i in backward)
    return explain(
        f"the graph has {named}, against the order of the objects",
        allowed="edges to higher indices only",
        fix="Number the objects so that causes come first",
    )


def random_adjacency(
    noise: Noise,
    objects: int,
    *,
    density: float | None = None,
    longest_chain: int | None = None,
) -> Array:
    """Returns (N, n, n) random graphs.

    Args:
        noise: of N worlds.
        objects: how many nodes, n.
        density: share of the n (n - 1) / 2 possible edges that are there, in equally likely places;
            None: object i takes each j < i with min(i / 2, 5) / (i + 1), as published.
        longest_chain: edges of the longest path; graphs are drawn until one has it.
    """
    graphs = _drawn(noise, objects, density, name="graph/adjacency")
    if longest_chain is None:
        return graphs
    xp = namespace(graphs)
    wrong = _longest_chains(graphs) != longest_chain
    for attempt in range(1, _MOST_DRAWS):
        if not bool(xp.any(wrong)):
            return graphs
        other = _drawn(noise, objects, density, name=f"graph/adjacency/{attempt}")
        graphs = xp.where(wrong[:, None, None], other, graphs)
        wrong = _longest_chains(graphs) != longest_chain
    told = "" if density is None else f" and density {density}"
    raise InvalidValueError(
        f"no graph of {objects} objects with longest_chain {longest_chain}{told} was found",
        fix="Raise density for longer chains, lower it for shorter ones",
    )


def _drawn(noise: Noise, objects: int, density: float | None, *, name: str) -> Array:
    u = noise.uniform(name, (objects, objects))
    xp = namespace(u)
    i = np.arange(objects)
    if density is None:
        chance = np.minimum(0.5 * i, _MOST_PARENTS) / (i + 1)
        allowed = np.tri(objects, k=-1) * chance[:, None]
        return xp.astype(u < xp.asarray(allowed, device=u.device), xp.int64)
    # The edges are the places with the least draws; places that no edge can have come last.
    below = xp.asarray(np.tri(objects, k=-1, dtype=bool), device=u.device)
    flat = xp.reshape(xp.where(below, u, xp.ones_like(u)), (u.shape[0], -1))
    edges = round(density * objects * (objects - 1) / 2)
    rank = xp.argsort(xp.argsort(flat, axis=1), axis=1)
    return xp.astype(xp.reshape(rank < edges, u.shape), xp.int64)


def _longest_chains(graphs: Array) -> Array:
    """Returns (N,) the edges of each graph's longest path."""
    xp = namespace(graphs)
    edges = xp.astype(graphs, xp.float32)  # a GPU multiplies no whole numbers
    paths, longest = edges, xp.zeros_like(graphs[:, 0, 0])
    for _ in range(graphs.shape[1] - 1):
        longest = longest + xp.astype(xp.any(paths > 0, axis=(1, 2)), longest.dtype)
        paths = xp.astype(xp.matmul(paths, edges) > 0, xp.float32)
    return longest


def _from_family(text: str, objects: int) -> Adjacency:
    match = re.fullmatch(r"([a-z]+?)(\d*)", text)
    family, suffix = match.groups() if match else (text, "")
    if family not in FAMILIES | _OF_THREE:
        names = sorted([*FAMILIES, *_OF_THREE, RANDOM])
        raise InvalidValueError(unknown("graph", text, names, fix=f"Or give {_HINT}"))
    if suffix and int(suffix) != objects:
        raise InvalidValueError(
            f"graph {text!r} has {int(suffix)} objects, but objects is {objects}",
            fix=f"Pass objects={int(suffix)}, or graph={family!r}",
        )
    usual = _OF_THREE.get(family, family)
    if usual != family and objects != 3:
        raise InvalidValueError(
            f"graph {text!r} has three objects, but objects is {objects}",
            fix=f"Pass objects=3, or graph={usual!r}",
        )
    return adjacency_of(FAMILIES[usual](objects), objects)


def _from_matrix(graph: Sequence[Any] | NDArray[Any], objects: int) -> Adjacency:
    try:
        matrix = np.asarray(graph)
    except (ValueError, TypeError) as error:
        raise InvalidValueError(f"graph is no matrix: {error}", allowed=_HINT) from error
    if matrix.shape != (objects, objects):
        raise InvalidValueError(
            f"the graph's matrix has shape {matrix.shape}",
            allowed=f"({objects}, {objects}), one row per object",
        )
    if matrix.dtype.kind not in "biuf" or not np.all((matrix == 0) | (matrix == 1)):
        raise InvalidValueError("the graph's matrix holds other values", allowed="0 and 1")
    return adjacency_of(edges_of(matrix), objects)


# --------------------------------------------------------------------- free-form text


def _edges_of(text: str, objects: int) -> list[Edge]:
    edges: list[Edge] = []
    if not re.fullmatch(r"([^{}]|\{[^{}]*\})*", text):
        raise _bad_text(text, "braces do not match")
    for chain in re.split(r",(?![^{]*\})", text):  # not at commas between braces
        terms = [_nodes(term, text, objects) for term in chain.split("->")]
        for (left, left_is_set), (right, right_is_set) in pairwise(terms):
            between = [(a, b) for a in left for b in right]
            if left_is_set or right_is_set:
                between = [(a, b) for a, b in between if a < b]
            if not between:
                raise _bad_text(text, f"no edge can run from {left} up to {right}")
            edges += between
    return edges


def _nodes(term: str, text: str, objects: int) -> tuple[list[int], bool]:
    """Returns the nodes of `3` or `{0-2,4}`, and whether it was a set."""
    is_set = term.startswith("{") and term.endswith("}")
    nodes: set[int] = set()
    for part in (term[1:-1] if is_set else term).split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part, flags=re.ASCII)
        if match is None or (match[2] is not None and not is_set):
            raise _bad_text(text, f"{part!r} is no object" if part else "an object is missing")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _bad_text(text, f"{part!r} runs backwards")
        _check_node(last, objects)
        nodes |= set(range(first, last + 1))
    return sorted(nodes), is_set


def _bad_text(text: str, problem: str) -> InvalidValueError:
    return InvalidValueError(f"graph {text!r} cannot be read: {problem}", allowed=_HINT)


def _check_node(node: int, objects: int) -> None:
    if not 0 <= node < objects:
        raise InvalidValueError(
            f"the graph names object {node}, but there are {objects}",
            allowed=f"0 to {objects - 1}",
            fix=f"Pass objects={node + 1} or more",
        )
