"""Pairs: the published acceptance tests, the factors that differ, and the confounder."""

import itertools

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.core.rng import Noise
from interverse.worlds.rooms.actions import CLASS_NAMES, VERBS, has
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.pair import Pair, Rejection
from interverse.worlds.rooms.pairs import ENOUGH, ROUND_PAIRS, Limits, box_of, generate_pairs
from interverse.worlds.rooms.variables import name_of
from interverse.worlds.rooms.world import Rooms
from tests.worlds.rooms.pairs import pairs_of

FAST, SLOW = 20, 500


def pairs_and_tries(count, first=0, **options):
    """Returns the first pairs of houses from one on, and how many tries they took."""
    found, tries = [], 0
    for house in itertools.count(first):
        for item in generate_pairs("rooms/multi-v1", 0, house, options=options):
            tries += 1
            if isinstance(item, Pair):
                found.append(item)
            if len(found) == count:
                return found, tries


def filled(box, size):
    out = np.zeros((size, size), dtype=bool)
    out[box[1] : box[3], box[0] : box[2]] = True
    return out


def check(pair, size):
    """Checks one pair of a world without nuisance."""
    differs = np.any(pair.before != pair.after, axis=-1)
    a, b = filled(pair.box_before, size), filled(pair.box_after, size)
    assert (differs & a & b).sum() > 1000 * (size / 672) ** 2
    assert (differs & ~(a | b)).sum() < 20
    assert pair.nuisance == ()
    moved = {
        name
        for name, value in pair.factors_before.items()
        if not np.array_equal(value, pair.factors_after[name])
    }
    assert moved == {"object/state", "action/object", "action/verb"}
    _, component, target = VERBS[pair.verb]
    assert has(pair.cls)[component]
    before, after = pair.factors_before["object/state"], pair.factors_after["object/state"]
    assert np.flatnonzero(before != after).tolist() == [component]
    assert after[component] == target
    assert pair.cls == int(pair.factors_before["object/class"])
    for mask, instances, box in (
        (pair.mask_before, pair.instances_before, pair.box_before),
        (pair.mask_after, pair.instances_after, pair.box_after),
    ):
        assert np.array_equal(mask, instances == 0)
        assert box_of(mask) == box
    assert Limits.of(size).fits(pair.box_before, size)


@pytest.fixture(scope="module")
def some():
    return pairs_and_tries(FAST, image_size=224)


def test_twenty_pairs_hold_what_they_promise(some):
    for pair in some[0]:
        check(pair, 224)


def test_the_same_address_gives_the_same_pixels(some):
    first = some[0][:3]
    for pair, again in zip(first, pairs_of("multi", 3, image_size=224), strict=True):
        assert pair.address == again.address
        assert np.array_equal(pair.before, again.before)
        assert np.array_equal(pair.after, again.after)
        assert np.array_equal(pair.instances_after, again.instances_after)


def test_the_world_is_not_reset_within_a_round(some):
    """What a pair left is what the next one of the round finds, object by object."""
    followed = 0
    for a, b in itertools.pairwise(some[0]):
        if a.address[:3] != b.address[:3]:
            continue
        assert np.array_equal(a.factors_after["light/color"], b.factors_before["light/color"])
        left, found = (
            {
                int(f[name_of(slot, "instance")]): f[name_of(slot, "state")].tolist()
                for slot in range(8)
                if int(f[name_of(slot, "class")]) >= 0
            }
            for f in (a.factors_after, b.factors_before)
        )
        assert left == found
        followed += 1
    assert followed > 5


def test_a_house_gives_at_most_25_pairs_and_5_a_round(some):
    houses = [(p.address.house, p.address.round) for p in some[0]]
    assert max(houses.count(key) for key in set(houses)) <= ROUND_PAIRS
    assert ENOUGH + ROUND_PAIRS == 25
    assert [p.address.index for p in some[0] if p.address.house == 0] == list(
        range(sum(p.address.house == 0 for p in some[0]))
    )


def test_pairs_vary(some):
    assert len({p.verb for p in some[0]}) >= 3
    assert len({p.cls for p in some[0]}) >= 3
    assert some[1] > FAST, "some tries are rejected"


@pytest.mark.parametrize("nuisance", ["camera", "light"])
def test_a_nuisance_moves_the_rest_of_the_world_and_says_so(nuisance):
    pair = pairs_of("multi", 1, image_size=96, objects=4, pair_nuisance=nuisance)[0]
    assert pair.nuisance
    assert all(name.startswith(nuisance) for name in pair.nuisance)
    differs = np.any(pair.before != pair.after, axis=-1)
    away = ~(filled(pair.box_before, 96) | filled(pair.box_after, 96))
    assert (differs & away).sum() > 0.2 * away.sum()


def test_close_ups_fill_the_picture():
    pair = pairs_of("single", 1, image_size=96, objects=4)[0]
    left, top, right, bottom = pair.box_before
    assert max(right - left, bottom - top) > 40


def test_depth_comes_on_request():
    pair = pairs_of("multi", 1, [1], depth=True, image_size=64, objects=4)[0]
    assert pair.depth_before.dtype == np.float16
    assert 0.05 < float(pair.depth_before.min()) < float(pair.depth_before.max()) < 12
    untouched = ~(pair.mask_before | pair.mask_after)
    assert np.array_equal(pair.depth_before[untouched], pair.depth_after[untouched])


def test_limits_are_the_published_ones_at_672_pixels():
    limits = Limits.of(672)
    assert (limits.smallest, limits.border, limits.large) == (60, 20, 100)
    assert (limits.inside, limits.outside) == (1000, 20)
    assert limits.fits((100, 100, 160, 160), 672)
    assert not limits.fits((100, 100, 159, 200), 672), "too narrow"
    assert not limits.fits((5, 100, 95, 190), 672), "near the border and small"
    assert limits.fits((5, 100, 106, 201), 672), "near the border and large"
    assert Limits.of(224).inside == pytest.approx(1000 / 9)


def test_rejections_have_a_reason_and_bad_addresses_an_error():
    given = generate_pairs("rooms/multi-v1", 0, 2, options={"image_size": 48, "objects": 2})
    found = list(itertools.islice(given, 25))
    reasons = {r.reason for r in found if isinstance(r, Rejection)}
    assert reasons <= {"too few in view", "lost", "little changed", "changed outside"}
    with pytest.raises(InvalidValueError, match="house"):
        next(iter(generate_pairs("rooms/multi-v1", 0, -1)))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_hundred_pairs_hold_what_they_promise():
    found, tries = pairs_and_tries(SLOW, first=100, image_size=224)
    for pair in found:
        check(pair, 224)
    assert len({(p.verb, p.cls) for p in found}) > 40
    assert {CLASS_NAMES[p.cls] for p in found} >= set(CLASS_NAMES) - {"Bed"}
    assert SLOW / tries > 0.1


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
