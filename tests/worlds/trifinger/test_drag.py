"""The drag law against the simulator's own velocities and Jacobians."""

import mujoco
import numpy as np
import pytest

from interverse.worlds.trifinger.drag import BLOCK_DRAG, LINK_DRAG, RecordedDrag, add_drag, drag_law
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.robot import HINGED, action_bounds
from interverse.worlds.trifinger.scene import ArenaScene, Block, box_inertia

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
