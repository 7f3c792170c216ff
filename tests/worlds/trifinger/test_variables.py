"""The variables of the TriFinger worlds: names, bounds, effects in graph and simulation."""

import math

import networkx as nx
import numpy as np
import pytest

import interverse as iv
import interverse.core.errors
import interverse.scm
from interverse.core.errors import InterventionError

COMMON = {
    "gravity",
    "joint_positions",
    "joint_velocities",
    "end_effector_positions",
    "fractional_success",
    "robot/height",
    "robot/joint_damping",
    "robot/action_delay",
    "robot/commands",
    "robot/command_wait",
    *(f"finger_{f}/base/color" for f in range(3)),
    "robot/control_period",
    "robot/observation_noise",
    "floor/friction",
    "floor/color",
    "floor/texture",
    "stage/friction",
    "stage/color",
    "light/direction",
    "light/color",
    *(f"camera_{i}/{key}" for i in range(3) for key in ("position", "rotation")),
    *(
        f"finger_{f}/{link}/{key}"
        for f in range(3)
        for link in ("upper", "middle", "lower")
        for key in ("mass", "color")
    ),
}
BLOCK = {
    "mass",
    "size",
    "color",
    "friction",
    "cartesian_position",
    "cylindrical_position",
    "orientation",
    "linear_velocity",
    "angular_velocity",
}
GOAL = {"size", "color", "cartesian_position", "cylindrical_position", "orientation"}
OWN = {
    "reaching": (0, 3, {"obstacles/count"}),
    "pushing": (1, 1, set()),
    "picking": (1, 1, set()),
    "pick_and_place": (1, 1, {"obstacle/size", "obstacle/color"}),
    "stacking2": (2, 2, {"goal_tower/cylindrical_position", "goal_tower/orientation"}),
    "towers": (5, 5, {"tower/counts", "tower/dims", "tower/center", "blocks/mass"}),
    "general": (5, 5, {"general/count", "general/size", "blocks/mass"}),
    "stacked_blocks": (
        35,
        35,
        {"stack/levels", "stack/min_size", "stack/max_width", "blocks/mass"},
    ),
    "creative_stacked_blocks": (
        24,
        6,
        {"stack/levels", "stack/min_size", "stack/max_width", "blocks/mass", "obstacles/count"},
    ),
}


@pytest.mark.parametrize("task", OWN)
def test_every_path_is_there_and_nothing_else(envs, task):
    blocks, goals, own = OWN[task]
    wanted = COMMON | own
    wanted |= {f"block_{i}/{key}" for i in range(blocks) for key in BLOCK}
    wanted |= {f"goal_{i}/{key}" for i in range(goals) for key in GOAL}
    assert set(envs(task).unwrapped.variables) == wanted


# A low, A high, B low, B high of what the original has otherwise; the rest stands in tests/parity.
BOUNDS = {
    ("pushing", "gravity"): (-10, -7, -7, -4),
    ("picking", "goal_0/cylindrical_position"): (
        (0, 0, 0.08),
        (0, 0, 0.2),
        (0, 0, 0.2),
        (0, 0, 0.25),
    ),
    ("pick_and_place", "block_0/cylindrical_position"): (
        (0.07, -5 * math.pi / 6, 0.0325),
        (0.12, -math.pi / 6, 0.0325),
        (0.12, -5 * math.pi / 6, 0.0325),
        (0.15, -math.pi / 6, 0.0325),
    ),
    ("pick_and_place", "goal_0/cylindrical_position"): (
        (0.07, math.pi / 6, 0.0325),
        (0.12, 5 * math.pi / 6, 0.0325),
        (0.12, math.pi / 6, 0.0325),
        (0.15, 5 * math.pi / 6, 0.0325),
    ),
    ("towers", "tower/counts"): (1, 3, 4, 5),
}


@pytest.mark.parametrize(("task", "name"), BOUNDS)
def test_spaces_have_the_published_bounds(envs, task, name):
    variable = envs(task).unwrapped.variables[name]
    found = (
        variable.space_a.low,
        variable.space_a.high,
        variable.space_b.low,
        variable.space_b.high,
    )
    for ours, theirs in zip(found, BOUNDS[task, name], strict=True):
        np.testing.assert_allclose(ours, np.broadcast_to(theirs, variable.shape), atol=1e-12)


def test_the_shared_bound_belongs_to_a(envs):
    variables = envs("pushing").unwrapped.variables
    for name, shared in (("gravity", -7.0), ("floor/friction", 0.6), ("block_0/mass", 0.045)):
        assert variables[name].space_a.contains(shared), name
        assert not variables[name].space_b.contains(shared), name
    place = envs("picking").unwrapped.variables["block_0/cylindrical_position"]
    assert place.space_b.contains((0.12, 0.0, 0.0325))  # on the floor: only the radius is open
    assert not place.space_b.contains((0.11, 0.0, 0.0325))


