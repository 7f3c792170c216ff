"""Golden episodes: every id and protocol still gives the numbers that are stored."""

from __future__ import annotations

import copy

import pytest

from interverse.worlds import WORLDS
from tools import golden

BUILT_IN = tuple(n for n in WORLDS if WORLDS[n].target.startswith("interverse."))
STORED = golden.load()
# The control tasks share one table of protocols: what holds in two of them holds in all.
WHOLE = [t for t in BUILT_IN if not t.startswith("control/") or "cartpole_balance-" in t]


def test_every_id_is_stored():
    assert set(STORED) == set(BUILT_IN)


@pytest.mark.parametrize("task", BUILT_IN)
def test_episodes_are_the_stored_ones(task):
    """A deliberate change: `python tools/golden.py --write`, and a line in the changelog."""
    found = golden.episodes_of(task, every=task in WHOLE)
    stored = {name: row for name, row in STORED[task].items() if task in WHOLE or name in found}
    assert golden.differences(stored, found) == []


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in BUILT_IN if task not in WHOLE])
def test_every_protocol_of_the_other_control_tasks_is_the_stored_one(task):
    assert golden.differences(STORED[task], golden.episodes_of(task)) == []


def test_a_changed_number_a_lost_row_and_a_new_one_are_named():
    found = copy.deepcopy(STORED["tutorial/slider-v1"])
    found["P0"]["reward"] += 1e-4
    found["P9"] = found.pop("P1")
    lines = golden.differences(STORED["tutorial/slider-v1"], found)
    assert [line.split(" ")[0:2] for line in lines] == [
        ["P0:", "reward"],
        ["P1:", "gone"],
        ["P9:", "new"],
    ]
