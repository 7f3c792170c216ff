"""The hand-written policies: they solve their tasks, in any batch, from the observation alone."""

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.worlds.trifinger.grasps import Boxes, clearance, knees


def play(venv, policy, observations, steps):
    for _ in range(steps):
        observations, *_, info = venv.step(policy(observations))
    return observations, info["fractional_success"]


@pytest.mark.parametrize(
    ("task", "least"),
    [
        ("reaching", 0.99),
        ("pushing", 0.95),
        ("picking", 0.95),
        ("pick_and_place", 0.95),
        ("stacking2", 0.9),
    ],
)
def test_a_default_episode_is_solved(task, least):
    episode = iv.rollout(f"trifinger/{task}-v1", "scripted", seed=0)
    assert episode.info["fractional_success"][-1] > least


def test_stacking_by_commands_of_the_tips():
    env = iv.make("trifinger/stacking2-v1", action_mode="end_effector_positions")
    episode = iv.rollout(env, "scripted", seed=0)
    assert episode.info["fractional_success"][-1] > 0.9
    env.close()


@pytest.mark.parametrize("name", ["block_0/cylindrical_position", "goal_0/cylindrical_position"])
def test_a_block_is_pushed_from_and_to_anywhere_in_space_a(name):
    venv = iv.make_vec("trifinger/pushing-v1", num_envs=12)
    venv.reset(seed=0)
    space = venv.unwrapped.variables[name].space_a
    u = np.random.default_rng(0).uniform(size=(12, 3))
    outcome = venv.unwrapped.do({name: space.low + u * (space.high - space.low)})
    policy = venv.unwrapped.world.scripted_policy()
    _, fraction = play(venv, policy, outcome.observation, 250)
    assert fraction[outcome.applied].mean() > 0.95
    venv.close()


def test_heavy_blocks_that_slip_are_held_more_tightly():
    masses = np.linspace(0.045, 0.1, 8)
    venv = iv.make_vec("trifinger/picking-v1", num_envs=8)
    seen, _ = venv.reset(seed=0, options={"do": {"block_0/mass": masses}})
    policy = venv.unwrapped.world.scripted_policy()
    _, fraction = play(venv, policy, seen, 250)
    slipped = policy._memory.slips > 0
    assert slipped.any()
    assert fraction[slipped].mean() > 0.5
    venv.close()


def test_a_world_in_a_batch_moves_as_it_does_alone():
    do = {"block_0/cylindrical_position": np.array([[0.02, 1.0, 0.0325], [0.09, -2.0, 0.0325]])}
    batch = iv.make_vec("trifinger/pushing-v1", num_envs=2)
    single = iv.make_vec("trifinger/pushing-v1", num_envs=1)
    many, _ = batch.reset(seed=0, options={"do": do})
    one, _ = single.reset(seed=1, options={"do": {k: v[1] for k, v in do.items()}})
    policies = [env.unwrapped.world.scripted_policy() for env in (batch, single)]
    for _ in range(90):
        many = batch.step(policies[0](many))[0]
        one = single.step(policies[1](one))[0]
    np.testing.assert_array_equal(many[1], one[0])
    batch.close()
    single.close()


def test_raw_numbers_are_read_and_given_as_well():
    options = {"normalize_observations": False, "normalize_actions": False, "skip_frame": 5}
    env = iv.make("trifinger/picking-v1", **options)
    episode = iv.rollout(env, "scripted", seed=0, max_steps=260)
    assert episode.info["fractional_success"][-1] > 0.95
    env.close()


def test_a_changed_hinge_height_is_seen_in_joints_and_tips():
    episode = iv.rollout(
        "trifinger/reaching-v1", "scripted", seed=0, do={"robot/height": 0.33}, max_steps=80
    )
    assert episode.values["robot/height"][0] == 0.33
    assert episode.info["fractional_success"][-1] > 0.99


def test_reset_forgets_the_masked_worlds_only():
    venv = iv.make_vec("trifinger/picking-v1", num_envs=2)
    seen, _ = venv.reset(seed=0)
    policy = venv.unwrapped.world.scripted_policy()
    play(venv, policy, seen, 20)
    phase = policy._memory.phase.copy()
    assert (phase > 0).all()
    policy.reset(np.array([True, False]), np.array([0, 1]))
    assert policy._memory.phase.tolist() == [0, phase[1]]
    venv.close()


@pytest.mark.parametrize("mode", ["joint_torques", "delta_joint_positions"])
def test_another_action_mode_is_refused(mode):
    env = iv.make("trifinger/pushing-v1", action_mode=mode)
    with pytest.raises(InvalidValueError, match="action_mode"):
        env.unwrapped.world.scripted_policy()
    env.close()


def test_pixels_are_refused_and_other_tasks_have_none():
    env = iv.make("trifinger/pushing-v1", observation_mode="pixel", image_size=16)
    with pytest.raises(InvalidValueError, match="pixels"):
        env.unwrapped.world.scripted_policy()
    env.close()
    env = iv.make("trifinger/towers-v1")
    assert env.unwrapped.world.scripted_policy() is None
    env.close()


def test_knees_are_where_the_simulator_has_them():
    env = iv.make("trifinger/reaching-v1")
    env.reset(seed=0)
    joints = np.array([0.1, 0.5, -0.4, 0.3, 0.2, -1.0, -0.2, 0.8, -0.7])
    env.do({"joint_positions": joints}, check=False)
    engine = env.unwrapped.world._physics.engine
    places = engine.positions(tuple(f"finger_{i}_lower" for i in range(3)))[0]
    ours = knees(joints[None], np.array([0.34]))[0]
    np.testing.assert_allclose(ours + np.array([0.0, 0.0, 0.011]), places, atol=1e-9)
    env.close()


def test_clearance_is_the_distance_to_the_outline():
    box = Boxes(
        np.array([[[0.1, 0.0, 0.05]]]),
        np.array([[[0.2, 0.1, 0.1]]]),
        np.array([[np.pi / 2]]),
        np.zeros((1, 1, 2)),
    )
    points = np.array([[[0.1, 0.13], [0.3, 0.0], [0.1, 0.0], [0.3, 0.0]]])
    heights = np.array([[0.0, 0.0, 0.0, 0.2]])
    expected = [0.03, 0.15, -0.05, np.inf]
    np.testing.assert_allclose(clearance(points, heights, box)[0], expected, atol=1e-12)
