"""Spaces: bounds, membership, sampling, open ends, JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interverse.core.errors import InvalidValueError
from interverse.scm import Angle, Box, Choice, Integers, UnitQuaternion, Variable, boolean, hull
from interverse.scm.space import space_from_json, space_to_json

SPACES = [
    Box(0.0, 1.0),
    Box([-1, 0, 2], [1, 0, 5], (3,)),
    Box(0.5, 1.0, (3,), open_low=True),
    Box(0.0, 0.5, (2, 2), open_high=True),
    Integers(1, 3),
    Integers([1, 4], [3, 6], (2,)),
    boolean((2,)),
    Choice((2, 5, 11)),
    Angle((2,)),
    UnitQuaternion(),
    UnitQuaternion(yaw_only=True),
]
every_space = pytest.mark.parametrize("space", SPACES, ids=lambda s: type(s).__name__)


@every_space
@given(seed=st.integers(0, 2**32 - 1))
def test_a_sample_lies_inside(space, seed):
    value = space.sample(np.random.default_rng(seed))
    assert value.shape == space.shape
    assert space.contains(value)


@every_space
def test_the_corners_of_the_uniform_cube_lie_inside(space):
    for corner in (np.zeros(space.draws), np.full(space.draws, np.nextafter(1.0, 0.0))):
        assert space.contains(space.from_uniform(corner))


@every_space
def test_json_round_trip(space):
    again = space_from_json(json.loads(json.dumps(space_to_json(space))))
    rng = np.random.default_rng(0)
    assert type(again) is type(space)
    assert np.array_equal(again.low, space.low)
    assert np.array_equal(
        again.sample(np.random.default_rng(1)), space.sample(np.random.default_rng(1))
    )
    assert again.contains(space.sample(rng))


@every_space
def test_many_values_are_judged_one_by_one(space):
    values = np.stack([space.sample(np.random.default_rng(i)) for i in range(4)])
    values[2] = 99
    assert space.inside(values).tolist() == [True, True, False, True]


def test_an_open_end_is_excluded_and_a_pinned_component_is_not():
    b = Box([0.5, 0.3], [1.0, 0.3], (2,), open_low=True)
    assert not b.contains([0.5, 0.3])
    assert b.contains([0.6, 0.3])


def test_a_pinned_component_may_have_been_rounded_to_float32():
    kept = float(np.float32(0.0325))
    assert Box(kept, kept).contains(0.0325)
    assert not Box(kept, kept).contains(0.03250002)


@pytest.mark.parametrize("bad", [np.nan, np.inf, "1", [0.1], None])
def test_contains_is_false_for_what_is_no_value(bad):
    assert not Box(0.0, 1.0).contains(bad)


def test_bounds_may_differ_by_world():
    box = Box(np.array([[0.0], [5.0]]), np.array([[1.0], [6.0]]), (1,))
    assert box.inside(np.array([[0.5], [0.5]])).tolist() == [True, False]


def test_quaternions_are_uniform_rotations():
    rng = np.random.default_rng(0)
    q = UnitQuaternion().from_uniform(rng.random((4000, 3)))
    assert np.allclose(np.linalg.norm(q, axis=-1), 1.0)
    assert np.allclose((q**2).mean(axis=0), 0.25, atol=0.02)


def test_the_hull_spans_both():
    assert hull(Box(0.0, 1.0), Box(1.0, 3.0, open_low=True)).high == 3.0
    assert hull(Integers(1, 3), Integers(4, 5)).contains(4)
    with pytest.raises(InvalidValueError, match="no hull"):
        hull(Box(0.0, 1.0), UnitQuaternion())


def test_low_above_high_is_refused():
    with pytest.raises(InvalidValueError, match="low <= high"):
        Box(1.0, 0.0)


def test_a_variable_without_a_b_has_no_space_b():
    mass = Variable(
        name="mass", kind="latent", default=np.array(1.0), domain=Box(0, 9), space_a=Box(1, 2)
    )
    assert mass.space("B") is None
    assert mass.space("A_B") is mass.space("A") is mass.region("B")
    assert replace(mass, space_a=None).region("B") is None
    both = replace(mass, space_b=Box(2, 3, open_low=True))
    assert both.region("B") is both.space("B") is both.space_b
    assert both.space("A_B").contains(2.5)


@pytest.mark.parametrize("kind", [Box, Integers])
def test_bounds_cannot_be_changed_through_the_space_or_the_array_given(kind):
    given = np.zeros(3)
    space = kind(given, np.ones(3), (3,))
    given += 5.0
    assert not space.least.flags.writeable
    assert not space.most.flags.writeable
    space.low[:] = 7  # a copy
    assert space.low.tolist() == [0, 0, 0]
