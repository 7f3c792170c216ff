"""Worlds as stable-worldmodel takes them.

Where the package is not installed, a stand-in with the part of its published interface that is used
here (`Box` and `Dict` with values, `reset_variation_space`) takes its place.
"""

import importlib
import sys
from types import ModuleType

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv


class Box(gym.spaces.Box):
    def __init__(self, low, high, shape=None, init_value=None, **kwargs):
        super().__init__(low, high, shape, **kwargs)
        self.init_value = self.value = init_value


class Dict(gym.spaces.Dict):
    def update(self, names):
        for name in self.spaces if tuple(names) == ("all",) else names:
            self.spaces[name].value = self.spaces[name].sample()


def reset_variation_space(space, seed=None, options=None, default_variations=()):
    space.seed(seed)
    for part in space.spaces.values():
        part.value = part.init_value
    space.update((options or {}).get("variation", ()))
    for name, value in (options or {}).get("variation_values", {}).items():
        space.spaces[name].value = value


@pytest.fixture
def adapter(monkeypatch):
    """The adapter's module, on the real package or on the stand-in."""
    try:
        import stable_worldmodel  # noqa: F401
    except (ImportError, RuntimeError):
        package, spaces = ModuleType("stable_worldmodel"), ModuleType("stable_worldmodel.spaces")
        spaces.Box, spaces.Dict = Box, Dict
        spaces.reset_variation_space = reset_variation_space
        package.spaces = spaces
        monkeypatch.setitem(sys.modules, "stable_worldmodel", package)
        monkeypatch.setitem(sys.modules, "stable_worldmodel.spaces", spaces)
    monkeypatch.delitem(sys.modules, "interverse.envs.worldmodel", raising=False)
    return importlib.import_module("interverse.envs.worldmodel")


def test_variations_are_the_variables_with_a_space(adapter):
    env = adapter.VariationEnv("tutorial/slider-v1")
    mass = env.variation_space["box/mass"]
    assert (float(mass.low), float(mass.high), float(mass.init_value)) == (0.3, 0.6, 0.5)
    assert "goal/position" in env.variation_space.spaces
    env.close()


def test_a_drawn_variation_is_a_do_at_the_start(adapter):
    env = adapter.VariationEnv("tutorial/slider-v1")
    plain, _ = env.reset(seed=3)
    seen, _ = env.reset(seed=3, options={"variation": ["box/mass"]})
    drawn = env.variation_space["box/mass"].value
    assert env.env.values["box/mass"] == drawn != 0.5
    assert np.array_equal(plain, seen), "the mass is hidden"
    env.reset(seed=3, options={"variation_values": {"box/mass": np.array(0.42)}})
    assert env.env.values["box/mass"] == 0.42
    again, _ = env.reset(seed=3)
    assert env.env.values["box/mass"] == 0.5
    assert np.array_equal(plain, again)
    env.close()


def test_variations_of_a_crowded_world_hold_together(adapter):
    env = adapter.VariationEnv("trifinger/pushing-v1", max_steps=3)
    names = ["gravity", "floor/friction", "block_0/mass", "block_0/size", "block_0/color"]
    env.reset(seed=0, options={"variation": names})
    for name in names:
        space = env.variation_space[name]
        assert space.contains(np.asarray(space.value, dtype=space.dtype)), name
        assert np.array_equal(env.env.values[name], space.value), name
    assert "goal_0/size" not in env.variation_space.spaces, "it is the block's"
    env.step(env.action_space.sample())
    env.close()


def test_gymnasium_makes_them_by_name(adapter):
    env = gym.make("interverse.envs.worldmodel:worldmodel/tutorial-slider-v1")
    seen, info = env.reset(seed=0)
    assert info["env_name"] == "tutorial/slider-v1"
    assert np.array_equal(seen, iv.make("tutorial/slider-v1").reset(seed=0)[0])
    env.close()
