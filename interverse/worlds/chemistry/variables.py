"""The variables of a world of chemistry, and its causal graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.rng import Noise
from interverse.scm import Box, CausalGraph, Integers, Variable, boolean, table
from interverse.sim.raster import GRID, SHAPES
from interverse.worlds import palette
from interverse.worlds.chemistry import delayed
from interverse.worlds.chemistry.options import LARGEST_SCALE, LONGEST_DELAY, ChemistryOptions
from interverse.worlds.grid import CELLS
from interverse.worlds.world import variable

Edge = tuple[str, str]

_JITTER = 1 / 8  # of the spacing of intensities (legacy)
_RGB = Box(0.0, 1.0, (3,))
_FIRST_CELLS = ((0, 0), (0, 4), (4, 0), (4, 4), (2, 2), (1, 1), (1, 3), (3, 1), (3, 3), (0, 2))
_FIRST_SHAPES = (0, 1, 2, 3, 5, 4, 6, 7, 2, 3)  # places in SHAPES


def name_of(i: int, field: str) -> str:
    """Returns the name of an object's variable.

    >>> name_of(0, "color")
    'object_0/color'
    """
    return f"object_{i}/{field}"


def edge_of(parent: int, child: int) -> str:
    """Returns the name of an edge's variable."""
    return f"edge_{parent}_{child}"


def delay_of(parent: int, child: int) -> str:
    """Returns the name of an edge's delay."""
    return f"{edge_of(parent, child)}/delay"


def goal_of(i: int, options: ChemistryOptions) -> str:
    """Returns the name of an object's goal."""
    return f"goal_{i}/{'rgb' if options.mode == 'delayed' else 'color'}"


def cells(objects: int) -> NDArray[np.int64]:
    """Returns (n, 2) the objects' own cells: ten by the original, then the free ones in order."""
    rest = [cell for cell in (divmod(c, GRID) for c in range(CELLS)) if cell not in _FIRST_CELLS]
    return np.array([*_FIRST_CELLS, *rest][:objects], dtype=np.int64)


def shapes(objects: int) -> NDArray[np.int64]:
    """Returns (n,) the objects' shapes: ten by the original, then all in turn."""
    rest = [i % len(SHAPES) for i in range(CELLS - len(_FIRST_SHAPES))]
    return np.array([*_FIRST_SHAPES, *rest][:objects], dtype=np.int64)


def colors(options: ChemistryOptions) -> NDArray[np.float64]:
    """Returns (k, 3) the palette the world is made with."""
    count, name = options.colors, options.colormap
    if not options.legacy or name == "Primary":
        return palette.spread(name, count)
    spacing = 1.0 / (count - 1)
    u = np.asarray(Noise.single(seed=options.cpt_seed).uniform("palette", (count,))[0])
    jitter = (2.0 * u - 1.0) * spacing * _JITTER
    jitter[0], jitter[-1] = abs(jitter[0]), -abs(jitter[-1])
    intensity = (np.linspace(0.0, 1.0, count) + jitter)[::-1]
    whole = palette.named(name)
    return whole[np.clip((len(whole) * intensity).astype(np.int64), 0, len(whole) - 1)]


def delays(options: ChemistryOptions) -> NDArray[np.int64]:
    """Returns (n, n) the delays the world is made with; [i, j]: of the edge from j to i."""
    n = options.objects
    if options.delay is not None:
        return np.full((n, n), options.delay, dtype=np.int64)
    u = Noise.single(seed=options.graph_seed).uniform("edge/delay", (n, n))[0]
    return np.asarray(delayed.random_delays(u, LONGEST_DELAY))


