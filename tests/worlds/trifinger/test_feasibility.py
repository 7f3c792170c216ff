"""Depths against MuJoCo's own distances, and the rules that refuse."""

import mujoco
import numpy as np
import pytest

import interverse as iv
from interverse.core.arrays import from_rotation_vector, to_mujoco
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.penetration import (
    BoxSet,
    _block_depths,
    link_segments,
    penetrations,
)
from interverse.worlds.trifinger.physics import Physics
from interverse.worlds.trifinger.robot import DATUM, HINGED, REST
from interverse.worlds.trifinger.scene import ArenaScene, Block, Obstacle

SCENE = ArenaScene(
    blocks=(
        Block(size=(0.05, 0.07, 0.09)),
        Block(position=(0.1, 0.0, 0.04), size=(0.08, 0.04, 0.06)),
    ),
    obstacles=(Obstacle(),),
)
NO_OBSTACLE = BoxSet((), *(np.zeros((1, 0, k)) for k in (3, 4, 3)), np.zeros((1, 0), dtype=bool))


@pytest.fixture(scope="module")
def physics():
    made = Physics(SCENE, num_worlds=1, options=TriFingerOptions(threads=1))
    yield made
    made.close()


def random_scene(rng):
    """Returns joints, and the poses of two blocks that often touch something."""
    low, high = np.array([link.limits for link in HINGED] * 3).T
    joints = rng.uniform(low, high) * 0.6
    place = rng.uniform((-0.15, -0.15, 0.0), (0.15, 0.15, 0.2), (2, 3))
    turn = from_rotation_vector(rng.uniform(-2, 2, (2, 3)))
    return joints, place, turn


def solids(place, turn, sizes, names):
    return BoxSet(
        names, place[None], turn[None], np.array(sizes)[None], np.ones((1, len(names)), bool)
    )


def test_depths_are_mujocos_distances(physics):
    """Where two convex shapes are apart both must give the distance; inside, MuJoCo's depth."""
    model = physics.model
    data = mujoco.MjData(model)
    capsules = physics.capsules()
    rng = np.random.default_rng(0)
    sizes = [b.size for b in SCENE.blocks]
    wall = solids(
        np.array([[0, 0, 0.0325]]), np.array([[0, 0, 0, 1.0]]), [(0.5, 0.015, 0.065)], ("obstacle",)
    )
    compared = 0
    for _ in range(60):
        joints, place, turn = random_scene(rng)
        blocks = solids(place, turn, sizes, ("block_0", "block_1"))
        found = penetrations(capsules, joints[None], np.array([0.34]), blocks, wall)
        data.qpos[:9] = joints
        world = place + np.array([0, 0, DATUM])
        data.qpos[9:] = np.concatenate([world, to_mujoco(turn)], axis=1).ravel()
        mujoco.mj_kinematics(model, data)
        for (a, b), depth in zip(found.pairs, found.depth[0], strict=True):
            if "stage" in (a, b) or "floor" in (a, b):
                continue
            ids = [model.geom(n.replace("/", "_")).id for n in (a, b)]
            theirs = mujoco.mj_geomDistance(model, data, ids[0], ids[1], 1.0, None)
            robot = a.startswith("finger")
            if theirs > 0 and robot:
                assert -depth == pytest.approx(theirs, abs=2e-4), (a, b)
            elif robot:
                assert depth > -2e-4, (a, b)
            else:  # boxes apart: the widest gap over the axes is no more than the distance
                assert (depth < 0) == (theirs > 1e-6) or abs(theirs) < 1e-4, (a, b)
                if theirs < -1e-4:
                    assert depth == pytest.approx(-theirs, abs=1e-3), (a, b)
            compared += 1
    assert compared > 3000


