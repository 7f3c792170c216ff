"""Laws of rooms: the present value changes nothing, and recorded factors give the pixels back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InterventionError, InvalidValueError
from interverse.core.rng import Noise
from interverse.data.pairs import CollectPairs, collect_pairs, open_pairs
from interverse.worlds.rooms.actions import CLASS_NAMES
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.pair import Pair
from interverse.worlds.rooms.pairs import generate_pairs
from interverse.worlds.rooms.world import Rooms

ONE = np.array([0])
SMALL = {"image_size": 48}
PICTURES = ("before", "after", "mask_before", "mask_after", "instances_before", "instances_after")


def pairs_of(view, count, **options):
    made = (
        item
        for house in itertools.count()
        for item in generate_pairs(f"rooms/{view}-v1", 0, house, options=options)
    )
    return list(itertools.islice((item for item in made if isinstance(item, Pair)), count))


def values_of(world):
    return {name: world.read(name) for name in world.variables}


def equal(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in PICTURES)


def check_present_values(view, seeds):
    world = Rooms(num_worlds=1, options=RoomsOptions(view=view))
    settable = [name for name, variable in world.variables.items() if not variable.read_only]
    for seed in seeds:
        noise = Noise.single(seed=seed, episode=0)
        world.reset(ONE, noise, {})
        world.step(np.array([[0, v]]), ONE, noise.at(1)) if (v := seed % 7) else None
        start, was = world.save(ONE), values_of(world)
        for name in settable:
            world.load(start, ONE)
            assert not world.intervene({name: was[name]}, ONE), (seed, name)
            now = values_of(world)
            assert all(np.array_equal(now[n], was[n]) for n in was), (seed, name)


@pytest.mark.parametrize("view", ["multi", "single"])
def test_do_of_the_present_value_changes_nothing(view):
    check_present_values(view, [5])  # a room with blinds


@pytest.mark.slow
@pytest.mark.parametrize("view", ["multi", "single"])
def test_do_of_the_present_value_changes_nothing_in_forty_rooms(view):
    check_present_values(view, range(40))


def test_blinds_can_be_set_to_where_they_hang():
    world = Rooms(num_worlds=1, options=RoomsOptions())
    found = 0
    for house in range(12):
        world.reset(ONE, Noise.single(seed=0, episode=0), {"room/seed": np.array([house])})
        for slot in range(8):
            name = "object" if slot == 0 else f"object_{slot}"
            if int(world.read(f"{name}/class")[0]) == CLASS_NAMES.index("Blinds"):
                found += 1
                place = world.read(f"{name}/position")
                assert not world.intervene({f"{name}/position": place}, ONE)
    assert found >= 1


def check_rebuilt(view, count, **options):
    env = iv.make(f"rooms/{view}-v1", **options)
    settable = [n for n, v in env.unwrapped.world.variables.items() if not v.read_only]
    env.reset(seed=1000)
    for pair in pairs_of(view, count, **options):
        for factors, picture in (
            (pair.factors_before, pair.before),
            (pair.factors_after, pair.after),
        ):
            do = {name: factors[name] for name in settable}
            seen = env.do(do, check=False).observation  # a step may leave the space of first draws
            assert np.array_equal(seen["image"], picture), pair.address
    env.close()


@pytest.mark.parametrize("view", ["multi", "single"])
def test_recorded_factors_give_the_pixels_back(view):
    check_rebuilt(view, 4, image_size=48, pair_nuisance="both")


@pytest.mark.slow
@pytest.mark.parametrize("view", ["multi", "single"])
def test_recorded_factors_give_the_pixels_of_100_pairs_back(view):
    check_rebuilt(view, 100, **SMALL)


# --------------------------------------------------------------------- counterfactuals


def check_counterfactuals(view, count):
    """Any factor at its present value gives the fact; at another, pixels its factors give back."""
    env = iv.make(f"rooms/{view}-v1", **SMALL)
    settable = [n for n, v in env.unwrapped.world.variables.items() if not v.read_only]
    env.reset(seed=1000)
    facts = pairs_of(view, count, **SMALL)
    for number, fact in enumerate(facts):
        name = settable[number * 7 % len(settable)]
        same = iv.counterfactual(fact, do={name: fact.factors_before[name]}, check=False)
        assert equal(same, fact), (fact.address, name)
        light = {"light/time_of_day": 7.0 + number % 11, "light/brightness": 0.9 + number % 5 / 10}
        other = iv.counterfactual(fact, do=light)
        seen = env.do({n: other.factors_after[n] for n in settable}, check=False).observation
        assert np.array_equal(seen["image"], other.after), fact.address
    env.close()


@pytest.mark.parametrize("view", ["multi", "single"])
def test_counterfactuals_of_any_factor_are_pixel_equal(view):
    check_counterfactuals(view, 4)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["multi", "single"])
def test_counterfactuals_of_100_pairs_are_pixel_equal(view):
    check_counterfactuals(view, 100)


@pytest.fixture(scope="module")
def fact():
    return pairs_of("single", 1, image_size=48, pair_nuisance="both")[0]


def test_without_an_intervention_the_counterfactual_is_the_fact(fact):
    again = iv.counterfactual(fact, {})
    assert equal(again, fact)
    assert again.nuisance == fact.nuisance
    assert again.box_after == fact.box_after


def test_another_light_changes_both_pictures_and_no_cause(fact):
    dark = iv.counterfactual(fact, do={"light/brightness": 0.3}, check=False)
    assert dark.before.mean() < fact.before.mean()
    assert np.array_equal(dark.mask_before, fact.mask_before)
    assert dark.verb == fact.verb
    differs = {
        n
        for n, value in fact.factors_before.items()
        if not np.array_equal(value, dark.factors_before[n])
    }
    assert differs == {"light/brightness"}


def test_another_action_changes_the_picture_after_alone(fact):
    other = iv.counterfactual(fact, do={"action/verb": (fact.verb + 2) % 7})
    assert np.array_equal(other.before, fact.before)
    assert other.verb == (fact.verb + 2) % 7
    assert not np.array_equal(
        other.factors_after["object/state"], fact.factors_after["object/state"]
    )
    with pytest.raises(InterventionError, match="action/verb"):
        iv.counterfactual(fact, do={"action/verb": 7})


def test_after_the_action_only_the_second_picture_changes(fact):
    late = iv.counterfactual(fact, do={"light/brightness": 0.3}, at=1, check=False)
    assert np.array_equal(late.before, fact.before)
    assert late.after.mean() < fact.after.mean()
    with pytest.raises(InvalidValueError, match="at is 2"):
        iv.counterfactual(fact, do={}, at=2)


def test_a_pair_from_a_folder_finds_its_state_by_its_address(tmp_path):
    config = CollectPairs(id="rooms/single-v1", out=tmp_path / "set", pairs=3, options=SMALL)
    data = open_pairs(collect_pairs(config))
    pair = data.pair(2)
    assert equal(iv.counterfactual(pair, {}), pair)
    wide = iv.counterfactual(pair, do={"camera/fov": 1.4})
    assert not np.array_equal(wide.before, pair.before)
