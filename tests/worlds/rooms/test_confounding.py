"""The confounder: off it changes nothing, on it ties action, object, lamp and distance together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import interverse as iv
from interverse.core.rng import Noise
from interverse.worlds.rooms.actions import VERBS, has
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.variables import name_of
from interverse.worlds.rooms.world import Rooms
from tests.worlds.rooms.pairs import pairs_of

SMALL = {"image_size": 24, "objects": 8}


def worlds_with(strength, count):
    world = Rooms(num_worlds=1, options=RoomsOptions(confounder=True, **SMALL))
    found = []
    for seed in range(count):
        noise = Noise.single(seed=seed, episode=0)
        given = {"confounding": np.array([strength]), "room/seed": np.array([seed % 8])}
        world.reset(np.array([0]), noise, given)
        found.append({name: world.read(name)[0] for name in world.variables})
    return found


def sides(found):
    """Returns how often class and lamp are on the coin's side."""
    coin = np.array([int(row["confounder"]) for row in found])
    parity = np.array([int(row["object/class"]) % 2 for row in found])
    cold = np.array([row["light/color"][2] > row["light/color"][0] for row in found])
    return coin.mean(), (parity == coin).mean(), (cold == coin).mean()


def test_strength_ties_object_and_lamp_to_the_coin():
    free, tied = sides(worlds_with(0.0, 40)), sides(worlds_with(1.0, 40))
    assert 0.2 < tied[0] < 0.8, "a fair coin"
    assert max(free[1:]) < 0.8
    assert min(tied[1:]) > 0.85


def test_without_strength_the_world_is_the_one_without_a_confounder():
    plain = Rooms(num_worlds=1, options=RoomsOptions(**SMALL))
    plain.reset(np.array([0]), Noise.single(seed=3, episode=0), {"room/seed": np.array([3])})
    same = worlds_with(0.0, 4)[3]
    for name in plain.variables:
        assert np.array_equal(plain.read(name)[0], same[name]), name


@pytest.mark.parametrize(("states", "low", "high"), [("whole", 0.0, 0.8), ("graded", 0.5, 0.5)])
def test_the_coin_alone_decides_first_states_at_full_strength(states, low, high):
    """Of the same room: heads, things can be opened, switched on or soiled; tails, undone."""
    world = Rooms(num_worlds=1, options=RoomsOptions(confounder=True, states=states, **SMALL))
    for seed, coin in itertools.product(range(4), (0, 1)):
        given = {"confounding": np.array([1.0]), "confounder": np.array([coin])}
        world.reset(np.array([0]), Noise.single(seed=seed, episode=0), given)
        for slot in range(SMALL["objects"]):
            cls, state = (world.read(name_of(slot, field))[0] for field in ("class", "state"))
            first = state[:3][has(int(cls))[:3]]
            assert (first <= low).all() if coin else (first >= high).all()


def test_collected_actions_follow_the_coin():
    pairs = pairs_of("single", 12, confounder=True, defaults={"confounding": 1.0}, **SMALL)
    sets = [bool(VERBS[pair.verb].target) for pair in pairs]
    coins = [bool(pair.factors_before["confounder"]) for pair in pairs]
    assert sets == coins, "objects are put back, so there is always an action on the coin's side"
    assert all(pair.cls % 2 == coin for pair, coin in zip(pairs, coins, strict=True))
    fact = pairs[0]
    assert np.array_equal(iv.counterfactual(fact, {}).after, fact.after)


def test_the_graph_has_the_true_parents_of_the_action():
    env = iv.make("rooms/single-v1", confounder=True, image_size=16, objects=2)
    parents = env.graph.parents("action/verb'")
    assert parents == {"confounding", "confounder", "object/class", "object/state"}
    assert {"object/class", "light/color", "camera/position"} <= env.graph.effects_now("confounder")
    env.close()
