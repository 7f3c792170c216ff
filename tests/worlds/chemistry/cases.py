"""Mechanisms to test with."""

from dataclasses import replace

import numpy as np

from interverse.worlds.chemistry import cpt, graphs

SIZES = cpt.CptSizes(objects=5, features=5, hidden=20, colors=5)


def mechanisms(count, graph="full", weights=None, **changes):
    """Returns the mechanisms of `count` alike worlds, changed as told."""
    weights = weights or cpt.draw_weights([np.random.default_rng(3)], SIZES, "orthogonal")
    matrix = graphs.parse(graph, weights.second.shape[1])
    return replace(cpt.alike(weights, matrix, 3.5, 2.1, count), **changes)
