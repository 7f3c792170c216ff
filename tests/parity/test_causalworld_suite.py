"""What CausalWorld's own tests assert, in our words, by its files, and what its users' page says.

The page names every word of CausalWorld's callers; the commands and names of the pages for the
users of all originals hold.
"""

import json
import pkgutil
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.cli import VERBS, _load
from interverse.core.errors import FORMER
from interverse.envs.wrappers import StartingState, sample_new_goal
from interverse.worlds.trifinger import action_bounds, denormalise, grip_locations, normalise

STEPS, EPISODES = 8, 3
ORACLE = Path(__file__).parent / "data" / "trifinger.json"
LIFTS = json.loads(ORACLE.read_text())["pinch_lift"]["samples"]
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
def env(make, task):
    return make(f"trifinger/{task}-v1", StartingState)


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


@pytest.mark.parametrize("sample", LIFTS, ids=lambda sample: f"{sample['mass']}kg")
def test_a_block_is_gripped_by_two_tips_and_lifted(make, sample):
    env = make(
        "trifinger/picking-v1",
        action_mode="end_effector_positions",
        normalize_actions=False,
        normalize_observations=False,
        contact_sensors=True,
        max_steps=10_000,
    )
    env.reset(seed=0, options={"do": {"block_0/mass": sample["mass"]}})
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
    heights = []
    for _ in range(40):
        grip[[2, 5]] += 0.005
        go(grip, 1)
        heights.append(values["block_0/cartesian_position"][2])
    assert heights[-1] > 0.2
    assert heights == pytest.approx(sample["block_z_every_40ms"], abs=0.012)


# --- envs/test_world.py --------------------------------------------------------------------------


def test_worlds_of_one_task_are_one_world():
    """The scene of stacked_blocks is declared: no seed changes it, and no world beside it."""
    envs = [iv.make("trifinger/stacked_blocks-v1") for _ in range(3)]
    for env, seed in zip(envs, (27, 27, 54), strict=True):
        env.reset(seed=seed)
    runs = [play(env) for env in envs]
    for run in runs[1:]:
        np.testing.assert_array_equal(run, runs[0])
    for env in envs:
        env.close()


def test_save_state(make):
    env = make("trifinger/creative_stacked_blocks-v1")
    play(env)
    state = env.unwrapped.snapshot()
    first = play(env)
    env.unwrapped.restore(state)
    np.testing.assert_array_equal(play(env), first)


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
def test_pd_gains(make, end):
    env = make(
        "trifinger/pushing-v1",
        normalize_actions=False,
        normalize_observations=False,
        max_steps=1000,
    )
    action = np.zeros(9, dtype=np.float32) if end == "zero" else env.action_space.high
    for _ in range(300):
        seen, *_ = env.step(action)
    assert not (seen[env.unwrapped.layout["joint_positions"]] - action > 0.1).any()


# --- envs/robot/test_action.py, test_observations.py ---------------------------------------------

JOINTS = np.array([-1.57, -1.2, -3.0] * 3), np.array([1.0, 1.57, 3.0] * 3)
TORQUES = np.full(9, -0.36), np.full(9, 0.36)
SPEEDS = np.full(9, -50.0), np.full(9, 50.0)
TIPS = np.array([-0.5, -0.5, 0.0] * 3), np.array([0.5, 0.5, 0.5] * 3)
OUTSIDE = np.array([-1.01, 1.2, 0.5, 0.4, 1.3, -1.6, 0.0, 0.3, 1.1])


def check_bounds(low, high, normal):
    """A value of -1 to 1 goes there and back; one is inside, at an end, outside, clipped."""
    width = len(low)
    np.testing.assert_array_equal(normalise(low, low, high), -np.ones(width))
    np.testing.assert_array_equal(normalise(high, low, high), np.ones(width))
    np.testing.assert_allclose(denormalise(np.ones(width), low, high), high)
    np.testing.assert_allclose(denormalise(-np.ones(width), low, high), low)
    middle = np.linspace(low, high, 5)
    np.testing.assert_allclose(denormalise(normalise(middle, low, high), low, high), middle)
    ends = (-1.0, 1.0) if normal else (low, high)
    for size, inside in ((0.99, True), (1.0, False), (1.01, False)):
        for unit in (np.full(width, size), np.full(width, -size)):
            x = unit if normal else denormalise(unit, low, high)
            assert ((ends[0] < x) & (x < ends[1])).all() == inside
            wanted = np.clip(unit, -1, 1)
            wanted = wanted if normal else denormalise(wanted, low, high)
            np.testing.assert_allclose(np.clip(x, *ends), wanted)


