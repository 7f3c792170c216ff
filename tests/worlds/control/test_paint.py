"""A look written into a compiled model shows what a model built with it shows."""

import mujoco
import numpy as np
import pytest

import interverse as iv
from interverse.scm import Binding, Box, Variable
from interverse.sim.drawing import QUALITIES, open_drawing
from interverse.worlds.control import variables as variables_module
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import open_gallery
from interverse.worlds.control.looks import draw_look
from tests.conformance.cases import TEXTURES
from tests.worlds.control.rebuild import rebuilt_model

GALLERY = open_gallery(str(TEXTURES))
SEEDS = (0, 4242, -5)


@pytest.mark.parametrize("domain", DOMAINS)
def test_edited_equals_rebuilt_pixel_for_pixel(domain):
    """One world takes three looks in turn; each picture equals that of a model compiled with it."""
    task = DOMAINS[domain].tasks[0]
    env = iv.make(
        f"control/{domain}_{task}-v1", frame_stack=1, textures=str(TEXTURES), dynamics_seed=2
    )
    seen = []
    for seed in SEEDS:
        edited, _ = env.reset(seed=0, options={"visual_seed": seed})
        stage = env.world._stages[0]
        model = rebuilt_model(domain, draw_look(domain, seed, GALLERY), GALLERY)
        _copy_task_fields(stage.physics.model.ptr, model)
        data = mujoco.MjData(model)
        data.qpos[:] = stage.physics.data.qpos
        mujoco.mj_forward(model, data)
        drawing = open_drawing(model, size=(84, 84), quality=QUALITIES["default"])
        camera = model.camera(DOMAINS[domain].camera).id
        rebuilt = drawing.picture(model, data, camera).transpose(2, 0, 1)
        assert np.array_equal(edited, rebuilt), seed
        seen.append(edited)
    assert len({picture.tobytes() for picture in seen}) == len(SEEDS)
    env.close()


def _copy_task_fields(source, target):
    """What the suite's task wrote where the episode began is no part of the look."""
    for name in ("geom_pos", "geom_size", "geom_rgba", "site_pos", "site_size", "site_rgba"):
        np.copyto(getattr(target, name), getattr(source, name))


def test_a_new_look_with_a_binding_acts_by_its_declaration_alone(monkeypatch):
    """A field of the camera, one of several materials, and a factor on a visual option."""
    view = _look("camera/fovy", Binding("cam_fovy", "side"), default=45.0, high=120.0)
    shine = _look("gloss", Binding("mat_emission", ("self", "grid")), default=0.0)
    reach = _look("camera/reach", Binding("vis.map.zfar", relative=True), default=1.0)
    monkeypatch.setattr(variables_module, "SHARED", (*variables_module.SHARED, view, shine, reach))
    variables_module.control_variables.cache_clear()
    env = iv.make("control/walker_walk-v1", frame_stack=1, dynamics_seed=0)
    plain, _ = env.reset(seed=0)
    for name, value in (("camera/fovy", 80.0), ("gloss", 0.9), ("camera/reach", 0.02)):
        env.do({name: value}, check=False)
        env.step(np.zeros(6))
        edited, _ = env.reset(seed=0, options={"do": {name: value}})
        assert not np.array_equal(edited, plain), name
        back, _ = env.reset(seed=0)
        assert np.array_equal(back, plain), f"{name} outlives its episode"
    env.close()
    variables_module.control_variables.cache_clear()


def _look(name, binding, *, default, high=1.0):
    box, at = Box(0.0, high), np.array(default)
    return Variable(name=name, kind="appearance", default=at, domain=box, bindings=(binding,))


def test_the_floor_is_chosen_where_the_look_is_written_and_before_anything_is_drawn():
    env = iv.make("control/walker_walk-v1", observation="state", dynamics_seed=0)
    env.reset(seed=0)
    model = env.world.stage(0).physics.model.ptr
    used = [model.mat_texid.copy()]
    for color in ([0.9, 0.1, 0.1], [0.1, 0.2, 0.3]):  # the last is the default
        env.do({"floor/color_1": np.array(color)})
        used.append(model.mat_texid.copy())
    env.close()
    assert not np.array_equal(used[0], used[1])
    assert np.array_equal(used[0], used[2])
