"""Distracting Control's camera, colours and videos: where they may be and how fast they move.

The numbers are those that its published code comes to: start angles plus and minus the scale's,
cut at the horizon and the top; one step of all wrappers at every control step.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import interverse as iv
from interverse.art.pictures import difficulty
from tests.conformance.cases import TEXTURES

QUARTER = np.pi / 2
VIDEOS = {"videos": str(TEXTURES / "backgrounds")}
STATES = {"observation": "state", "dynamics_seed": 0}
ELEVATIONS = [
    ("ball_in_cup_catch", 0.1, -0.157, 0.157),
    ("cartpole_balance", 0.1, -0.157, 0.157),
    ("cheetah_run", 0.1, -0.050, 0.157),
    ("finger_spin", 0.1, -0.157, 0.157),
    ("walker_walk", 0.1, -0.157, 0.157),
    ("reacher_easy", 0.1, -0.157, 0.157),
    ("cartpole_balance", 0.3, -0.245, 0.471),
    ("ball_in_cup_catch", 1.0, -0.733, QUARTER - 0.733),
]


def made(task, **options):
    env = iv.make(f"control/{task}-v1", **STATES | options)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize(("task", "scale", "low", "high"), ELEVATIONS)
def test_the_camera_tips_to_both_sides_down_to_the_horizon(task, scale, low, high):
    env = made(task, distraction=scale, distract=("camera",))
    domain = env.variables["distraction/camera"].domain
    assert domain.low[1] == pytest.approx(low, abs=5e-4)
    assert domain.high[1] == pytest.approx(high, abs=5e-4)
    seen = [float(env.values["distraction/camera"][1])]
    for episode in range(1, 60):
        env.reset(seed=0, options={"episode": episode})
        seen.append(float(env.values["distraction/camera"][1]))
    share = (np.array(seen) - low) / (high - low)
    assert share.min() < 0.1 < 0.9 < share.max()
    assert abs(share.mean() - 0.5) < 0.12


@pytest.mark.parametrize("task", ["cartpole_balance", "cheetah_run", "walker_walk", "finger_spin"])
def test_the_camera_moves_on_a_sphere_and_looks_where_it_looked(task):
    env = made(task, distraction="hard", distract=("camera",))
    start = {"distraction/camera": np.array([0.0, 0.0, 0.0, 1.0])}
    env.do(start)
    place, axes, centre, target = seen_from(env)
    length, azimuth, elevation = sphere(place - centre)
    low, high = (getattr(env.variables["distraction/camera"].domain, n) for n in ("low", "high"))
    for share in (0.0, 0.4, 1.0):
        moved = low + share * (high - low)
        moved[2] = 0.0
        env.do({"distraction/camera": moved})
        there, turned, _, _ = seen_from(env)
        found = sphere(there - centre)
        wished = length * moved[3], azimuth + moved[0], elevation + moved[1]
        np.testing.assert_allclose(found, wished, atol=5e-3)
        ahead = (target - there) / np.linalg.norm(target - there)
        np.testing.assert_allclose(-turned[:, 2], ahead, atol=1e-6)
        assert abs(turned[2, 0]) < 0.01, "it does not roll"
        assert there[2] - centre[2] > -5e-3, "nor goes below the horizon"
    env.do({"distraction/camera": np.array([0.0, 0.0, 0.2, 1.0])})
    rolled = Rotation.from_matrix(axes.T @ seen_from(env)[1]).as_rotvec()
    np.testing.assert_allclose(rolled, [0.0, 0.0, 0.2], atol=1e-6)


def seen_from(env):
    """Returns the camera's place and axes, what it turns about and what it looks at."""
    physics = env.world.physics
    data, model = physics.data, physics.model
    place, axes = data.cam_xpos[0].copy(), data.cam_xmat[0].reshape(3, 3).copy()
    robot = data.subtree_com[1].copy()
    centre = np.zeros(3) if model.cam_mode[0] == 0 else robot
    return place, axes, centre, place - axes[:, 2] * start_distance(physics, place)


def start_distance(physics, place):
    """Returns how far the robot is where the model starts: cameras that follow keep it."""
    fixed, stock = physics.model.cam_mode[0] == 0, physics.copy(share_model=True)
    stock.reset()
    return np.linalg.norm((place if fixed else stock.data.cam_xpos[0]) - stock.data.subtree_com[1])


def sphere(arm):
    return (
        np.linalg.norm(arm),
        np.arctan2(arm[1], arm[0]),
        np.arctan2(arm[2], np.hypot(arm[0], arm[1])),
    )


