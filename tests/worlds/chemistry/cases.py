"""Mechanisms to test with."""

import numpy as np

from interverse.worlds.chemistry import cpt, graphs

SIZES = cpt.CptSizes(objects=5, features=5, hidden=20, colors=5)


def mechanisms(count, graph="full", weights=None, **changes):
    """Returns the mechanisms of `count` alike worlds, changed as told."""
    weights = weights or cpt.draw_weights([np.random.default_rng(3)], SIZES, "orthogonal")
    n = weights.second.shape[1]
    matrix = graphs.parse(graph, n)
    given = {
        "weights": weights,
        "rows": None,
        "adjacency": np.repeat(matrix[None], count, axis=0),
        "gain": np.full(count, 3.5),
        "bias": np.full(count, 2.1),
    }
    return cpt.Mechanisms(**(given | changes))