def test_block_and_goal_share_a_size_and_both_stand_on_the_floor(envs):
    env = envs("pushing")
    env.unwrapped.do({"goal_0/size": (0.08, 0.07, 0.09)})
    values = env.unwrapped.values
    for name in ("block_0", "goal_0"):
        np.testing.assert_array_equal(values[f"{name}/size"], (0.08, 0.07, 0.09))
        assert values[f"{name}/cartesian_position"][2] == 0.045
    np.testing.assert_array_equal(values["block_0/cartesian_position"][:2], (0.0, -0.08))


def test_a_position_given_with_a_size_is_kept(envs):
    env = envs("pushing")
    env.unwrapped.do(
        {
            "block_0/size": (0.08, 0.08, 0.08),
            "block_0/cylindrical_position": (0.1, -1.5, 0.04),
            "goal_0/cartesian_position": (0.02, 0.09, 0.05),
        }
    )
    values = env.unwrapped.values
    np.testing.assert_allclose(values["block_0/cylindrical_position"], (0.1, -1.5, 0.04))
    np.testing.assert_array_equal(values["goal_0/cartesian_position"], (0.02, 0.09, 0.05))


def test_pickings_goal_stays_above_the_middle(envs):
    env = envs("picking")
    with pytest.raises(InterventionError, match="above the middle"):
        env.unwrapped.do({"goal_0/cylindrical_position": (0.1, 1.0, 0.17)}, check=False)
    env.unwrapped.do({"goal_0/cylindrical_position": (0.0, 0.0, 0.17)})
    np.testing.assert_array_equal(
        env.unwrapped.values["goal_0/cartesian_position"], (0.0, 0.0, 0.17)
    )


def test_a_size_derives_the_inertia_of_a_solid_box(envs):
    env = envs("pushing")
    env.unwrapped.do({"block_0/size": (0.06, 0.07, 0.08), "block_0/mass": 0.03})
    engine = env.unwrapped.world._physics.engine
    inertia = engine.field(iv.scm.Binding("body_inertia", "block_0"))[0]
    squares = np.array([0.06, 0.07, 0.08]) ** 2
    np.testing.assert_allclose(inertia, 0.03 / 12 * (squares.sum() - squares), rtol=1e-12)


def test_a_link_mass_scales_its_inertia(envs):
    env = envs("pushing")
    engine = env.unwrapped.world._physics.engine
    binding = iv.scm.Binding("body_inertia", "finger_1_middle")
    before = engine.field(binding)[0]
    env.unwrapped.do({"finger_1/middle/mass": 0.03})
    np.testing.assert_allclose(engine.field(binding)[0], before * 0.03 / 0.14854, rtol=1e-12)


def test_friction_of_a_pair_is_the_product(envs):
    env = envs("stacking2")
    env.unwrapped.do({"floor/friction": 0.8, "block_1/friction": 0.5, "stage/friction": 0.4})
    engine = env.unwrapped.world._physics.engine
    for pair, product in (
        ("floor:block_0", 0.8),
        ("floor:block_1", 0.4),
        ("block_0:block_1", 0.5),
        ("finger_0_tip:block_1", 0.25),
        ("stage_3:block_1", 0.2),
    ):
        found = engine.field(iv.scm.Binding("pair_friction", pair))[0]
        np.testing.assert_allclose(found[:2], product, rtol=1e-12)


def test_gravity_acts(envs):
    env = envs("pushing", drag="joint_damping")
    env.unwrapped.do({"gravity": -5.0, "block_0/cartesian_position": (0.0, -0.15, 0.3)})
    env.step(np.zeros(9, dtype=np.float32))
    assert env.unwrapped.values["block_0/linear_velocity"][2] == pytest.approx(-0.2, abs=1e-6)


def test_a_delayed_command_arrives_late(envs):
    env = envs("pushing")
    push = np.ones(9, dtype=np.float32)

    def joints(delay, steps):
        env.reset(seed=0, options={"do": {"robot/action_delay": delay}})
        for _ in range(steps):
            env.step(push)
        return env.unwrapped.values["joint_positions"]

    rest = np.array((0.0, np.pi / 4, -np.pi / 4) * 3)
    assert np.abs(joints(0, 1) - rest).max() > 0.02
    assert np.abs(joints(2, 2) - rest).max() < 0.02  # only the sag
    assert np.abs(joints(2, 3) - rest).max() > 0.02


def test_a_command_is_held_for_its_period(envs):
    env = envs("pushing")
    up, down = (np.full(9, a, dtype=np.float32) for a in (0.6, -0.6))

    def play(period, actions):
        env.reset(seed=0, options={"do": {"robot/control_period": period}})
        for action in actions:
            env.step(action)
        return env.unwrapped.values["joint_positions"]

    np.testing.assert_array_equal(play(3, [up, down, down]), play(1, [up, up, up]))
    assert not np.array_equal(play(3, [up, down, down, down]), play(1, [up, up, up, up]))


def test_damping_slows_the_joints(envs):
    env = envs("pushing")

    def speed(damping):
        env.reset(seed=0, options={"do": {"robot/joint_damping": damping}})
        env.step(np.ones(9, dtype=np.float32))
        return np.abs(env.unwrapped.values["joint_velocities"]).max()

    assert speed(0.1) < 0.8 * speed(0.0)


