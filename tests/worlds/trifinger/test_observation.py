"""Observations of the TriFinger worlds: layout, normalisation, noise, masks, pictures."""

import numpy as np
import pytest

import interverse as iv

ZERO = np.zeros(9, dtype=np.float32)
ROBOT = ["time_left_for_task", "joint_positions", "joint_velocities", "end_effector_positions"]
STILL = ["type", "size", "cartesian_position", "orientation"]
MOVING = [*STILL, "linear_velocity", "angular_velocity"]


def keys(*groups):
    return ROBOT + [f"{name}/{key}" for name, parts in groups for key in parts]


@pytest.mark.parametrize(
    ("task", "groups"),
    [
        ("pushing", [("block_0", MOVING), ("goal_0", STILL)]),
        ("pick_and_place", [("block_0", MOVING), ("goal_0", STILL), ("obstacle", STILL)]),
        (
            "stacking2",
            [("block_0", MOVING), ("block_1", MOVING), ("goal_0", STILL), ("goal_1", STILL)],
        ),
        ("reaching", [(f"goal_{i}", ["cartesian_position"]) for i in range(3)]),
        (
            "towers",
            [
                (f"{kind}_{i}", p)
                for i in range(5)
                for kind, p in (("block", MOVING), ("goal", STILL))
            ],
        ),
        (
            "general",
            [(f"block_{i}", MOVING) for i in range(5)] + [(f"goal_{i}", STILL) for i in range(5)],
        ),
    ],
)
def test_the_layout_names_every_number_in_order(envs, task, groups):
    layout = envs(task).layout
    assert list(layout) == keys(*groups)
    ends = [0, *(part.stop for part in layout.values())]
    assert [part.start for part in layout.values()] == ends[:-1]
    assert envs(task).observation_space.shape == (ends[-1],)


def test_creative_shows_its_six_goals_after_their_blocks(envs):
    names = [n for n in envs("creative_stacked_blocks").layout if n.endswith("/type")]
    owners = [n.split("/")[0] for n in names]
    assert owners[:7] == ["block_0", "goal_0", "block_1", "goal_1", "block_2", "goal_2", "block_3"]
    assert owners[-6:] == ["block_21", "goal_3", "block_22", "goal_4", "block_23", "goal_5"]


def test_raw_observations_are_the_values(envs):
    env = envs("stacking2", normalize_observations=False)
    seen, *_ = env.step(np.full(9, 0.3, dtype=np.float32))
    for name, part in env.layout.items():
        if name in env.unwrapped.values:
            np.testing.assert_array_equal(seen[part], env.unwrapped.values[name], err_msg=name)


def test_normalised_observations_are_affine_and_not_clipped(envs):
    raw, scaled = envs("pushing", normalize_observations=False), envs("pushing")
    fast = {"block_0/linear_velocity": (1.5, 0.0, 0.0)}
    a, b = (env.unwrapped.do(fast).observation for env in (raw, scaled))
    layout = raw.layout
    speed, place, turn = (
        layout[f"block_0/{k}"] for k in ("linear_velocity", "cartesian_position", "orientation")
    )
    assert b[speed][0] == 3.0
    np.testing.assert_allclose(b[turn], a[turn] / 10)
    np.testing.assert_allclose(b[place], (a[place] - (0, 0, 0.25)) / (0.5, 0.5, 0.25))
    assert scaled.observation_space.contains(b)


def test_sensor_noise_touches_what_is_sensed_and_repeats_by_seed(envs):
    env = envs("pushing")
    clear, _ = env.reset(seed=5)
    options = {"do": {"robot/observation_noise": 0.02}}
    first, _ = env.reset(seed=5, options=options)
    second, _ = env.reset(seed=5, options=options)
    other, _ = env.reset(seed=6, options=options)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    known = ["time_left_for_task", "block_0/type", "block_0/size"]
    known += [n for n in env.layout if n.startswith("goal")]
    for name, part in env.layout.items():
        assert np.array_equal(first[part], clear[part]) == (name in known), name
    noise = (first - clear)[env.layout["joint_positions"]]
    assert 0.001 < noise.std() < 0.1


