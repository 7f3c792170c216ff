"""Graphs that depend on the situation are told apart by it, from states and from pictures."""

from __future__ import annotations

import numpy as np
from scipy import stats

from interverse.benchmarks.causalmbrl.dynamics_track import DynamicsTask, DynamicsWorld, _state_f1
from interverse.models.local_graphs import local_graphs
from interverse.models.state_graphs import StateTransitions, graph_by_masks

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
    world = DynamicsWorld(DynamicsTask(graph="full", objects=3, switched=True))
    data = world.transitions(4000, "train")

    def chance(rows):  # of such counts, if object 2 did not hang on what object 1 is painted
        counts = np.zeros((data.values, data.values))
        np.add.at(counts, (data.after[rows, 1], data.after[rows, 2]), 1)
        return stats.chi2_contingency(counts[:, counts.any(0)]).pvalue

    painted, quiet = data.acted == 1, data.before[:, 0] < 2
    assert min(chance(painted & (data.before[:, 0] == color)) for color in (0, 1)) > 0.01
    assert chance(painted & ~quiet) < 1e-6
    assert _state_f1(world.graph, world.graph, data) == 2 / 3  # right in half of the states
    found = local_graphs(data, steps=500)
    assert found.among(painted & quiet)[2, 1] == 0
    assert found.among(painted & ~quiet)[2, 1] == 1
    assert _state_f1(world.graph, found, data) == 1.0


def test_pictures_are_read_exactly_without_seeing_states():
    task = DynamicsTask(graph="chain", objects=5, pixels=True)
    told = DynamicsTask(graph="chain", objects=5)
    read = DynamicsWorld(task).transitions(1000, "train")
    true = DynamicsWorld(told).transitions(1000, "train")
    assert np.array_equal(read.after, true.after)
    assert np.array_equal(read.before, true.before)
