"""Interventions on TriFinger worlds: what is set holds, and what follows from it follows."""

import math

import numpy as np
import pytest

import interverse as iv
from interverse.worlds.trifinger.tasks import TASKS

STILL = np.zeros(9, dtype=np.float32)


def test_a_stacked_block_keeps_its_lower_face_when_it_is_resized(envs):
    env = envs("stacking2")
    env.do({"block_1/cartesian_position": (0.0, 0.0, 0.0975)}, check=False)
    env.do({"block_1/size": (0.065, 0.065, 0.085)}, check=False)
    assert env.values["block_1/cartesian_position"][2] == pytest.approx(0.065 + 0.0425)
    env.do({"block_0/size": (0.065, 0.065, 0.055)}, check=False)
    assert env.values["block_0/cartesian_position"][2] == pytest.approx(0.0275)


ROLLED = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))  # by 90 degrees: its y edge stands upright


@pytest.mark.parametrize("together", [False, True])
def test_a_rolled_block_keeps_its_lower_face_when_it_is_resized(envs, together):
    env = envs("stacking2")
    env.do({"block_1/cartesian_position": (0.0, 0.0, 0.0975)}, check=False)
    turn, size = {"block_1/orientation": ROLLED}, {"block_1/size": (0.065, 0.1, 0.08)}
    for values in [{**turn, **size}] if together else [turn, size]:
        env.do(values, check=False)
    assert env.values["block_1/cartesian_position"][2] - 0.1 / 2 == pytest.approx(0.065)


def test_a_rolled_block_on_the_floor_stays_on_it_when_it_is_resized(envs):
    env = envs("pushing")
    env.do({"block_0/orientation": ROLLED}, check=False)
    env.do({"block_0/size": (0.065, 0.09, 0.06)}, check=False)
    assert env.values["block_0/cartesian_position"][2] == pytest.approx(0.045)
    assert env.values["goal_0/cartesian_position"][2] == pytest.approx(0.03)


def test_fingers_may_hang_over_the_wall_as_in_the_original(envs):
    env = envs("pushing")
    env.do({"joint_positions": (0.0, 1.5, -0.5) * 3}, check=False)
    for _ in range(5):
        assert np.isfinite(env.step(STILL)[0]).all()
    with pytest.raises(iv.InterventionError, match="deep in stage"):
        env.do({"joint_positions": (0.0, 1.2, -0.5) * 3}, check=False)


def test_a_goal_that_is_set_with_its_tower_keeps_what_it_was_given(envs):
    env = envs("towers")
    turn = (0.0, 0.0, 0.6, 0.8)
    env.do({"tower/center": (0.03, 0.02), "goal_1/orientation": turn}, check=False)
    assert env.values["goal_1/orientation"] == pytest.approx(turn)
    assert env.values["goal_0/orientation"] == pytest.approx((0.0, 0.0, 0.0, 1.0))
    assert env.values["goal_1/cartesian_position"][:2] == pytest.approx((0.03, 0.02))


def test_the_base_of_a_finger_has_a_colour(envs):
    env = envs("pushing")
    env.do({"finger_1/base/color": (0.1, 0.2, 0.3)})
    shapes = {shape.name: shape for shape in env.unwrapped.world.shapes(0)}
    assert shapes["geom/finger_1_base"].rgba[:3] == pytest.approx((0.1, 0.2, 0.3))


def test_link_colours_act_in_the_realistic_look_too(envs):
    env = envs("pushing", look="realistic")
    env.do({"finger_0/upper/color": (0.4, 0.1, 0.1)})
    shapes = {shape.name: shape for shape in env.unwrapped.world.shapes(0)}
    assert shapes["geom/finger_0_upper_cover"].rgba[:3] == pytest.approx((0.4, 0.1, 0.1))
    assert shapes["geom/finger_0_lower_cover"].rgba[:3] == pytest.approx((0.54, 0.54, 0.54))


def test_pending_commands_are_state_that_the_graph_declares(envs):
    env = envs("pushing", defaults={"robot/action_delay": 2})
    parents = env.graph.parents("joint_velocities'")
    assert {"robot/commands", "robot/action_delay"} <= parents
    assert "robot/commands" in env.graph.effects_now("joint_positions")
    moved = []
    for value in (env.values["robot/commands"], env.values["robot/commands"] + 0.3):
        env.reset(seed=0)
        env.do({"robot/commands": value})
        env.step(STILL)
        moved.append(env.values["joint_velocities"])
    assert np.abs(moved[0] - moved[1]).max() > 0.1


