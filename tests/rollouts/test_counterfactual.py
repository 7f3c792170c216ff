"""Counterfactuals without a change are the fact: refusals and starting states included."""

import contextlib

import numpy as np
import pytest

import interverse as iv
from interverse.envs.wrappers import StartingState
from tests.envs.toy import ensure_registered

SLIDER = "tutorial/slider-v1"
STILL = np.zeros((1, 2), dtype=np.float32)


def with_refusals(env):
    """Returns a policy that also asks for things, some of which are refused."""

    def act(observations):
        step = int(env.unwrapped.driver.steps[0])
        for value in (50.0, 0.4 + 0.01 * step, -1.0):
            with contextlib.suppress(iv.InterventionError):
                env.unwrapped.do({"box/mass": value})
        return STILL

    return act


def test_refusals_stay_in_the_counterfactual_without_change():
    env = iv.make(SLIDER)
    fact = iv.rollout(env, with_refusals(env), seed=0, max_steps=4)
    assert len(fact.refusals) == 8
    assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint


def test_a_change_stands_in_for_refusals_of_its_variable():
    env = iv.make(SLIDER)
    fact = iv.rollout(env, with_refusals(env), seed=0, max_steps=4)
    twin = iv.counterfactual(fact, {"box/mass": 0.3}, at=2)
    assert [r.step for r in twin.refusals] == [0, 0, 1, 1]
    assert len(iv.counterfactual(fact, {"push": 3.0}).refusals) == 8


@pytest.mark.parametrize("how", ["world", "wrapper"])
def test_a_starting_state_is_part_of_the_record(how):
    env = iv.make("trifinger/pushing-v1")
    start = {"block_0/mass": 0.04, "goal_0/cylindrical_position": [0.08, 0.4, 0.0325]}
    if how == "world":
        env.world.set_starting_state(start)
    else:
        env = StartingState(env)
        env.set_starting_state(start)
    fact = iv.rollout(env, lambda seen: np.zeros((1, 9), dtype=np.float32), seed=1, max_steps=3)
    assert fact.values["block_0/mass"][0] == 0.04
    assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint


def test_a_start_from_a_snapshot_has_the_same_fingerprint_at_any_time(monkeypatch):
    import time

    env = iv.make(SLIDER)
    env.reset(seed=0)
    env.step(STILL[0])
    first = env.snapshot().to_bytes()
    later = time.time() + 1000
    monkeypatch.setattr(time, "time", lambda: later)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(later))
    assert env.snapshot().to_bytes() == first


PUSHING = "trifinger/pushing-v1"
HERE, THERE = [0.05, -0.05, 0.0325], [0.1, 0.5, 0.0325]


def placed_block(step, values, *, space="A_B"):
    """Returns an episode of pushing in which a block is put somewhere before one action."""
    env = iv.make(PUSHING, space=space)

    def act(observations):
        if int(env.unwrapped.driver.steps[0]) == step:
            env.unwrapped.do(values, check=False)
        return np.zeros((1, 9), dtype=np.float32)

    return iv.rollout(env, act, seed=0, max_steps=4)


@pytest.mark.parametrize(("step", "at"), [(0, 0), (1, 1), (2, 1)])
def test_another_description_of_what_is_changed_does_not_win(step, at):
    fact = placed_block(step, {"block_0/cylindrical_position": THERE})
    changed = iv.counterfactual(fact, {"block_0/cartesian_position": HERE}, at=at)
    assert changed.fingerprint != fact.fingerprint
    end = changed.values["block_0/cartesian_position"][-1]
    np.testing.assert_allclose(end[:2], HERE[:2], atol=0.03)


def test_a_twin_set_at_the_reset_is_no_contradiction():
    fact = iv.rollout(PUSHING, "random", do={"goal_0/size": [0.06] * 3}, max_steps=2)
    changed = iv.counterfactual(fact, {"block_0/size": [0.07] * 3})
    np.testing.assert_allclose(changed.values["goal_0/size"][-1], 0.07)


def test_facts_outside_the_active_space_replay():
    fact = placed_block(1, {"block_0/mass": 0.09}, space="A")
    assert fact.values["block_0/mass"][-1] == 0.09
    assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint


def test_a_change_wins_over_what_the_fact_did_at_the_same_moment():
    fact = placed_block(1, {"block_0/mass": 0.05})
    changed = iv.counterfactual(fact, {"block_0/mass": 0.03}, at=1)
    assert changed.values["block_0/mass"][-1] == 0.03


def sized_box(step):
    """Returns an episode of the slider whose box is made large before one action."""
    env = iv.make(SLIDER)

    def act(observations):
        if int(env.unwrapped.driver.steps[0]) == step:
            env.unwrapped.do({"box/size": [0.1, 0.1, 0.1], "push": 3.0})
        return STILL

    return iv.rollout(env, act, seed=0, max_steps=3)


def test_a_change_at_the_start_wins_over_effects_of_what_the_fact_did_there():
    where = [0.1, 0.1, 0.05]
    small, changed = (
        iv.counterfactual(sized_box(k), {"box/position": where}, at=k) for k in (1, 0)
    )
    np.testing.assert_array_equal(changed.values["box/position"][0], where)
    np.testing.assert_array_equal(small.values["box/position"][1], where)
    assert changed.values["push"][0] == 3.0
    assert [item.at_reset for item in changed.interventions] == [False, False]