@pytest.mark.parametrize("normal", [True, False])
@pytest.mark.parametrize(
    ("mode", "ends"), [("joint_positions", JOINTS), ("joint_torques", TORQUES)]
)
def test_actions(mode, ends, normal):
    np.testing.assert_array_equal(action_bounds(mode), ends)
    check_bounds(*ends, normal)
    other = TORQUES if mode == "joint_positions" else JOINTS
    for end, unit in zip(ends, (-1, 1), strict=True):
        assert (normalise(end, *other) != unit).all()
        assert (denormalise(np.full(9, unit), *other) != end).all()
    ends = (-np.ones(9), np.ones(9)) if normal else ends
    given = OUTSIDE if normal else denormalise(OUTSIDE, *action_bounds(mode))
    seen = []
    for action in (given, np.clip(given, *ends)):
        env = iv.make("trifinger/pushing-v1", action_mode=mode, normalize_actions=normal)
        np.testing.assert_array_equal(
            (env.action_space.low, env.action_space.high), np.float32(ends)
        )
        assert env.unwrapped.world.options.normalize_actions is normal
        env.reset(seed=0)
        seen.append(env.step(action.astype(np.float32))[0])
        env.close()
    np.testing.assert_allclose(*seen, atol=1e-5)


def test_what_is_usual(make):
    env = make("trifinger/pushing-v1")
    options = env.unwrapped.world.options
    assert (options.action_mode, options.observation_mode) == ("joint_positions", "structured")
    assert options.normalize_actions
    assert options.normalize_observations
    assert (env.action_space.low == -1).all()
    assert (env.action_space.high == 1).all()


@pytest.mark.parametrize(
    ("normal", "bounds"),
    [
        (
            False,
            {
                "action_joint_positions": JOINTS,
                "joint_velocities": SPEEDS,
                "joint_torques": TORQUES,
            },
        ),
        (True, {"end_effector_positions": TIPS, "action_joint_positions": JOINTS}),
    ],
)
def test_observation_bounds(make, normal, bounds):
    env = make(
        "trifinger/pushing-v1", observation_keys=tuple(bounds), normalize_observations=normal
    )
    low, high = (np.concatenate([ends[i] for ends in bounds.values()]) for i in (0, 1))
    own = env.unwrapped.observation_bounds
    np.testing.assert_array_equal(
        [np.concatenate([own[k][i] for k in bounds]) for i in (0, 1)], (low, high)
    )
    check_bounds(low, high, normal)
    assert env.observation_space.shape == low.shape  # without ends: see the page
    assert env.unwrapped.world.options.normalize_observations is normal


def test_pictures_are_bytes(make):
    env = make("trifinger/pushing-v1", observation_mode="pixel", image_size=16)
    assert (env.observation_space.low == 0).all()
    assert (env.observation_space.high == 255).all()


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


PAGES = {
    name: (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text()
    for name in ("causalworld", "causalmbrl", "remastered", "causaltriplet", "dmcgb")
}
PAGE = PAGES["causalworld"]
# The classes, functions and arguments of CausalWorld 1.2 that its own callers name.
WORDS = (Path(__file__).parent / "data" / "causalworld_words.txt").read_text().split()
INSIDE = {"append", "end_sim", "initialize", "contains_err", "model", "task_name"}  # of their parts
INSIDE |= {"action_lower_bound", "action_upper_bound", "env_wrappers_args"}


def test_the_page_names_every_word_that_callers_use():
    assert {w for w in WORDS if not re.search(rf"\b{w}\b", PAGE)} <= INSIDE
    assert len(WORDS) - len(INSIDE) >= 120


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_page_have_flags_that_exist_and_its_names_resolve(name):
    verbs = "|".join(VERBS)
    commands = re.findall(
        rf"(?m)(?:`(?:interverse )?|^interverse )((?:{verbs}) [^`\n(]+)(?:`|$)", PAGES[name]
    )
    assert commands
    for command in commands:
        verb, *words = shlex.split(command)
        _load(verb, words)  # a wrong flag or value raises
    for dotted in re.findall(r"\binterverse(?:\.\w+)+", PAGES[name]):
        pkgutil.resolve_name(dotted)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"variables_space": "space_a"}, "space='A', 'B' or 'A_B'"),
        ({"tool_block_mass": 0.05}, "defaults={'block_0/mass': ...}"),
        ({"space": "space_b"}, "is B here"),
        ({"camera_indicies": [0]}, "is cameras here"),
    ],
)
def test_old_arguments_raise_with_the_new_ones(asked, told):
    with pytest.raises(iv.errors.UnknownNameError, match=re.escape(told)):
        iv.make("trifinger/pushing-v1", **asked)


@pytest.mark.parametrize("name", ["tool_block", "tool_block/mass", "floor_friction", "blocks_mass"])
def test_old_variables_raise_with_the_new_ones(make, name):
    env = make("trifinger/pushing-v1")
    with pytest.raises(iv.InterventionError, match=re.escape(FORMER[name.partition("/")[0]])):
        env.unwrapped.do({name: 0.05})


def test_a_grip_is_at_the_face_turned_to_y_and_across():
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turn = (0.0, 0.0, np.sin(np.pi / 12), np.cos(np.pi / 12))  # by 30 degrees
    near, far = grip_locations((0.1, 0.0, 0.03), turn, (0.08, 0.06, 0.05))
    np.testing.assert_allclose(
        near - (0.1, 0.0, 0.03), 0.03175 * np.array((-s, c, 0.0)), atol=1e-12
    )
    np.testing.assert_allclose(near + far, (0.2, 0.0, 0.06), atol=1e-12)