@pytest.mark.parametrize(("mode", "frames"), [("hard", 4), ("video_easy", 1)])
def test_videos_play_by_control_step_and_those_of_dmc_gb_by_decision(mode, frames):
    env = made("walker_walk", distraction=mode, frame_skip=4, **VIDEOS)
    first = env.values["distraction/frame"]
    for decision in range(1, 4):
        env.step(np.zeros(6))
        assert env.values["distraction/frame"] == first + frames * decision


def test_camera_and_colours_walk_at_every_control_step():
    moved = {}
    for skip in (1, 4):
        env = made("walker_walk", distraction="hard", distract=("camera", "color"), frame_skip=skip)
        moved[skip] = [walked(env, episode) for episode in range(40)]
    one, four = (np.array([m[0] for m in moved[skip]]) for skip in (1, 4))
    assert four.std() / one.std() == pytest.approx(2.0, rel=0.15), "colours: the root of the steps"
    one, four = (np.array([m[1] for m in moved[skip]]) for skip in (1, 4))
    assert np.abs(four).mean() / np.abs(one).mean() == pytest.approx(4.0, rel=0.35)


def walked(env, episode):
    """Returns how far a decision moved colours and camera from the middle of their ranges."""
    env.reset(seed=1, options={"episode": episode})
    middle = {"distraction/color": np.zeros(21), "distraction/camera": np.array([0, 0, 0, 1.0])}
    env.do(middle)
    env.step(np.zeros(6))
    inner = slice(3, 12)  # materials whose colours are not at a bound
    camera = env.values["distraction/camera"] - middle["distraction/camera"]
    return env.values["distraction/color"][inner], camera[[0, 3]]


def test_the_last_decision_of_an_episode_moves_by_the_control_steps_it_has():
    env = made("walker_walk", distraction="hard", frame_skip=300, **VIDEOS)
    first = env.values["distraction/frame"]
    for played in (300, 600, 900, 1000):
        env.step(np.zeros(6))
        assert env.values["distraction/frame"] == first + played


@pytest.mark.parametrize(("task", "radius"), [("cartpole_balance", 4.123), ("finger_spin", 1.281)])
def test_the_camera_starts_on_the_move(task, radius):
    env, level = made(task, distraction="hard", distract=("camera",)), difficulty("hard")
    drawn = []
    for episode in range(200):
        env.reset(seed=2, options={"episode": episode})
        drawn.append(env.values["distraction/camera_velocity"])
    velocity = np.array(drawn)
    speeds = np.linalg.norm(velocity[:, [0, 1, 3]], axis=1) / (level.camera_speed / 4.0)
    assert speeds.max() <= 1.0 + 1e-12
    share = min(1.0, radius / 4.0)  # of speeds that are below the greatest: metres are drawn
    assert (speeds < 1.0 - 1e-9).mean() == pytest.approx(share, abs=0.1)
    assert speeds[speeds < 1.0 - 1e-9].mean() == pytest.approx(0.5, abs=0.1)
    assert np.abs(velocity[:, [0, 1, 3]].mean(axis=0)).max() < 0.15 * level.camera_speed / 4.0
    roll = velocity[:, 2] / level.roll_speed
    assert roll.std() == pytest.approx(3**-0.5, abs=0.05)
    assert np.abs(roll).max() <= 1.0
    still = made(task, distraction="hard", distract=("camera",), dynamic=False)
    assert not still.values["distraction/camera_velocity"].any()


def test_the_camera_s_speed_is_one_number():
    env = made("cartpole_balance", distraction="easy", distract=("camera",))
    most = env.variables["distraction/camera_velocity"].domain.high
    env.do({"distraction/camera": np.array([0, 0, 0, 1.0]), "distraction/camera_velocity": most})
    env.step(np.zeros(1))
    speed = np.linalg.norm(env.values["distraction/camera_velocity"][[0, 1, 3]])
    assert speed == pytest.approx(most[0], rel=1e-9)


def test_a_batch_and_a_snapshot_move_as_one_world_does():
    options = {"distraction": "hard", "distract": ("camera", "color"), "frame_skip": 3}
    venv = iv.make_vec("control/walker_walk-v1", num_envs=2, **STATES, **options)
    venv.reset(seed=5)
    env = made("walker_walk", **options)
    env.reset(seed=6)
    for _ in range(3):
        venv.step(np.zeros((2, 6), np.float32))
        env.step(np.zeros(6))
    kept = env.snapshot()
    for name in ("distraction/camera", "distraction/camera_velocity", "distraction/color"):
        assert venv.unwrapped.values[name][1].tobytes() == env.values[name].tobytes()
    env.step(np.zeros(6))
    after = env.values["distraction/camera"]
    env.restore(kept)
    env.step(np.zeros(6))
    assert env.values["distraction/camera"].tobytes() == after.tobytes()