def test_the_robots_height_moves_its_tips(envs):
    env = envs("pushing")
    before = env.unwrapped.values["end_effector_positions"]
    env.unwrapped.do({"robot/height": 0.36})
    after = env.unwrapped.values["end_effector_positions"]
    np.testing.assert_allclose(after - before, (0, 0, 0.02) * 3, atol=1e-12)


def test_defaults_make_the_world_as_declared():
    mass, goal = 0.05, (0.03, 0.05, 0.0325)
    env = iv.make(
        "trifinger/pushing-v1",
        defaults={"block_0/mass": mass, "goal_0/cartesian_position": goal},
    )
    env.reset(seed=0)
    variables = env.unwrapped.variables
    assert variables["block_0/mass"].default == mass
    np.testing.assert_array_equal(variables["goal_0/cartesian_position"].default, goal)
    np.testing.assert_allclose(
        variables["goal_0/cylindrical_position"].default, (np.hypot(0.03, 0.05), 1.0303768, 0.0325)
    )
    env.close()
    with pytest.raises(iv.errors.InvalidValueError, match="the defaults cannot be: block_0"):
        iv.make("trifinger/pushing-v1", defaults={"block_0/cartesian_position": (0, 0, 0.0)})


def test_a_quaternion_written_with_four_digits_is_taken_and_made_exact(make):
    env = make("trifinger/pushing-v1")
    env.unwrapped.do({"goal_0/orientation": (0.0, 0.0, 0.7071, 0.7071)})
    turn = env.unwrapped.values["goal_0/orientation"]
    assert np.sqrt(turn @ turn) == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(iv.InterventionError, match="orientation"):
        env.unwrapped.do({"goal_0/orientation": (0.0, 0.0, 0.7, 0.7)})


def test_the_rewards_causes_are_those_of_its_terms(envs):
    def causes(task, **options):
        return envs(task, **options).unwrapped.graph.parents("reward")

    places = {"block_0/cartesian_position", "goal_0/cartesian_position"}
    assert causes("pushing") == {
        *places,
        "block_0/orientation",
        "goal_0/orientation",
        "end_effector_positions",
        "fractional_success",
    }
    fewer = causes("pushing", dense_reward_weights=(0, 250, 0), fractional_reward_weight=0)
    assert fewer == places
    assert causes("pushing", sparse_reward=True) == {"fractional_success"}
    assert causes("general") == {"fractional_success"}
    assert "joint_velocities" in causes("picking")
    with pytest.raises(iv.errors.UnknownNameError, match="Did you mean 'reward'"):
        envs("pushing").unwrapped.graph.parents("rewards")


STEPS = 25


def play(env):
    """Returns every variable after some steps that bring the fingers onto the floor."""
    wave = np.random.default_rng(3).uniform(-1, 1, (STEPS, 9)).astype(np.float32)
    wave[5:, 1::3] = -0.4
    for action in wave:
        env.step(action)
    return {name: value.copy() for name, value in env.unwrapped.values.items()}


def other_value(variable, rng):
    for space in (variable.space_a, variable.space_b, variable.domain):
        if space is not None:
            return space.sample(rng)
    raise AssertionError(variable.name)


# The others have their witnesses in tests/conformance.
@pytest.mark.parametrize(
    "task",
    [
        "pushing",
        *(
            pytest.param(t, marks=pytest.mark.slow)
            for t in ("reaching", "pick_and_place", "stacking2")
        ),
    ],
)
def test_the_graph_holds_every_effect_that_is_seen(envs, task):
    env = envs(task, skip_frame=4)
    rng = np.random.default_rng(0)
    fact = play(env)
    graph, acted = env.unwrapped.graph, 0
    for name, variable in list(env.unwrapped.variables.items()):
        if variable.read_only:
            continue
        env.reset(seed=0)
        try:
            env.unwrapped.do({name: other_value(env.unwrapped.variables[name], rng)})
        except iv.InterventionError:
            continue
        acted += 1
        seen = play(env)
        moved = {n for n in fact if not np.array_equal(fact[n], seen[n])}
        assert moved <= {name} | graph.effects_later(name), name
    assert acted > 20


def test_looks_cause_nothing_and_the_graph_is_a_dag_but_for_constraints(envs):
    graph = envs("pushing").unwrapped.graph
    for name in ("floor/color", "block_0/color", "light/direction", "camera_1/position"):
        assert not graph.effects_later(name), name
    plain = nx.DiGraph([(a, b) for a, b, d in graph.edges(data=True) if not d["constraint"]])
    assert nx.is_directed_acyclic_graph(plain)
    pairs = {(a, b) for a, b, d in graph.edges(data=True) if d["constraint"]}
    assert ("block_0/size", "goal_0/size") in pairs
    assert ("goal_0/cylindrical_position", "goal_0/cartesian_position") in pairs
