"""Protocols of every task are legal, and every id and protocol still gives the stored episodes."""

import copy

import numpy as np
import pytest

import interverse as iv
from interverse.core.registry import Entry
from interverse.protocols import PROTOCOLS
from interverse.worlds import WORLDS
from tools import golden

# The control tasks share one table: what holds in two of them holds in all.
TASKS = [
    task
    for task in PROTOCOLS
    if not task.startswith("control/") or "cartpole_balance-" in task or "reacher_easy" in task
]
ROWS = [(task, p.name) for task in TASKS for p in PROTOCOLS.load(task)]
_HEAVY = ("stacked_blocks", "general")  # these rebuild their scenes by dropping blocks


@pytest.fixture(scope="module")
def venvs():
    made = {}

    def get(task):
        if task not in made:
            count = 4 if any(word in task for word in _HEAVY) else 60
            count = 2 if task.startswith(("control/", "rooms/")) else count
            made[task] = iv.make_vec(task, num_envs=count)
        return made[task]

    yield get
    for venv in made.values():
        venv.close()


def test_every_task_with_protocols_is_a_world():
    assert set(PROTOCOLS) <= set(WORLDS)


@pytest.mark.parametrize(("task", "name"), ROWS, ids=lambda v: v)
def test_draws_are_legal_and_mostly_accepted(venvs, task, name):
    protocol = next(p for p in PROTOCOLS.load(task) if p.name == name)
    venv = venvs(task)
    given = protocol.start(np.arange(venv.num_envs))
    venv.reset(seed=0, options={"do": given} if given else None)
    for variable, rows in given.items():
        assert np.array_equal(venv.unwrapped.values[variable], rows)
    driver = venv.unwrapped.driver
    protocol.check(driver)
    everyone = np.arange(venv.num_envs)
    refused = protocol.apply(driver, everyone)
    assert len(refused) <= 0.1 * venv.num_envs, refused


MY_PROTOCOLS = """
from interverse.protocols.protocol import Protocol

MINE = (Protocol(name="heavy", variables={"box/mass": "B"}),)
"""


def test_a_protocol_is_one_file_and_one_row(tmp_path, monkeypatch):
    """The walk: write a file, add a row, evaluate by name."""
    (tmp_path / "my_protocols.py").write_text(MY_PROTOCOLS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(PROTOCOLS._rows, "tutorial/slider-v1", Entry("my_protocols:MINE"))
    results = iv.evaluate("random", task="tutorial/slider-v1", protocols="heavy", episodes=3)
    heavy = iv.make("tutorial/slider-v1").variables["box/mass"].space("B")
    assert all(heavy.contains(mass) for mass in results.values("box/mass")[:, 0])


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
