"""Shapes are what MuJoCo would draw: its places, sizes and colours, hidden groups left out."""

import mujoco
import numpy as np
import pytest

from interverse.envs import make, make_vec
from interverse.scm import Binding
from interverse.sim import Scene, make_engine
from interverse.sim.shapes import Shapes

MODEL = """
<mujoco>
  <asset>
    <texture name="squares" type="2d" builtin="checker" width="8" height="4" rgb1="1 0 0"/>
    <material name="tiles" texture="squares" texrepeat="2 3" texuniform="true"/>
    <material name="blue" rgba="0 0 1 1"/>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
  </asset>
  <worldbody>
    <geom name="ground" type="plane" size="2 1 .1" material="tiles"/>
    <geom name="endless" type="plane" size="0 0 .1" pos="0 0 -1"/>
    <body name="arm" pos="0 0 1" euler="0 90 0">
      <joint name="turn" type="hinge"/>
      <geom name="rod" type="capsule" size=".05 .4" material="blue"/>
      <geom name="hidden" type="box" size=".1 .1 .1" group="3"/>
      <geom name="clear" type="box" size=".1 .1 .1" rgba="1 1 1 0"/>
      <geom name="corner" type="mesh" mesh="wedge" rgba="0 1 0 .5"/>
      <site name="tip" pos="0 0 .4" size=".02"/>
    </body>
  </worldbody>
</mujoco>
"""


def read():
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data, {shape.name: shape for shape in Shapes(model).read(model, data)}


def test_places_are_mujocos():
    _, data, shapes = read()
    assert set(shapes) == {
        "geom/ground",
        "geom/endless",
        "geom/rod",
        "geom/corner",
        "site/tip",
    }
    rod = shapes["geom/rod"]
    assert rod.kind == "capsule"
    assert rod.size == pytest.approx([0.05, 0.05, 0.4])
    assert rod.rgba.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert shapes["site/tip"].position == pytest.approx(data.site("tip").xpos, abs=1e-6)
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, shapes["geom/corner"].rotation)
    assert matrix == pytest.approx(data.geom("corner").xmat, abs=1e-6)
    assert shapes["geom/corner"].rgba[3] == 0.5


def test_meshes_and_textures_come_along():
    _, _, shapes = read()
    corner = shapes["geom/corner"]
    assert corner.mesh.vertices.shape == (4, 3)
    assert corner.mesh.faces.shape == (4, 3)
    ground = shapes["geom/ground"].texture
    assert ground.pixels.shape == (4, 8, 3)
    assert (ground.pixels == [255, 0, 0]).all(axis=-1).mean() == 0.5
    assert ground.repeat == pytest.approx((8.0, 6.0))  # per metre, 4 m by 2 m
    assert shapes["geom/endless"].texture is None
    assert (shapes["geom/endless"].size[:2] == 10.0).all()


def test_each_world_has_its_own_shapes():
    engine = make_engine(Scene(model=MODEL), num_worlds=2)
    engine.write([(Binding("geom_size", "rod", 0), np.array([0.2]))], np.array([1]))
    engine.set_joints(("turn",), np.array([1]), position=np.array([[1.0]]))
    one, two = ({s.name: s for s in engine.shapes(world)} for world in (0, 1))
    assert (one["geom/rod"].size[0], two["geom/rod"].size[0]) == pytest.approx((0.05, 0.2))
    assert not np.allclose(one["geom/corner"].rotation, two["geom/corner"].rotation)


def test_a_do_shows():
    venv = make_vec("trifinger/pushing-v1", num_envs=2)
    venv.reset(seed=0)
    venv.unwrapped.do({"block_0/size": [0.09, 0.08, 0.07], "block_0/color": [0, 0, 1]}, worlds=[1])
    block = {s.name: s for s in venv.unwrapped.world.shapes(1)}["geom/block_0"]
    assert 2 * block.size == pytest.approx([0.09, 0.08, 0.07])
    assert block.rgba.tolist() == [0.0, 0.0, 1.0, 1.0]
    other = {s.name: s for s in venv.unwrapped.world.shapes(0)}["geom/block_0"]
    assert 2 * other.size == pytest.approx([0.065] * 3)
    venv.close()


def test_looking_changes_nothing():
    seen, unseen = (make("control/reacher_easy-v1") for _ in range(2))
    for env in (seen, unseen):
        env.reset(seed=0, options={"visual_seed": 5})
    for _ in range(3):
        seen.world.shapes(0)
        action = np.full(2, 0.5, dtype=np.float32)
        first, second = seen.step(action)[0], unseen.step(action)[0]
        assert np.array_equal(first, second)
    floor = {s.name: s for s in seen.world.shapes(0)}["geom/ground"]
    assert floor.texture.pixels.std() > 1.0
    assert make("chemistry/chain-v1").world.shapes(0) == ()
    for env in (seen, unseen):
        env.close()
