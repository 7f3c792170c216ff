"""Copies and pickles of environments go on as the original does, and apart from it."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.uniform import Uniform
from interverse.actors.wrappers import CurriculumEnv
from tests.envs.toy import ID, ensure_registered

ensure_registered()
HOWS = {"deepcopy": copy.deepcopy, "copy": copy.copy}
HOWS["pickle"] = lambda env: pickle.loads(pickle.dumps(env))
PUSHING = "trifinger/pushing-v1"
WORLDS = {
    ID: {},
    "tutorial/slider-v1": {"render_mode": "rgb_array"},
    PUSHING: {"skip_frame": 1, "defaults": {"block_0/mass": np.array(0.05)}},
    "chemistry/random-v1": {"objects": 3},
    "blocks/observed-5-v1": {"objects": 3},
    "control/cartpole_balance-v1": {"image_size": 24, "visual_seed": 3},
    "rooms/single-v1": {"image_size": 32},
}


def trace(env, steps):
    """Returns all that some steps of sampled actions give, and a reset after them."""
    out = []
    for _ in range(steps):
        out.append(env.step(env.action_space.sample()))
    return [*out, env.reset(), env.step(env.action_space.sample())]


def assert_same(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, tuple | list) or getattr(a, "dtype", None) == np.dtype(object):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_copy_goes_on_like_the_original(world, how):
    env = iv.make(world, **WORLDS[world])
    env.reset(seed=3)
    env.action_space.seed(5)
    env.np_random.random()
    if world != "rooms/single-v1":  # whose episodes have one step
        env.step(env.action_space.sample())
    twin = HOWS[how](env)
    assert (twin.spec, twin.render_mode) == (env.spec, env.render_mode)
    first = trace(env, 1)
    assert_same(trace(twin, 1), first)
    assert twin.np_random.random() == env.np_random.random()
    assert twin.np_random_seed == env.np_random_seed
    env.close()
    twin.close()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_copy_of_a_vector_goes_on_like_the_original(how, mode):
    venv = iv.make_vec(ID, num_envs=3, max_steps=3, autoreset_mode=mode)
    venv.reset(seed=3)
    venv.action_space.seed(5)
    venv.reset(options={"reset_mask": np.array([True, False, False])})
    for _ in range(3):
        venv.step(venv.action_space.sample())
    twin = HOWS[how](venv)
    first = trace(venv, 5)
    assert_same(trace(twin, 5), first)
    assert twin.metadata["autoreset_mode"] is venv.metadata["autoreset_mode"]


def test_before_the_first_reset_a_copy_is_a_new_environment():
    env = iv.make(ID, spread=0.3)
    twin = copy.deepcopy(env)
    assert twin.world.options.spread == 0.3
    assert_same(twin.reset(seed=1), env.reset(seed=1))
    with pytest.raises(iv.InterventionError):
        env.reset(seed=2, options={"do": {"gain": 99.0}})
    again = copy.deepcopy(env)
    assert_same(again.reset(), env.reset())


def test_a_copy_keeps_its_starting_state_and_its_curriculum():
    env = iv.make(PUSHING, skip_frame=1)
    env.world.set_starting_state({"block_0/mass": 0.04})
    env.driver.starting_values = {"floor/friction": 0.7}
    env.reset(seed=0)
    env.do({"gravity": -8.0})
    twin = copy.deepcopy(env)
    assert [entry.values.keys() for entry in twin.driver.log(0)] == [
        entry.values.keys() for entry in env.driver.log(0)
    ]
    twin.reset()
    assert float(twin.values["block_0/mass"]) == 0.04
    assert float(twin.values["floor/friction"]) == 0.7
    curriculum = Curriculum(stages=(Stage(actor=Uniform(patterns=("gain",))),), start="cumulative")
    under = CurriculumEnv(iv.make(ID), curriculum)
    under.reset(seed=0)
    other = copy.deepcopy(under)
    assert other.hook is other.unwrapped.driver.hook is not under.hook
    under.action_space.seed(0)
    other.action_space.seed(0)
    assert_same(trace(other, 2), trace(under, 2))
    assert float(other.unwrapped.values["gain"]) == float(under.unwrapped.values["gain"])


def test_a_copy_is_not_recorded_with_the_original():
    env = gym.make(f"interverse:{ID}")
    copies = []

    def act(seen):
        copies.append(copy.deepcopy(env))
        copies[-1].step(np.zeros(2, np.float32))
        copies[-1].unwrapped.do({"gain": 0.6})
        return np.zeros((1, 2), np.float32)

    episode = iv.rollout(env, act, max_steps=3)
    assert len(episode) == 3
    assert not episode.interventions
    assert copies[0].spec == env.spec


def test_a_copy_on_a_device_goes_on_there():
    pytest.importorskip("torch")
    venv = iv.make_vec("chemistry/chain-v1", num_envs=2, device="torch")
    venv.reset(seed=0)
    twin = copy.deepcopy(venv)
    action = venv.action_space.sample()
    mine, theirs = venv.step(action)[0], twin.step(action)[0]
    assert all(bool((mine[name] == theirs[name]).all()) for name in mine)
