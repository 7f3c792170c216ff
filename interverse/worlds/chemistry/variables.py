"""The variables of a world of chemistry, and its causal graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from interverse.core.rng import Noise
from interverse.scm import Box, CausalGraph, Integers, Variable, boolean, table
from interverse.sim.raster import GRID, SHAPES
from interverse.worlds import palette
from interverse.worlds.chemistry import delayed
from interverse.worlds.chemistry.options import LARGEST_SCALE, LONGEST_DELAY, ChemistryOptions
from interverse.worlds.grid import CELLS

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
    n = options.objects
    per_object = [v for i in range(n) for v in _object(i, options)]
    goals = [_goal(i, options) for i in range(n)] if options.has_target else []
    edges = [v for j, i in combinations(range(n), 2) for v in _edge(j, i, options, adjacency[i, j])]
    tables = [_table(i, rows) for i, rows in chances.items()]
    return table(*per_object, *goals, *tables, *_shared(options, adjacency), *edges)


def _table(i: int, rows: NDArray[np.float64]) -> Variable:
    return Variable(
        name=name_of(i, "cpt"),
        kind="latent",
        default=rows,
        domain=Box(0.0, 1.0, rows.shape),
        doc="Chances of its colours, a row per colouring of its parents; the first parent counts"
        " fastest. Every row sums to 1.",
    )


def _object(i: int, options: ChemistryOptions) -> Iterator[Variable]:
    yield Variable(
        name=name_of(i, "color"),
        kind="state",
        default=np.array(0),
        domain=Integers(0, options.colors - 1),
        space_a=Integers(0, options.colors - 1),
        doc="Its colour, an entry of the palette"
        + (" (while it fades, the one it fades to)." if options.mode == "delayed" else ".")
        + " Drawn at reset; setting it paints this object alone, its effects follow an action.",
        labels=palette.color_labels(colors(options)),
    )
    if options.mode == "delayed":
        yield from _fade(i)
    yield Variable(
        name=name_of(i, "position"),
        kind="state",
        default=cells(options.objects)[i],
        domain=Integers(0, GRID - 1, (2,)),
        unit="cells",
        doc="Row (down) and column (right). Two objects never share a cell.",
    )
    yield Variable(
        name=name_of(i, "shape"),
        kind="appearance",
        default=shapes(options.objects)[i],
        domain=Integers(0, len(SHAPES) - 1),
        doc="0 to 7: " + ", ".join(SHAPES) + ".",
        labels=SHAPES,
    )


def _fade(i: int) -> Iterator[Variable]:
    yield Variable(
        name=name_of(i, "rgb"),
        kind="state",
        default=np.zeros(3),
        domain=_RGB,
        unit="rgb",
        read_only=True,
        doc="What it shows now, between the colour it had and the one it fades to.",
    )
    yield Variable(
        name=name_of(i, "fade"),
        kind="state",
        default=np.array(0),
        domain=Integers(0, LONGEST_DELAY),
        unit="steps",
        read_only=True,
        doc="Steps until its colour stands.",
    )


def _goal(i: int, options: ChemistryOptions) -> Variable:
    doc = "What it should be: drawn at reset by random interventions from the start."
    if options.mode == "delayed":
        return Variable(
            name=goal_of(i, options),
            kind="goal",
            default=np.zeros(3),
            domain=_RGB,
            unit="rgb",
            doc=doc,
        )
    whole = Integers(0, options.colors - 1)
    return Variable(
        name=goal_of(i, options),
        kind="goal",
        default=np.array(0),
        domain=whole,
        space_a=whole,
        doc=doc,
        labels=palette.color_labels(colors(options)),
    )


def _shared(options: ChemistryOptions, adjacency: NDArray[np.int64]) -> Iterator[Variable]:
    n, level = options.objects, options.level
    yield Variable(
        name="graph/adjacency",
        kind="graph",
        default=adjacency,
        domain=Integers(0, 1, (n, n)),
        read_only=options.cpt == "table",
        doc="[i, j] = 1: object j is a parent of object i. Parents come before their children.",
    )
    for name, value, doc in (
        ("gain", level.gain, "Scale of the networks' layers. Larger: chances nearer to 0 and 1."),
        ("bias", level.bias, "Scale of the networks' biases."),
    ):
        yield Variable(
            name=f"cpt/{name}",
            kind="latent",
            default=np.array(value),
            domain=Box(0.0, LARGEST_SCALE),
            read_only=options.cpt == "table",
            doc=doc,
        )
    yield Variable(
        name="palette",
        kind="appearance",
        default=colors(options),
        domain=Box(0.0, 1.0, (options.colors, 3)),
        unit="rgb",
        doc="The looks of colour 0, 1, ..."
        + (" The networks read them." if options.mode == "delayed" else ""),
    )


def _edge(j: int, i: int, options: ChemistryOptions, present: int) -> Iterator[Variable]:
    yield Variable(
        name=edge_of(j, i),
        kind="graph",
        default=np.array(present),
        domain=boolean(),
        space_a=boolean(),
        read_only=options.cpt == "table",
        doc=f"Whether object {j} causes object {i}: an entry of graph/adjacency.",
    )
    if options.mode == "delayed":
        yield Variable(
            name=delay_of(j, i),
            kind="latent",
            default=delays(options)[i, j],
            domain=Integers(1, LONGEST_DELAY),
            unit="steps",
            doc=f"Steps until an effect of object {j} on object {i} stands.",
        )


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
