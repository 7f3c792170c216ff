"""The TriFinger tasks: built scenes, rewards, info, hints, contacts, a task of one's own."""

import importlib
import inspect
import pkgutil
from dataclasses import replace

import numpy as np
import pytest

import interverse as iv
import interverse.core.errors
from interverse.rollouts.laws import check_laws
from interverse.worlds.trifinger import tasks as task_folder
from interverse.worlds.trifinger.scene import ArenaScene, Block, BlockMesh, Goal
from interverse.worlds.trifinger.tasks import TASKS, load_task
from interverse.worlds.trifinger.tasks.task import Task
from tests.worlds.trifinger.clearing import RING, Clearing

ZERO = np.zeros(9, dtype=np.float32)


def positions(env, kind, count):
    return np.array([env.unwrapped.values[f"{kind}_{i}/cartesian_position"] for i in range(count)])


def test_every_task_of_the_folder_is_in_the_table():
    modules = pkgutil.iter_modules(task_folder.__path__, f"{task_folder.__name__}.")
    members = [vars(importlib.import_module(module.name)).values() for module in modules]
    kinds = {kind for found in members for kind in found if inspect.isclass(kind)}
    tasks = {kind for kind in kinds if issubclass(kind, Task) and hasattr(kind, "name")}
    assert {kind.name: kind for kind in tasks} == {name: load_task(name) for name in TASKS}


# ------------------------------------------------------------------------------------- building


def test_a_tower_fills_its_box(envs):
    env = envs("towers", max_blocks=12)
    dims, center = np.array([0.09, 0.08, 0.12]), np.array([-0.02, 0.01])
    env.unwrapped.do({"tower/counts": (2, 2, 3), "tower/dims": dims, "tower/center": center})
    size = env.unwrapped.values["goal_11/size"]
    np.testing.assert_allclose(size, dims / (2, 2, 3))
    goals = positions(env, "goal", 12)
    low, high = goals.min(axis=0) - size / 2, goals.max(axis=0) + size / 2
    np.testing.assert_allclose(low, (*(center - dims[:2] / 2), 0.0), atol=1e-12)
    np.testing.assert_allclose(high, (*(center + dims[:2] / 2), dims[2]), atol=1e-12)
    starts = positions(env, "block", 12)
    assert len(np.unique(np.round(starts, 6), axis=0)) == 12
    env.step(ZERO)
    assert np.abs(positions(env, "block", 12) - starts).max() < 0.005  # they stand still


def test_a_scene_without_room_is_refused_naming_the_option(envs):
    env = envs("towers")
    before = env.unwrapped.snapshot().to_bytes()
    with pytest.raises(iv.InterventionError, match="max_blocks=8"):
        env.unwrapped.do({"tower/counts": (2, 2, 2)})
    assert env.unwrapped.snapshot().to_bytes() == before
    with pytest.raises(iv.InterventionError, match="max_blocks"):
        envs("general").unwrapped.do({"general/count": 7})


def test_fewer_blocks_leave_the_others_out_of_the_way(envs):
    env = envs("towers")
    env.unwrapped.do({"tower/counts": (1, 1, 2), "tower/dims": (0.08, 0.08, 0.1)})
    with pytest.raises(iv.InterventionError, match="block_3 is not in use"):
        env.unwrapped.do({"block_3/cartesian_position": (0.0, 0.0, 0.05)})
    for _ in range(10):
        env.step(ZERO)
    parked = env.unwrapped.world._physics._qpos[0, 9 + 7 * 3 : 9 + 7 * 3 + 3]
    np.testing.assert_allclose(parked, (0.0, 0.0, 2.0 + 0.25 * 3))
    env.reset(seed=0)
    assert env.unwrapped.values["block_3/cartesian_position"].any()


@pytest.mark.parametrize("task", ["stacked_blocks", "creative_stacked_blocks"])
def test_a_stack_follows_from_its_variables_and_the_seed(envs, task):
    env = envs(task)
    given = {"stack/levels": 3, "stack/min_size": 0.05, "stack/max_width": 0.1}

    def build(seed):
        env.reset(seed=seed)
        env.unwrapped.do(given)
        used = env.unwrapped.world._store.rows["goal/used"][0].sum()
        return positions(env, "goal", used), positions(env, "block", 3)

    first, again, other = build(3), build(3), build(4)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[1], other[1])
    heights = np.unique(np.round(first[0][:, 2], 9))
    wanted = [0.025, 0.125] if task.startswith("creative") else [0.025, 0.075, 0.125]
    np.testing.assert_allclose(heights, wanted)
    assert np.all(np.hypot(*first[1][:, :2].T) <= 0.15 + 1e-9)
    env.unwrapped.do({"stack/levels": 4})
    env.unwrapped.do({"stack/levels": 3})
    assert np.array_equal(positions(env, "block", 3), other[1])  # whatever was before


