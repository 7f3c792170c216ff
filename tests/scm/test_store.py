"""A store of values by world: what an edit of some worlds sends to the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv

PUSHING = "trifinger/pushing-v1"
VALUES = {"finger_0/upper/mass": 0.09, "block_0/mass": 0.04, "block_0/friction": 0.7}


def played(name: str, values: list[float]) -> np.ndarray:
    """Returns what worlds show after some steps, each started with its own value."""
    venv = iv.make_vec(PUSHING, num_envs=len(values))
    venv.reset(seed=[0] * len(values), options={"do": {name: np.array(values)}})
    action = np.full((len(values), 9), 0.5, np.float32)
    for _ in range(4):
        seen = venv.step(action)[0]
    venv.close()
    return seen


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_changes_in_the_last_world_alone_reaches_its_model(name):
    env = iv.make(PUSHING)
    env.reset(seed=0)
    before = float(env.values[name])
    env.close()
    both, single = played(name, [before, VALUES[name]]), played(name, [VALUES[name]])
    assert np.array_equal(both[1], single[0])


def test_only_names_whose_values_differ_are_changed():
    env = iv.make_vec(PUSHING, num_envs=3)
    env.reset(seed=0)
    store = env.unwrapped.driver.world._store
    rows = {key: value.copy() for key, value in store.rows.items()}
    rows["link/mass"][2, 0, 1] += 0.01
    assert store.changed_names(rows, store.rows, ["link/mass"]) == {"finger_0/middle/mass"}
    env.close()


def test_what_was_worked_out_from_rows_is_worked_out_anew_after_a_restart():
    world = iv.make("tutorial/slider-v1").world
    store, worlds = world._store, np.arange(1)
    store.commit({**store.take(worlds), "box/mass": np.array([0.7])}, worlds)

    def mass():
        return store.cached("mass", ("box/mass",), lambda: float(store.rows["box/mass"][0]))

    assert mass() == 0.7
    store.restart(worlds)
    assert mass() == 0.5
