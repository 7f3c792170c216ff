"""Kinematics, control modes and drag of the robot."""

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.worlds.trifinger import robot
from interverse.worlds.trifinger.drag import BLOCK_DRAG, LINK_DRAG, RecordedDrag, add_drag, drag_law
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.robot import HINGED, action_bounds
from interverse.worlds.trifinger.scene import ArenaScene, Block, box_inertia

LOW, HIGH = robot.action_bounds("joint_positions")
SEEDS = st.integers(0, 2**32 - 1)


def draw_joints(seed, count):
    return np.random.default_rng(seed).uniform(LOW, HIGH, (count, 9))


def test_tips_are_where_the_simulator_puts_them():
    heights = (0.30, 0.34)
    for height in heights:
        model = compile_scene(ArenaScene(robot_height=height))
        data = mujoco.MjData(model)
        for joints in draw_joints(0, 5):
            data.qpos[:] = joints
            mujoco.mj_kinematics(model, data)
            tips = [data.body(f"finger_{i}_tip").xpos - (0, 0, robot.DATUM) for i in range(3)]
            assert robot.tip_positions(joints, height) == pytest.approx(
                np.concatenate(tips), abs=1e-12
            )


@given(seed=SEEDS)
def test_inverse_kinematics_undoes_forward_kinematics(seed):
    joints = draw_joints(seed, 8)
    tips = robot.tip_positions(joints)
    found = robot.inverse_kinematics(tips, joints)
    assert robot.tip_positions(found) == pytest.approx(tips, abs=1e-9)
    assert found == pytest.approx(joints, abs=1e-4)  # the present pose is a solution, and nearest


