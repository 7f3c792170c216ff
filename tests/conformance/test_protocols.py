"""Every protocol of every task: variables exist, regions are legal, draws are accepted."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.core.registry import Entry
from interverse.protocols import PROTOCOLS
from interverse.worlds import WORLDS

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
