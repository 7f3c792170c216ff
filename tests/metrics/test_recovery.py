"""Graph recovery: the truth scores perfectly, silence scores the empty graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interverse.core.errors import InvalidValueError
from interverse.metrics import recovery


def random_dag(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.tril(rng.random((n, n)) < 0.5, -1).astype(int)


@given(st.integers(0, 2**31), st.integers(1, 7))
def test_ancestors_equal_networkx(seed, n):
    graph = random_dag(np.random.default_rng(seed), n)
    closure = nx.transitive_closure(nx.DiGraph(graph.T))
    assert np.array_equal(recovery.ancestors(graph), nx.to_numpy_array(closure).T > 0)


@given(st.integers(0, 2**31), st.integers(2, 6))
def test_hamming_distance_counts_single_edits(seed, n):
    rng = np.random.default_rng(seed)
    graph = random_dag(rng, n)
    other = graph.copy()
    i, j = 1, 0
    other[i, j] = 1 - other[i, j]  # one edge added or removed
    assert recovery.structural_hamming(graph, other) == 1
    assert recovery.structural_hamming(graph, graph.T) == graph.sum()  # every edge turned round
    assert recovery.structural_hamming(graph, other) == recovery.structural_hamming(other, graph)


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_the_truth_as_effects_scores_perfectly(seed, n):
    rng = np.random.default_rng(seed)
    graph = random_dag(rng, n)
    effects = graph * rng.uniform(0.1, 1.0, (n, n))
    scores = recovery.edge_scores(graph, effects)
    assert (scores.shd, scores.precision, scores.recall, scores.f1) == (0, 1.0, 1.0, 1.0)
    assert scores.average_precision == pytest.approx(1.0)
    assert recovery.total_effect_error(effects, effects) == 0.0


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_no_effects_give_the_empty_graph(seed, n):
    graph = random_dag(np.random.default_rng(seed), n)
    scores = recovery.edge_scores(graph, np.zeros((n, n)))
    assert scores.shd == graph.sum()
    assert not recovery.edges_above(np.zeros((n, n)), scores.threshold).any()
    if graph.any():
        assert (scores.recall, scores.f1) == (0.0, 0.0)


@given(st.integers(0, 2**31))
def test_the_threshold_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    graph, effects = random_dag(rng, 4), rng.random((4, 4))
    best = recovery.edge_scores(graph, effects)
    for threshold in np.linspace(0, 1, 50):
        found = recovery.edges_above(effects, threshold)
        both = (found & (graph == 1)).sum()
        total = found.sum() + graph.sum()
        assert best.f1 >= (2 * both / total if total else 1.0) - 1e-12


@given(st.integers(0, 2**31), st.integers(2, 6))
def test_average_precision_equals_the_sum_over_thresholds(seed, n):
    rng = np.random.default_rng(seed)
    graph = random_dag(rng, n)
    graph[1, 0] = 1
    effects = rng.integers(0, 4, (n, n)) / 4.0  # with ties
    off = ~np.eye(n, dtype=bool)
    area, before = 0.0, 0.0
    for t in sorted(set(effects[off]), reverse=True):
        found = (effects >= t) & off
        recall = (found & (graph == 1)).sum() / graph.sum()
        area += (recall - before) * (found & (graph == 1)).sum() / found.sum()
        before = recall
    assert recovery.edge_scores(graph, effects).average_precision == pytest.approx(area)


def test_total_effects_are_mean_changes_by_acted_object():
    before = np.eye(2)[np.array([[0, 0], [0, 0], [0, 0]])]
    after = np.eye(2)[np.array([[1, 1], [1, 0], [0, 1]])]
    acted = np.array([0, 0, 1])
    found = recovery.total_effects(before, after, acted)
    assert found.tolist() == [[1.0, 0.0], [0.5, 1.0]]
    with pytest.raises(InvalidValueError, match=r"objects \[1\] were never acted on"):
        recovery.total_effects(before, after, np.zeros(3, dtype=int))


def test_what_was_never_sampled_is_not_read_as_no_edge():
    still, changed = np.eye(2)[np.array([[[0, 0]] * 3, [[1, 1]] * 3])]
    altered, acted = np.array([0, 1, 1]), np.array([0, 1, 0])
    depends = recovery.dependences(still, changed, altered, acted)
    assert np.isnan(depends[:, 0, 1]).all()
    assert not np.isnan(depends[:, 1]).any()
    totals = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert recovery.direct_effects(depends, totals).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    unknown = recovery.dependences(still[:1], changed[:1], altered[:1], acted[:1])
    with pytest.raises(InvalidValueError, match="no trial alters object 1"):
        recovery.direct_effects(unknown, totals)


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), np.full((2, 2), 0.5), np.eye(2), np.zeros(4)])
def test_what_is_no_graph_is_refused(bad):
    with pytest.raises(InvalidValueError, match="true is not a graph"):
        recovery.structural_hamming(bad, np.zeros((2, 2)))
