"""The world of rooms: what an action changes, what follows what, refusals, options."""

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.worlds.rooms.actions import CLASS_NAMES, VERBS, act, has, possible

SMALL = {"image_size": 24, "objects": 3}
FRIDGE, LAPTOP, MUG = (CLASS_NAMES.index(name) for name in ("Fridge", "Laptop", "Mug"))


@pytest.fixture(scope="module")
def env():
    made = iv.make("rooms/multi-v1", **SMALL)
    yield made
    made.close()


def values(env):
    return dict(env.unwrapped.values)


def changed(before, after):
    return {name for name in before if not np.array_equal(before[name], after[name])}


# ------------------------------------------------------------------------------ actions


def test_actions_set_their_property_and_know_when_they_cannot():
    shut = np.zeros(4)
    ajar = np.array([0.3, 0.0, 0.0, 0.0])
    assert act(FRIDGE, shut, 0).tolist() == [0.8, 0, 0, 0]
    assert act(FRIDGE, ajar, 0).tolist() == [0.8, 0, 0, 0], "less than half open is shut"
    assert act(FRIDGE, ajar, 1).tolist() == ajar.tolist()
    assert act(FRIDGE, shut, 2).tolist() == shut.tolist(), "a fridge cannot be turned on"
    broken = act(MUG, shut, 6)
    assert broken.tolist() == [0, 0, 0, 1]
    assert act(MUG, broken, 6).tolist() == broken.tolist(), "nothing breaks twice"
    assert [VERBS[v].name for v in possible(LAPTOP, shut)] == ["open", "turnon", "break"]
    assert possible(-1, shut) == []


@pytest.mark.parametrize("view", ["multi", "single"])
def test_an_episode_is_one_action(view):
    env = iv.make(f"rooms/{view}-v1", **SMALL)
    env.reset(seed=0)
    before = values(env)
    able = possible(int(before["object/class"]), before["object/state"])
    verb = able[0]
    _, reward, terminated, truncated, info = env.step(np.array([0, verb]))
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert changed(before, values(env)) == {"object/state", "action/object", "action/verb"}
    assert int(env.values["action/verb"]) == verb
    env.reset(seed=0)
    lacking = next(v for v in range(7) if v not in able)
    _, reward, terminated, *_ = env.step(np.array([0, lacking]))
    assert (reward, terminated) == (0.0, True)
    env.close()


def test_the_action_causes_the_objects_next_state_and_nothing_else(env):
    descendants = env.graph.descendants("action/verb'")
    assert descendants == {"object/state'", "object_1/state'", "object_2/state'"}
    causes = env.graph.parents("object/state'")
    assert causes == {"action/verb'", "action/object'", "object/class", "object/state"}
    others = {"room/seed", "action/object", "action/verb", "light/brightness", "light/time_of_day"}
    assert env.graph.effects_now("room/seed") == set(env.variables) - others


def test_an_action_on_an_empty_slot_does_nothing(env):
    env.reset(seed=0)
    env.do({"object_2/class": -1})
    before = values(env)
    _, reward, *_ = env.step(np.array([2, 0]))
    assert reward == 0
    assert changed(before, values(env)) == {"action/object", "action/verb"}


# -------------------------------------------------------------------------------- do


def test_a_state_can_be_anything_between_and_is_seen():
    env = iv.make("rooms/single-v1", image_size=64, objects=2)
    env.reset(seed=0)
    env.do({"object/class": FRIDGE})
    shut = env.do({"object/state": [0.0, 0, 0, 0]}).observation["image"]
    ajar = env.do({"object/state": [0.25, 0, 0, 0]}).observation["image"]
    wide = env.do({"object/state": [1.0, 0, 0, 0]}).observation["image"]
    assert (shut != ajar).any()
    assert (ajar != wide).any()
    env.close()


def test_what_a_class_lacks_stays_zero(env):
    env.reset(seed=0)
    lacking = int(np.flatnonzero(~has(int(env.values["object/class"])))[0])
    state = np.zeros(4)
    state[lacking] = 1.0
    before = values(env)
    for check in (True, False):
        with pytest.raises(iv.InterventionError, match="object/state"):
            env.do({"object/state": state}, check=check)
    assert changed(before, values(env)) == set()