def declare(
    options: ChemistryOptions,
    adjacency: NDArray[np.int64],
    chances: Mapping[int, NDArray[np.float64]] = MappingProxyType({}),
) -> Mapping[str, Variable]:
    """Returns every variable of the world; `chances` are its tables where they are variables."""
    slots = range(options.objects)
    found = [v for i in slots for v in _object(i, options)]
    if options.has_target:
        found += [_goal(i, options) for i in slots]
    doc = (
        "Chances of its colours, a row per colouring of its parents; the first parent counts"
        " fastest. Every row sums to 1."
    )
    for i, rows in chances.items():
        domain = Box(0.0, 1.0, rows.shape)
        found.append(variable(name_of(i, "cpt"), "latent", rows, domain, doc))
    found += _shared(options, adjacency)
    for j, i in combinations(slots, 2):
        found += _edge(j, i, options, adjacency[i, j])
    return table(*found)


def _object(i: int, options: ChemistryOptions) -> Iterator[Variable]:
    whole, fades = Integers(0, options.colors - 1), options.mode == "delayed"
    doc = "Its colour, an entry of the palette"
    doc += " (while it fades, the one it fades to)." if fades else "."
    doc += " Drawn at reset; setting it paints this object alone, its effects follow an action."
    labels = palette.color_labels(colors(options))
    yield variable(name_of(i, "color"), "state", 0, whole, doc, space_a=whole, labels=labels)
    if fades:
        doc = "What it shows now, between the colour it had and the one it fades to."
        how: dict[str, Any] = {"unit": "rgb", "read_only": True}
        yield variable(name_of(i, "rgb"), "state", np.zeros(3), _RGB, doc, **how)
        doc, how = "Steps until its colour stands.", {"unit": "steps", "read_only": True}
        yield variable(name_of(i, "fade"), "state", 0, Integers(0, LONGEST_DELAY), doc, **how)
    doc = "Row (down) and column (right). Two objects never share a cell."
    cell, grid = cells(options.objects)[i], Integers(0, GRID - 1, (2,))
    yield variable(name_of(i, "position"), "state", cell, grid, doc, unit="cells")
    doc, shape = "0 to 7: " + ", ".join(SHAPES) + ".", shapes(options.objects)[i]
    kinds = Integers(0, len(SHAPES) - 1)
    yield variable(name_of(i, "shape"), "appearance", shape, kinds, doc, labels=SHAPES)


def _goal(i: int, options: ChemistryOptions) -> Variable:
    doc = "What it should be: drawn at reset by random interventions from the start."
    if options.mode == "delayed":
        return variable(goal_of(i, options), "goal", np.zeros(3), _RGB, doc, unit="rgb")
    whole, labels = Integers(0, options.colors - 1), palette.color_labels(colors(options))
    return variable(goal_of(i, options), "goal", 0, whole, doc, space_a=whole, labels=labels)


def _shared(options: ChemistryOptions, adjacency: NDArray[np.int64]) -> Iterator[Variable]:
    level, fixed = options.level, options.cpt == "table"
    domain = Integers(0, 1, adjacency.shape)
    doc = "[i, j] = 1: object j is a parent of object i. Parents come before their children."
    yield variable("graph/adjacency", "graph", adjacency, domain, doc, read_only=fixed)
    scale = Box(0.0, LARGEST_SCALE)
    doc = "Scale of the networks' layers. Larger: chances nearer to 0 and 1."
    yield variable("cpt/gain", "latent", level.gain, scale, doc, read_only=fixed)
    doc = "Scale of the networks' biases."
    yield variable("cpt/bias", "latent", level.bias, scale, doc, read_only=fixed)
    doc = "The looks of colour 0, 1, ..."
    doc += " The networks read them." if options.mode == "delayed" else ""
    every = Box(0.0, 1.0, (options.colors, 3))
    yield variable("palette", "appearance", colors(options), every, doc, unit="rgb")


def _edge(j: int, i: int, options: ChemistryOptions, present: int) -> Iterator[Variable]:
    doc = f"Whether object {j} causes object {i}: an entry of graph/adjacency."
    how: dict[str, Any] = {"space_a": boolean(), "read_only": options.cpt == "table"}
    yield variable(edge_of(j, i), "graph", present, boolean(), doc, **how)
    if options.mode == "delayed":
        longest = Integers(1, LONGEST_DELAY)
        doc = f"Steps until an effect of object {j} on object {i} stands."
        yield variable(delay_of(j, i), "latent", delays(options)[i, j], longest, doc, unit="steps")


