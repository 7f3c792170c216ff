"""The core of each of CausalWorld's tutorials, by its folder, and the lines of its README.

That of save_state is in `test_causalworld_suite.py`.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.uniform import Everything, Goals, Visual
from interverse.actors.wrappers import CurriculumEnv
from interverse.agents.cem import CEM, Planner, run_planner
from interverse.envs.wrappers import (
    GoalDict,
    MovingAverageAction,
    ObjectSelector,
    StartingState,
    sample_new_goal,
)
from interverse.protocols.protocol import Protocol
from interverse.rollouts import Episode, EpisodeFolder, RecordEpisodes, replay
from interverse.rollouts.video import record_episode
from interverse.worlds.trifinger import inverse_kinematics
from tests.rollouts.test_archives import second_version

PUSHING = "trifinger/pushing-v1"
SHORT = {"episodes": 1, "max_steps": 3}
GOALS = Curriculum(stages=(Stage(actor=Goals()),))


def some_steps(env, count=2):
    for _ in range(count):
        seen, reward, *_, info = env.step(env.action_space.sample())
    return seen, reward, info


# --- requesting_task, get_full_state, save_state, set_start_state, README's first lines ----------


@pytest.mark.parametrize("task", ["creative_stacked_blocks", "general"])
def test_requesting_task_one(make, task):
    env = make(f"trifinger/{task}-v1")
    for _ in range(2):
        env.reset()
        some_steps(env)


def test_requesting_task_two(make):
    options = {"observation_mode": "pixel", "cameras": [0, 1, 2], "image_size": 32}
    seen, *_ = some_steps(make("trifinger/stacked_blocks-v1", skip_frame=10, **options), 1)
    assert seen.shape == (6, 32, 32, 3)


def reach(seen):
    """The controller of theirs: joints that bring the tips to the goals, of raw observations."""
    return inverse_kinematics(seen[..., -9:], seen[..., 1:10]).astype(np.float32)


RAW = {"normalize_actions": False, "normalize_observations": False}


def test_requesting_task_three(make):
    env = make("trifinger/reaching-v1", **RAW)
    seen = env.unwrapped.do(sample_new_goal(env)).observation
    for _ in range(60):
        seen, *_, info = env.step(reach(seen))
    assert info["fractional_success"] > 0.5


def test_get_full_state_one(make):
    env = make("trifinger/creative_stacked_blocks-v1")
    values = env.unwrapped.values
    assert set(values) == set(env.unwrapped.variables)
    assert values["block_23/cartesian_position"].shape == (3,)


def test_set_start_state_one_and_interventions_five(make):
    env = make("trifinger/picking-v1", StartingState)
    with pytest.raises(iv.InterventionError, match="above the middle"):  # on purpose: see the page
        env.set_starting_state({"goal_0/cartesian_position": (0.1, 0.1, 0.1)})
    env.set_starting_state({"goal_0/cartesian_position": (0.0, 0.0, 0.1)})
    env.reset()
    assert env.unwrapped.values["goal_0/cartesian_position"][2] == 0.1
    env.reset_default_state()
    assert env.unwrapped.values["goal_0/cartesian_position"][2] == 0.15


# --- interventions, guided_goal_generation, priviliged_information -------------------------------


def test_interventions_one(make):
    env, rng = make("trifinger/picking-v1"), np.random.default_rng(0)
    for name in ("block_0/mass", "floor/color", "stage/friction"):
        value = env.unwrapped.variables[name].space_a.sample(rng)
        assert env.unwrapped.do({name: value}).applied
        some_steps(env, 1)


@pytest.mark.parametrize(("space", "taken"), [("A_B", True), ("A", True), ("B", False)])
def test_interventions_two(make, space, taken):
    env = make("trifinger/pushing-v1", space=space)
    space_a = env.unwrapped.variables["stage/color"].space_a
    color = {"stage/color": space_a.sample(np.random.default_rng(0))}
    if taken:
        assert env.unwrapped.do(color).applied
    else:
        with pytest.raises(iv.InterventionError, match="space B"):
            env.unwrapped.do(color)


def test_interventions_three(make):
    env = make("trifinger/stacked_blocks-v1")
    for draw in range(3):
        assert env.unwrapped.do(sample_new_goal(env, draw=draw)).applied


@pytest.mark.parametrize("task", ["general", "pushing"])
def test_interventions_four_and_priviliged_information_two(make, task):
    env = make(f"trifinger/{task}-v1", info_solution=True)
    env.unwrapped.do(sample_new_goal(env))
    *_, info = env.step(env.action_space.low)
    env.unwrapped.do(info["solution"], check=False)
    assert env.unwrapped.values["fractional_success"] > 0.9


def test_priviliged_information_one(make):
    env = make("trifinger/reaching-v1", info_solution=True, normalize_actions=False)
    env.unwrapped.do(sample_new_goal(env))
    for _ in range(60):
        world = env.unwrapped.world
        solution = world.task.solution(world._store.rows)["joint_positions"][0]
        *_, info = env.step(np.float32(solution))
    assert info["solution"]["joint_positions"].shape == (9,)
    assert info["fractional_success"] > 0.5


def test_interventions_six(make):
    env, rng = make("trifinger/pick_and_place-v1"), np.random.default_rng(0)
    space = env.unwrapped.variables["block_0/size"].space_a
    outcome = env.unwrapped.do({"block_0/size": space.sample(rng)})
    assert "goal_0/size" in outcome.changed


def test_guided_goal_generation_one(make):
    env = make("trifinger/pushing-v1")
    for step in range(3):
        place = (0.0, -0.08 + 0.04 * step, 0.0325)
        env.unwrapped.do(
            {"goal_0/cartesian_position": place, "goal_0/color": (0, 0, 1)}, check=False
        )
        some_steps(env, 1)
        np.testing.assert_allclose(env.unwrapped.values["goal_0/cartesian_position"], place)


# --- change_action_space -------------------------------------------------------------------------


def test_change_action_space_one(make):
    env = make("trifinger/reaching-v1", action_mode="delta_joint_positions", skip_frame=1)
    before = env.unwrapped.values["joint_positions"].copy()
    env.step(np.zeros(9, dtype=np.float32))
    assert np.abs(env.unwrapped.values["joint_positions"] - before).max() < 0.01


def test_change_action_space_two(make):
    env = make("trifinger/picking-v1", ObjectSelector, skip_frame=1)
    for _ in range(10):
        *_, info = env.step(np.array([0, 1, 0]))
        assert info["refused"] == ""
    assert env.unwrapped.values["block_0/cartesian_position"][2] > 0.05


def test_change_action_space_three(make):
    env = make("trifinger/reaching-v1", MovingAverageAction, skip_frame=1)
    some_steps(env)


# --- curriculums, saving_and_loading, logging_data, viewing_policies, using_agents ---------------


@pytest.mark.parametrize("task", ["reaching", "pick_and_place"])
def test_curriculums_one_and_three(make, task):
    env, seen = make(f"trifinger/{task}-v1", lambda env: CurriculumEnv(env, GOALS)), []
    for _ in range(3):
        seen.append(env.unwrapped.values["goal_0/cylindrical_position"].copy())
        env.reset()
    assert not np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[1], seen[2])


def test_curriculums_two(make):
    stages = (
        Stage(actor=Goals(), first=1, last=2),
        Stage(actor=Visual(), first=2, last=4, period=2),
        Stage(actor=Everything(), first=4, last=5),
        Stage(actor=Goals(), first=5, last=6, step=2),
    )
    env = make(PUSHING, lambda env: CurriculumEnv(env, Curriculum(stages=stages)), max_steps=5)
    asked = []
    for _ in range(7):
        some_steps(env, 4)
        asked.append({name for e in env.unwrapped.driver.log(0) for name in e.values})
        env.reset()
    goal = "goal_0/cylindrical_position"

    def when(name: str) -> list[int]:
        return [episode for episode, names in enumerate(asked) if name in names]

    assert [e for e in when(goal) if e != 4] == [1, 2, 5, 6]  # in 4 a coin may draw sizes instead
    assert when("floor/color") == [2, 4, 5]
    assert when("floor/friction") == [4, 5]


def test_saving_and_loading_one(make):
    env = make("trifinger/pushing-v1", action_mode="delta_joint_positions", skip_frame=1)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.world.options == env.unwrapped.world.options
    again.close()


def test_logging_data_one_and_viewing_policies_two_and_three(tmp_path):
    env = RecordEpisodes(iv.make(PUSHING, max_steps=3), tmp_path / "episodes")
    for _ in range(3):
        env.reset()
        some_steps(env, 3)
    env.close()
    episodes = EpisodeFolder(tmp_path / "episodes")
    assert len(episodes) == 3
    assert replay(episodes[1]).fingerprint == episodes[1].fingerprint
    episodes[1].save(tmp_path / "one")
    assert Episode.load(tmp_path / "one").fingerprint == episodes[1].fingerprint
    record_episode(episodes[1], tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").stat().st_size > 1000


def test_viewing_policies_one():
    episode = iv.rollout(iv.make("trifinger/reaching-v1", skip_frame=1), "scripted", max_steps=300)
    assert episode.info["fractional_success"][-1] > 0.9


@pytest.mark.parametrize("task", ["picking", "pick_and_place"])
def test_viewing_policies_four_five_and_models_of_other_trainers(make, tmp_path, task):
    """Also stable_baselines two and three, rlkit two, rlpyt two and three: a saved policy plays."""
    width = {"picking": 56, "pick_and_place": 67}[task]
    second_version(tmp_path / "model.zip", seen=width)
    env = make(f"trifinger/{task}-v1", skip_frame=3)
    episode = iv.rollout(env, tmp_path / "model.zip", seed=0, max_steps=3)
    assert episode.actions.shape == (3, 9)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("pick_and_place", {"skip_frame": 3}),
        (
            "stacking2",
            {"action_mode": "end_effector_positions", "defaults": {"block_0/mass": 0.02}},
        ),
    ],
    ids=["one", "two"],
)
def test_using_agents(make, task, options):
    """Whole episodes of both: `tests/worlds/trifinger/test_scripted.py`."""
    env = make(f"trifinger/{task}-v1", **options)
    before = env.unwrapped.values["end_effector_positions"].copy()
    iv.rollout(env, "scripted", seed=0, max_steps=25)
    assert np.abs(env.unwrapped.values["end_effector_positions"] - before).max() > 0.02


# --- evaluating_model ----------------------------------------------------------------------------


def test_evaluating_model_one_and_five():
    for name, space in (("P10", "A"), ("P11", "B")):
        protocol = Protocol(name=f"mine_{name}", everything=space)
        frame = iv.evaluate("scripted", PUSHING, protocol, skip_frame=3, **SHORT).to_pandas()
        assert list(frame.protocol) == [f"mine_{name}"]


def test_evaluating_model_two_and_three(tmp_path):
    results = iv.evaluate("random", "trifinger/reaching-v1", "P0,P5", out=tmp_path / "out", **SHORT)
    results.to_parquet(tmp_path / "scores.parquet")
    iv.report(results, tmp_path / "report", episodes=False)
    assert (tmp_path / "report").is_dir()
    assert list(results.to_pandas().protocol) == ["P0", "P5"]


def test_evaluating_model_four():
    goals = "goal_*/cylindrical_position"
    protocols = [Protocol(name=f"goals_{s}", variables={goals: s}) for s in "AB"]
    options = {"episodes": 2, "max_steps": 60, **RAW}
    frame = iv.evaluate(reach, "trifinger/reaching-v1", protocols, **options).to_pandas()
    assert (frame.groupby("protocol").last_fractional_success.mean() > 0.5).all()


def test_evaluating_model_six(tmp_path):
    scores = []
    for name in ("curr0", "curr1"):
        second_version(tmp_path / f"{name}.zip")
        scores.append(iv.evaluate(tmp_path / f"{name}.zip", PUSHING, "P0", skip_frame=3, **SHORT))
    iv.report(
        dict(zip(("PPO(0)", "PPO(1)"), scores, strict=True)), tmp_path / "report", episodes=False
    )
    assert {row for each in scores for row in each.to_pandas().experiment} == {"curr0", "curr1"}


# --- stable_baselines, rlkit, rlpyt, defining_task, mpc_w_true_model -----------------------------


def test_stable_baselines_one_and_rlpyt_one():
    venv = iv.make_vec(PUSHING, 2, skip_frame=3)
    venv.reset(seed=0)
    seen, reward, *_ = venv.step(venv.action_space.sample())
    assert seen.shape == (2, 56)
    assert reward.shape == (2,)
    venv.close()


def test_stable_baselines_two_and_rlkit_one(make):
    env = make(
        "trifinger/reaching-v1",
        lambda env: GoalDict(CurriculumEnv(env, GOALS)),
        sparse_reward=True,
    )
    seen, _ = env.reset(seed=0)
    assert set(seen) == {"observation", "achieved_goal", "desired_goal"}
    seen, reward, *_ = env.step(env.action_space.sample())
    assert env.compute_reward(seen["achieved_goal"], seen["desired_goal"]) == reward


def test_defining_task_one(make):
    env = make("tests.parity.tetrahedron:lab/tetrahedron-v1")
    np.testing.assert_allclose(env.unwrapped.values["block_0/size"], 0.06)
    _, _, info = some_steps(env)
    assert 0.0 <= info["fractional_success"] <= 1.0


def test_mpc_w_true_model_one(make):
    defaults = {
        "joint_positions": (-0.217, 0.556, -1.093, -0.129, 0.526, -1.08, -0.002, 0.462, -1.009),
        "block_0/cartesian_position": (0.0, 0.0, 0.035),
    }
    env = make(
        "trifinger/picking-v1",
        defaults=defaults,
        fractional_reward_weight=1.0,
        dense_reward_weights=(0, 10, 0, 1, 1, 0, 0, 0),
        max_steps=3,
    )
    config = CEM(horizon=2, iterations=1, population=4, elites=2)
    planner = Planner(env, config)
    earned = run_planner(env, planner, plans=1, rng=np.random.default_rng(0))
    assert np.isfinite(earned)
    planner.close()


# --- README --------------------------------------------------------------------------------------


def test_readme_do_interventions(make):
    env = make("trifinger/general-v1")
    assert env.unwrapped.do({"stage/color": (0.4, 0.3, 0.5)}, check=False).applied
    some_steps(env)
