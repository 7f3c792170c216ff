"""What CausalWorld's own tests assert, in our words, by its files: tasks, world, robot, actions."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.envs.wrappers import StartingState, sample_new_goal
from interverse.worlds.trifinger import action_bounds, denormalise, grip_locations, normalise

STEPS, EPISODES = 8, 3
PLACE = "block_0/cylindrical_position"
# task_generators/test_<task>.py: what its tests set in an episode's middle, beside a drawn goal.
TASKS = {
    "creative_stacked_blocks": {PLACE: (0.0, 0.0, 0.2)},
    "general": {PLACE: (0.0, 0.0, 0.2)},
    "pick_and_place": {PLACE: (0.1, np.pi / 2, 0.0325)},
    "picking": {PLACE: (0.1, np.pi / 2, 0.0325)},
    "pushing": {PLACE: (0.1, np.pi / 2, 0.0325)},
    "reaching": None,  # a drawn goal
    "stacked_blocks": {PLACE: (0.0, 0.0, 0.2)},
    "stacking2": {PLACE: (0.0, 0.0, 0.2)},
    "towers": {PLACE: (0.0, 0.0, 0.2)},
}
STARTS = {  # test_determinism_w_interventions_2
    "pushing": {PLACE: (0.0, 0.3, 0.0325)},
    "stacking2": {"joint_positions": np.zeros(9)},
    "towers": {"joint_positions": np.zeros(9)},
}


@pytest.fixture(params=TASKS)
def task(request):
    return request.param


@pytest.fixture
def env(task):
    env = StartingState(iv.make(f"trifinger/{task}-v1"))
    env.reset(seed=0)
    yield env
    env.close()


def play(env, meddle=None):
    """Returns what steps of fixed actions show and earn, as one array."""
    rng, out = np.random.default_rng(1), []
    for step in range(STEPS):
        seen, reward, *_ = env.step(rng.uniform(-1, 1, 9).astype(np.float32))
        out.append(np.append(seen, reward))
        if meddle is not None and step == STEPS // 2:
            env.unwrapped.do(meddle, check=False)
    return np.array(out)


def holds(env):
    first = play(env)
    for _ in range(EPISODES):
        env.reset()
        np.testing.assert_array_equal(play(env), first)


def test_determinism(env):
    holds(env)


def test_determinism_w_interventions(env):
    env.set_starting_state(sample_new_goal(env))
    holds(env)


@pytest.mark.parametrize("task", STARTS)
def test_determinism_w_interventions_2(env, task):
    env.set_starting_state(STARTS[task])
    holds(env)


def test_determinism_w_in_episode_interventions(env, task):
    first = play(env)
    env.reset()
    given = TASKS[task] or sample_new_goal(env)
    meddled = play(env, given)
    assert not np.array_equal(meddled, first)
    env.reset()
    np.testing.assert_array_equal(play(env), first)


@pytest.mark.parametrize("task", ["pushing", "picking", "pick_and_place"])
def test_goal_intervention(task):
    env = StartingState(iv.make(f"trifinger/{task}-v1", normalize_observations=False))
    env.reset(seed=0)
    for draw in range(4):
        goal = sample_new_goal(env, draw=draw)
        env.set_starting_state(goal)
        radius, angle, height = goal["goal_0/cylindrical_position"]
        for _ in range(2):
            seen, _ = env.reset()
            seen, *_ = env.step(env.action_space.low)
            place = seen[env.unwrapped.layout["goal_0/cartesian_position"]]
            wanted = radius * np.cos(angle), radius * np.sin(angle), height
            np.testing.assert_allclose(place, wanted, atol=1e-12)
    env.close()


@pytest.mark.parametrize("mass", [0.02, 0.08, 0.1])
def test_a_block_is_gripped_by_two_tips_and_lifted(mass):
    env = iv.make(
        "trifinger/picking-v1",
        action_mode="end_effector_positions",
        normalize_actions=False,
        normalize_observations=False,
        contact_sensors=True,
        max_steps=10_000,
    )
    env.reset(seed=0, options={"do": {"block_0/mass": mass}})
    values, world = env.unwrapped.values, env.unwrapped.world
    tips = values["end_effector_positions"].copy()

    def go(action, steps):
        for _ in range(steps):
            env.step(np.asarray(action, dtype=np.float32))

    tips[:6] = 0.0, 0.15313708, 0.05586292, 0.13262061, -0.07656854, 0.05586292
    go(tips, 25)
    away = (0.0, -0.08, 0.4)
    go((*tips[:6], *away), 25)
    block = [values[f"block_0/{key}"] for key in ("cartesian_position", "orientation", "size")]
    grip = np.append(grip_locations(*block), away)
    go(grip, 25)
    touching = [bool(world.contact(f"finger_{i}", "block_0")[0]) for i in range(3)]
    assert touching == [True, True, False]
    for _ in range(40):
        grip[[2, 5]] += 0.005
        go(grip, 1)
    assert values["block_0/cartesian_position"][2] > 0.1
    env.close()


# --- envs/test_world.py --------------------------------------------------------------------------


def test_worlds_of_one_task_are_one_world():
    """The scene of stacked_blocks is declared: no seed changes it, and no world beside it."""
    runs = []
    for seed in (27, 27, 54):
        env, other = (iv.make("trifinger/stacked_blocks-v1") for _ in range(2))
        first, _ = env.reset(seed=seed)
        other.reset(seed=1)
        runs.append([first, env.step(env.action_space.low)[0]])
        env.close()
        other.close()
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_save_state():
    env = iv.make("trifinger/creative_stacked_blocks-v1")
    env.reset(seed=0)
    play(env)
    state = env.unwrapped.snapshot()
    first = play(env)
    env.unwrapped.restore(state)
    np.testing.assert_array_equal(play(env), first)
    env.close()


def test_reset_default_state():
    env = StartingState(iv.make("trifinger/picking-v1"))
    env.reset(seed=0)
    first = play(env)
    env.set_starting_state({"goal_0/cylindrical_position": (0.0, 0.0, 0.1)})
    assert not np.array_equal(play(env), first)
    env.reset_default_state()
    np.testing.assert_array_equal(play(env), first)
    with pytest.raises(iv.InterventionError, match="space A_B"):  # theirs is moved onto the axis
        env.set_starting_state({"goal_0/cylindrical_position": (0.1, np.pi, 0.1)})
    env.close()


# --- envs/robot/test_trifinger.py ----------------------------------------------------------------


@pytest.mark.parametrize("end", ["zero", "high"])
def test_pd_gains(end):
    env = iv.make(
        "trifinger/pushing-v1",
        normalize_actions=False,
        normalize_observations=False,
        max_steps=1000,
    )
    env.reset(seed=0)
    action = np.zeros(9, dtype=np.float32) if end == "zero" else env.action_space.high
    for _ in range(300):
        seen, *_ = env.step(action)
    assert not (seen[env.unwrapped.layout["joint_positions"]] - action > 0.1).any()
    env.close()


# --- envs/robot/test_action.py -------------------------------------------------------------------

JOINTS = np.array([-1.57, -1.2, -3.0] * 3), np.array([1.0, 1.57, 3.0] * 3)
TORQUES = np.full(9, -0.36), np.full(9, 0.36)


@pytest.mark.parametrize(
    ("mode", "ends"), [("joint_positions", JOINTS), ("joint_torques", TORQUES)]
)
def test_action_spaces(mode, ends):
    np.testing.assert_array_equal(action_bounds(mode), ends)
    raw = iv.make("trifinger/pushing-v1", action_mode=mode, normalize_actions=False)
    np.testing.assert_array_equal((raw.action_space.low, raw.action_space.high), np.float32(ends))
    usual = iv.make("trifinger/pushing-v1", action_mode=mode)
    assert (usual.action_space.low == -1).all()
    assert (usual.action_space.high == 1).all()
    assert usual.unwrapped.world.options.normalize_actions
    for value in (0.99, 1.0, -0.99, -1.0):
        assert usual.action_space.contains(np.full(9, value, dtype=np.float32))
    for value in (1.01, -1.01):
        assert not usual.action_space.contains(np.full(9, value, dtype=np.float32))
    for env in (raw, usual):
        env.close()


@pytest.mark.parametrize("mode", ["joint_positions", "joint_torques"])
def test_actions_normalise_and_back(mode):
    low, high = action_bounds(mode)
    np.testing.assert_array_equal(normalise(low, low, high), -np.ones(9))
    np.testing.assert_array_equal(normalise(high, low, high), np.ones(9))
    np.testing.assert_allclose(denormalise(np.ones(9), low, high), high)
    np.testing.assert_allclose(denormalise(-np.ones(9), low, high), low)
    middle = np.linspace(low, high, 5)
    np.testing.assert_allclose(denormalise(normalise(middle, low, high), low, high), middle)


def test_actions_are_clipped():
    given = np.array([-1.01, 1.2, 0.5, 0.4, 1.3, -1.6, 0.0, 0.3, 1.1], dtype=np.float32)
    seen = []
    for action in (given, np.clip(given, -1, 1)):
        env = iv.make("trifinger/pushing-v1")
        env.reset(seed=0)
        seen.append(env.step(action)[0])
        env.close()
    np.testing.assert_array_equal(*seen)


# --- envs/robot/test_observations.py -------------------------------------------------------------

KEYS = ("action_joint_positions", "joint_velocities", "joint_torques")
BOUNDS = (JOINTS, (np.full(9, -50.0), np.full(9, 50.0)), TORQUES)
TIPS = np.array([-0.5, -0.5, 0.0] * 3), np.array([0.5, 0.5, 0.5] * 3)


def test_observation_bounds():
    env = iv.make("trifinger/pushing-v1", observation_keys=KEYS, normalize_observations=False)
    for key, ends in zip(KEYS, BOUNDS, strict=True):
        np.testing.assert_array_equal(env.unwrapped.observation_bounds[key], ends)
    assert not env.unwrapped.world.options.normalize_observations
    env.close()
    keys = ("end_effector_positions", "action_joint_positions")
    env = iv.make("trifinger/pushing-v1", observation_keys=keys)
    for key, ends in zip(keys, (TIPS, JOINTS), strict=True):
        low, high = env.unwrapped.observation_bounds[key]
        np.testing.assert_array_equal((low, high), ends)
        np.testing.assert_array_equal(normalise(high, low, high), np.ones(9))
        np.testing.assert_array_equal(normalise(low, low, high), -np.ones(9))
        np.testing.assert_allclose(denormalise(-np.ones(9), low, high), low)
    env.close()


def test_pictures_are_bytes():
    env = iv.make("trifinger/pushing-v1", observation_mode="pixel", image_size=16)
    assert (env.observation_space.low == 0).all()
    assert (env.observation_space.high == 255).all()
    env.close()


def test_observations_are_added_and_removed():
    keys = ["end_effector_positions", "action_joint_positions"]
    widths = []
    for chosen, own in (
        (keys, {}),
        ([*keys, "joint_torques"], {}),
        (keys, {"own": lambda values: np.ones((len(values["gravity"]), 3))}),
    ):
        env = iv.make("trifinger/pushing-v1", observation_keys=chosen, custom_observations=own)
        seen, _ = env.reset(seed=0)
        assert list(env.unwrapped.layout) == [*chosen, *own]
        assert env.observation_space.contains(seen)
        widths.append(len(seen))
        env.close()
    assert widths == [18, 27, 21]
