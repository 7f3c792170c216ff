"""Built scenes hold still over episodes, and both spaces of every generator can be drawn from."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.core.rng import Noise
from interverse.envs.wrappers import StartingState, sample_new_goal
from interverse.worlds.trifinger.tasks import TASKS

GENERATORS = ("creative_stacked_blocks", "general", "stacked_blocks", "towers")


def scene(env):
    """Returns how the objects of an episode stand."""
    rows = env.unwrapped.world._store.rows
    keys = ("position", "orientation", "size", "used")
    return {
        f"{kind}/{key}": rows[f"{kind}/{key}"].copy() for kind in ("block", "goal") for key in keys
    }


def same(a, b):
    return all(np.array_equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("task", list(TASKS))
def test_episodes_of_a_seed_start_alike(task):
    env = StartingState(iv.make(f"trifinger/{task}-v1", skip_frame=1))
    env.reset(seed=0)
    default = scene(env)
    for _ in range(3):
        env.step(env.action_space.sample())
        env.reset()
        assert same(scene(env), default)
    env.set_starting_state(sample_new_goal(env, space="A"))
    held = scene(env)
    assert not same(held, default)
    for _ in range(3):
        env.reset()
        assert same(scene(env), held)
    env.reset_default_state()
    assert same(scene(env), default)
    env.close()


@pytest.mark.parametrize(
    ("task", "given"), [("general", {}), ("stacked_blocks", {"stack/levels": 2})]
)
def test_scenes_can_be_drawn_in_each_episode(task, given):
    starts = {}
    for drawn in (False, True):
        env = iv.make(f"trifinger/{task}-v1", draw_scenes=drawn)
        starts[drawn] = []
        for episode in range(2):
            env.reset(
                seed=3, options={"do": given, "episode": episode} if episode else {"do": given}
            )
            starts[drawn].append(scene(env))
        env.close()
    assert same(*starts[False])
    assert not same(*starts[True])
    assert same(starts[False][0], starts[True][0]) is (not given)


def test_other_values_draw_another_scene():
    env = iv.make("trifinger/stacked_blocks-v1")
    env.reset(seed=3, options={"do": {"stack/levels": 1, "stack/max_width": 0.1}})
    first = scene(env)["goal/position"][0, 0, :2]
    env.reset(options={"do": {"stack/levels": 1, "stack/max_width": 0.1001}})
    assert np.abs(scene(env)["goal/position"][0, 0, :2] - first).max() > 1e-3
    env.close()


@pytest.mark.parametrize("space", ["A", "B"])
@pytest.mark.parametrize("task", [*GENERATORS, "stacking2", "pushing", "picking", "reaching"])
def test_first_draws_of_a_space_are_accepted(task, space):
    count = 5
    venv = iv.make_vec(f"trifinger/{task}-v1", count, skip_frame=1, space=space)
    venv.reset(seed=0)
    driver = venv.unwrapped.driver
    worlds, noise = np.arange(count), Noise(driver.seeds, driver.episodes, driver.steps)
    outcome = venv.do(dict(driver.world.sample_goal(worlds, noise, space)))
    assert outcome.applied.mean() >= 0.8, outcome.reasons
    if task in GENERATORS:  # nothing was laid out where it is thrown about
        before = scene(venv)
        venv.step(np.zeros((count, 9), dtype=np.float32))
        moved = scene(venv)["block/position"] - before["block/position"]
        assert np.abs(moved).max() < 0.005
    venv.close()


def test_room_follows_the_space_that_is_asked_for():
    for task, space, room in (("towers", "A", 27), ("towers", "A_B", 5), ("general", "B", 9)):
        env = iv.make(f"trifinger/{task}-v1", space=space)
        assert env.unwrapped.world.scene.block_count == room
        env.close()
