"""Causal discovery from true states: what can be had of a graph without looking at pictures.

PC and GES of causal-learn see the objects' colours at the start of many episodes, which are
independent draws from the world's mechanisms. No intervention is shown, so even with endless data
only the skeleton and some directions are to be found; models that act see more.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, missing_extra
from interverse.data import Dataset
from interverse.metrics.recovery import edge_scores

try:
    from causallearn.search.ConstraintBased.PC import pc
    from causallearn.search.ScoreBased.GES import ges
except ModuleNotFoundError as error:
    raise missing_extra("causal-learn", "discovery") from error

Method = Literal["pc", "ges"]
METHODS: tuple[Method, ...] = ("pc", "ges")


def start_states(data: Dataset) -> NDArray[np.int64]:
    """Returns the objects' colours (E, objects) at the start of every episode."""
    if not data.header.id.startswith("chemistry/"):
        raise InvalidValueError(
            f"{data.header.id} draws its objects' starts independently of each other",
            allowed="chemistry, where colours cause colours",
        )
    return np.asarray(data.states)[:, 0].astype(np.int64)


def discover(states: NDArray[np.int64], method: Method, *, alpha: float = 0.01) -> NDArray[Any]:
    """Returns (n, n): [i, j] = 1 for j -> i; an edge without direction has both entries.

    Args:
        states: (N, n) independent samples of discrete variables.
        method: pc (G-squared tests) or ges (BDeu score).
        alpha: level of PC's tests.
    """
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if method == "pc":
            ends = pc(states, alpha, "gsq", show_progress=False).G.graph
        else:
            ends = ges(states, score_func="local_score_BDeu")["G"].graph
    # Theirs: -1 a tail, 1 a head at the row's node; j -> i has a head at i and a tail at j.
    undirected = (ends == -1) & (ends.T == -1)
    return (((ends == 1) & (ends.T == -1)) | undirected).astype(np.int64)


def discovery_scores(
    states: NDArray[np.int64], graph: NDArray[np.int64], method: Method
) -> dict[str, Any]:
    """Returns how well a method's edges match the true ones, and its skeleton the true skeleton."""
    found = discover(states, method).astype(float)
    edges = edge_scores(graph, found, threshold=0.5)
    skeleton = edge_scores(graph | graph.T, np.maximum(found, found.T), threshold=0.5)
    return {
        "f1": edges.f1,
        "shd": edges.shd,
        "precision": edges.precision,
        "recall": edges.recall,
        "skeleton_f1": skeleton.f1,
        "found": found.astype(int).tolist(),
        "samples": len(states),
    }
