"""The vector forms do to N worlds what the single forms do to one; SB3 can relabel goals."""

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.envs.wrappers import (
    GoalDict,
    GoalDictVector,
    MovingAverageAction,
    MovingAverageActionVector,
    ObjectSelector,
    ObjectSelectorVector,
)

TASK = "trifinger/pushing-v1"


def actions(count, worlds):
    return np.random.default_rng(0).uniform(-1, 1, (count, worlds, 9)).astype(np.float32)


def test_averages_are_those_of_the_single_form():
    venv = MovingAverageActionVector(iv.make_vec(TASK, num_envs=2), window=3)
    env = MovingAverageAction(iv.make(TASK), window=3)
    venv.reset(seed=0)
    env.reset(seed=1)
    for action in actions(6, 2):
        many, one = venv.step(action)[0], env.step(action[1])[0]
        np.testing.assert_array_equal(many[1], one)
    with pytest.raises(InvalidValueError, match="window"):
        MovingAverageActionVector(venv, window=0)
    venv.close()
    env.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_world_that_starts_anew_by_itself_forgets_its_actions(mode):
    options = {"max_steps": 3, "autoreset_mode": mode}
    venv = MovingAverageActionVector(iv.make_vec(TASK, num_envs=1, **options), window=2)
    plain = iv.make_vec(TASK, num_envs=1, **options)
    venv.reset(seed=0)
    plain.reset(seed=0)
    lead = 3 if mode == "same_step" else 4
    some = actions(lead + 1, 1)
    for action in some[:lead]:
        venv.step(action)
        plain.step(np.zeros_like(action))
    # the first action of an episode passes as it is
    np.testing.assert_array_equal(venv.step(some[lead])[0], plain.step(some[lead])[0])
    venv.close()
    plain.close()


def test_masked_resets_forget_masked_worlds():
    venv = MovingAverageActionVector(
        iv.make_vec(TASK, num_envs=2, autoreset_mode="disabled"), window=2
    )
    venv.reset(seed=0)
    venv.step(actions(1, 2)[0])
    venv.reset(seed=0, options={"reset_mask": np.array([True, False])})
    assert venv._count.tolist() == [0, 1]
    venv.close()


def test_goal_dicts_are_those_of_the_single_form():
    venv = GoalDictVector(iv.make_vec(TASK, num_envs=2), goal_rewards=True)
    env = GoalDict(iv.make(TASK), goal_rewards=True)
    many, _ = venv.reset(seed=0)
    one, _ = env.reset(seed=1)
    assert venv.observation_space.contains(many)
    for action in actions(3, 2):
        many, one = venv.step(action)[0], env.step(action[1])[0]
        for name, value in one.items():
            np.testing.assert_array_equal(many[name][1], value)
    again = venv.compute_reward(many["achieved_goal"], many["desired_goal"], None)
    assert again[1] == env.compute_reward(one["achieved_goal"], one["desired_goal"], None)
    venv.close()
    env.close()
    with pytest.raises(InvalidValueError, match="no goals to relabel"):
        GoalDictVector(iv.make_vec("chemistry/chain-v1", num_envs=1))


def test_the_last_observation_of_an_episode_is_a_goal_dict_too():
    inner = iv.make_vec(TASK, num_envs=2, max_steps=2, autoreset_mode="same_step")
    venv = GoalDictVector(inner)
    venv.reset(seed=0)
    for action in actions(2, 2):
        seen, *_, info = venv.step(action)
    assert [sorted(part) for part in info["final_obs"]] == [sorted(seen)] * 2
    last = np.stack([part["achieved_goal"] for part in info["final_obs"]])
    np.testing.assert_array_equal(last, info["final_info"]["achieved_goal"])
    assert not np.array_equal(last, seen["achieved_goal"])
    venv.close()


def test_stable_baselines_relabels_goals():
    baselines = pytest.importorskip("stable_baselines3")
    env = GoalDict(iv.make("trifinger/reaching-v1", sparse_reward=True, max_steps=20))
    model = baselines.SAC(
        "MultiInputPolicy",
        env,
        replay_buffer_class=baselines.HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 8, "goal_selection_strategy": "future"},
        learning_starts=40,
        batch_size=64,
        policy_kwargs={"net_arch": [16]},
        seed=0,
    )
    model.learn(60)
    batch = model.replay_buffer.sample(64)
    near = env.compute_reward(
        batch.next_observations["achieved_goal"].numpy(),
        batch.next_observations["desired_goal"].numpy(),
    )
    np.testing.assert_allclose(batch.rewards.numpy()[:, 0], near)
    assert (near > 0).any()  # no tip reached its goal: hindsight did
    env.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_the_selector_moves_in_each_world_what_the_single_form_does(mode):
    options = {"skip_frame": 1, "max_steps": 6}
    high = {"block_0/cartesian_position": (0.0, 0.0, 0.4995)}
    inner = iv.make_vec("trifinger/stacking2-v1", num_envs=3, autoreset_mode=mode, **options)
    venv = ObjectSelectorVector(inner)
    envs = [ObjectSelector(iv.make("trifinger/stacking2-v1", **options)) for _ in range(3)]
    seen = venv.reset(seed=0)[0]
    for i, env in enumerate(envs):
        np.testing.assert_array_equal(seen[i], env.reset(seed=i)[0])
    draw = np.random.default_rng(0)
    refusals = 0
    venv.unwrapped.do(high, worlds=[2], check=False)
    envs[2].unwrapped.do(high, check=False)
    for step in range(6):
        choice = np.stack([draw.integers(0, 2, 3), draw.integers(0, 7, 3), draw.integers(0, 7, 3)])
        choice[:, 2] = (0, 1, 0)  # up and up, out of its domain
        seen, reward, _, truncated, info = venv.step(choice.T)
        last = info.get("final_obs", seen)
        for i, env in enumerate(envs):
            one = env.step(choice.T[i])
            np.testing.assert_array_equal(last[i], one[0])
            assert reward[i] == one[1]
            assert info["refused"][i] == one[4]["refused"]
            refusals += bool(one[4]["refused"])
        assert truncated.all() == (step == 5)
    assert refusals, "a block must have met its limit"
    with pytest.raises(InvalidValueError, match="the actions are"):
        venv.step(np.full((3, 3), 9))
    venv.close()