def causal_graph(
    variables: Mapping[str, Variable], options: ChemistryOptions, adjacency: NDArray[np.int64]
) -> CausalGraph:
    """Returns the graph for an adjacency (n, n).

    What draws an object's colour anew also drew it at reset, where its goal was made as well: an
    edge into `object_i/color` or a goal acts there only. An object without parents is drawn at
    reset and never again.
    """
    n = options.objects
    edges: list[Edge] = []
    for i in range(n):
        edges.append((name_of(i, "color"), name_of(i, "color") + "'"))
        for j in range(i):
            if adjacency[i, j]:
                edges.append((name_of(j, "color") + "'", name_of(i, "color") + "'"))
        has_parent = bool(adjacency[i].any())
        for cause in _causes(i, options):
            drawn = has_parent or cause.startswith("edge_")
            edges += [(cause, effect) for effect in _drawn(i, options, again=drawn)]
            # Whether an object is reached at all shows in no colour: what comes after it is drawn
            # anew although every colour that it is drawn from stays.
            for k in _below(i, adjacency) if cause.startswith("edge_") else ():
                edges += [(cause, effect) for effect in _drawn(k, options, again=True)[1:]]
        edges += _positions(i, options)
        if options.mode == "delayed":
            edges += _fading(i, options, adjacency)
    constraints = [("graph/adjacency", edge_of(j, i)) for j, i in combinations(range(n), 2)]
    return CausalGraph.build(variables, edges, constraints)


def _below(i: int, adjacency: NDArray[np.int64]) -> list[int]:
    """Returns the objects that a path leads to from object i."""
    found = [i]
    for k in range(i + 1, len(adjacency)):
        found += [k] if adjacency[k, found].any() else []
    return found[1:]


def _causes(i: int, options: ChemistryOptions) -> list[str]:
    """What object i's mechanism is made of; object 0 has none, it is only ever painted."""
    if i == 0:
        return []
    if options.cpt == "table":
        return [name_of(i, "cpt")]
    causes = ["cpt/gain", "cpt/bias", *(edge_of(j, i) for j in range(i))]
    if options.mode == "delayed":
        causes += ["palette", *(delay_of(j, i) for j in range(i))]
    return causes


def _drawn(i: int, options: ChemistryOptions, *, again: bool) -> list[str]:
    """What object i's mechanism draws: at reset and, unless nothing can reach it, after it."""
    drawn = [name_of(i, "color"), *([name_of(i, "color") + "'"] if again else [])]
    # Without parents the goal keeps the first colour, which is drawn by the same mechanism.
    return [*drawn, goal_of(i, options)] if options.has_target else drawn


def _positions(i: int, options: ChemistryOptions) -> Iterator[Edge]:
    after = name_of(i, "position") + "'"
    yield name_of(i, "position"), after
    if options.mode == "moving":
        yield name_of(i, "color"), after
        yield name_of(i, "color") + "'", after
        for j in range(options.objects):
            if j != i:
                yield name_of(j, "position"), after
            if j < i:
                yield name_of(j, "position") + "'", after


def _fading(i: int, options: ChemistryOptions, adjacency: NDArray[np.int64]) -> Iterator[Edge]:
    color, rgb, fade = (name_of(i, field) for field in ("color", "rgb", "fade"))
    for now in ("", "'"):
        yield color + now, rgb + now
        yield color + now, fade + now
        yield "palette", rgb + now
    yield "palette", goal_of(i, options)
    yield rgb, rgb + "'"
    yield fade, fade + "'"
    yield fade, rgb + "'"
    for j in range(i):
        yield delay_of(j, i), fade + "'"
        yield delay_of(j, i), rgb + "'"
        if adjacency[i, j]:
            yield name_of(j, "rgb"), color + "'"
            yield name_of(j, "color") + "'", fade + "'"
            yield name_of(j, "color") + "'", rgb + "'"