def test_general_heaps_are_at_rest_and_its_starts_are_free(envs):
    env = envs("general")
    goals = positions(env, "goal", 5)
    assert np.all(goals[:, 2] > 0.02)
    starts = positions(env, "block", 5)
    env.step(ZERO)
    moved = np.linalg.norm(positions(env, "block", 5) - starts, axis=1)
    assert moved.max() < 0.01
    env.reset(seed=1)
    assert not np.array_equal(positions(env, "block", 5), starts)
    assert np.array_equal(positions(env, "goal", 5), goals)
    env.unwrapped.do({"general/count": 3, "general/size": 0.06})
    assert env.unwrapped.world._store.rows["block/used"][0].tolist() == [True] * 3 + [False] * 2
    again = positions(env, "goal", 3)
    env.reset(seed=1, options={"do": {"general/count": 3, "general/size": 0.06}})
    assert np.array_equal(positions(env, "goal", 3), again)


def test_blocks_mass_is_every_blocks_mass(envs):
    env = envs("stacked_blocks")
    outcome = env.unwrapped.do({"blocks/mass": 0.05})
    assert outcome.changed == {"blocks/mass", *(f"block_{i}/mass" for i in range(35))}
    assert env.unwrapped.values["block_34/mass"] == 0.05


def test_obstacles_stand_in_the_way(envs):
    env = envs("reaching")
    env.unwrapped.do({"obstacles/count": 3})
    rows = env.unwrapped.world._store.rows
    first = rows["obstacle/position"][0, :3].copy()
    assert rows["obstacle/used"][0].tolist() == [True] * 3 + [False] * 2
    env.unwrapped.do({"obstacles/count": 5})
    assert np.array_equal(rows["obstacle/position"][0, :3], first)
    env.reset(seed=0)
    assert not rows["obstacle/used"].any()


# --------------------------------------------------------------------------------------- rewards


def test_a_sparse_reward_is_the_step_time_on_success(envs):
    env = envs("pushing", sparse_reward=True)
    assert env.step(ZERO)[1] == 0.0
    env.unwrapped.do({"block_0/cartesian_position": (0.0, 0.08, 0.0325)})
    _, reward, *_, info = env.step(ZERO)
    assert info["success"]
    assert reward == pytest.approx(0.04)


def test_weights_of_the_wrong_number_are_refused():
    with pytest.raises(iv.errors.InvalidValueError, match="3, one for each dense term of pushing"):
        iv.make("trifinger/pushing-v1", dense_reward_weights=(1.0, 2.0))


def test_info_tells_success_and_goals(envs):
    _, info = envs("stacking2").reset(seed=0)
    assert info["achieved_goal"].shape == info["desired_goal"].shape == (12,)
    np.testing.assert_allclose(info["desired_goal"][:3], (-0.0925, -0.0925, 0.0), atol=1e-12)
    assert info["success"] is False
    _, info = envs("reaching").reset(seed=0)
    assert info["achieved_goal"].shape == (9,)
    np.testing.assert_array_equal(info["desired_goal"], (0, 0, 0.1, 0, 0, 0.13, 0, 0, 0.16))


# ------------------------------------------------------------------------- hints, contacts, starts


@pytest.mark.parametrize("task", ["pushing", "picking", "stacking2", "towers", "reaching"])
def test_the_solution_solves_the_task(envs, task):
    env = envs(task, info_solution=True, info_state=True)
    _, info = env.reset(seed=0)
    env.unwrapped.do(info["solution"], check=False)
    assert env.unwrapped.values["fractional_success"] == pytest.approx(1.0)
    np.testing.assert_array_equal(
        info["state"]["joint_positions"], env.unwrapped.variables["joint_positions"].default
    )


def test_hints_of_many_worlds_have_masks():
    venv = iv.make_vec("trifinger/reaching-v1", 2, info_solution=True, info_state=True)
    _, info = venv.reset(seed=0)
    assert info["solution"]["joint_positions"].shape == (2, 9)
    assert info["_state"].all()
    assert info["state"]["_gravity"].all()
    venv.close()


def test_contacts_and_forces_can_be_asked(envs):
    env = envs("stacking2", contact_sensors=True)
    world = env.unwrapped.world
    above = {"block_0/cartesian_position": (0.0, 0.0, 0.0325)}
    env.unwrapped.do(above | {"block_1/cartesian_position": (0.0, 0.0, 0.0975)})
    for _ in range(10):
        env.step(np.zeros(9, dtype=np.float32))
    assert world.contact("block_0", "block_1").tolist() == [True]
    assert world.contact("floor", "block_1").tolist() == [False]
    weight = 2 * 0.02 * 9.81
    assert world.contact_force("floor", "block_0")[0, 2] == pytest.approx(weight, rel=0.1)
    assert world.contact_force("block_0", "floor")[0, 2] == pytest.approx(-weight, rel=0.1)
    with pytest.raises(iv.errors.UnknownNameError, match="pair of objects"):
        world.contact("block_0", "moon")
    with pytest.raises(iv.errors.InvalidValueError, match="contact_sensors=True"):
        envs("pushing").unwrapped.world.contact("floor", "block_0")


