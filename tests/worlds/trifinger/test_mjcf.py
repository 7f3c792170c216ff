"""The MuJoCo model of a scene: names, contacts, walls, parked blocks, meshes, sensors, looks."""

import dataclasses
import math

import mujoco
import numpy as np
import pytest
from mujoco.batch import Batch

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.worlds.trifinger import robot
from interverse.worlds.trifinger.contacts import (
    FEW_BLOCKS,
    FINGERS,
    PILE,
    contacts,
    solving,
    surface_frictions,
    touch_sensors,
)
from interverse.worlds.trifinger.mjcf import compile_scene
from interverse.worlds.trifinger.scene import (
    FLOOR_TEXTURES,
    WALL_RADIUS,
    ArenaScene,
    Block,
    BlockMesh,
    Goal,
    Obstacle,
    box_inertia,
    parking_position,
)


def pair_frictions(pairs, surfaces):
    """Products of the frictions of the surfaces that meet, (worlds, pairs)."""
    return np.stack([surfaces[one] * surfaces[two] for one, two in (p.surfaces for p in pairs)], -1)


PUSHING = ArenaScene(
    blocks=(Block(position=(0.0, -0.08, 0.0325), mass=0.02),),
    goals=(Goal(position=(0, 0.08, 0.03)),),
)
TETRAHEDRON = BlockMesh.from_points(
    [(0, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 3)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
)


def simulate(scene, substeps, start=robot.RAISED, edit=None):
    model = compile_scene(scene)
    data = mujoco.MjData(model)
    data.qpos[:9] = start
    data.ctrl[:9] = start
    if edit is not None:
        edit(data)
    mujoco.mj_step(model, data, nstep=substeps)
    mujoco.mj_forward(model, data)
    return model, data


def test_elements_have_the_names_that_variables_use():
    scene = dataclasses.replace(PUSHING, obstacles=(Obstacle(),))
    model = compile_scene(scene)
    for name in (
        "finger_0",
        "finger_2_upper",
        "finger_1_tip",
        "robot",
        "stage",
        "block_0",
        "goal_0",
    ):
        assert model.body(name).name == name
    for name in (
        "floor",
        "stage",
        "finger_0_base",
        "finger_2_lower",
        "block_0",
        "goal_0",
        "obstacle",
    ):
        assert model.material(name).name == name
    for name in ("floor:block_0", "stage_3:block_0", "finger_0_tip:block_0", "obstacle:block_0"):
        assert model.pair(name).name == name
    assert [model.joint(i).name for i in range(9)] == [
        f"{finger}_{link.name}" for finger in FINGERS for link in robot.HINGED
    ]
    assert [model.actuator(i).name for i in range(9)] == [model.joint(i).name for i in range(9)]
    assert model.joint("block_0").qposadr == 9
    assert model.body("goal_0").mocapid >= 0
    assert model.body("obstacle").mocapid >= 0


def test_every_geom_has_a_name_and_a_group():
    scene = dataclasses.replace(PUSHING, obstacles=(Obstacle(),))
    model = compile_scene(scene)
    assert all(model.geom(i).name for i in range(model.ngeom))
    assert model.geom("block_0").group == 1
    assert model.geom("obstacle").group == 1
    assert model.geom("goal_0").group == 2
    assert model.geom("finger_0_lower").group == 3
    assert model.geom("finger_0_lower_cover").group == 0


def test_effective_inertias_and_their_scaling():
    masses = ((0.03, 0.05, 0.02),) * 3
    model = compile_scene(ArenaScene(link_masses=masses))
    for link, mass in zip(robot.HINGED, masses[0], strict=True):
        body = model.body(f"finger_1_{link.name}")
        assert body.mass == mass
        assert body.inertia == pytest.approx(np.array(link.inertia) * mass / link.mass)
    assert compile_scene(ArenaScene()).body("finger_0_lower").inertia == pytest.approx(
        robot.LINKS[2].inertia
    )


def test_frictions_of_many_worlds_are_those_of_the_model():
    scene = ArenaScene(
        blocks=(Block(friction=0.9), Block(position=(0.1, 0, 0.03))),
        goals=(Goal(),),
        obstacles=(Obstacle(friction=0.4), Obstacle(name="bar", position=(0, 0.1, 0.03))),
        floor_friction=0.7,
    )
    surfaces = {name: np.full(3, value) for name, value in surface_frictions(scene).items()}
    found = pair_frictions(contacts(scene), surfaces)
    model = compile_scene(scene)
    names = [pair.name for pair in contacts(scene)]
    assert names == [model.pair(i).name for i in range(model.npair)]
    assert np.array_equal(found, np.tile(model.pair_friction[:, 0], (3, 1)))


@pytest.mark.parametrize("direction", np.linspace(0, 2 * np.pi, 7)[:-1])
def test_a_block_never_leaves_the_wall(direction):
    def throw(data):
        data.qvel[9:12] = 3 * np.cos(direction), 3 * np.sin(direction), 2.0

    scene = ArenaScene(blocks=(Block(mass=0.02, size=(0.04,) * 3, position=(0, 0, 0.1)),))
    _, data = simulate(scene, 400, edit=throw)
    place = data.body("block_0").xpos
    assert np.hypot(place[0], place[1]) < WALL_RADIUS
    assert place[2] == pytest.approx(robot.DATUM + 0.02, abs=5e-3)


def test_a_finger_is_stopped_by_the_wall():
    target = np.array([0.0, 1.0, 0.0] * 3)  # beyond the wall, below its rim
    assert np.hypot(*robot.tip_positions(target)[:2]) > WALL_RADIUS
    model, data = simulate(ArenaScene(), 500, start=robot.REST)
    data.ctrl[:9] = target
    mujoco.mj_step(model, data, nstep=500)
    for finger in FINGERS:
        assert np.hypot(*data.body(f"{finger}_tip").xpos[:2]) < WALL_RADIUS
        touching = {model.geom(int(g)).name[:9] for pair in data.contact.geom for g in pair}
        assert "stage_box" in touching


def test_a_finger_can_reach_over_the_wall():
    target = np.array([0.0, 1.5, 0.0] * 3)  # stretched out above the rim
    _, data = simulate(ArenaScene(), 500, start=target)
    assert np.hypot(*data.body("finger_0_tip").xpos[:2]) > WALL_RADIUS + 0.05
    assert data.ncon == 0


def test_spare_blocks_wait_high_up_unseen_and_untouched():
    scene = dataclasses.replace(PUSHING, max_blocks=4, max_goals=3)
    assert (scene.block_count, scene.goal_count) == (4, 3)
    model, data = simulate(scene, 500)
    for i in range(1, 4):
        x, y, z = parking_position(i)
        assert data.body(f"block_{i}").xpos == pytest.approx((x, y, z + robot.DATUM), abs=1e-9)
        assert model.material(f"block_{i}").rgba[3] == 0
    assert model.material("goal_2").rgba[3] == 0
    touching = {model.geom(int(g)).name for pair in data.contact.geom for g in pair}
    assert not touching & {"block_1", "block_2", "block_3"}


def test_mesh_blocks_and_goals_rest_on_the_floor():
    scene = ArenaScene(
        blocks=(Block(mesh=TETRAHEDRON, size=(0.08, 0.07, 0.06), position=(0, -0.08, 0.05)),),
        goals=(Goal(mesh=TETRAHEDRON, position=(0, 0.08, 0.05)),),
    )
    model, data = simulate(scene, 500)
    assert model.geom("block_0").type == mujoco.mjtGeom.mjGEOM_MESH
    expected = box_inertia(np.array(0.08), np.array([0.08, 0.07, 0.06]))
    assert model.body("block_0").inertia == pytest.approx(expected)
    assert model.body("block_0").ipos == pytest.approx([-0.02, -0.0175, -0.015])
    assert data.body("block_0").xpos[2] == pytest.approx(robot.DATUM + 0.03, abs=2e-3)
    assert np.abs(data.qvel[9:]).max() < 0.02


def test_a_mesh_fills_the_unit_box_or_is_refused():
    vertices = [(0, 0, 0), (2, 0, 0), (2, 4, 0), (0, 4, 0), (0, 0, 1)]
    mesh = BlockMesh.from_points(vertices, [(0, 3, 2), (0, 2, 1), (0, 1, 4), (1, 2, 4)])
    assert np.array(mesh.vertices).min(axis=0) == pytest.approx(-0.5)
    assert np.array(mesh.vertices).max(axis=0) == pytest.approx(0.5)
    with pytest.raises(InvalidValueError, match="the mesh is flat"):
        BlockMesh.from_points([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], [(0, 1, 2)])


def test_sensors_report_depth_and_force_of_every_pair():
    scene = dataclasses.replace(PUSHING, sensors=True)
    model, data = simulate(scene, 250)
    assert ("floor", "block_0") in touch_sensors(scene)
    count, depth = data.sensor("touch:floor:block_0").data
    assert count == 4
    assert -1e-3 < depth < 0
    weight = data.sensor("force:floor:block_0").data
    assert weight == pytest.approx([0, 0, 0.02 * 9.81], abs=1e-3)
    assert data.sensor("touch:finger_0:block_0").data[0] == 0
    assert model.nsensor == 2 * len(touch_sensors(scene))


def test_a_lagging_servo_approaches_its_control():
    model = compile_scene(ArenaScene(servo_lag=0.05))
    data = mujoco.MjData(model)
    data.ctrl[:9] = 1.0
    mujoco.mj_step(model, data, nstep=25)
    assert data.act == pytest.approx(1 - np.exp(-25 * robot.SUBSTEP / 0.05))


def test_torque_scene_has_motors():
    model = compile_scene(ArenaScene(torques=True))
    data = mujoco.MjData(model)
    data.ctrl[:9] = 5.0
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator[:9] == pytest.approx(robot.TORQUE_LIMIT)


@pytest.mark.parametrize("texture", FLOOR_TEXTURES)
def test_all_floor_textures_are_in_every_model(texture):
    model = compile_scene(ArenaScene(floor_texture=texture))
    role = int(mujoco.mjtTextureRole.mjTEXROLE_RGB)
    chosen = model.material("floor").texid[role]
    assert chosen == (-1 if texture == "plain" else model.texture(f"floor_{texture}").id)
    assert all(model.texture(f"floor_{name}").id >= 0 for name in FLOOR_TEXTURES[1:])


def test_realistic_look_is_grey():
    model = compile_scene(ArenaScene(look="realistic"))
    assert model.material("finger_1_middle").rgba[:3] == pytest.approx(0.38)
    assert compile_scene(ArenaScene()).material("finger_1_middle").rgba[:3] == pytest.approx(
        (0, 0.6, 0)
    )


def test_wrong_scenes_are_refused():
    with pytest.raises(UnknownNameError, match="unknown look 'realistc'"):
        ArenaScene(look="realistc")
    with pytest.raises(UnknownNameError, match="unknown floor texture 'marble'"):
        ArenaScene(floor_texture="marble")
    with pytest.raises(UnknownNameError, match="unknown drag 'none'"):
        ArenaScene(drag="none")
    with pytest.raises(InvalidValueError, match="max_blocks=0 is less than the 1 given"):
        dataclasses.replace(PUSHING, max_blocks=0)
    with pytest.raises(InvalidValueError, match="a block's mass must be > 0"):
        Block(mass=0.0)
    with pytest.raises(InvalidValueError, match="a goal's size must be > 0"):
        Goal(size=(0.1, 0.0, 0.1))


def test_a_world_needs_little_memory():
    assert Batch(compile_scene(PUSHING), 2, nthread=1).nstate * 8 < 60_000


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
