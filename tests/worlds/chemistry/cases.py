"""Mechanisms to test with."""

import numpy as np
import pytest

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


def as_torch(given):
    """Returns the mechanisms as Torch tensors."""
    torch = pytest.importorskip("torch")
    weights = cpt.CptWeights(
        **{
            part: torch.as_tensor(getattr(given.weights, part))
            for part in ("first", "first_bias", "second", "second_bias")
        }
    )
    rows = None if given.rows is None else torch.as_tensor(given.rows)
    parts = {part: torch.as_tensor(getattr(given, part)) for part in ("adjacency", "gain", "bias")}
    return cpt.Mechanisms(weights=weights, rows=rows, **parts)