def test_contacts_follow_an_intervention_at_once(envs):
    env = envs("pushing", contact_sensors=True)
    world = env.unwrapped.world
    env.step(np.zeros(9, dtype=np.float32))
    assert world.contact("floor", "block_0").tolist() == [True]
    env.unwrapped.do({"block_0/cartesian_position": (0.1, 0.1, 0.15)})
    assert world.contact("floor", "block_0").tolist() == [False]


def test_a_latched_start_holds_until_it_is_taken_back(make):
    env = make("trifinger/pushing-v1")
    fresh, _ = env.reset(seed=0)
    env.unwrapped.world.set_starting_state({"goal_0/cartesian_position": (0.05, 0.0, 0.0325)})
    for _ in range(2):
        env.reset()
        assert env.unwrapped.values["goal_0/cartesian_position"][0] == 0.05
    env.unwrapped.world.set_starting_state({"block_0/mass": 0.04})  # adds to it
    env.reset()
    assert env.unwrapped.values["goal_0/cartesian_position"][0] == 0.05
    assert env.unwrapped.values["block_0/mass"] == 0.04
    env.unwrapped.world.set_starting_state(None)
    assert np.array_equal(env.reset(seed=0)[0], fresh)


# ---------------------------------------------------------------------------- a task of one's own


def prism():
    """Returns a triangular prism as vertices and triangles."""
    corners = [(0, 0), (1, 0), (0, 1)]
    vertices = [(x, y, z) for z in (0, 1) for x, y in corners]
    faces = [(0, 2, 1), (3, 4, 5)]
    for i in range(3):
        j = (i + 1) % 3
        faces += [(i, j, 3 + j), (i, 3 + j, 3 + i)]
    return vertices, faces


class Wedge(Task):
    """Push a wedge: all that a task of one's own needs."""

    name = "wedge"

    def scene(self):
        mesh = BlockMesh.from_points(*prism())
        return ArenaScene(
            blocks=(Block(position=(0.0, -0.05, 0.03), size=(0.06, 0.06, 0.06), mesh=mesh),),
            goals=(Goal(position=(0.0, 0.05, 0.03), size=(0.06, 0.06, 0.06), mesh=mesh),),
        )


def test_a_task_of_ones_own_is_a_short_class(make):
    env = make("trifinger/pushing-v1", task="tests.worlds.trifinger.test_tasks:Wedge")
    seen, info = env.reset(seed=0)
    assert seen[env.layout["block_0/type"]] == 2.0
    assert seen[env.layout["goal_0/type"]] == 23.0
    assert info["fractional_success"] == 0.0
    env.unwrapped.do({"block_0/mass": 0.03, "block_0/cartesian_position": (0.0, 0.05, 0.03)})
    for _ in range(5):
        *_, info = env.step(ZERO)
    assert info["fractional_success"] > 0.9
    assert env.unwrapped.world.max_steps == 251


def test_an_unknown_task_is_named_with_the_nearest():
    with pytest.raises(iv.errors.UnknownNameError, match="Did you mean 'pushing'"):
        iv.make("trifinger/pushing-v1", task="pushin")


ID = "tests.worlds.trifinger.clearing:lab/clearing-v1"


def test_its_score_sees_its_own_variable(make):
    env = make(ID, info_solution=True)
    values = env.unwrapped.values
    assert values["fractional_success"] == pytest.approx(0.05 / 0.12)
    outcome = env.unwrapped.do({RING: 0.1})
    assert outcome.changed == {RING, "fractional_success"}
    assert values["fractional_success"] == pytest.approx(0.5)
    *_, info = env.step(np.zeros(9, dtype=np.float32))
    assert info["desired_goal"].tolist() == [0.1]
    env.unwrapped.do(info["solution"], check=False)
    assert values["fractional_success"] == 1.0
    graph = env.unwrapped.graph
    assert graph.parents("fractional_success") == {RING, "block_0/cartesian_position"}
    assert graph.parents("reward") == {"fractional_success"}


@pytest.mark.slow
def test_it_keeps_every_law():
    broken = [law for law in check_laws(ID) if not law.passed]
    assert broken == []


def test_it_is_asked_again_for_every_world(monkeypatch):
    """What tasks of the package say is remembered; one's own may have changed meanwhile."""
    scene = Clearing.scene
    place = "block_0/cartesian_position"
    before = iv.make(ID).values[place]
    moved = (Block(position=(0.05, 0.0, 0.0325), mass=0.02),)
    monkeypatch.setattr(Clearing, "scene", lambda task: replace(scene(task), blocks=moved))
    assert iv.make(ID).values[place][0] == 0.05 != before[0]
