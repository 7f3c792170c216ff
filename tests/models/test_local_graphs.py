"""Graphs that depend on the situation are told apart by it, from states and from pictures."""

from __future__ import annotations

import numpy as np

from interverse.models.state_graphs import StateTransitions, graph_by_masks, local_graphs

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
