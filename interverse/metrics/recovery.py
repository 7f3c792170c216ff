"""Recovery of a causal graph: scores of effects, edges and ancestors. Arrays only.

Matrices are (effect, cause): entry [i, j] is about what object j does to object i, as
`graph/adjacency` has it. A *total effect* is the chance that i changes when j is acted on. A
*direct effect* is what remains of j's influence on i when everything between them is held.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError

Floats = NDArray[np.floating[Any]]
Graph = NDArray[Any]  # (n, n) of 0 and 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeScores:
    """Edges at one threshold: the one that serves the model best, unless it was given.

    Attributes:
        threshold: effects above it count as edges.
        precision: share of found edges that are true (1 where none is found).
        recall: share of true edges that are found (1 where there are none).
        f1: their harmonic mean, which the best threshold maximises.
        shd: structural Hamming distance at the threshold.
        average_precision: area under precision over recall, which needs no threshold.
    """

    threshold: float
    precision: float
    recall: float
    f1: float
    shd: int
    average_precision: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryScores:
    """What a model knows of a graph.

    Attributes:
        edges: direct edges at the best threshold, which is chosen with the truth in hand.
        fixed: the same at a threshold fixed beforehand.
        ancestors: who has any effect on whom, at the best threshold.
        total_effect_error: mean absolute error of the total effects.
    """

    edges: EdgeScores
    fixed: EdgeScores
    ancestors: EdgeScores
    total_effect_error: float

    @property
    def shd(self) -> int:
        """Structural Hamming distance of the direct edges, at the threshold fixed beforehand."""
        return self.fixed.shd


def total_variation(p: Floats, q: Floats) -> Floats:
    """Returns the distance (...) in [0, 1] of distributions (..., values).

    >>> float(total_variation(np.array([1.0, 0.0]), np.array([0.25, 0.75])))
    0.75
    """
    return 0.5 * np.abs(p - q).sum(-1)


def total_effects(before: Floats, after: Floats, acted: NDArray[np.integer[Any]]) -> Floats:
    """Returns (n, n): how much object i changed, on average, where object j was acted on.

    Args:
        before: (N, n, values) what each object was, as chances (a true state is one-hot).
        after: the same after the action.
        acted: (N,) the object acted on. Every object must occur.
    """
    changes = total_variation(before, after)
    n = changes.shape[1]
    missing = sorted(set(range(n)) - set(acted.tolist()))
    if missing:
        raise InvalidValueError(f"objects {missing} were never acted on")
    return np.stack([changes[acted == j].mean(0) for j in range(n)], axis=1)


def dependences(
    first: Floats,
    second: Floats,
    altered: NDArray[np.integer[Any]],
    acted: NDArray[np.integer[Any]],
) -> Floats:
    """Returns (n, n, n): [i, j, m], how far i's outcome under an action on m hangs on j's value.

    NaN for pairs of j and m that never occur.

    Args:
        first: (N, n, values) outcomes.
        second: outcomes of the twin, in which object `altered` had another value.
        altered: (N,) that object, j.
        acted: (N,) the object acted on, m; where m is j, the action sets the two values.
    """
    distances = total_variation(first, second)
    n = distances.shape[1]
    out = np.full((n, n, n), np.nan)
    for j, m in itertools.product(range(n), repeat=2):
        rows = (altered == j) & (acted == m)
        if rows.any():
            out[:, j, m] = distances[rows].mean(0)
    return out


def direct_effects(depends: Floats, totals: Floats, *, floor: float = 0.0) -> Floats:
    """Returns (n, n): the least that i hangs on j, over the actions that show a direct influence.

    An action on j itself shows j's influence on i by every path. An action on another object m
    that reaches i but not j makes i look at its parents while j is only looked at: paths from j
    through m are cut. The least over these leaves a direct edge and removes an indirect one.

    Args:
        depends: (n, n, n) from `dependences`.
        totals: (n, n) from `total_effects`, which says what an action reaches.
        floor: total effects up to this count as none.

    Raises:
        InvalidValueError: where no action that shows an influence was sampled.
    """
    n, reached = len(totals), totals > floor
    out = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        shows = [m for m in range(n) if m == j or (m != i and reached[i, m] and not reached[j, m])]
        seen = [depends[i, j, m] for m in shows if not np.isnan(depends[i, j, m])]
        if not seen:
            raise InvalidValueError(
                f"no trial alters object {j} under an action on any of {shows}",
                fix="Sample every pair of altered and acted-on objects",
            )
        out[i, j] = min(seen)
    return out


def structural_hamming(true: Graph, found: Graph) -> int:
    """Returns the number of pairs of objects whose edge is missing, extra or turned round.

    >>> chain = np.array([[0, 0], [1, 0]])
    >>> structural_hamming(chain, chain), structural_hamming(chain, chain.T)
    (0, 1)
    """
    a, b = _graph(true, "true"), _graph(found, "found")
    different = a != b
    pair = different | different.T
    return int(np.triu(pair, 1).sum())


def ancestors(graph: Graph) -> NDArray[np.bool_]:
    """Returns (n, n): whether j is an ancestor of i.

    >>> ancestors(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    """
    reach = _graph(graph, "graph")
    for m in range(len(reach)):
        reach = reach | (reach[:, m : m + 1] & reach[m : m + 1])
    return reach


def edges_above(effects: Floats, threshold: float) -> NDArray[np.bool_]:
    """Returns the graph of effects above a threshold, without loops."""
    return (effects > threshold) & ~np.eye(len(effects), dtype=bool)


def edge_scores(true: Graph, effects: Floats, *, threshold: float | None = None) -> EdgeScores:
    """Returns how well effects above a threshold match the true edges.

    Without a threshold, the one with the highest F1 is taken (the highest of several). A model
    whose effects are all zero has the empty graph at every threshold.
    """
    truth = _graph(true, "true")
    off = ~np.eye(len(truth), dtype=bool)
    if threshold is None:
        levels = np.unique(np.append(effects[off], 0.0))
        threshold = max((_f1(truth, edges_above(effects, t)), t) for t in levels if t >= 0.0)[1]
    found = edges_above(effects, threshold)
    hits = int((found & truth).sum())
    return EdgeScores(
        threshold=float(threshold),
        precision=hits / int(found.sum()) if found.any() else 1.0,
        recall=hits / int(truth.sum()) if truth.any() else 1.0,
        f1=_f1(truth, found),
        shd=structural_hamming(truth, found),
        average_precision=_average_precision(truth[off], effects[off]),
    )


def total_effect_error(true: Floats, found: Floats) -> float:
    """Returns the mean absolute difference of two effect matrices, off the diagonal."""
    off = ~np.eye(len(true), dtype=bool)
    return float(np.abs(true - found)[off].mean()) if off.any() else 0.0


def recovery(
    graph: Graph,
    *,
    true_totals: Floats,
    found_totals: Floats,
    found_direct: Floats,
    threshold: float = 0.1,
) -> RecoveryScores:
    """Returns all scores of a model's effects against the truth."""
    return RecoveryScores(
        edges=edge_scores(graph, found_direct),
        fixed=edge_scores(graph, found_direct, threshold=threshold),
        ancestors=edge_scores(ancestors(graph), found_totals),
        total_effect_error=total_effect_error(true_totals, found_totals),
    )


def _f1(truth: NDArray[np.bool_], found: NDArray[np.bool_]) -> float:
    both = int((truth & found).sum())
    total = int(truth.sum() + found.sum())
    return 1.0 if total == 0 else 2.0 * both / total


def _average_precision(truth: NDArray[np.bool_], effects: Floats) -> float:
    """Returns the mean precision over true edges, ties in effect counted as found together."""
    if not truth.any():
        return 1.0
    order = np.argsort(-effects, kind="stable")
    ranked, values = truth[order], effects[order]
    last = np.append(values[1:] != values[:-1], True)
    hits, found = np.cumsum(ranked)[last], np.flatnonzero(last) + 1
    gained = np.diff(np.append(0, hits))
    return float((gained * hits / found).sum() / truth.sum())


def _graph(graph: Graph, name: str) -> NDArray[np.bool_]:
    array = np.asarray(graph)
    square = array.ndim == 2 and array.shape[0] == array.shape[1]
    if not square or not np.isin(array, (0, 1)).all() or np.diagonal(array).any():
        raise InvalidValueError(
            f"{name} is not a graph: shape {array.shape}",
            allowed="a square matrix of 0 and 1, zero on the diagonal",
        )
    return array.astype(bool)