def test_a_padded_observation_has_a_mask_and_zeros_for_what_is_not_there(envs):
    env = envs("towers", max_blocks=8)
    assert env.observation_space.shape == (28 + 8 * 28 + 8,)
    seen, _ = env.reset(seed=0)
    assert seen[env.layout["mask"]].tolist() == [1.0] * 5 + [0.0] * 3
    assert seen[env.layout["block_4/type"]] == 1.0
    raw = envs("towers", max_blocks=8, normalize_observations=False).reset(seed=0)[0]
    for name, part in env.layout.items():
        if name.startswith(("block_5", "goal_7")):
            assert not raw[part].any(), name
    outcome = env.unwrapped.do({"tower/counts": (2, 2, 2), "tower/dims": (0.1, 0.1, 0.1)})
    assert outcome.observation[env.layout["mask"]].tolist() == [1.0] * 8


def test_the_number_of_blocks_is_chosen_per_world():
    venv = iv.make_vec("trifinger/towers-v1", num_envs=3, max_blocks=8)
    venv.reset(seed=0)
    counts = np.array([(1, 1, 2), (2, 2, 2), (1, 1, 5)])
    dims = np.full((3, 3), 0.1)
    outcome = venv.unwrapped.do({"tower/counts": counts, "tower/dims": dims})
    assert outcome.applied.all()
    masks = outcome.observation[:, venv.layout["mask"]]
    assert masks.sum(axis=1).tolist() == [2, 8, 5]
    for _ in range(5):
        observation, *_ = venv.step(np.zeros((3, 9), dtype=np.float32))
    assert observation[:, venv.layout["mask"]].sum(axis=1).tolist() == [2, 8, 5]
    venv.close()


def test_pixels_are_live_and_goal_images(envs):
    env = envs("pushing", observation_mode="pixel", cameras=(0, 2), image_size=64)
    seen, _ = env.reset(seed=0)
    assert seen.shape == (4, 64, 64, 3)
    assert seen.dtype == np.uint8
    assert not env.layout
    assert env.observation_space.contains(seen)
    moved = env.unwrapped.do({"goal_0/cartesian_position": (0.05, 0.0, 0.0325)}).observation
    assert np.array_equal(moved[:2], seen[:2])  # no goal in the live images
    assert not np.array_equal(moved[2:], seen[2:])
    pushed = env.unwrapped.do({"block_0/cartesian_position": (0.0, -0.14, 0.0325)}).observation
    assert not np.array_equal(pushed[:2], moved[:2])
    assert np.array_equal(pushed[2:], moved[2:])  # no block in the goal images


@pytest.mark.parametrize(
    "values",
    [
        {"block_0/color": (0.2, 0.3, 0.9)},
        {"floor/color": (0.9, 0.9, 0.2)},
        {"stage/color": (0.1, 0.2, 0.2)},
        {"finger_1/middle/color": (0.9, 0.9, 0.9)},
        {"floor/texture": 1},
        {"light/direction": (0.5, 0.5, -0.5)},
        {"light/color": (0.1, 0.1, 0.1)},
        {"camera_0/position": (0.2, 0.2, 0.6)},
        {"camera_0/rotation": (0.05, 0.0, 0.0)},
        {"robot/height": 0.36},
        {"joint_positions": (-0.9, -0.5, -1.0) * 3},
    ],
    ids=lambda v: next(iter(v)),
)
def test_what_a_camera_can_see_shows(envs, values):
    env = envs("pushing", observation_mode="pixel", cameras=(0,), image_size=64)
    seen, _ = env.reset(seed=0)
    after = env.unwrapped.do(values, check=False).observation
    different = (np.abs(after[0].astype(int) - seen[0]) > 8).any(axis=-1)
    assert different.mean() > 0.002


def test_a_mirrored_image_is_the_image_mirrored(envs):
    options = {"observation_mode": "pixel", "cameras": (1,), "image_size": 32}
    plain = envs("pushing", **options).reset(seed=0)[0]
    mirrored = envs("pushing", mirrored_images=True, **options).reset(seed=0)[0]
    assert np.array_equal(mirrored, plain[:, :, ::-1])


def test_mixed_observations_hold_numbers_pictures_depth_and_segmentation(envs):
    env = envs(
        "pushing",
        observation_mode="mixed",
        cameras=(0,),
        image_size=32,
        picture_kinds=("rgb", "depth", "segmentation"),
    )
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    assert set(seen) == {"structured", "pixels", "depth", "segmentation"}
    assert 0.3 < np.median(seen["depth"]) < 1.2  # metres from the camera to the arena
    assert len(np.unique(seen["segmentation"])) > 3
    assert np.array_equal(seen["structured"], envs("pushing").reset(seed=0)[0])