def test_a_finger_in_a_block_is_as_deep_as_geometry_says(physics):
    capsules = physics.capsules()
    segments = link_segments(capsules, np.array([REST]), np.array([0.34]))
    tip = segments[0, 0, 3, 0]
    place = tip - np.array(
        [0.0, 0.0, 0.03]
    )  # the tip's centre is 2.5 mm below the block's upper face
    block = solids(place[None], np.array([[0, 0, 0, 1.0]]), [(0.065,) * 3], ("block_0",))
    found = penetrations(capsules, np.array([REST]), np.array([0.34]), block, NO_OBSTACLE)
    depth = dict(zip(found.pairs, found.depth[0], strict=True))
    radius = capsules.radii[3]
    assert depth["finger_0/tip", "block_0"] == pytest.approx(radius + 0.0025, abs=1e-6)


def test_blocks_against_floor_and_wall():
    place = np.array([[0.0, 0.0, 0.02], [0.22, 0.0, 0.0325]])
    turn = np.array([[0, 0, 0, 1.0]] * 2)
    blocks = solids(place, turn, [(0.065,) * 3] * 2, ("block_0", "block_1"))
    depth = {
        pair: d
        for pairs, depths, _ in _block_depths(np, blocks, NO_OBSTACLE)
        for pair, d in zip(pairs, depths[0], strict=True)
    }
    assert depth["block_0", "floor"] == pytest.approx(0.0125)
    assert depth["block_1", "stage"] == pytest.approx(np.hypot(0.2525, 0.0325) - 0.242)


@pytest.fixture(scope="module")
def env():
    made = iv.make("trifinger/pushing-v1")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"block_0/cartesian_position": (0.0, 0.0, 0.0)}, ["block_0", "floor", "32.5 mm"]),
        ({"goal_0/cylindrical_position": (0.2, 0.78, 0.0325)}, ["goal_0", "inside the arena"]),
        ({"goal_0/cartesian_position": (0.0, 0.0, 0.02)}, ["goal_0", "12.5 mm below the floor"]),
        ({"joint_positions": np.zeros(9)}, ["finger_2", "block_0", "mm deep"]),
        ({"block_0/cartesian_position": (0.24, 0.0, 0.0325)}, ["block_0", "stage"]),
    ],
)
def test_a_refusal_names_the_pair_and_the_depth_and_changes_nothing(env, values, words):
    env.reset(seed=0)
    env.unwrapped.do(
        {"block_0/linear_velocity": (0.1, 0.2, 0.0), "block_0/angular_velocity": (0, 0, 1)}
    )
    before = env.unwrapped.snapshot().to_bytes()
    with pytest.raises(iv.InterventionError) as caught:
        env.unwrapped.do(values, check=False)
    assert all(word in caught.value.reason for word in words), caught.value.reason
    assert env.unwrapped.snapshot().to_bytes() == before


def test_what_was_as_bad_before_is_no_reason(env):
    """A scene that starts with a finger in a block can still be edited otherwise."""
    env.reset(seed=0)
    joints = env.unwrapped.values["joint_positions"]
    tip = env.unwrapped.values["end_effector_positions"][:3]
    world = env.unwrapped.world
    world._store.rows["block/position"][0, 0] = tip  # by hand: `do` would refuse it
    outcome = env.unwrapped.do({"robot/height": 0.345, "block_0/mass": 0.05})
    assert bool(outcome.applied)
    with pytest.raises(iv.InterventionError, match="finger_0/tip"):
        env.unwrapped.do({"block_0/size": (0.09, 0.09, 0.09), "joint_positions": joints})


@pytest.mark.parametrize(("share", "fits"), [(0.48, False), (0.52, True)])
def test_half_of_a_goal_must_lie_in_the_arena(share, fits):
    env = iv.make("trifinger/pushing-v1")
    env.reset(seed=0)
    edge = float(env.values["goal_0/size"][0])
    there = np.array([0.15 + edge * (0.5 - share), 0.0, edge / 2])
    level = np.array([0.0, 0.0, 0.0, 1.0])
    values = {"goal_0/cartesian_position": there, "goal_0/orientation": level}
    if fits:
        env.do(values)
    else:
        with pytest.raises(iv.InterventionError, match="inside the arena"):
            env.do(values)
    env.close()