def test_another_class_takes_its_own_state_and_place(env):
    env.reset(seed=0)
    before = values(env)
    number = MUG if int(before["object_1/class"]) != MUG else LAPTOP
    outcome = env.do({"object_1/class": number})
    assert "object_1/class" in outcome.changed
    allowed = {f"object_1/{field}" for field in ("class", "position", "yaw", "state")}
    assert outcome.changed <= allowed
    assert np.all(env.values["object_1/state"][~has(number)] == 0)


def test_places_inside_furniture_or_walls_are_refused(env):
    env.reset(seed=0)
    before = values(env)
    with pytest.raises(iv.InterventionError, match="run into"):
        env.do({"object/position": [3.9, 3.9, 0.0]})
    with pytest.raises(iv.InterventionError, match="run into"):
        env.do({"object/position": before["object_1/position"]})
    with pytest.raises(iv.InterventionError, match="camera/position"):
        env.do({"camera/position": [3.9, 0.0, 1.5]})
    assert changed(before, values(env)) == set()


def test_another_room_keeps_what_is_held(env):
    env.reset(seed=0)
    env.do({"light/color": [0.2, 0.4, 0.9]})
    present = int(env.values["room/seed"])
    outcome = env.do({"room/seed": (present + 1) % 10_000})
    assert {"room/seed", "object/instance", "camera/position"} <= outcome.changed
    assert env.values["light/color"].tolist() == [0.2, 0.4, 0.9]


def test_the_close_up_follows_its_object():
    env = iv.make("rooms/single-v1", **SMALL)
    env.reset(seed=1)
    multi = iv.make("rooms/multi-v1", **SMALL)
    multi.reset(seed=1)
    assert "camera/yaw" in env.graph.effects_now("object/position")
    assert "camera/yaw" not in multi.graph.effects_now("object/position")
    assert float(env.values["camera/fov"]) < float(multi.values["camera/fov"])
    env.close()
    multi.close()


@pytest.mark.parametrize(
    ("nuisance", "expected"),
    [
        ("none", set()),
        ("camera", {"camera/position", "camera/yaw", "camera/pitch"}),
        ("light", {"light/color", "light/brightness", "light/time_of_day"}),
    ],
)
def test_nuisance_changes_what_it_says(nuisance, expected):
    env = iv.make("rooms/multi-v1", pair_nuisance=nuisance, **SMALL)
    env.reset(seed=5)
    before = values(env)
    env.step(np.array([0, 0]))
    moved = changed(before, values(env))
    assert moved - {"object/state", "action/object", "action/verb"} == expected
    for name in expected:
        assert name in env.graph.parents(f"{name}'")
    env.reset(seed=5)
    if "camera/yaw" in expected:
        env.do({"camera/yaw": 1.0})
        env.step(np.array([0, 0]))
        assert float(env.values["camera/yaw"]) == 1.0, "an intervention lasts"
    env.close()


def test_the_counterfactual_of_a_pair():
    env = iv.make("rooms/multi-v1", pair_nuisance="both", **SMALL)
    fact = iv.rollout(env, lambda _: np.array([[0, 0]]), seed=3)
    twin = iv.counterfactual(fact, do={"light/brightness": 0.5})
    assert len(fact.actions) == len(twin.actions) == 1
    same = [name for name in fact.values if name.startswith(("object", "camera", "room"))]
    for name in same:
        assert np.array_equal(fact.values[name], twin.values[name]), name
    assert (np.asarray(fact.observations["image"]) != np.asarray(twin.observations["image"])).any()
    env.close()


# ----------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"pair_nuisance": "fog"}, UnknownNameError, "pair_nuisance"),
        ({"quality": "best"}, UnknownNameError, "quality"),
        ({"view": "top"}, UnknownNameError, "view"),
        ({"image_size": 8}, InvalidValueError, "image_size"),
        ({"objects": 9}, InvalidValueError, "objects"),
        ({"objects": 2.5}, InvalidValueError, "objects"),
        ({"light_spill": 1}, InvalidValueError, "light_spill"),
        ({"device": "cuda"}, InvalidValueError, "device"),
        ({"pair_nuisanse": "none"}, UnknownNameError, "pair_nuisance"),
    ],
)
def test_bad_options_are_named(options, error, match):
    with pytest.raises(error, match=match):
        iv.make("rooms/multi-v1", **options)
