"""Drawings of a model: equal to MuJoCo's own renderer, unmoved by other contexts, lent again."""

import mujoco
import numpy as np
import pytest

from interverse.sim import gl
from interverse.sim.drawing import QUALITIES, open_drawing
from interverse.sim.single import SingleWorld
from interverse.sim.studio import DrawingStage

SIZE = (40, 60)
SCENE = """
<mujoco>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".4 .6 .8" width="64" height="64"/>
    <texture name="other" type="skybox" builtin="flat" rgb1="1 0 0" width="64" height="64"/>
  </asset>
  <worldbody>
    <light pos="0 0 3"/>
    <camera pos="0 -2 1" xyaxes="1 0 0 0 .4 1"/>
    <geom type="plane" size="2 2 .1" rgba=".3 .4 .5 1"/>
    <body pos="0 0 .4"><freejoint/><geom type="box" size=".2 .2 .2" rgba=".8 .4 .2 1"/></body>
  </worldbody>
  <sensor><accelerometer site="s"/></sensor>
</mujoco>
""".replace('rgba=".8 .4 .2 1"/>', 'rgba=".8 .4 .2 1"/><site name="s"/>')


@pytest.fixture
def world():
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def test_it_draws_what_mujoco_draws(world):
    model, data = world
    gl.backend()
    ours = open_drawing(model, size=SIZE, quality=QUALITIES["full"])
    model.vis.quality.shadowsize, model.vis.quality.offsamples = 2048, 4
    theirs = mujoco.Renderer(model, *SIZE)
    for _ in range(2):  # in turn: neither may disturb the other's context
        theirs.disable_depth_rendering()
        theirs.disable_segmentation_rendering()
        theirs.update_scene(data, camera=0)
        assert np.array_equal(ours.picture(model, data, 0), theirs.render())
        theirs.enable_depth_rendering()
        np.testing.assert_allclose(
            ours.picture(model, data, 0, "depth"), theirs.render(), rtol=1e-4
        )
        theirs.enable_segmentation_rendering()
        ids, kinds = np.moveaxis(theirs.render(), -1, 0)
        geoms = np.where(kinds == int(mujoco.mjtObj.mjOBJ_GEOM), ids, -1)
        assert np.array_equal(ours.picture(model, data, 0, "segmentation"), geoms)
    theirs.close()


def test_a_sky_can_be_chosen(world):
    model, data = world
    ours = open_drawing(model, size=SIZE, quality=QUALITIES["fast"])
    first = ours.picture(model, data, 0)
    ours.choose_sky((0, 1), 1)
    assert ours.picture(model, data, 0)[0, 0].tolist() == [255, 0, 0]
    ours.choose_sky((0, 1), 0)
    assert np.array_equal(ours.picture(model, data, 0), first)


def test_closed_drawings_are_lent_again_to_the_same_key(world):
    model, _ = world
    options = {"size": SIZE, "quality": QUALITIES["fast"]}
    one = open_drawing(model, key="scene", **options)
    one.close()
    assert open_drawing(model, key="other", **options) is not one
    assert open_drawing(model, key="scene", **options) is one
    assert open_drawing(model, key="scene", **options) is not one


def test_a_moment_holds_sensors_of_the_step_before(world):
    model, data = world
    for _ in range(5):
        mujoco.mj_step(model, data)
    mujoco.mj_step1(model, data)
    single = SingleWorld(model, data)
    moment, felt = single.save(), data.sensordata.copy()
    ahead = []
    for _ in range(3):
        mujoco.mj_step(model, data)
        ahead.append(data.qpos.copy())
    single.load(moment)
    assert np.array_equal(data.sensordata, felt)
    for place in ahead:
        mujoco.mj_step(model, data)
        assert np.array_equal(data.qpos, place)


def test_a_stage_draws_shadows_where_things_are_now():
    """The shadow map is kept from picture to picture: never a map of another scene."""
    text = SCENE.replace("<freejoint/>", "").replace('<site name="s"/>', "")
    text = text.replace('<sensor><accelerometer site="s"/></sensor>', "")
    scenes = [
        {},
        {"body_pos": np.array([[0, 0, 0], [0.5, 0, 0.4]])},
        {"light_pos": np.array([[1.0, 0, 3]])},
        {"geom_rgba": np.array([[0.3, 0.4, 0.5, 1], [0.8, 0.4, 0.2, 0.3]])},
        {"light_diffuse": np.array([[0.2, 0.2, 0.2]])},
        {"geom_group": np.array([0, 5])},
    ]

    def picture(stage, edits):
        return stage.draw(edits, qpos=np.zeros(0), size=48).rgb

    fresh = [picture(DrawingStage(mujoco.MjModel.from_xml_string(text)), e) for e in scenes]
    assert len({p.tobytes() for p in fresh}) == len(scenes)
    stage = DrawingStage(mujoco.MjModel.from_xml_string(text))
    for at in (0, 0, 1, 1, 0, 2, 4, 4, 0, 3, 0, 5, 5, 0, 1):
        np.testing.assert_array_equal(picture(stage, scenes[at]), fresh[at])