def test_a_look_changed_at_the_start_wins_over_the_seed_that_the_fact_set_there():
    env = iv.make("control/cartpole_balance-v1", image_size=24)

    def act(observations):
        if env.driver.steps[0] == 0:
            env.do({"visual_seed": 3})
        return np.zeros((1, 1), np.float32)

    fact = iv.rollout(env, act, seed=0, max_steps=2)
    red = [1.0, 0.0, 0.0, 1.0]
    changed = iv.counterfactual(fact, {"body/color": red})
    np.testing.assert_array_equal(changed.values["body/color"], [red] * 3)
    env.close()


def test_a_change_is_judged_by_what_the_fact_did_before_it():
    toy = ensure_registered()
    env = iv.make(toy)

    def act(observations):
        if env.driver.steps[0] == 0:
            env.do({"fence": 6})
        return STILL

    fact = iv.rollout(env, act, seed=0, max_steps=2)
    assert iv.counterfactual(fact, {"x": [5.0, 5.0]}).values["x"][0].tolist() == [5.0, 5.0]
    other = iv.rollout(toy, "random", seed=0, max_steps=2)
    with pytest.raises(iv.InterventionError, match="space A_B"):
        iv.counterfactual(other, {"x": [5.0, 5.0]})


@pytest.mark.parametrize("at", [0, 1])
def test_an_unchecked_change_may_leave_its_space_at_any_moment(at):
    fact = iv.rollout(SLIDER, "random", seed=0, max_steps=2)
    changed = iv.counterfactual(fact, {"gravity": -2.0}, at, check=False)
    assert changed.values["gravity"][-1] == -2.0
    with pytest.raises(iv.InterventionError, match="gravity"):
        iv.counterfactual(fact, {"gravity": -2.0}, at)


def test_values_that_a_fact_started_under_are_not_judged_again():
    toy = ensure_registered()
    fact = iv.rollout(toy, "random", do={"x": [5.0, 5.0], "fence": 6}, max_steps=2)
    changed = iv.counterfactual(fact, {"fence": 3})
    assert changed.values["x"][0].tolist() == [5.0, 5.0]
    env = iv.make(PUSHING, space="A")
    env.world.set_starting_state({"block_0/mass": 0.09})  # lies in B
    latched = iv.rollout(env, "random", max_steps=2)
    assert iv.counterfactual(latched, {}).fingerprint == latched.fingerprint


def test_several_dos_in_one_act_at_the_start_like_one():
    fact = iv.rollout(SLIDER, "random", seed=0, max_steps=2)
    one = iv.counterfactual(fact, {"box/mass": 0.4, "gravity": -5.0})
    several = iv.counterfactual(fact, iv.Do({"box/mass": 0.4}) | iv.Do({"gravity": -5.0}))
    assert several.fingerprint == one.fingerprint


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_counterfactual_is_the_fact_of_the_next_one(step, at):
    once = iv.counterfactual(sized_box(step), {"gravity": -2.0}, at, check=False)
    assert iv.counterfactual(once, {}).fingerprint == once.fingerprint
    twice = iv.counterfactual(once, {"box/mass": 0.4}, at)
    assert twice.values["gravity"][-1] == -2.0
    assert twice.values["box/size"][-1].tolist() == [0.1, 0.1, 0.1]


def test_an_option_that_takes_back_what_the_id_says_is_part_of_the_record():
    env = iv.make("blocks/observed-5-v1", objects=3, max_steps=2)  # 3 is the world's own default
    fact = iv.rollout(env, "random", seed=0)
    assert fact.options["objects"] == 3
    assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint


def crossing():
    """Returns an episode in which block 1 is put somewhere before action 2, and block 0 at 3."""
    env = iv.make("trifinger/stacking2-v1", skip_frame=1)
    asked = {2: {"block_1/cylindrical_position": THERE}, 3: {"block_0/mass": 0.05}}

    def act(observations):
        if (step := int(env.unwrapped.driver.steps[0])) in asked:
            env.unwrapped.do(asked[step])
        return np.zeros((1, 9), dtype=np.float32)

    return iv.rollout(env, act, seed=0, max_steps=5)


def test_what_the_twin_refuses_of_the_fact_is_a_choice():
    fact, change = crossing(), {"block_0/cylindrical_position": THERE}
    with pytest.raises(iv.InterventionError, match=r"would stand .* deep in block_"):
        iv.counterfactual(fact, change)
    skipped = iv.counterfactual(fact, change, refused="skip")
    assert len(skipped) == len(fact) == 5
    (refusal,) = skipped.refusals
    assert (refusal.step, refusal.variables) == (2, ("block_1/cylindrical_position",))
    assert "deep in block_" in refusal.reason
    assert [sorted(done.values) for done in skipped.interventions] == [
        ["block_0/cylindrical_position"],
        ["block_0/mass"],
    ]
    np.testing.assert_allclose(
        skipped.values["block_1/cartesian_position"][2],
        iv.counterfactual(fact, change, refused="stop").values["block_1/cartesian_position"][-1],
    )
    stopped = iv.counterfactual(fact, change, refused="stop")
    assert len(stopped) == 2
    assert stopped.refusals == skipped.refusals
    for twin in (skipped, stopped):
        assert iv.counterfactual(twin, {}).fingerprint == twin.fingerprint


def test_a_change_that_cannot_be_leaves_no_twin_whatever_is_chosen():
    fact = crossing()
    for refused in ("raise", "skip", "stop"):
        with pytest.raises(iv.InterventionError, match="block_0/mass is 9"):
            iv.counterfactual(fact, {"block_0/mass": 9.0}, refused=refused)
    with pytest.raises(iv.errors.UnknownNameError, match="unknown refused 'drop'"):
        iv.counterfactual(fact, {}, refused="drop")
