"""Built scenes: they stand, fit, hold over episodes, and can be drawn from both spaces."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.core.rng import Noise
from interverse.envs.wrappers import StartingState, sample_new_goal
from interverse.worlds.trifinger.tasks import TASKS
from interverse.worlds.trifinger.tasks import building as shapes

RECORDED = json.loads(
    (Path(__file__).parents[2] / "parity" / "data" / "trifinger.json").read_text()
)["initial_state"]["tasks"]
DEFAULTS = {
    "towers": shapes.tower((1, 1, 5), np.array([0.035, 0.035, 0.175]), np.zeros(2)),
    "stacked_blocks": shapes.level_rows(5, 0.035, 0.25, ends_only=False),
    "creative_stacked_blocks": shapes.level_rows(8, 0.035, 0.12, ends_only=True),
}


@pytest.mark.parametrize("task", DEFAULTS)
def test_default_shapes_are_the_originals(task):
    shape, recorded = DEFAULTS[task], RECORDED[task]
    assert shape.starts == pytest.approx(np.array(recorded["tool_positions"]), abs=1e-9)
    assert shape.goals[shape.wanted] == pytest.approx(
        np.array(recorded["goal_positions"]), abs=1e-9
    )
    assert shape.sizes[0] == pytest.approx(recorded["tool_sizes_first"])


@given(
    counts=st.tuples(*[st.integers(1, 5)] * 3),
    dims=st.tuples(*[st.floats(0.08, 0.2)] * 3),
    centre=st.tuples(*[st.floats(-0.1, 0.1)] * 2),
)
def test_a_tower_is_filled_without_gaps(counts, dims, centre):
    shape = shapes.tower(counts, np.array(dims), np.array(centre))
    assert len(shape.goals) == np.prod(counts)
    assert shape.sizes.prod(axis=1).sum() == pytest.approx(np.prod(dims))
    low = (shape.goals - shape.sizes / 2).min(axis=0)
    high = (shape.goals + shape.sizes / 2).max(axis=0)
    assert low == pytest.approx([centre[0] - dims[0] / 2, centre[1] - dims[1] / 2, 0], abs=1e-12)
    assert high - low == pytest.approx(dims)
    assert (shape.starts[:, 2] >= shape.sizes[:, 2] / 2 - 1e-12).all()


def test_a_tower_without_blocks_is_refused():
    with pytest.raises(InvalidValueError, match=r"at least one block a side, got \(0, 1, 1\)"):
        shapes.tower((0, 1, 1), np.ones(3), np.zeros(2))


@given(
    seed=st.integers(0, 2**32 - 1),
    levels=st.integers(1, 8),
    edge=st.floats(0.035, 0.075),
    width=st.floats(0.035, 0.15),
)
def test_a_random_stack_stands(seed, levels, edge, width):
    shape = shapes.random_stack(
        np.random.default_rng(seed), levels, edge, max(edge, width), ends_only=False
    )
    level = np.round(shape.goals[:, 2] / edge - 0.5).astype(int)
    assert set(level) == set(range(levels))
    assert (shape.sizes[:, 0] >= edge - 1e-12).all()
    assert shape.sizes[:, 1:] == pytest.approx(edge)
    for k in range(1, levels):
        below = shape.goals[level == k - 1, 0], shape.sizes[level == k - 1, 0] / 2
        low, high = (below[0] - below[1]).min(), (below[0] + below[1]).max()
        assert (shape.goals[level == k, 0] >= low - 1e-9).all()
        assert (shape.goals[level == k, 0] <= high + 1e-9).all()
    assert (np.abs(shape.goals[:, 1]) <= shapes.ARENA).all()
    assert (np.hypot(shape.starts[:, 0], shape.starts[:, 1]) <= 0.15).all()


def test_creative_wants_the_first_and_last_level_only():
    shape = shapes.random_stack(np.random.default_rng(1), 4, 0.05, 0.12, ends_only=True)
    level = np.round(shape.goals[:, 2] / 0.05 - 0.5).astype(int)
    assert set(level[shape.wanted]) == {0, 3}
    assert set(level[~shape.wanted]) == {1, 2}


def test_the_same_generator_gives_the_same_stack():
    one, two = (
        shapes.random_stack(np.random.default_rng(7), 5, 0.04, 0.12, ends_only=False)
        for _ in range(2)
    )
    assert np.array_equal(one.goals, two.goals)
    assert np.array_equal(one.starts, two.starts)


def test_drops_are_the_fixed_list_or_drawn():
    fixed = shapes.drops(5)
    assert fixed[:, 0].tolist() == [list(place) for place in shapes.DROPS[:5]]
    assert not fixed[:, 1].any()
    places, turns = np.moveaxis(shapes.drops(20, np.random.default_rng(0)), 1, 0)
    assert (np.abs(places[:, :2]) <= 0.11).all()
    assert ((places[:, 2] >= 0) & (places[:, 2] <= 0.22)).all()
    assert ((turns >= 0) & (turns <= 2 * np.pi)).all()


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


def test_other_values_draw_another_scene(make):
    env = make("trifinger/stacked_blocks-v1")
    env.reset(seed=3, options={"do": {"stack/levels": 1, "stack/max_width": 0.1}})
    first = scene(env)["goal/position"][0, 0, :2]
    env.reset(options={"do": {"stack/levels": 1, "stack/max_width": 0.1001}})
    assert np.abs(scene(env)["goal/position"][0, 0, :2] - first).max() > 1e-3


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
