"""Laws of rooms: the present value changes nothing, and recorded factors give the pixels back."""

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InterventionError, InvalidValueError
from interverse.core.rng import Noise
from interverse.data.pairs import CollectPairs, collect_pairs, open_pairs
from interverse.worlds.rooms import generate_sequence
from interverse.worlds.rooms.actions import CLASS_NAMES, has
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.world import Rooms
from tests.worlds.rooms.pairs import pairs_of

ONE = np.array([0])
SMALL = {"image_size": 48}
PICTURES = ("before", "after", "mask_before", "mask_after", "instances_before", "instances_after")


def values_of(world):
    return {name: world.read(name) for name in world.variables}


def equal(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in PICTURES)


@pytest.mark.parametrize("view", ["multi", "single"])
@pytest.mark.parametrize("seeds", [[5], pytest.param(range(40), marks=pytest.mark.slow)], ids=len)
def test_do_of_the_present_value_changes_nothing(view, seeds):  # room 5 has blinds
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


def check_pairs(view, houses, count, **options):
    """Recorded factors give a pair's pixels back, and so do those of its counterfactuals.

    Of each pair one factor is set, another for every pair: to its present value, which gives the
    fact, and to another one, unless the room has no place for it.
    """
    env = iv.make(f"rooms/{view}-v1", **SMALL, **options)
    settable = [n for n, v in env.unwrapped.world.variables.items() if not v.read_only]
    env.reset(seed=1000)
    accepted = 0
    facts = pairs_of(view, count, houses, **SMALL, **options)
    for number, fact in enumerate(facts):
        assert_rebuilt(env, fact, settable)
        name = settable[(houses[0] * 25 + number) * 7 % len(settable)]
        same = iv.counterfactual(fact, do={name: fact.factors_before[name]}, check=False)
        assert equal(same, fact), (fact.address, name)
        try:
            other = iv.counterfactual(fact, do={name: another(fact, name)}, check=False)
        except InterventionError:
            continue
        accepted += 1
        assert_rebuilt(env, other, settable)
    assert len(facts) == count
    assert accepted > 0.4 * count
    env.close()


def assert_rebuilt(env, pair, settable):
    """Sets every factor in another room: its pictures are the pair's, pixel by pixel."""
    for factors, picture in ((pair.factors_before, pair.before), (pair.factors_after, pair.after)):
        do = {name: factors[name] for name in settable}
        seen = env.do(do, check=False).observation  # a step may leave the space of first draws
        assert np.array_equal(seen["image"], picture), pair.address


def another(fact, name):
    """Returns a value near the one that a factor had, or the next class, instance or room."""
    value = fact.factors_before[name]
    slot, _, field = name.rpartition("/")
    if field == "state":
        held = has(int(fact.factors_before[f"{slot}/class"]))
        return np.where(held, np.where(value >= 0.5, 0.0, 0.8), 0.0)
    if field in ("class", "instance", "seed"):
        return (value + 1) % len(CLASS_NAMES)
    return value * 0.9 + 0.05 if name.startswith("light") else value + 0.03


@pytest.mark.parametrize("view", ["multi", "single"])
def test_factors_and_counterfactuals_of_pairs_are_pixel_equal(view):
    check_pairs(view, range(1, 3), 10, pair_nuisance="both" if view == "single" else "none")


def test_a_camera_right_above_its_object_stays_in_its_domain():
    steep = pairs_of("single", 15, [20], image_size=24)[14]
    assert (
        Rooms(num_worlds=1, options=RoomsOptions(view="single"))
        .variables["camera/pitch"]
        .domain.contains(steep.factors_before["camera/pitch"])
    )
    assert float(steep.factors_before["camera/pitch"]) < -1.3


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("view", ["multi", "single"])
def test_factors_and_counterfactuals_of_200_pairs_are_pixel_equal(view, part):
    nuisance = "both" if part % 2 else "none"
    check_pairs(view, range(10 * part, 10 * part + 10), 50, pair_nuisance=nuisance)