def test_the_wait_for_a_command_is_state_that_the_graph_declares(envs):
    env = envs("pushing", defaults={"robot/control_period": 3})
    wait = "robot/command_wait"
    assert env.graph.parents(f"{wait}'") == {wait, "robot/control_period"}
    assert wait in env.graph.parents("robot/commands'")
    waits = [env.values[wait]]
    for _ in range(4):
        env.step(STILL)
        waits.append(env.values[wait])
    assert waits == [0, 2, 1, 0, 2]
    push, held = np.full(9, 0.5, dtype=np.float32), env.values["robot/commands"][0]
    env.step(push)
    assert np.array_equal(env.values["robot/commands"][0], held)
    env.do({wait: 0})
    env.step(push)
    assert np.abs(env.values["robot/commands"][0] - held).max() > 0.1


def test_goal_pictures_show_housings_and_no_obstacle(envs):
    """As the original's: no obstacle, and motors cover a corner of two cameras."""
    env = envs("pick_and_place", observation_mode="pixel", image_size=32)
    first, *_ = env.reset(seed=0)
    outcome = env.do({"obstacle/color": (0.9, 0.9, 0.1)})
    assert np.array_equal(outcome.observation[3:], first[3:])
    assert not np.array_equal(outcome.observation[:3], first[:3])
    for camera, own in ((0, 0), (1, 1)):  # red, then green; pictures are not mirrored here
        corner = first[3 + camera, :6, -6:].reshape(-1, 3).mean(axis=0)
        assert corner.argmax() == own
        assert corner[own] > 2 * np.delete(corner, own).max()


def test_a_block_is_moved_without_touching_the_others(envs):
    """The simulator's own numbers of other blocks stay, to the last bit."""
    env = envs("stacking2")
    for _ in range(3):
        env.step(np.ones(9, dtype=np.float32))
    engine = env.unwrapped.world._physics.engine
    before = np.array(engine.live("qpos")), np.array(engine.live("qvel"))
    env.do({"block_0/cartesian_position": (0.05, -0.05, 0.06)}, check=False)
    assert np.array_equal(before[0][:, 16:], engine.live("qpos")[:, 16:])
    assert np.array_equal(before[1], engine.live("qvel"))


HEAVY = ("creative_stacked_blocks", "stacked_blocks", "general")


def values_for(variable, count, rng):
    """Returns one value per world: from A, B, the domain, or nowhere near it."""
    kind = rng.integers(4)
    spaces = (variable.space_a, variable.space_b, variable.domain)
    space = spaces[kind] if kind < 3 and spaces[kind] is not None else variable.domain
    u = rng.random((count, space.draws))
    out = np.asarray(space.from_uniform(u))
    if kind == 3 and not variable.domain.integral:
        out = out + rng.normal(0.0, 0.3, out.shape)
    return out


def meddle(task, *, worlds, rounds, seed):
    """Plays with random interventions; returns how many were applied and how many refused."""
    rng = np.random.default_rng(seed)
    venv = iv.make_vec(f"trifinger/{task}-v1", num_envs=worlds, skip_frame=2)
    venv.reset(seed=seed)
    env = venv.unwrapped
    names = [n for n, v in env.variables.items() if not v.read_only]
    applied = refused = 0
    for turn in range(rounds):
        chosen = rng.choice(names, size=rng.integers(1, 4), replace=False)
        variables = env.variables
        given = {str(n): values_for(variables[n], worlds, rng) for n in chosen}
        before = env.snapshot().arrays
        outcome = env.do(given, check=bool(rng.integers(2)))
        after = env.snapshot().arrays
        for world in np.flatnonzero(~outcome.applied):
            assert outcome.reasons[world]
            for name, rows in before.items():
                assert rows[world].tobytes() == after[name][world].tobytes(), name
        applied += int(outcome.applied.sum())
        refused += int((~outcome.applied).sum())
        observation, reward, *_ = venv.step(rng.uniform(-1, 1, (worlds, 9)).astype(np.float32))
        assert np.all(np.isfinite(observation))
        assert np.all(np.isfinite(reward))
        check_inside(env.world)
        if turn % 10 == 9:
            venv.reset(seed=seed + turn)
    venv.close()
    return applied, refused


def check_inside(world):
    """No block's centre may be beyond the wall or below the floor."""
    place, used = world._store.rows["block/position"], world._store.rows["block/used"]
    if used.any():
        radius = np.hypot(place[..., 0], place[..., 1])[used]
        assert radius.max() < 0.245
        assert place[..., 2][used].min() > -0.01


@pytest.mark.parametrize("task", [t for t in TASKS if t not in HEAVY])
def test_a_few_hundred_interventions(task):
    applied, refused = meddle(task, worlds=8, rounds=40, seed=1)
    assert applied > 50
    assert refused > 20


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_ten_thousand_interventions(task):
    worlds = 16 if task in HEAVY else 50
    applied, refused = meddle(task, worlds=worlds, rounds=10_000 // worlds, seed=2)
    assert applied + refused >= 10_000
    assert min(applied, refused) > 1000
