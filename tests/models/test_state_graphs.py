"""Causes of discrete states are found from transitions under interventions, by situation too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from interverse.models.state_graphs import (
    StateNetworks,
    StateTransitions,
    candidates,
    graph_by_masks,
    graph_by_tests,
    local_graphs,
)

GRAPH = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]])  # a diamond


@pytest.fixture(scope="module")
def diamond() -> StateTransitions:
    """A diamond of three colours: a child is the sum of its parents, one time in five anything."""
    rng, rows = np.random.default_rng(0), 4000
    before = np.zeros((rows, 4), dtype=np.int64)
    before[:, 0] = rng.integers(3, size=rows)
    anything = rng.integers(3, size=(2, rows, 4))
    loud = rng.random((2, rows, 4)) < 0.2
    for i in (1, 2, 3):
        before[:, i] = np.where(loud[0][:, i], anything[0][:, i], before @ GRAPH[i] % 3)
    acted, after = rng.integers(4, size=rows), before.copy()
    after[np.arange(rows), acted] = rng.integers(3, size=rows)
    touched = acted[:, None] == np.arange(4)
    for i in (1, 2, 3):
        hit = (touched & GRAPH[i].astype(bool)).any(1)
        new = np.where(loud[1][:, i], anything[1][:, i], after @ GRAPH[i] % 3)
        after[:, i] = np.where(hit, new, after[:, i])
        touched[:, i] |= hit
    return StateTransitions(before=before, acted=acted, after=after, values=3)


def test_what_an_action_changes_is_no_cause(diamond):
    reach = diamond.reach()
    assert reach.astype(int).tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]]
    assert candidates(reach)[3].tolist() == [True, True, True, False]
    assert candidates(reach)[0].tolist() == [False, False, False, False]


def test_both_learners_find_the_diamond(diamond):
    assert graph_by_tests(diamond).tolist() == GRAPH.tolist()
    graph, information = graph_by_masks(diamond)
    assert graph.tolist() == GRAPH.tolist()
    assert information[GRAPH == 1].min() > 0.1 > 0.02 > information[GRAPH == 0].max()


def test_five_causes_of_one_object_are_all_found():
    rng, rows, values = np.random.default_rng(0), 10_000, 5
    graph = np.zeros((6, 6), dtype=np.int64)
    graph[5, :5] = 1
    before, acted = rng.integers(values, size=(rows, 6)), rng.integers(6, size=rows)
    after = before.copy()
    after[np.arange(rows), acted] = rng.integers(values, size=rows)
    told = np.where(rng.random(rows) < 0.6, after[:, :5].max(1), rng.integers(values, size=rows))
    after[:, 5] = np.where(acted < 5, told, after[:, 5])
    data = StateTransitions(before=before, acted=acted, after=after, values=values)
    assert np.array_equal(graph_by_tests(data), graph)


def test_networks_on_the_causes_alone_mind_no_other_object(diamond):
    true = StateNetworks.fitted(diamond, GRAPH)
    dense = StateNetworks.fitted(diamond, np.ones((4, 4), dtype=bool))
    after = diamond.after.copy()
    after[:, 2] = np.random.default_rng(1).integers(3, size=len(after))
    noisy = replace(diamond, after=after)
    assert true.losses(noisy)[1] == pytest.approx(true.losses(diamond)[1])
    assert dense.losses(noisy)[1] > dense.losses(diamond)[1] + 0.005
    # Four fifths right and the rest spread over three colours: the entropy of the mechanism.
    share = np.array([0.8 + 0.2 / 3, 0.2 / 3, 0.2 / 3])
    assert true.losses(diamond)[1] == pytest.approx(-(share * np.log(share)).sum(), abs=0.05)


def test_outcomes_are_drawn_cause_after_cause(diamond):
    networks = StateNetworks.fitted(diamond, GRAPH)
    start, acted = np.zeros((3000, 4), dtype=np.int64), np.zeros(3000, dtype=np.int64)
    out = networks.sampled(start, acted, acted + 1, seed=0)
    assert (out[:, 0] == 1).all()
    assert (out[:, 1] == 1).mean() == pytest.approx(0.8 + 0.2 / 3, abs=0.05)
    assert (networks.sampled(start, acted + 3, acted + 2, seed=0)[:, :3] == 0).all()


_VALUES = 4


def _switched(rows: int) -> StateTransitions:
    """Returns a world where object 2 follows object 0 or 1, whichever is painted."""
    rng = np.random.default_rng(0)
    before, acted = rng.integers(_VALUES, size=(rows, 4)), rng.integers(4, size=rows)
    after = before.copy()
    after[np.arange(rows), acted] = rng.integers(_VALUES, size=rows)
    for painted in (0, 1):
        own = acted == painted
        after[own, 2] = (after[own, painted] + 1 + painted) % _VALUES
    return StateTransitions(before=before, acted=acted, after=after, values=_VALUES)


def test_causes_that_depend_on_what_is_painted_are_found_by_context():
    data = _switched(4000)
    found = local_graphs(data, steps=500)
    true = np.zeros((4, 4, 4), dtype=np.int64)
    true[0, 2, 0] = true[1, 2, 1] = 1
    assert found.local.tolist() == true.tolist()
    assert found.codes > 1
    # One graph for every situation cannot tell: it has both causes in both.
    assert graph_by_masks(data)[0].tolist() == found.graph.tolist() == true.max(0).tolist()


def test_causes_that_depend_on_the_state_are_found_by_state():
    rng, rows = np.random.default_rng(0), 4000
    before, acted = rng.integers(_VALUES, size=(rows, 3)), rng.integers(3, size=rows)
    after = before.copy()
    after[np.arange(rows), acted] = rng.integers(_VALUES, size=rows)
    quiet = before[:, 0] < 2  # of object 0: object 1 then says nothing to object 2
    after[:, 2] = np.where((acted == 1) & ~quiet, after[:, 1], after[:, 2])
    data = StateTransitions(before=before, acted=acted, after=after, values=_VALUES)
    found = local_graphs(data, steps=500)
    assert found.among((acted == 1) & quiet)[2, 1] == 0
    assert found.among((acted == 1) & ~quiet)[2, 1] == 1
