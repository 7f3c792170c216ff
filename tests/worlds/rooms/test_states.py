"""States between 0 and 1: pictures follow them, actions go to any target."""

import itertools

import numpy as np
import pytest

import interverse as iv
from interverse.art.rooms.item import PROPERTIES
from interverse.worlds.rooms.actions import CLASS_NAMES, act_to, has, possible
from tests.worlds.rooms.pairs import pairs_of

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
FAST = [("Bed", "dirty"), ("CellPhone", "broken"), ("Drawer", "open"), ("DeskLamp", "on")]
FAST += [("Candle", "on"), ("Mug", "broken"), ("Faucet", "on")]
EVERY = [(c, PROPERTIES[p]) for n, c in enumerate(CLASS_NAMES) for p in np.flatnonzero(has(n))]
SHATTER = ("Bowl", "Mug", "Plate", "Vase")
ROOMS = 30
SLACK = 0.95  # a flame that grows hides some of the glow behind it


@pytest.fixture(scope="module")
def env():
    made = iv.make("rooms/single-v1", image_size=48, objects=2)
    yield made
    made.close()


def pictures(env, cls, prop):
    """Returns pictures of an object of a class at every level of a property."""
    number, component = CLASS_NAMES.index(cls), PROPERTIES.index(prop)
    for room in range(ROOMS):
        env.reset(seed=0, options={"do": {"room/seed": room}})
        try:
            env.do({"object/class": number})
            break
        except iv.InterventionError:
            continue
    found = []
    for level in LEVELS:
        state = np.zeros(4)
        state[component] = level
        found.append(env.do({"object/state": state}).observation["image"].astype(float))
    return found


@pytest.mark.parametrize(
    ("cls", "prop"),
    [pytest.param(*pair, marks=() if pair in FAST else pytest.mark.slow) for pair in EVERY],
)
def test_pixels_change_step_by_step_with_the_state(env, cls, prop):
    seen = pictures(env, cls, prop)
    for one, other in itertools.pairwise(seen):
        assert (one != other).any(), "every step changes pixels"
    far = [np.abs(picture - seen[0]).mean() for picture in seen]
    if prop == "open" and cls not in ("Drawer", "Cabinet"):
        return  # what turns on a hinge may hide itself again
    if prop == "broken" and cls in SHATTER:
        assert far[0] < far[1] < far[2] < min(far[3:]), "cracks, then shards"
    else:
        assert all(b > SLACK * a for a, b in itertools.pairwise(far)), far
        assert far[-1] > far[1] > 0


def test_actions_go_to_their_target_or_nowhere():
    fridge = CLASS_NAMES.index("Fridge")
    ajar = np.array([0.37, 0, 0, 0])
    assert act_to(fridge, np.zeros(4), 0, 0.37).tolist() == ajar.tolist()
    assert act_to(fridge, ajar, 0, 0.2).tolist() == ajar.tolist(), "opening never closes"
    assert act_to(fridge, ajar, 1, 0.2).tolist() == [0.2, 0, 0, 0]
    assert act_to(fridge, ajar, 2, 1.0).tolist() == ajar.tolist(), "a fridge cannot be turned on"
    assert possible(fridge, ajar, graded=True) == [0, 1]
    assert possible(fridge, np.zeros(4), graded=True) == [0]


def test_a_graded_world_opens_to_a_target_that_was_set():
    env = iv.make("rooms/single-v1", image_size=24, objects=2, states="graded")
    env.reset(seed=0)
    env.do({"object/class": CLASS_NAMES.index("Fridge")})
    env.do({"object/state": [0.1, 0, 0, 0], "action/target": 0.37})
    env.step(np.array([0, 0]))
    assert env.values["object/state"].tolist() == [0.37, 0, 0, 0]
    assert "action/target'" in env.graph.parents("object/state'")
    env.close()


def test_graded_pairs_have_states_of_all_sizes():
    found = pairs_of("single", 6, [3], image_size=32, objects=2, states="graded")
    states = np.array([pair.factors_after["object/state"] for pair in found])
    assert len(np.unique(states)) > 6
    pair = found[0]
    assert np.array_equal(iv.counterfactual(pair, {}).after, pair.after)
