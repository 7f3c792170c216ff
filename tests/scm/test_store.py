"""Stores: what is worked out anew, and places that variables write."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.scm import Binding, Box, Variable, table
from interverse.scm.store import Store, product
from interverse.worlds.control.paint import without_covered
from interverse.worlds.trifinger import variables as trifinger
from interverse.worlds.trifinger.world import _beginning, declare_variables

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


def bound(name, *bindings):
    return Variable(
        name=name, kind="latent", default=np.array(1.0), domain=Box(0, 9), bindings=bindings
    )


def store(first, second):
    return Store(table(bound("a", first), bound("b", second)), num_worlds=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Binding("opt.gravity", None, 2), Binding("opt.gravity", None, 2)),
        (Binding("opt.gravity"), Binding("opt.gravity", index=0)),
        (Binding("geom_size", "box"), Binding("geom_size", ("ball", "box"), 1)),
        (Binding("geom_size", ("ball", "box"), (0, 1)), Binding("geom_size", "ball", 1)),
        (Binding("body_mass"), Binding("body_mass", "box")),
        (Binding("opt.density"), Binding("opt.density", function=product, of=("b",))),
    ],
)
def test_two_variables_that_write_one_place_are_refused_by_name(first, second):
    with pytest.raises(InvalidValueError, match=rf"a and b both write {second.field}") as caught:
        store(first, second)
    # Control's dynamics takes no binding of several variables: `of` is no advice for every world.
    assert "a world that takes bindings of several variables" in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Binding("opt.gravity", None, 2), Binding("opt.gravity", None, (0, 1))),
        (Binding("geom_size", "box"), Binding("geom_size", "ball")),
        (Binding("geom_size", "box"), Binding("geom_rgba", "box")),
        (Binding("cam_pos", "eye"), Binding("cam_pos", "eye", function=product, of=("a", "b"))),
    ],
)
def test_other_places_and_a_binding_made_from_both_are_allowed(first, second):
    assert store(first, second).read("b").tolist() == [1.0]


def test_a_factor_may_share_a_place_where_all_are_applied_anew_and_not_in_a_simulator():
    both = store(Binding("body_mass", "box"), Binding("body_mass", relative=True))
    with pytest.raises(InvalidValueError, match="a and b both write body_mass"):
        both.follow(lambda edits, worlds: None)


def test_a_second_gravity_of_trifinger_is_refused(monkeypatch):
    declared = trifinger.arena_variables

    def with_second(scene):
        out = declared(scene)
        gravity = next(v for v in out if v.name == "gravity")
        return [*out, replace(gravity, name="gravity2")]

    world = "interverse.worlds.trifinger.world"
    monkeypatch.setattr(f"{world}.arena_variables", with_second)
    monkeypatch.setattr(f"{world}.declare_variables", declare_variables.__wrapped__)  # kept ones
    monkeypatch.setattr(f"{world}._beginning", _beginning.__wrapped__)
    with pytest.raises(InvalidValueError, match=r"gravity and gravity2 both write opt\.gravity"):
        iv.make("trifinger/pushing-v1")


def test_a_look_whose_place_is_taken_over_has_no_binding_to_it():
    look = bound("look", Binding("tex_data", "sky"), Binding("mat_rgba", "sky"))
    (left,) = without_covered([look], [bound("video", Binding("tex_data", "sky"))])
    assert [binding.field for binding in left.bindings] == ["mat_rgba"]