@given(seed=SEEDS)
def test_inverse_kinematics_never_leaves_the_joint_limits(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(-0.6, 0.6, (8, 9))  # much of it out of reach
    found = robot.inverse_kinematics(wanted, draw_joints(seed, 8)).reshape(8, 3, 3)
    for i, link in enumerate(robot.HINGED):
        assert (found[..., i] >= link.limits[0]).all()
        assert (found[..., i] <= link.limits[1]).all()


def test_a_point_out_of_reach_is_replaced_by_one_in_its_direction():
    joints = np.array(robot.REST)
    hinge = np.array([*robot.hinge_origins()[0], robot.HEIGHT - robot.DATUM])
    wanted = robot.tip_positions(joints)
    wanted[:3] = hinge + np.array([robot_side(), 0.2, -0.5])
    found = robot.tip_positions(robot.inverse_kinematics(wanted, joints))[:3] - hinge
    asked = wanted[:3] - hinge
    assert found[1] / found[2] == pytest.approx(asked[1] / asked[2], rel=1e-6)
    assert np.hypot(found[1], found[2]) == pytest.approx(0.32, abs=1e-9)


def robot_side():
    """Returns how far a tip lies beside its finger's plane, in finger 0 along x."""
    return robot.tip_positions(np.zeros(9))[0]


@given(seed=SEEDS)
def test_denormalise_undoes_normalise(seed):
    value = draw_joints(seed, 4)
    there = robot.normalise(value, LOW, HIGH)
    assert (np.abs(there) <= 1).all()
    assert robot.denormalise(there, LOW, HIGH) == pytest.approx(value, abs=1e-12)


def test_joint_targets_are_the_action_limits_at_the_ends_of_the_box():
    joints = np.array([robot.REST])
    control = robot.RobotControl()
    for action, bound in ((-1.0, LOW), (1.0, HIGH), (7.0, HIGH)):
        command = control.command(np.full((1, 9), action, np.float32), joints, joints)
        assert command[0] == pytest.approx(bound)
        assert command.dtype == np.float64


def test_raw_commands_are_clipped_to_the_bounds():
    joints = np.array([robot.REST])
    control = robot.RobotControl(mode="joint_torques", normalized=False)
    assert control.torques
    command = control.command(np.array([[9.0, 0.1, -9.0] * 3]), joints, joints)
    assert command[0] == pytest.approx([0.36, 0.1, -0.36] * 3)


def test_a_delta_adds_to_the_last_command():
    joints = np.array([robot.REST])
    last = joints + 0.1
    step = np.full((1, 9), 0.05)
    normalised = robot.RobotControl(mode="delta_joint_positions").command(step, joints, last)
    raw = robot.RobotControl(mode="delta_joint_positions", normalized=False).command(
        step, joints, last
    )
    assert normalised == pytest.approx(last + 0.05 * (HIGH - LOW) / 2)
    assert raw == pytest.approx(last + 0.05)
    torques = robot.RobotControl(mode="delta_joint_torques", normalized=False)
    assert torques.command(step, joints, np.full((1, 9), 0.2)) == pytest.approx(0.25)


def test_a_tip_delta_moves_the_tips_by_it():
    joints = np.array([robot.REST])
    step = np.tile((0.01, 0.0, 0.02), 3)[None]
    control = robot.RobotControl(mode="delta_end_effector_positions", normalized=False)
    moved = robot.tip_positions(control.command(step, joints, joints))
    assert moved == pytest.approx(robot.tip_positions(joints) + step, abs=1e-9)


def test_a_tip_told_to_stay_keeps_its_target():
    joints = np.array([robot.REST])
    last = joints + 0.02
    control = robot.RobotControl(mode="end_effector_positions", normalized=False)
    here = robot.tip_positions(joints)
    assert np.array_equal(control.command(here, joints, last), last)
    assert not np.array_equal(control.command(here + 1e-3, joints, last), last)


def test_only_tip_commands_lag():
    assert robot.RobotControl(mode="end_effector_positions").servo_lag == robot.TIP_LAG
    assert robot.RobotControl(mode="delta_end_effector_positions").servo_lag == robot.TIP_LAG
    assert robot.RobotControl(mode="joint_positions").servo_lag == 0


def test_unknown_mode_is_refused_by_name():
    with pytest.raises(UnknownNameError, match="joint_positions"):
        robot.RobotControl(mode="joint_position")


def test_action_of_the_wrong_length_is_refused():
    joints = np.array([robot.REST])
    with pytest.raises(InvalidValueError, match=r"an action has 9 entries, got shape \(1, 8\)"):
        robot.RobotControl().command(np.zeros((1, 8)), joints, joints)


WORLDS = 24
MASSES = np.random.default_rng(9).uniform(0.02, 0.2, (3, 3))
SCENE = ArenaScene(
    blocks=(Block(size=(0.05, 0.07, 0.09), mass=0.05), Block(position=(0.1, 0.1, 0.2))),
    link_masses=tuple(tuple(row) for row in MASSES.tolist()),
)


def law_of(scene, worlds):
    mass = np.tile([block.mass for block in scene.blocks], (worlds, 1))
    size = np.tile([block.size for block in scene.blocks], (worlds, 1, 1))
    links = np.tile(np.array(scene.link_masses), (worlds, 1, 1))
    return drag_law(links, mass, box_inertia(mass, size))


@pytest.fixture(scope="module")
def motion():
    rng = np.random.default_rng(0)
    qpos = np.zeros((WORLDS, 9 + 14))
    qpos[:, :9] = rng.uniform(*action_bounds("joint_positions"), (WORLDS, 9))
    for block in range(2):
        turn = rng.normal(size=(WORLDS, 4))
        start = 12 + 7 * block
        qpos[:, start : start + 4] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    return qpos, rng.normal(0, 3, (WORLDS, 9 + 12))


def drag(law, qpos, qvel):
    out = np.full(qvel.shape, np.nan)
    add_drag(law, qpos, qvel, out)
    return out


def test_forces_are_those_of_the_law_on_every_body(motion):
    model = compile_scene(SCENE)
    data = mujoco.MjData(model)
    found = drag(law_of(SCENE, WORLDS), *motion)
    for i in range(WORLDS):
        data.qpos[:], data.qvel[:] = motion[0][i], motion[1][i]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        expected = np.zeros(model.nv)
        for body in range(model.nbody):
            _push(model, data, body, expected)
        assert found[i] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def _push(model, data, body, total):
    """Adds the joint forces of the drag on one body, by the simulator's own means."""
    if model.body_mass[body] == 0:
        return
    strength = BLOCK_DRAG if model.body(body).name.startswith("block") else LINK_DRAG
    velocity = np.zeros(6)
    kind = mujoco.mjtObj.mjOBJ_BODY
    mujoco.mj_objectVelocity(model, data, kind, body, velocity, 0)
    spin, slide = velocity[:3], velocity[3:]
    axes = data.ximat[body].reshape(3, 3)
    inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
    force = -model.body_mass[body] * slide * strength * (1 + np.linalg.norm(slide))
    torque = -inertia @ spin * strength * (1 + np.linalg.norm(spin))
    mujoco.mj_applyFT(model, data, force, torque, data.xipos[body], body, total)


def test_masses_that_change_are_followed_in_the_arrays_that_a_recording_reads(motion):
    arrays = pytest.importorskip("torch").as_tensor
    mass, size = np.tile([b.mass for b in SCENE.blocks], (WORLDS, 1)), np.full((WORLDS, 2, 3), 0.06)
    links, out = np.tile(np.array(SCENE.link_masses), (WORLDS, 1, 1)), np.zeros((WORLDS, 21))
    acting = RecordedDrag(*(arrays(a) for a in motion), arrays(out))
    read = None
    for factor in (1.0, 3.0):
        given = links, factor * mass, box_inertia(factor * mass, size)
        acting.follow(drag_law(*(arrays(a) for a in given)))()
        assert out == pytest.approx(drag(drag_law(*given), *motion), abs=1e-15)
        assert read is None or acting._law.blocks is read
        read = acting._law.blocks


def test_drag_takes_energy_away(motion):
    qpos, qvel = motion
    power = (drag(law_of(SCENE, WORLDS), qpos, qvel) * qvel).sum(axis=1)
    assert (power < 0).all()


def test_a_scene_without_blocks():
    links = np.tile([link.mass for link in HINGED], (3, 3, 1))
    law = drag_law(links, np.zeros((3, 0)), np.zeros((3, 0, 3)))
    qvel = np.zeros((3, 9))
    qvel[:, 0] = 1.0
    force = drag(law, np.zeros((3, 9)), qvel)
    assert (force[:, 0] < 0).all()
    assert (force[:, 3:] == 0).all()
