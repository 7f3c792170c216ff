"""A latched starting state, alone and in a batch, and new goals on request."""

import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import paper_curriculum
from interverse.actors.wrappers import attach_curriculum
from interverse.core.errors import InterventionError, InvalidValueError
from interverse.envs.wrappers import StartingState, StartingStateVector, sample_new_goal
from interverse.rollouts import replay

TASK = "trifinger/pushing-v1"
MASS, GOAL = "block_0/mass", "goal_0/cartesian_position"


def test_every_later_episode_starts_so_until_it_is_forgotten():
    env = StartingState(iv.make(TASK))
    env.reset(seed=0)
    values = env.unwrapped.values
    env.set_starting_state({MASS: 0.05, GOAL: (0.0, 0.05, 0.0325)})
    for seed in (None, 3):
        env.reset(seed=seed)
        assert values[MASS] == 0.05
        assert values[GOAL][1] == 0.05
    env.reset(options={"do": {MASS: 0.07}})
    assert values[MASS] == 0.07  # what a reset is told wins
    assert values[GOAL][1] == 0.05
    env.reset_default_state()
    assert values[MASS] == 0.02
    env.close()


def test_a_refused_start_leaves_the_old_one():
    env = StartingState(iv.make(TASK))
    env.set_starting_state({MASS: 0.05})
    with pytest.raises(InterventionError, match="goal_0"):
        env.set_starting_state({GOAL: (0.4, 0.0, 0.0325)})
    assert env.starting_state == {MASS: 0.05}
    env.step(np.zeros(9, dtype=np.float32))  # an episode is under way
    env.reset()
    assert env.unwrapped.values[MASS] == 0.05
    env.close()


def test_a_snapshot_goes_before_the_start():
    env = StartingState(iv.make(TASK))
    env.reset(seed=0)
    moment = env.unwrapped.snapshot()
    env.set_starting_state({MASS: 0.05})
    env.reset(options={"snapshot": moment})
    assert env.unwrapped.values[MASS] == 0.02
    env.close()


def test_an_episode_under_a_start_replays():
    env = StartingState(iv.make(TASK))
    env.set_starting_state({MASS: 0.05})
    episode = iv.rollout(env, "random", seed=2, max_steps=5)
    assert episode.values[MASS][0] == 0.05
    assert replay(episode).fingerprint == episode.fingerprint
    env.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_worlds_that_start_anew_by_themselves_start_so_too(mode):
    venv = StartingStateVector(iv.make_vec(TASK, num_envs=2, max_steps=3, autoreset_mode=mode))
    masses = np.array([0.03, 0.06])
    seen, _ = venv.set_starting_state({MASS: masses})
    action = np.zeros((2, 9), dtype=np.float32)
    for _ in range(3 if mode == "same_step" else 4):
        seen, *_ = venv.step(action)
    assert venv.unwrapped.driver.episodes.tolist() == [1, 1]
    np.testing.assert_array_equal(venv.unwrapped.values[MASS], masses)
    np.testing.assert_array_equal(seen, venv.unwrapped.world.observe())
    venv.reset_default_state()
    np.testing.assert_array_equal(venv.unwrapped.values[MASS], [0.02, 0.02])
    venv.close()


def test_a_world_of_a_batch_starts_as_it_does_alone():
    venv, env = StartingStateVector(iv.make_vec(TASK, num_envs=2)), StartingState(iv.make(TASK))
    start = {"block_0/size": (0.06, 0.06, 0.06)}
    venv.set_starting_state(start)
    env.set_starting_state(start)
    many, _ = venv.reset(seed=4)
    one, _ = env.reset(seed=5)
    np.testing.assert_array_equal(many[1], one)
    with pytest.raises(InterventionError, match="goal_0"):
        venv.set_starting_state({GOAL: (0.4, 0.0, 0.0325)})
    assert venv.starting_state == start
    venv.close()
    env.close()


def test_a_curriculum_acts_on_top_of_a_start():
    venv = StartingStateVector(iv.make_vec(TASK, num_envs=1))
    venv.reset(seed=0)
    plain = venv.unwrapped.values[GOAL].copy()
    attach_curriculum(venv.unwrapped, paper_curriculum(1))
    venv.set_starting_state({"block_0/size": (0.06, 0.06, 0.06)})
    venv.reset(seed=0)
    np.testing.assert_array_equal(venv.unwrapped.values["block_0/size"], [[0.06] * 3])
    assert not np.array_equal(venv.unwrapped.values[GOAL], plain)  # curriculum 1 draws goals
    venv.close()


def test_new_goals_are_drawn_by_address_and_can_be_done():
    env, venv = iv.make(TASK), iv.make_vec(TASK, num_envs=3)
    with pytest.raises(InvalidValueError, match="reset"):
        sample_new_goal(env)
    env.reset(seed=7)
    venv.reset(seed=6)
    goal, goals = sample_new_goal(env, space="A"), sample_new_goal(venv, space="A")
    for name, value in goal.items():
        np.testing.assert_array_equal(goals[name][1], value)
        assert not np.array_equal(sample_new_goal(env, space="A", draw=1)[name], value)
    radius = sample_new_goal(env, space="B")["goal_0/cylindrical_position"][0]
    assert 0.11 < radius <= 0.15
    assert "goal_0/cartesian_position" in env.do(goal).changed
    assert venv.unwrapped.do(goals).applied.all()
    env.close()
    venv.close()


def test_starts_add_up_and_the_later_description_of_a_place_stands():
    env = StartingState(iv.make(TASK))
    env.set_starting_state({MASS: 0.05, "goal_0/cylindrical_position": (0.1, 0.0, 0.0325)})
    env.set_starting_state({GOAL: (0.0, 0.05, 0.0325)})
    env.reset(seed=1)
    values = env.unwrapped.values
    assert values[MASS] == 0.05
    assert values[GOAL].tolist() == [0.0, 0.05, 0.0325]
    env.reset(options={"do": {"goal_0/cylindrical_position": (0.02, 0.0, 0.0325)}})
    assert values[GOAL].tolist() == [0.02, 0.0, 0.0325]
    env.close()
