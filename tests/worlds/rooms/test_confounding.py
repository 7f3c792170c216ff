"""The confounder: off it changes nothing, on it ties action, object, lamp and distance together."""

from __future__ import annotations

import itertools

import numpy as np

import interverse as iv
from interverse.core.rng import Noise
from interverse.worlds.rooms.actions import VERBS
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.pair import Pair
from interverse.worlds.rooms.pairs import generate_pairs
from interverse.worlds.rooms.world import Rooms

SMALL = {"image_size": 24, "objects": 8}


def worlds_with(strength, count):
    world = Rooms(num_worlds=1, options=RoomsOptions(confounder=True, **SMALL))
    found = []
    for seed in range(count):
        noise = Noise.single(seed=seed, episode=0)
        world.reset(np.array([0]), noise, {"confounding": np.array([strength])})
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
    plain.reset(np.array([0]), Noise.single(seed=3, episode=0), {})
    same = worlds_with(0.0, 4)[3]
    for name in plain.variables:
        assert np.array_equal(plain.read(name)[0], same[name]), name


def test_collected_actions_follow_the_coin():
    options = {"confounder": True, "defaults": {"confounding": 1.0}, **SMALL}
    made = (
        item
        for house in itertools.count()
        for item in generate_pairs("rooms/single-v1", 0, house, options=options)
    )
    pairs = list(itertools.islice((item for item in made if isinstance(item, Pair)), 12))
    sets = [bool(VERBS[pair.verb].target) for pair in pairs]
    coins = [bool(pair.factors_before["confounder"]) for pair in pairs]
    assert np.mean(np.array(sets) == np.array(coins)) > 0.6
    fact = pairs[0]
    assert np.array_equal(iv.counterfactual(fact, {}).after, fact.after)


def test_the_graph_has_the_true_parents_of_the_action():
    env = iv.make("rooms/single-v1", confounder=True, image_size=16, objects=2)
    parents = env.graph.parents("action/verb'")
    assert parents == {"confounding", "confounder", "object/class", "object/state"}
    assert {"object/class", "light/color", "camera/position"} <= env.graph.effects_now("confounder")
    env.close()
