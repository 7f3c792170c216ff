"""Goal dicts, smoothed actions, planning by hand."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import interverse as iv
import interverse.core.errors
from interverse.actors.adaptive import Adaptive
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.uniform import Uniform
from interverse.actors.wrappers import CurriculumEnv
from interverse.envs.wrappers import GoalDict, MovingAverageAction, ObjectSelector, StartingState
from interverse.rollouts.runner import RecordEpisodes


@pytest.mark.parametrize("task", ["pushing", "reaching", "stacking2"])
def test_a_relabelled_reward_is_the_reward(task):
    env = GoalDict(iv.make(f"trifinger/{task}-v1", sparse_reward=True))
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    rng = np.random.default_rng(0)
    achieved, desired, rewards = [], [], []
    for _ in range(5):
        seen, reward, *_ = env.step(rng.uniform(-1, 1, 9).astype(np.float32))
        achieved.append(seen["achieved_goal"])
        desired.append(seen["desired_goal"])
        rewards.append(reward)
    many = env.compute_reward(np.array(achieved), np.array(desired), [{}] * 5)
    np.testing.assert_array_equal(many, rewards)
    assert env.compute_reward(achieved[0], desired[0], {}) == rewards[0]
    met = env.compute_reward(np.array(desired), np.array(desired), None)
    np.testing.assert_allclose(met, 0.04)
    env.close()


@pytest.mark.parametrize("task", ["pushing", "reaching", "pick_and_place"])
def test_a_dense_reward_of_goals_is_given_or_refused(task):
    name = f"trifinger/{task}-v1"
    zeros = {"dense_reward_weights": [0.0] * (4 if task == "reaching" else 5)}
    zeros = {"dense_reward_weights": [0.0] * 3} if task == "pushing" else zeros
    for env in (
        GoalDict(iv.make(name, fractional_reward_weight=1.0, **zeros)),
        GoalDict(iv.make(name), goal_rewards=True),
    ):
        env.reset(seed=0)
        for action in np.random.default_rng(0).uniform(-1, 1, (3, 9)).astype(np.float32):
            seen, reward, *_ = env.step(action)
            assert env.compute_reward(seen["achieved_goal"], seen["desired_goal"]) == reward
        env.close()
    env = GoalDict(iv.make(name))
    seen, _ = env.reset(seed=0)
    with pytest.raises(iv.errors.InvalidValueError, match=r"dense_reward_weights.*goal_rewards"):
        env.compute_reward(seen["achieved_goal"], seen["desired_goal"])
    env.close()


def test_planning_by_hand_ends_where_the_originals_tutorial_does():
    env = ObjectSelector(iv.make("trifinger/picking-v1", skip_frame=1))
    env.reset(seed=0)
    moves = [(0, 1, 0)] * 70 + [(0, 0, 1)] * 20 + [(0, 5, 0)] * 50 + [(0, 0, 1)] * 20
    for action in moves + [(0, 2, 0)] * 50:
        *_, info = env.step(np.array(action))
        assert info["refused"] == ""
    moved = env.unwrapped.values["block_0/cartesian_position"] - (0.0, 0.0, 0.0325)
    np.testing.assert_allclose(moved, (0.0, 0.1, 0.0070384), atol=1e-6)
    env.close()


def test_a_goal_dict_passes_gymnasiums_check():
    env = GoalDict(iv.make("trifinger/pushing-v1"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
    env.close()


def test_an_average_forgets_at_reset():
    env = MovingAverageAction(iv.make("trifinger/pushing-v1"), window=3)
    env.reset(seed=0)
    ones, zeros = np.ones(9, dtype=np.float32), np.zeros(9, dtype=np.float32)
    passed = [env.action(a) for a in (ones, zeros, zeros, zeros)]
    np.testing.assert_allclose([p[0] for p in passed], (1.0, 0.0, 1 / 3, 0.0))
    assert passed[2].dtype == np.float32
    env.reset(seed=0)
    assert env.action(ones)[0] == 1.0
    with pytest.raises(iv.errors.InvalidValueError, match="window"):
        MovingAverageAction(env, window=0)
    env.close()


def test_an_object_is_moved_and_turned_by_hand():
    env = ObjectSelector(iv.make("trifinger/pushing-v1", skip_frame=1))
    env.reset(seed=0)
    values = env.unwrapped.values
    for _ in range(10):
        seen, *_, info = env.step((0, 5, 1))
        assert info["refused"] == ""
    assert env.observation_space.contains(seen)
    assert values["block_0/cartesian_position"][1] == pytest.approx(-0.06, abs=1e-3)
    z, w = values["block_0/orientation"][2:]
    assert 2 * np.arctan2(z, w) == pytest.approx(1.0, abs=0.02)
    env.unwrapped.do({"block_0/cartesian_position": (0.0, 0.05, 0.0035)}, check=False)
    *_, info = env.step((0, 2, 0))  # down, deeper into the floor
    assert "floor" in info["refused"]
    with pytest.raises(iv.errors.InvalidValueError, match="the action is"):
        env.step((1, 0, 0))
    env.close()
    with pytest.raises(iv.errors.InvalidValueError, match="skip_frame=1"):
        ObjectSelector(iv.make("trifinger/pushing-v1"))


PUSHING = "trifinger/pushing-v1"
MASSES = Curriculum(stages=(Stage(actor=Uniform(patterns=("block_0/mass",))),))


@pytest.mark.parametrize(
    "wrap",
    [
        GoalDict,
        lambda env: MovingAverageAction(env, window=3),
        ObjectSelector,
        StartingState,
        lambda env: CurriculumEnv(env, MASSES),
        lambda env: GoalDict(CurriculumEnv(env, MASSES)),
    ],
    ids=["goals", "mean", "selector", "start", "curriculum", "both"],
)
def test_a_wrapped_environment_is_made_again_from_its_spec(wrap):
    first = wrap(iv.make(PUSHING, skip_frame=1))
    second = gym.make(first.spec)
    assert str(second) == str(first)
    for env in (first, second):
        env.action_space.seed(0)
        env.reset(seed=0)
    for _ in range(3):
        one, other = (env.step(env.action_space.sample()) for env in (first, second))
        assert one[1] == other[1]
    masses = [float(env.unwrapped.values["block_0/mass"]) for env in (first, second)]
    assert masses[0] == masses[1]


def test_what_an_actor_learns_stays_with_its_own_environment():
    actor = Adaptive(patterns=("block_0/mass",), window=1, step=0.5)
    first = CurriculumEnv(iv.make(PUSHING), Curriculum(stages=(Stage(actor=actor),)))
    second = gym.make(first.spec)
    first.hook.curriculum.on_episode_end(np.ones(1), np.arange(1))
    assert actor.share == 0.5
    assert second.hook.curriculum.stages[0].actor.share == 0.0


def test_a_recorder_is_not_made_again_beside_the_first(tmp_path):
    env = RecordEpisodes(iv.make("tutorial/slider-v1"), tmp_path)
    with pytest.raises(ValueError, match=r"RecordEpisodes wrapper .* cannot be recreated"):
        gym.make(env.spec)