# --------------------------------------------------------------------- counterfactuals


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


@pytest.mark.parametrize("at", [0, 1])
def test_a_counterfactual_is_the_fact_of_the_next_one(fact, at):
    dim = iv.counterfactual(fact, {"light/brightness": 0.4}, at, check=False)
    assert not equal(dim, fact)
    assert equal(iv.counterfactual(dim, {}), dim)
    for then in (0, 1):
        both = iv.counterfactual(dim, {"camera/fov": 1.3}, then, check=False)
        assert both.factors_after["light/brightness"] == 0.4
        assert both.factors_after["camera/fov"] == 1.3
        assert both.factors_before["light/brightness"] == dim.factors_before["light/brightness"]
        assert equal(iv.counterfactual(both, {}), both)
        other = iv.counterfactual(dim, {"light/brightness": 0.7}, then, check=False)
        assert other.factors_after["light/brightness"] == 0.7
    assert equal(fact, iv.counterfactual(fact, {}))


def test_an_action_is_changed_by_whole_numbers_however_they_are_given(fact):
    verb = (fact.verb + 2) % 7
    joint = iv.Do({"action/verb": verb}) | iv.Do({"light/brightness": 0.4})
    both = iv.counterfactual(fact, joint, check=False)
    assert both.verb == verb
    assert both.factors_before["light/brightness"] == 0.4
    for wrong in (1.7, [1, 2], "open"):
        with pytest.raises(InterventionError, match="action/verb"):
            iv.counterfactual(fact, {"action/verb": wrong})


def test_a_pair_from_a_folder_finds_its_state_by_its_address(tmp_path):
    config = CollectPairs(id="rooms/single-v1", out=tmp_path / "set", pairs=3, options=SMALL)
    data = open_pairs(collect_pairs(config))
    pair = data.pair(2)
    assert equal(iv.counterfactual(pair, {}), pair)
    wide = iv.counterfactual(pair, do={"camera/fov": 1.4})
    assert not np.array_equal(wide.before, pair.before)


@pytest.mark.parametrize(("view", "nuisance"), [("multi", "none"), ("single", "both")])
def test_each_action_changes_its_target_and_frames_are_rebuilt(make, view, nuisance):
    options = {**SMALL, "pair_nuisance": nuisance}
    found = generate_sequence(f"rooms/{view}-v1", 0, 3, actions=4, options=options)
    assert len(found.images) == len(found.actions) + 1 > 2
    states = [n for n in found.factors if n.endswith("/state")]
    for step, (slot, verb) in enumerate(found.actions):
        before, after = (
            np.stack([found.factors[n][at] for n in states]) for at in (step, step + 1)
        )
        assert np.array_equal(before != after, found.targets[step])
        assert found.factors["action/object"][step + 1] == slot
        assert found.factors["action/verb"][step + 1] == verb
    env = make(f"rooms/{view}-v1", **options)
    env.reset(seed=9)
    settable = [n for n, v in env.world.variables.items() if not v.read_only]
    for at, image in enumerate(found.images):
        do = {name: found.factors[name][at] for name in settable}
        assert np.array_equal(env.do(do, check=False).observation["image"], image)


def test_the_same_address_gives_the_same_sequence():
    first, second = (
        generate_sequence("rooms/multi-v1", 1, 7, actions=2, options=SMALL) for _ in range(2)
    )
    assert np.array_equal(first.images, second.images)
    assert np.array_equal(first.actions, second.actions)


def test_an_episode_has_as_many_actions_as_asked_for():
    env = iv.make("rooms/multi-v1", image_size=16, objects=4, actions=3)
    env.reset(seed=0)
    ends = [env.step(np.array([0, verb]))[2:4] for verb in (0, 1, 0)]
    assert ends == [(False, False), (False, False), (True, False)]
    env.close()
    with pytest.raises(InvalidValueError, match="actions"):
        iv.make("rooms/multi-v1", actions=0)