def _gap(values):
    return values["goal_0/cartesian_position"] - values["block_0/cartesian_position"]


def test_keys_of_ones_own_follow_at_the_end(envs):
    custom = {"gap": _gap, "weight": lambda v: -v["block_0/mass"] * v["gravity"]}
    env = envs("pushing", custom_observations=custom)
    assert list(env.layout)[-2:] == ["gap", "weight"]
    seen = env.unwrapped.do({"block_0/mass": 0.05}).observation
    assert seen.shape == (60,)
    np.testing.assert_allclose(seen[env.layout["gap"]], (0.0, 0.16, 0.0))
    np.testing.assert_allclose(seen[env.layout["weight"]], 0.05 * 9.81)


@pytest.mark.parametrize(
    ("asked", "near"), [("block_0/masss", "block_0/mass"), ("goal_0/foo", "goal_0/color")]
)
def test_a_name_that_is_no_variable_reads_nothing_else(asked, near, envs):
    told = f"unknown variable '{asked}'. Did you mean '{near}'"
    with pytest.raises(iv.errors.UnknownNameError, match=told):
        envs("pushing", custom_observations={"own": lambda values: values[asked]})
    for values in (envs("pushing").unwrapped.values, envs("pushing").unwrapped.driver.values):
        with pytest.raises(iv.errors.UnknownNameError, match=told):
            values[asked]
        assert asked not in values
        assert values.get(asked) is None


KEYS = ("goal_0/cartesian_position", "joint_torques", "block_0/mass", "joint_positions")


def test_the_keys_asked_for_are_observed_in_their_order(envs):
    env = envs("pushing", observation_keys=KEYS, normalize_observations=False)
    seen, *_ = env.step(np.ones(9, dtype=np.float32))
    values, layout = env.unwrapped.values, env.unwrapped.layout
    assert list(layout) == list(KEYS)
    assert env.observation_space.shape == seen.shape == (22,)
    for name in ("goal_0/cartesian_position", "block_0/mass", "joint_positions"):
        np.testing.assert_allclose(seen[layout[name]], np.ravel(values[name]))
    torques = seen[layout["joint_torques"]]
    assert 0.01 < np.abs(torques).max() <= 0.36
    assert np.array_equal(torques, env.unwrapped.world._torques()[0])


def test_bounds_normalise_and_denormalise(envs):
    raw_env = envs("pushing", observation_keys=KEYS, normalize_observations=False)
    env = envs("pushing", observation_keys=KEYS)
    (seen, _), (raw, _) = env.reset(seed=0), raw_env.reset(seed=0)
    for name, part in env.unwrapped.layout.items():
        low, high = env.unwrapped.observation_bounds[name]
        np.testing.assert_allclose(low + (seen[part] + 1) * (high - low) / 2, raw[part], atol=1e-12)
    low, high = env.unwrapped.observation_bounds["joint_torques"]
    assert (low.tolist(), high.tolist()) == ([-0.36] * 9, [0.36] * 9)
    venv = iv.make_vec("trifinger/pushing-v1", 2, observation_keys=KEYS)
    assert list(venv.observation_bounds) == list(KEYS)
    venv.close()


def test_the_last_command_can_be_observed(envs):
    env = envs("pushing", observation_keys=["action_joint_positions"], normalize_actions=False)
    action = np.full(9, 0.25, dtype=np.float32)
    np.testing.assert_allclose(env.step(action)[0], env.unwrapped.driver.world.observe()[0])
    low, high = env.unwrapped.observation_bounds["action_joint_positions"]
    np.testing.assert_allclose(env.unwrapped.observe(), 2 * (action - low) / (high - low) - 1)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (["joint_position"], "Did you mean 'joint_positions'"),
        (["gravity"], "unknown observation key 'gravity'"),
        (["joint_positions", "joint_positions"], "names a key twice"),
    ],
)
def test_other_keys_are_refused(keys, told):
    with pytest.raises((iv.errors.InvalidValueError, iv.errors.UnknownNameError), match=told):
        iv.make("trifinger/pushing-v1", observation_keys=keys)
