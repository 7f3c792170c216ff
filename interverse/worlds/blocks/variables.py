"""The variables of a world of blocks and its causal graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from interverse.scm import Box, CausalGraph, Integers, Variable, table
from interverse.sim.raster import GRID, SHAPES
from interverse.worlds.blocks import appearance
from interverse.worlds.blocks.options import BlocksOptions
from interverse.worlds.palette import QUALITATIVE, shade
from interverse.worlds.world import variable

HEAVIEST = 100.0
_TRAINING_SHAPES, _TEST_SHAPES = Integers(0, 2), Integers(3, 5)
_CELL = Integers(0, GRID - 1, (2,))


def name_of(block: int, field: str) -> str:
    """Returns a variable's name.

    >>> name_of(0, "weight")
    'block_0/weight'
    """
    return f"block_{block}/{field}"


def declare(options: BlocksOptions) -> Mapping[str, Variable]:
    """Returns every variable of the world, block by block."""
    return table(*(v for i in range(options.objects) for v in _block(i, options)))


def _block(i: int, options: BlocksOptions) -> Iterator[Variable]:
    cell = divmod(i, GRID)
    doc = "Row (down) and column (right). Two blocks never share a cell."
    yield variable(name_of(i, "position"), "state", cell, _CELL, doc, unit="cells")
    weight, color = float(options.objects - i), np.zeros(3)
    if options.observed:
        weights = np.arange(options.objects, 0, -1.0)[None]
        even = appearance.intensity(weights, np.full_like(weights, 0.5), 0.0)
        color = shade(even, options.colormap)[0, i]
    else:
        colors, weights = appearance.entries(options.colormap)
        weight, color = float(weights[i]), colors[i]
        base, last = len(QUALITATIVE[options.colormap]), len(colors) - 1
        doc = (
            "The colour's place in the palette, the common cause of weight and colour. Training"
            f" colours are 0 to {base - 1}."
        )
        spaces = {"space_a": Integers(0, base - 1), "space_b": Integers(base, last)}
        yield variable(name_of(i, "palette_index"), "latent", i, Integers(0, last), doc, **spaces)
    doc = "A block pushes those that weigh less. "
    doc += "Its colour follows it." if options.observed else "It follows the palette index."
    yield variable(name_of(i, "weight"), "latent", weight, Box(0.0, HEAVIEST), doc)
    fixed = options.random_shapes == 0
    shape, domain = i % len(SHAPES) if fixed else 0, Integers(0, len(SHAPES) - 1)
    spaces = {} if fixed else {"space_a": _TRAINING_SHAPES, "space_b": _TEST_SHAPES}
    doc = "0 to 7: " + ", ".join(SHAPES) + "."
    yield variable(name_of(i, "shape"), "appearance", shape, domain, doc, labels=SHAPES, **spaces)
    doc = "Setting it cuts it loose from what it followed until the next reset."
    yield variable(name_of(i, "color"), "appearance", color, Box(0.0, 1.0, (3,)), doc, unit="rgb")
    if not options.plain:
        doc = (
            "Where the block should be: drawn at reset by random play from the start, and not"
            " drawn anew by an intervention later in the episode."
        )
        yield variable(name_of(i, "target"), "goal", cell, _CELL, doc, unit="cells")


def causal_graph(variables: Mapping[str, Variable], options: BlocksOptions) -> CausalGraph:
    """Returns the graph: who pushes whom depends on all positions and all weights.

    An edge from a weight to a target acts at reset only, where random play makes the targets.
    """
    n = options.objects
    edges = []
    for i, j in product(range(n), range(n)):
        edges.append((name_of(j, "position"), name_of(i, "position") + "'"))
        if n > 1:
            edges.append((name_of(j, "weight"), name_of(i, "position") + "'"))
        if n > 1 and not options.plain and options.target_steps > 0:
            edges.append((name_of(j, "weight"), name_of(i, "target")))
    for i in range(n):
        if options.observed:
            edges.append((name_of(i, "weight"), name_of(i, "color")))
        else:
            edges += [(name_of(i, "palette_index"), name_of(i, f)) for f in ("weight", "color")]
    return CausalGraph.build(variables, edges)
