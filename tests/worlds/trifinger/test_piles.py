"""Scenes of many blocks are solved with softer friction: what that may and may not change."""

import math

import mujoco
import numpy as np
import pytest

from interverse.worlds.trifinger import robot
from interverse.worlds.trifinger.contacts import FEW_BLOCKS, PILE, contacts, solving
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.scene import ArenaScene, Block

EDGE = 0.035
SECOND = round(1 / robot.SUBSTEP)


def cube(x, y, z, **more):
    return Block(position=(x, y, z), size=(EDGE,) * 3, mass=0.08, **more)


def stairs(step):
    """Three levels of twelve, each a step further out than the one below."""
    places = [(i, j, k) for k in range(3) for i in range(4) for j in range(3)]
    return tuple(
        cube(-0.06 + 0.04 * i + step * k, -0.04 + 0.04 * j, EDGE * (k + 0.5)) for i, j, k in places
    )


def bricks():
    """A wall of two rows, and a cube that leans on another."""
    low = [cube(-0.09 + 0.036 * i, 0.1, EDGE / 2) for i in range(6)]
    high = [cube(-0.072 + 0.036 * i, 0.1, 1.5 * EDGE) for i in range(5)]
    tilt = (0, math.sin(0.2), 0, math.cos(0.2))
    return (*low, *high, cube(0.05, -0.05, EDGE / 2), cube(0.07, -0.05, 0.03, orientation=tilt))


PILES = {"tower": stairs(0.0), "stairs": stairs(0.008), "bricks": bricks()}


def settled(model, seconds):
    data = mujoco.MjData(model)
    data.qpos[:9] = data.ctrl[:9] = robot.REST
    mujoco.mj_step(model, data, nstep=seconds * SECOND)
    return data


def places(data):
    return data.qpos[9:].reshape(-1, 7)[:, :3].copy()


def exact(model):
    """Returns the same model solved as scenes of few blocks are."""
    how = FEW_BLOCKS
    model.opt.impratio, model.opt.iterations = how.impratio, how.iterations
    model.opt.tolerance = how.tolerance
    return model


@pytest.mark.parametrize("name", PILES)
def test_a_pile_rests_where_stiff_friction_would_hold_it(name):
    scene = ArenaScene(blocks=PILES[name])
    soft, stiff = settled(compile_scene(scene), 2), settled(exact(compile_scene(scene)), 2)
    assert np.abs(places(soft) - places(stiff)).max() < 5e-5
    assert np.abs(soft.qvel[9:]).max() < 5e-3  # m/s and rad/s: no jitter
    assert min(contact.dist for contact in soft.contact) > -1e-4


def on_a_slope(share):
    """Returns how far blocks get in a second on a floor tilted to a share of what would hold."""
    model = compile_scene(ArenaScene(blocks=PILES["tower"][:12]))
    angle = math.atan(0.5 * share)
    model.opt.gravity[:] = (9.81 * math.sin(angle), 0, -9.81 * math.cos(angle))
    return np.abs(places(settled(model, 2)) - places(settled(model, 1))).max()


def test_friction_holds_up_to_its_coefficient():
    assert on_a_slope(0.9) < 2e-4
    assert on_a_slope(1.02) > 0.02


def test_ten_blocks_are_solved_as_one_is():
    ten, eleven = (ArenaScene(blocks=PILES["tower"][:count]) for count in (10, 11))
    assert solving(ten) is solving(ArenaScene()) is FEW_BLOCKS
    assert solving(eleven) is PILE


def test_fingers_grip_in_a_pile_as_firmly():
    """What friction yields to a force is impedance over impratio, so the grip's makes up for it."""
    yields = [(1 - how.grip) / how.grip / how.impratio for how in (FEW_BLOCKS, PILE)]
    assert yields[1] == pytest.approx(yields[0], rel=0.02)
    scene = ArenaScene(blocks=PILES["tower"])
    model = compile_scene(scene)
    found = {c.name: model.pair(c.name).solimp[:2].tolist() for c in contacts(scene) if c.grips}
    assert len(found) == 12 * 36
    assert set(map(tuple, found.values())) == {(PILE.grip,) * 2}
