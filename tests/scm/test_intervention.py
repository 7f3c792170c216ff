"""Interventions as values, and the structural causal model they act on."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interverse.core.errors import FileFormatError, InterventionError, InvalidValueError
from interverse.core.rng import Noise
from interverse.scm import (
    SCM,
    Box,
    Do,
    Mechanism,
    Replace,
    Shift,
    as_intervention,
    intervention_from_json,
)

NOISE = Noise.single(seed=0)
MODEL = SCM(
    {
        "mass": Mechanism((), lambda p, u: 1.0 + u),
        "push": Mechanism((), lambda p, u: 2.0 * u),
        "speed": Mechanism(("mass", "push"), lambda p, u: p["push"] / p["mass"] + 0.1 * u),
        "place": Mechanism(("speed",), lambda p, u: p["speed"] + u),
    }
)


def test_interventions_are_values():
    assert Do({"a": 1.0}) == Do({"a": 1.0}) != Do({"a": 2.0})
    assert len({Do({"a": [1, 2]}), Do({"a": [1, 2]}), Shift({"a": 1})}) == 2
    with pytest.raises((TypeError, ValueError)):
        Do({"a": [1.0]}).values["a"][0] = 2.0


@pytest.mark.parametrize(
    "intervention",
    [
        Do({"a": 1.5, "b": [1, 2]}),
        Shift({"a": -1}),
        Replace({"a": Box(0.0, 1.0)}),
        Do({"a": 1}) | Shift({"b": 2}) | Replace({"c": Box(0.0, 1.0)}),
    ],
    ids=["do", "shift", "replace", "joint"],
)
def test_json_round_trip(intervention):
    again = intervention_from_json(json.loads(json.dumps(intervention.to_json())))
    assert again.to_json() == intervention.to_json()
    assert again.variables == intervention.variables


def test_a_variable_set_twice_is_an_error():
    with pytest.raises(InterventionError, match="a is set twice") as error:
        Do({"a": 1}) | Do({"b": 2}) | Shift({"a": 1})
    assert error.value.variables == ("a",)


def test_shift_and_replace_become_values():
    now = {"a": np.array([1.0, 2.0])}
    two = Noise(np.arange(2), np.zeros(2, int), np.zeros(2, int))
    assert Shift({"a": 0.5}).resolve(now.__getitem__, two)["a"].tolist() == [1.5, 2.5]
    drawn = Replace({"a": Box(3.0, 4.0)}).resolve(now.__getitem__, two)["a"]
    assert np.all((drawn >= 3.0) & (drawn < 4.0))
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("bad", [3, None, [("a", 1)], {1: 2}])
def test_what_is_no_intervention_is_refused(bad):
    with pytest.raises(InterventionError, match="cannot be a"):
        as_intervention(bad)


@pytest.mark.parametrize("bad", [{}, {"undo": {}}, {"do": 3}, {"replace": {"a": {}}}])
def test_json_of_something_else_is_refused(bad):
    with pytest.raises(FileFormatError, match="not an intervention"):
        intervention_from_json(bad)


@given(seed=st.integers(0, 2**32 - 1), mass=st.floats(0.1, 9.0))
def test_do_moves_only_descendants(seed, mass):
    noise = Noise.single(seed=seed)
    fact, acted = MODEL.sample(noise), MODEL.sample(noise, do=Do({"mass": mass}))
    for name in fact.keys() - MODEL.graph.descendants("mass") - {"mass"}:
        assert fact[name] == acted[name]
    assert acted["mass"] == mass


@given(seed=st.integers(0, 2**32 - 1))
def test_a_counterfactual_without_change_is_the_fact(seed):
    noise = Noise.single(seed=seed)
    fact = MODEL.sample(noise, do=Do({"push": 1.0}))
    assert MODEL.counterfactual(noise, Do({"push": 1.0}), Do({})) == fact


def test_reads_are_recorded_and_checked():
    assert MODEL.reads(NOISE) == {"mass": set(), "push": set(), "speed": {"mass", "push"}} | {
        "place": {"speed"}
    }
    sly = SCM({"a": Mechanism((), lambda p, u: u), "b": Mechanism((), lambda p, u: p["a"])})
    with pytest.raises(InvalidValueError, match="the mechanism of b reads a"):
        sly.sample(NOISE)


def test_a_cycle_is_refused():
    with pytest.raises(InvalidValueError, match="form a cycle"):
        SCM({n: Mechanism((m,), lambda p, u: u) for n, m in (("a", "b"), ("b", "a"))})


def test_an_unknown_variable_is_refused():
    with pytest.raises(InterventionError, match=r"unknown variable 'mas'\. Did you mean 'mass'"):
        MODEL.sample(NOISE, do=Do({"mas": 1.0}))


@pytest.mark.parametrize("kind", [Do, Shift, Replace])
@pytest.mark.parametrize("wrong", [None, 3, "x", [("mass", 1)], {3: 1}])
def test_what_is_no_mapping_from_names_is_refused_at_once(kind, wrong):
    with pytest.raises(InterventionError, match="a mapping from variable name"):
        kind(wrong)
    with pytest.raises(InterventionError, match="a mapping from variable name"):
        Do({"mass": 1.0}) | wrong


def test_what_is_no_space_is_refused_at_once():
    with pytest.raises(InterventionError, match=r"mass is drawn from 3\. Allowed: a space"):
        Replace({"mass": 3})


@pytest.mark.parametrize("how", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_interventions_can_be_copied_and_sent(how):
    some = [Do({"mass": [1.0, 2.0]}), Shift({"mass": 1}), Replace({"mass": Box(0.0, 1.0)})]
    for item in (*some, some[0] | {"push": 2.0}):
        assert how(item).to_json() == item.to_json()
    assert not how(some[0]).values["mass"].flags.writeable
