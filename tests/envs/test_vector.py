"""The vector form: autoreset, partial reset, masks, logs, snapshots."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from tests.envs.toy import ID, ensure_registered

ensure_registered()
ZERO = np.zeros((3, 2), dtype=np.float32)


def make_vec(n=3, **options):
    return iv.make_vec(ID, num_envs=n, **options)


def test_world_i_equals_a_single_env_with_seed_plus_i():
    venv, env = make_vec(), iv.make(ID)
    batch, _ = venv.reset(seed=40)
    for i in range(3):
        assert np.array_equal(batch[i], env.reset(seed=40 + i)[0])
    batch, _ = venv.reset(seed=[9, 2, 9])
    assert np.array_equal(batch[0], batch[2])
    assert np.array_equal(batch[1], env.reset(seed=2)[0])


def test_without_a_seed_the_episode_index_rises():
    venv = make_vec()
    first, _ = venv.reset(seed=0)
    second, _ = venv.reset()
    assert venv.unwrapped.driver.episodes.tolist() == [1, 1, 1]
    assert not np.array_equal(first, second)
    again, _ = venv.reset(seed=0, options={"episode": 1})
    assert np.array_equal(second, again)


def test_the_first_reset_without_a_seed_draws_one():
    a, b = make_vec(), make_vec()
    assert not np.array_equal(a.reset()[0], b.reset()[0])


def test_next_step_autoreset():
    venv = make_vec(max_steps=4)
    assert venv.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
    venv.reset(seed=0)
    for _ in range(4):
        *_, truncated, _ = venv.step(ZERO)
    assert truncated.all()
    observation, reward, _, truncated, _ = venv.step(ZERO)
    assert reward.tolist() == [0.0, 0.0, 0.0]
    assert not truncated.any()
    assert venv.unwrapped.driver.steps.tolist() == [0, 0, 0]
    fresh, _ = make_vec(max_steps=4).reset(seed=0, options={"episode": 1})
    assert np.array_equal(observation, fresh)


def test_only_ended_worlds_restart():
    venv = make_vec(max_steps=4)
    venv.reset(seed=0)
    venv.step(ZERO)
    venv.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(3):
        *_, truncated, _ = venv.step(ZERO)
    assert truncated.tolist() == [True, False, True]
    venv.step(ZERO)
    assert venv.unwrapped.driver.steps.tolist() == [0, 4, 0]


def test_same_step_autoreset_keeps_the_final_observation():
    venv = make_vec(max_steps=2, autoreset_mode="same_step")
    venv.reset(seed=0)
    venv.step(ZERO)
    observation, _, _, truncated, info = venv.step(ZERO)
    assert truncated.all()
    assert info["_final_obs"].all()
    assert not np.array_equal(info["final_obs"], observation)
    assert info["final_info"]["distance"].shape == (3,)


def test_disabled_autoreset_leaves_worlds_alone():
    venv = make_vec(max_steps=2, autoreset_mode=gym.vector.AutoresetMode.DISABLED)
    venv.reset(seed=0)
    for _ in range(3):
        *_, truncated, _ = venv.step(ZERO)
    assert truncated.all()
    assert venv.unwrapped.driver.steps.tolist() == [3, 3, 3]


def test_do_with_a_mask_and_one_value_per_world():
    venv = make_vec()
    venv.reset(seed=0)
    outcome = venv.unwrapped.do({"gain": np.array([0.6, 1.9, 0.7])}, worlds=[True, False, True])
    assert venv.unwrapped.values["gain"].tolist() == [0.6, 1.0, 0.7]
    assert outcome.applied.tolist() == [True, False, True]
    assert outcome.changed == {"gain"}
    assert outcome.observation.shape == (3, 3)


def test_infeasible_worlds_stay_and_say_why():
    venv = make_vec()
    venv.reset(seed=0)
    before = venv.unwrapped.values["x"]
    values = np.array([[1.25, 1.25], [4.0, 0.0], [2.0, 2.0]])
    outcome = venv.unwrapped.do({"x": values})
    assert outcome.applied.tolist() == [False, False, True]
    assert "toy's own rule" in outcome.reasons[0]
    assert "space A_B" in outcome.reasons[1]
    assert np.array_equal(venv.unwrapped.values["x"][:2], before[:2])


def test_all_or_nothing_per_world():
    venv = make_vec()
    venv.reset(seed=0)
    outcome = venv.unwrapped.do({"gain": 0.7, "x": np.array([[1.25, 1.25], [1, 1], [2, 2]])})
    assert outcome.applied.tolist() == [False, True, True]
    assert venv.unwrapped.values["gain"].tolist() == [1.0, 0.7, 0.7]


def test_bounds_follow_other_variables_of_the_same_do():
    env = iv.make(ID)
    env.reset(seed=0)
    with pytest.raises(iv.InterventionError, match="space A_B"):
        env.do({"x": [5.0, 5.0]})
    env.do({"x": [5.0, 5.0], "fence": 6})
    assert env.variables["x"].space_a.high.tolist() == [6.0, 6.0]


def test_a_present_value_outside_the_space_is_allowed():
    env = iv.make(ID)
    env.reset(seed=0)
    env.do({"gain": 4.0}, check=False)
    assert env.do({"gain": 4.0}).changed == frozenset()


def test_a_snapshot_of_one_world_goes_into_many():
    env, venv = iv.make(ID), make_vec()
    env.reset(seed=5)
    env.step(ZERO[0])
    venv.reset(seed=0)
    venv.unwrapped.restore(env.snapshot(), worlds=[0, 2])
    assert np.array_equal(venv.unwrapped.values["x"][2], env.values["x"])
    one = env.step(ZERO[0])[0]
    many = venv.step(ZERO)[0]
    assert np.array_equal(many[0], one)
    assert np.array_equal(many[2], one)


def test_gymnasium_makes_the_same_vector_env():
    venv = gym.make_vec(f"interverse:{ID}", num_envs=3, vectorization_mode="vector_entry_point")
    assert np.array_equal(venv.reset(seed=1)[0], make_vec().reset(seed=1)[0])


def test_gymnasium_makes_vectors_of_single_envs():
    venv = gym.make_vec(f"interverse:{ID}", num_envs=2, vectorization_mode="sync")
    assert np.array_equal(venv.reset(seed=1)[0], make_vec().reset(seed=1)[0][:2])


def test_shift_and_replace_act_per_world():
    venv = make_vec()
    venv.reset(seed=0)
    before = venv.unwrapped.values["x"]
    venv.unwrapped.do(iv.Shift({"x": 0.5}), worlds=[1])
    assert np.allclose(venv.unwrapped.values["x"][1], before[1] + 0.5)
    space = venv.unwrapped.variables["gain"].space_a
    outcome = venv.unwrapped.do(iv.Replace({"gain": space}), worlds=[0, 2])
    gains = venv.unwrapped.values["gain"]
    assert outcome.applied.tolist() == [True, False, True]
    assert gains[0] != gains[2]
    assert gains[1] == 1.0


def test_the_log_forgets_past_episodes():
    venv = make_vec()
    venv.reset(seed=0)
    venv.unwrapped.do({"gain": 0.7}, worlds=[0])
    venv.reset(options={"reset_mask": [True, False, False]})
    assert venv.unwrapped.driver.log(0) == []
    venv.unwrapped.do({"gain": 0.8}, worlds=[0, 1])
    assert [len(venv.unwrapped.driver.log(i)) for i in range(3)] == [1, 1, 0]


def test_the_batched_space_is_gymnasiums_own():
    from gymnasium.vector.utils import batch_space

    venv = iv.make_vec("chemistry/chain-v1", num_envs=3)
    ours, theirs = venv.observation_space, batch_space(venv.single_observation_space, 3)
    assert ours == theirs
    observation, _ = venv.reset(seed=0)
    assert ours.contains(observation)
    assert ours.contains(ours.sample())


def test_an_empty_intervention_changes_nothing():
    env = iv.make("tutorial/slider-v1")
    env.reset(seed=0)
    outcome = env.unwrapped.do({})
    assert outcome.applied
    assert not outcome.changed
