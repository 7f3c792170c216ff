"""Names remembered: keys give what dm_control's own indexers give; closed worlds are freed."""

import gc
import weakref

import numpy as np
import pytest

import interverse as iv
from interverse.sim.drawing import _KEPT
from interverse.worlds.control.suite import RememberedNames, new_physics, template, wrapper

KEYS = {
    "xpos": ["torso", ("torso", "z"), (["torso", "left_foot"], "x"), (slice(1, None), ["x", "z"])],
    "qpos": ["rootz", 0, [0, 1], slice(None, 3), ["rootx", "right_hip"]],
    "xmat": [("torso", "zz"), (slice(1, None), ["xx", "xz"]), 1],
}


@pytest.fixture(scope="module")
def pair():
    made = template("walker", "walk")
    return new_physics(made), made.physics_type.from_model(wrapper.MjModel(made.model))


@pytest.mark.parametrize(("field", "key"), [(f, k) for f, keys in KEYS.items() for k in keys])
def test_keys_mean_the_same(pair, field, key):
    ours, theirs = (getattr(physics.named.data, field) for physics in pair)
    assert isinstance(ours, RememberedNames)
    for height in (0.5, 0.75):  # translated, then remembered: each time what the physics has now
        for physics in pair:
            physics.named.data.qpos["rootz"] = height
            physics.forward()
        np.testing.assert_array_equal(ours[key], theirs[key])
        views = [
            np.shares_memory(names[key], getattr(physics.data, field))
            for names, physics in zip((ours, theirs), pair, strict=True)
        ]
        assert views[0] == views[1]  # a copy where dm_control's is one
        assert type(ours[key]) is type(theirs[key])


def test_names_can_be_written_through_and_unknown_ones_raise(pair):
    physics, _ = pair
    physics.named.data.qpos["rootz"] = 0.25
    assert physics.named.data.qpos["rootz"] == 0.25
    assert 0.25 in physics.data.qpos
    with pytest.raises(KeyError):
        physics.named.data.xpos["no_such_body"]


def test_closed_worlds_leave_nothing_behind():
    models, drawings = [], []
    gc.collect()
    gc.disable()  # nothing may wait for a collection: it does not know how large a model is
    try:
        for size in range(8, 38):  # every size needs a drawing of its own
            env = iv.make("control/cartpole_balance-v1", image_size=size, quality="fast")
            env.reset(seed=0)
            stage = env.unwrapped.driver.world._stages[0]
            models.append(weakref.ref(stage.physics.model))
            drawings += [weakref.ref(drawing) for drawing in stage._drawings.values()]
            env.close()
            del env, stage
        assert not [model for model in models if model() is not None]
        assert len(drawings) == 30
        assert sum(drawing() is not None for drawing in drawings) <= _KEPT
    finally:
        gc.enable()
